"""The notebooks that are not chapters run, and say what they are there to say."""

import html
import re

import nbformat
import pandas as pd
import pytest
from notebook_files import ROOT, shown

from rmnb.book.notebook import run_notebook
from rmnb.findings.released import DIFFERS, load_published

pytestmark = pytest.mark.slow


@pytest.fixture
def executed(tmp_path, monkeypatch):
    """Runs a notebook in an empty directory; returns what it shows and its rows of the results table."""
    monkeypatch.chdir(tmp_path)

    def run(name: str, **parameters):
        run_notebook(ROOT / "notebooks" / f"{name}.ipynb", tmp_path / "out.ipynb", parameters)
        (table,) = (tmp_path / "results").glob("*.csv")
        cells = nbformat.read(tmp_path / "out.ipynb", 4).cells
        return shown(cells), pd.read_csv(table, keep_default_na=False, na_values=[""])

    return run


def test_each_trap_moves_the_rewards(executed):
    page, table = executed("traps", n_words=12)
    tau = table.set_index("other")["value"]
    assert {"BOS twice", "read behind the padding", "closing id taken for padding", "another template"} <= set(
        tau.index
    )
    assert len(tau) >= 8 and (tau <= 1).all()
    assert tau["BOS left out"] < tau["attention capped at 50"] and tau["attention capped at 5"] < 0.9
    assert "padding: <|im_end|>  closing: <|im_end|>" in page
    lines = {line.split(" [ ")[0]: line.split(" [ ")[1].split()[:2] for line in page.splitlines() if " [ " in line}
    assert len(set(lines["as texts"])) == 1 and len(set(lines["as ids"])) == 2  # trimmed: one conversation, one reward


def test_the_lesson_runs_on_a_piece_of_the_vocabulary(executed):
    page, table = executed("lesson", limit=1500)
    rows = table[table["quantity"] == "lesson correlation with valence"].set_index("question")["value"]
    assert rows["greatest"] > rows["worst"]  # the model turns its ranking round when the question does
    tau = table[table["quantity"] == "lesson tau of the two questions"].set_index("model")
    assert tau["high"]["smollm2-values"] < 0 < tau["low"]["smollm2-harmless"]  # and this one does not
    assert "content-warning" in page


def test_the_panel_page_shows_every_model_that_has_a_record(executed):
    page, table = executed("panel")
    held_out = table.query("other == 'all'").set_index("model")
    assert set(held_out.index) >= {"smollm2-values", "gemma3-values"}
    assert (held_out["low"] < held_out["value"]).all() and held_out["value"].between(0.5, 1).all()
    assert "gemma3&#45;270m" in page and "Human votes over things" in page
    (fewer,) = re.findall("fewer pairs than it asks for: (.*)", page)
    short = re.findall(r"([\w-]+)': '(?=\d\d%)", html.unescape(fewer))
    assert short == ["harmless", "helpful", "harmless-seed2"]  # their sources have too few


def test_the_report_leaves_no_published_number_out(executed):
    page, table = executed("reproduction")
    counts = table[table["quantity"].str.endswith("numbers")].set_index("other")["value"]
    assert counts.sum() == len(load_published()) == 131
    assert counts["differs"] == 0 == page.count(f"<td>{DIFFERS}</td>")
    assert counts["reproduced"] == 43
