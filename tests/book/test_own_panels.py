"""Panels of anybody's models: every chapter runs, or says in one line what it needs and what the panel lacks."""

import re
from collections.abc import Sequence
from pathlib import Path

import nbformat
import pytest
import yaml
from head_checkpoints import write_head
from notebook_files import NOTEBOOKS, ROOT
from rehearsal import CLASSIFIERS, FORMATS, cut_tokenizers, prepare, write_ten

from rmnb.book.notebook import run_notebook
from rmnb.book.results import leave_out
from rmnb.errors import LackError
from rmnb.panels import load_panel

CHAPTERS = [path for path in NOTEBOOKS if path.name[0].isdigit()]
#: Chapters that a panel with the book's questions is run through; the others are, with the panel of the other page.
WITH_THE_BOOKS_QUESTIONS = {
    "01_heterogeneity",
    "03_framing",
    "05_identity",
    "06_elo",
    "07_agency_communion",
    "09_training",
}
BLOCK = re.compile(r"^```yaml\n(name: .*?)^```", re.MULTILINE | re.DOTALL)
PAGES = {page: BLOCK.findall((ROOT / page).read_text(encoding="utf-8")) for page in ("README.md", "book/run.md")}


def outcomes(panel: Path, out: Path, chapters: Sequence[Path] = CHAPTERS) -> dict[str, str]:
    """Of each chapter, empty if it ran on a panel, else the line that says what the panel lacks."""
    ends = {}
    for chapter in chapters:
        page = out / chapter.name
        try:
            run_notebook(chapter, page, {"panel": panel})
            ends[chapter.stem] = ""
            assert "were written about the demo panel" in page.read_text(encoding="utf-8")
        except LackError as lack:
            ends[chapter.stem] = str(lack)
    return ends


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_panel_that_a_page_shows_runs_through_every_chapter_or_hears_what_it_lacks(mirror, page, tmp_path):
    (block,) = PAGES[page]
    tokenizers = cut_tokenizers()
    for place, model in enumerate(yaml.safe_load(block)["models"]):
        base = "Gemma" if "Gemma" in model["family"] else "Llama"
        write_head(tmp_path / f"tiny-{place}", CLASSIFIERS[base], tokenizers[base], seed=place + 1)
        block = block.replace(f"source: {model['source']}", f"source: {tmp_path}/tiny-{place}")
    (tmp_path / "mine.yml").write_text(block)
    prepare(tmp_path / "mine.yml")
    has_own_questions = "prompts:" in block
    chapters = [path for path in CHAPTERS if has_own_questions or path.stem in WITH_THE_BOOKS_QUESTIONS]
    ends = outcomes(tmp_path / "mine.yml", tmp_path / "out", chapters)
    assert ends["01_heterogeneity"] == ""
    needed = {chapter: line for chapter, line in ends.items() if line}
    for chapter, line in needed.items():
        assert line.startswith(f"{chapter}.ipynb: ") and "\n" not in line and "panel" in line
    assert re.search("two bases with two models each, and the panel has", needed["07_agency_communion"])
    assert "has been followed" in needed["09_training"]
    asked_too_little = {"03_framing", "05_identity", "06_elo"} if has_own_questions else set()
    trained_for = {"07_agency_communion", "09_training", "10_policy", "11_travel", "12_follows"}
    assert asked_too_little <= set(needed) <= asked_too_little | trained_for | {"05_identity"}


@pytest.mark.slow
def test_models_in_each_format_of_the_papers_ten_have_most_chapters(mirror, tmp_path):
    panel = write_ten(tmp_path / "models", cut_tokenizers(), [*FORMATS, "S-Gem-27B", "R-Gem-2B", "S-Lla-8B-v0.2"])
    prepare(panel)
    lacking = {chapter for chapter, line in outcomes(panel, tmp_path / "out").items() if line}
    assert lacking == {"09_training", "12_follows"}


def test_a_panel_says_what_it_needs_and_has(tmp_path):
    text = "{name: two, title: Two, models: [{name: a, source: x/a, group: g}, {name: b, source: x/b, group: g}]"
    (tmp_path / "two.yml").write_text(text + "}")
    panel = load_panel(tmp_path / "two.yml")
    assert panel.require(models=2, questions=["best", "worst", "elo_greatest"]) is panel  # the papers' questions
    with pytest.raises(LackError, match="this needs 2 groups of models, and panel two has 1"):
        panel.require(groups=2)
    (tmp_path / "two.yml").write_text(text + ", prompts: [{key: good, text: 'What is good?', framing: positive}]}")
    panel = load_panel(tmp_path / "two.yml")
    assert panel.prompt("worst_ever_one").framing == "negative"  # for the list of words
    with pytest.raises(LackError, match=r"this needs the question best, and panel two has good: add it, or .* -p"):
        panel.require(questions=["good", "best"])


def test_a_page_that_is_left_out_has_its_title_its_reason_and_no_results_of_another_panel(tmp_path):
    old = [tmp_path / "results" / "framing.csv", tmp_path / "results" / "verdicts" / "mirror.csv"]
    for path in old:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    page = tmp_path / "03_framing.ipynb"
    leave_out(ROOT / "notebooks/03_framing.ipynb", page, "it needs two questions: panel ``` <b>")
    (cell,) = nbformat.read(page, 4).cells
    assert cell.source.startswith("# Framing") and "it needs two questions" in cell.source
    assert "<b>" not in cell.source and cell.source.count("```") == 2  # a panel's name is text, and ends no block
    assert not any(path.exists() for path in old)
