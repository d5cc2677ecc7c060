"""What a chapter looks like: short cells, most of them shown, exercises with a cell to start from, solutions that run.

That the cells run is shown by every build, which executes the chapters, and by `tests/book/test_notebooks.py`.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from nbconvert import SlidesExporter

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
CHAPTERS = [path for path in NOTEBOOKS if re.match(r"0[1-9]_", path.name)]
#: Solutions that need no code.
ANSWERED_IN_WORDS: set[str] = set()


def code_cells(path):
    """Code cells that a reader may see."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    return [cell for cell in code if "remove-cell" not in cell["metadata"].get("tags", [])]


def gated(path):
    """What stands between each pair of gates: label, `exercise` or `solution`, number of code cells."""
    found, gate, label, code = [], "", "", 0
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            code += 1
            continue
        for line in "".join(cell["source"]).splitlines():
            if start := re.match(r"```\{(exercise|solution)-start\} *(.*)", line):
                gate, label, code = start[1], start[2], 0
            elif named := re.match(r":label: *(\S+)", line):
                label = named[1]
            elif end := re.match(r"```\{(exercise|solution)-end\}", line):
                assert end[1] == gate, f"{path.stem}: {line} ends no {gate}"
                found.append((label, gate, code))
                gate = ""
            assert not (gate and line.startswith("#")), f"{path.stem}: a heading inside {label}"
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_exercises_have_a_cell_to_start_from_and_solutions_that_run(path):
    found = gated(path)
    without = [
        label for label, gate, code in found if not code and (gate == "exercise" or label not in ANSWERED_IN_WORDS)
    ]
    assert not without, f"no code cell: {without}"
    exercises, solutions = ({label for label, of, _ in found if of == gate} for gate in ("exercise", "solution"))
    assert exercises == solutions and len(found) == 2 * len(exercises)
    assert len(exercises) >= 2 or path not in CHAPTERS


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_show_their_code_in_short_cells(path):
    code = code_cells(path)
    statements = [[line for line in "".join(cell["source"]).splitlines() if line.strip()] for cell in code]
    lines = [sum(not line.strip().startswith("#") for line in cell) for cell in statements]
    hidden = [
        bool({"hide-input", "hide-cell", "remove-input"} & set(cell["metadata"].get("tags", []))) for cell in code
    ]
    assert np.median(lines) <= 12 and np.percentile(lines, 90) <= 20, sorted(lines)
    assert np.mean(hidden) <= 1 / 3, f"{sum(hidden)} of {len(hidden)} cells are hidden"


def test_what_is_excused_is_there():
    labels = {label for path in NOTEBOOKS for label, gate, _ in gated(path) if gate == "solution"}
    assert labels >= ANSWERED_IN_WORDS


def test_the_lesson_shows_no_answer_before_a_guess():
    cells = json.loads((NOTEBOOKS[0].parent / "lesson.ipynb").read_text(encoding="utf-8"))["cells"]
    steps = [at for at, cell in enumerate(cells) if "**Guess:**" in "".join(cell["source"])]
    assert len(steps) >= 7
    for start, end in zip(steps, [*steps[1:], len(cells)], strict=True):
        answers = re.compile(r"book\.(table|show)\(|plt\.|^turning\(", re.MULTILINE)
        shown = [cell for cell in cells[start + 1 : end] if answers.search(_source(cell))]
        hidden = [
            cell
            for cell in shown
            if "hide-output" in cell["metadata"].get("tags", []) or "behind_a_click" in _source(cell)
        ]
        assert shown and shown == hidden, [_source(cell) for cell in shown if cell not in hidden]


def test_slides_of_the_lesson_ask_the_network_for_nothing():
    templates = [str(NOTEBOOKS[0].parents[1] / "workflow")]
    exporter = SlidesExporter(extra_template_basedirs=templates, template_name="slides", reveal_url_prefix="reveal")
    page, _ = exporter.from_filename(str(NOTEBOOKS[0].parent / "lesson.ipynb"))
    assert not re.findall(r'(?:src|href)="https?:|import .* from .http', page)
    assert "{doc}" not in page and "{cite" not in page and page.count('<aside class="notes">') == 8


def test_every_question_of_a_quiz_has_options_and_an_answer_among_them():
    for page in (NOTEBOOKS[0].parents[1] / "book").glob("quiz_*.md"):
        questions = re.split(r"^\*\*\d+\.\*\* ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
        for question in questions:
            asked, answer = question.split(":::{dropdown} Answer")
            assert re.search(r"^a\) .+ b\) .+ c\) .+$", asked, re.MULTILINE), asked
            assert re.match(r"\s+\*\*[abc]\.\*\* ", answer), asked


def _source(cell):
    return "".join(cell["source"])
