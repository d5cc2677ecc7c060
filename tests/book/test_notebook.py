"""A wrong parameter stops a run before it starts, with one line; a failing notebook leaves nothing behind."""

from pathlib import Path

import nbformat
import papermill
import pytest

from rmnb.book.notebook import check_parameters, results_directory, run_notebook
from rmnb.cli.main import main
from rmnb.errors import InputError


@pytest.fixture
def notebook(tmp_path):
    cells = [
        nbformat.v4.new_code_cell(
            'panel = "demo"\nn_boot = 200  # draws\nlevel: float = 1\nfast = False', metadata={"tags": ["parameters"]}
        ),
        nbformat.v4.new_code_cell(
            "from rmnb.errors import InputError\n"
            "if panel == 'absent':\n    raise InputError('no panel at absent')\n"
            "assert panel != 'broken', 'broken'"
        ),
        nbformat.v4.new_code_cell("print(panel, n_boot + 1, level, fast)"),
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path = tmp_path / "chapter.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)
    return path


def test_text_is_read_as_the_type_of_the_default_or_the_annotation(notebook):
    given = {"panel": "7", "n_boot": "5", "level": "2", "fast": "true"}
    assert check_parameters(notebook, given) == {"panel": "7", "n_boot": 5, "level": 2.0, "fast": True}


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"pannel": "demo"}, ["pannel", "panel, n_boot, level, fast"]),
        ({"n_boot": "many"}, ["n_boot", "int", "many"]),
        ({"n_boot": 2.5}, ["n_boot", "int"]),
        ({"n_boot": True}, ["n_boot", "int"]),
        ({"fast": "perhaps"}, ["fast", "bool"]),
    ],
)
def test_wrong_parameters_give_one_line_and_start_nothing(notebook, tmp_path, parameters, words):
    with pytest.raises(InputError) as raised:
        run_notebook(notebook, tmp_path / "out.ipynb", parameters)
    assert "\n" not in str(raised.value)
    assert all(word in str(raised.value) for word in words)
    assert list(tmp_path.iterdir()) == [notebook]


def test_a_missing_or_damaged_notebook_gives_one_line(tmp_path):
    with pytest.raises(InputError, match=r"no notebook at .*absent\.ipynb"):
        check_parameters(tmp_path / "absent.ipynb", {})
    damaged = tmp_path / "damaged.ipynb"
    damaged.write_text("{not json")
    with pytest.raises(InputError, match=r"damaged\.ipynb is not a readable notebook"):
        check_parameters(damaged, {})


def test_a_run_passes_parameters_on_and_failures_leave_nothing(notebook, tmp_path):
    out = tmp_path / "deep" / "out.ipynb"
    run_notebook(notebook, out, {"n_boot": "5"})
    cells = nbformat.read(out, 4).cells
    assert cells[-1].outputs[0].text == "demo 6 1 False\n"
    assert {"injected-parameters", "remove-input"} <= set(cells[1].metadata["tags"])  # not shown on the page

    with pytest.raises(InputError, match=r"^chapter\.ipynb: no panel at absent$"):
        run_notebook(notebook, tmp_path / "deep" / "second.ipynb", {"panel": "absent"})
    with pytest.raises(papermill.PapermillExecutionError, match="broken"):
        run_notebook(notebook, tmp_path / "deep" / "third.ipynb", {"panel": "broken"})
    assert [path.name for path in out.parent.iterdir()] == ["out.ipynb"]


def test_results_go_beside_the_output_and_only_the_books_build_writes_the_books(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    document = nbformat.read(notebook, 4)
    document.cells.append(nbformat.v4.new_code_cell("from rmnb import book\nbook.save('agreement', tau=n_boot)"))
    nbformat.write(document, notebook)
    run_notebook(notebook, Path("book/_executed/chapter.ipynb"))
    before = Path("book/_executed/results/agreement.csv").read_bytes()
    run_notebook(notebook, Path("elsewhere/chapter.ipynb"), {"n_boot": "7"})
    assert Path("book/_executed/results/agreement.csv").read_bytes() == before
    assert Path("elsewhere/results/agreement.csv").read_bytes() != before
    assert results_directory() == Path("results")  # by hand, and after a run


def test_a_cell_that_fails_is_shown_with_its_error_in_few_lines(notebook, tmp_path, capsys, monkeypatch):
    document = nbformat.read(notebook, 4)
    document.cells.append(nbformat.v4.new_code_cell("import ast\nast.literal_eval('1 +')" + "\n#" * 40))
    nbformat.write(document, notebook)
    monkeypatch.setattr("sys.argv", ["rmnb", "book", "run", str(notebook), str(tmp_path / "out.ipynb")])
    with pytest.raises(SystemExit) as ended:
        main()
    lines = capsys.readouterr().err.splitlines()
    said = lines[lines.index("rmnb: chapter.ipynb: cell 4 failed") :]
    assert said[1:3] == ["    import ast", "    ast.literal_eval('1 +')"] and said[-1].startswith("SyntaxError: ")
    assert len(said) <= 20 and "more lines" in said[-3] + said[-2] and ended.value.code == 1


def test_progress_bars_leave_nothing_that_a_page_would_fetch(notebook, tmp_path):
    source = nbformat.read(notebook, 4)
    source.cells.append(nbformat.v4.new_code_cell("from tqdm.auto import tqdm\nfor _ in tqdm(range(3)):\n    pass"))
    nbformat.write(source, notebook)
    executed = nbformat.read(run_notebook(notebook, tmp_path / "out.ipynb"), 4)
    assert not executed.cells[-1].outputs
