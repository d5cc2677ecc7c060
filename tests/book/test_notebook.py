"""A wrong parameter stops a run before it starts, with one line; a failing notebook leaves nothing behind."""

from pathlib import Path

import nbformat
import pytest
from commands import run
from notebook_files import code, write_notebook

from rmnb.book.notebook import check_parameters, results_directory, run_notebook
from rmnb.errors import InputError


@pytest.fixture
def notebook(tmp_path):
    return write_notebook(
        tmp_path / "chapter.ipynb",
        code('panel = "demo"\nn_boot = 200  # draws\nlevel: float = 1\nfast = False', "parameters"),
        code(
            "from rmnb.errors import InputError\n"
            "if panel == 'absent':\n    raise InputError('no panel at absent')\n"
            "assert panel != 'broken', 'broken'"
        ),
        code("print(panel, n_boot + 1, level, fast)"),
    )


def add_cell(notebook, source):
    write_notebook(notebook, *nbformat.read(notebook, 4).cells, code(source))


def test_text_is_read_as_the_type_of_the_default_or_the_annotation(notebook):
    given = {"panel": "7", "n_boot": "5", "level": "2", "fast": "true"}
    assert check_parameters(notebook, given) == {"panel": "7", "n_boot": 5, "level": 2.0, "fast": True}


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"pannel": "demo"}, ["pannel", "panel, n_boot, level, fast"]),
        ({"n_boot": "many"}, ["n_boot", "int", "many"]),
        ({"n_boot": 0}, ["n_boot", "1 or more", "got 0"]),
        ({"fast": "perhaps"}, ["fast", "bool"]),
    ],
)
def test_wrong_parameters_give_one_line_and_start_nothing(notebook, tmp_path, parameters, words):
    with pytest.raises(InputError) as refused:
        run_notebook(notebook, tmp_path / "out.ipynb", parameters)
    line = str(refused.value)
    assert "\n" not in line and all(word in line for word in words) and list(tmp_path.iterdir()) == [notebook]


def test_a_missing_or_damaged_notebook_gives_one_line(notebook):
    notebook.write_text("{not json")
    for path in (notebook, notebook.with_name("absent.ipynb")):
        with pytest.raises(InputError, match=rf"{path.name} is not a readable notebook: [^\n]+$"):
            check_parameters(path, {})


def test_a_run_passes_parameters_on_and_failures_leave_nothing(notebook, tmp_path):
    out = tmp_path / "deep" / "out.ipynb"
    add_cell(notebook, "# git clone https://github.com/OWNER/rmnb")
    add_cell(notebook, "from tqdm.auto import tqdm\nfor _ in tqdm(range(3)):\n    pass")
    cells = nbformat.read(run_notebook(notebook, out, {"n_boot": "5"}), 4).cells
    assert not cells[-1].outputs, "a progress bar would make a page fetch scripts"
    assert cells[-2].outputs[0].text == "demo 6 1 False\n", "an address that leads nowhere is not shown"
    assert {"injected-parameters", "remove-input"} <= set(cells[1].metadata["tags"])  # not shown on the page

    with pytest.raises(InputError, match=r"^chapter\.ipynb: no panel at absent$"):
        run_notebook(notebook, tmp_path / "deep" / "second.ipynb", {"panel": "absent"})
    with pytest.raises(InputError, match=r"^chapter\.ipynb: cell \d+ failed[\s\S]*broken"):
        run_notebook(notebook, tmp_path / "deep" / "third.ipynb", {"panel": "broken"})
    assert [path.name for path in out.parent.iterdir()] == ["out.ipynb"]


def test_results_go_beside_the_output_and_only_the_books_build_writes_the_books(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    add_cell(
        notebook, "import pandas as pd\nfrom rmnb import book\nbook.save('agreement', tau=pd.Series({'m': n_boot}))"
    )
    run_notebook(notebook, Path("book/_executed/chapter.ipynb"))
    before = Path("book/_executed/results/agreement.csv").read_bytes()
    run_notebook(notebook, Path("elsewhere/chapter.ipynb"), {"n_boot": "7"})
    assert Path("book/_executed/results/agreement.csv").read_bytes() == before
    assert Path("elsewhere/results/agreement.csv").read_bytes() != before
    assert results_directory() == Path("results")  # by hand, and after a run


def test_a_cell_that_fails_is_shown_with_its_error_in_few_lines(notebook, tmp_path, capsys, monkeypatch):
    add_cell(notebook, "import ast\nast.literal_eval('1 +')" + "\n#" * 40)
    exit_code = run(monkeypatch, "book", "run", notebook, tmp_path / "out.ipynb")
    lines = capsys.readouterr().err.splitlines()
    shown = lines[lines.index("rmnb: chapter.ipynb: cell 4 failed") :]
    assert shown[1:3] == ["    import ast", "    ast.literal_eval('1 +')"] and shown[-1].startswith("SyntaxError: ")
    assert len(shown) <= 20 and "more lines" in shown[-3] + shown[-2] and exit_code == 2
