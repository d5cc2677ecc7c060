"""What a chapter looks like: most cells shown, exercises with a cell to start from, solutions that run.

That the cells run is shown by every build, which executes the chapters, and by `tests/book/test_notebooks.py`.
"""

import re

import nbformat
import numpy as np
import pytest
from nbconvert import SlidesExporter
from notebook_files import NOTEBOOKS, ROOT

CHAPTERS = [path for path in NOTEBOOKS if path.name[0].isdigit()]
CODE = "\0"  # stands for a code cell
GATED = re.compile(r"```\{(exercise|solution)-start\} *([^\n]*)\n(.*?)```\{\1-end\}", re.DOTALL)
HIDDEN = {"hide-input", "hide-cell", "remove-input"}


def cells(path):
    """Of each cell of a notebook: its kind, its source and its tags."""
    return [(cell.cell_type, cell.source, {*cell.metadata.get("tags", [])}) for cell in nbformat.read(path, 4).cells]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_exercises_have_a_cell_to_start_from_and_solutions_that_run(path):
    text = "\n".join(CODE if kind == "code" else source for kind, source, _ in cells(path))
    gated = GATED.findall(text)
    assert 2 * len(gated) == len(re.findall(r"-(?:start|end)\}", text))
    assert all(CODE in body and not re.search("^#", body, re.MULTILINE) for _, _, body in gated)
    exercises = [re.search(r":label: *(\S+)", body)[1] for kind, _, body in gated if kind == "exercise"]
    assert sorted(exercises) == sorted(label for kind, label, _ in gated if kind == "solution")
    assert len(set(exercises)) == len(exercises)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_fold_their_set_up_and_show_two_thirds_of_their_other_code(path):
    code = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    shown = [cell for cell in code if not {"parameters", "remove-cell"} & {*cell.metadata.get("tags", [])}]
    hidden = [bool(HIDDEN & {*cell.metadata.get("tags", [])}) for cell in shown]
    set_up = [cell.metadata.get("mystnb", {}).get("code_prompt_show", "").startswith("set-up: ") for cell in shown]
    first_figure = next(place for place, cell in enumerate(shown) if "figure" in cell.metadata.get("mystnb", {}))
    assert all(hidden[place] for place in np.flatnonzero(set_up))
    assert set_up[0] and hidden[:first_figure].count(False) <= 1
    assert np.mean([fold for fold, prepares in zip(hidden, set_up, strict=True) if not prepares]) <= 1 / 3


MINUTES = re.compile(r"^\| \{doc\}`_executed/(\w+)` \| (\d+) \|", re.MULTILINE)


def test_the_course_gives_each_chapter_the_time_that_it_takes():
    minutes = {name: int(count) for name, count in MINUTES.findall((ROOT / "book/lesson.md").read_text("utf-8"))}
    assert sorted(minutes) == [path.stem for path in CHAPTERS]
    for path in CHAPTERS:
        words = sum(len(source.split()) for kind, source, _ in cells(path) if kind == "markdown")
        lines = sum(len(source.splitlines()) for kind, source, tags in cells(path) if kind == "code" and not tags)
        exercises = path.read_text(encoding="utf-8").count("{exercise-start}")
        assert abs(words / 150 + lines / 10 + 7 * exercises - minutes[path.stem]) <= 8, path.stem


def test_the_lesson_shows_no_answer_before_a_guess():
    lesson = cells(ROOT / "notebooks/lesson.ipynb")
    answer = re.compile(r"book\.(table|show)\(|plt\.|^turning\(", re.MULTILINE)
    steps = [place for place, (_, source, _) in enumerate(lesson) if "**Guess:**" in source]
    assert len(steps) >= 8
    for start, end in zip(steps, [*steps[1:], len(lesson)], strict=True):
        shown = [(source, tags) for _, source, tags in lesson[start + 1 : end] if answer.search(source)]
        assert shown and all("hide-output" in tags or "behind_a_click" in source for source, tags in shown)


def test_slides_of_the_lesson_ask_the_network_for_nothing():
    templates = [str(ROOT / "workflow")]
    exporter = SlidesExporter(extra_template_basedirs=templates, template_name="slides", reveal_url_prefix="reveal")
    page, _ = exporter.from_filename(str(ROOT / "notebooks/lesson.ipynb"))
    assert not re.findall(r'(?:src|href)="https?:|import .* from .http', page)
    assert "{doc}" not in page and "{cite" not in page and page.count('<aside class="notes">') == 9


def test_every_question_of_a_quiz_has_options_and_an_answer_among_them():
    question = re.compile(r"^\*\*\d+\.\*\* ", re.MULTILINE)
    answered = re.compile(r"^a\) .+ b\) .+ c\) .+$\s+:::\{dropdown\} Answer\s+\*\*[abc]\.\*\* ", re.MULTILINE)
    for page in (ROOT / "book").glob("quiz_*.md"):
        text = page.read_text(encoding="utf-8")
        assert len(question.findall(text)) == len(answered.findall(text)) > 0, page.name
