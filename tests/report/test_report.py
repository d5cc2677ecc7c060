"""`rmnb report` on a tiny checkpoint, from the command line: what it writes, that it goes on, what it refuses."""

import re
import shutil

import pandas as pd
import pytest
from report.planted_models import write
from typer.testing import CliRunner

import rmnb
from rmnb.cli.main import app
from rmnb.errors import InputError
from rmnb.findings import results
from rmnb.panels import load_panel
from rmnb.report import card, numbers, reference, scores

KEY = list(results.KEY)


def report(*arguments):
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write(tmp_path_factory.mktemp("checkpoint") / "frequent", "frequency")


@pytest.fixture(scope="module")
def made(model):
    """The directory of a quick report."""
    out = model.parent / "report"
    done = report(model, "--quick", "--out", out)
    assert done.exit_code == 0, done.output
    return out


def test_the_page_stands_by_itself_and_begins_with_what_was_found(made):
    page = (made / "report.html").read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="https?:', page.replace('href="https://github.com', ""))
    assert "<script" not in page
    assert page.index("In short") < page.index("<h2")
    assert "A quick report" in page


def test_its_json_and_its_section_for_a_model_card_hold_the_numbers_of_the_scores(made):
    rows, content = card.read(made / "report.json")
    again = numbers.measure(scores.read(made), n_boot=200)
    both = rows.merge(again, on=KEY)
    assert len(both) == len(again)
    assert (both["value_x"] - both["value_y"]).abs().max() < 1e-9
    assert content["quick"] and content["provenance"]["weights_sha256"] and content["noise"] > 0
    told = (made / "report.md").read_text(encoding="utf-8")
    slope = again.query("statistic == 'slope_log_frequency_controlled' and prompt == 'greatest'")["value"].iloc[0]
    assert f"{slope:.2f}" in told
    assert all(f"- {sentence}" in told for sentence in content["in_short"])


def test_scoring_that_was_cut_off_goes_on_and_ends_with_the_same_scores(made, model):
    again = made.parent / "again"
    shutil.copytree(made, again)
    next(again.glob("scores/*/lists/words.parquet")).unlink()
    scan = next(again.glob("scores/*/greatest.exact.parquet"))
    before = scan.stat().st_mtime_ns
    scores.score(rmnb.load_reward_model(model), again, quick=True)
    assert scan.stat().st_mtime_ns == before
    pd.testing.assert_frame_equal(scores.read(again).words, scores.read(made).words)


def test_scores_of_another_model_or_of_another_kind_of_report_are_not_taken_for_its_own(made, model, tmp_path):
    other = write(tmp_path / "frequent", "none")
    for arguments, says in (((other, "--quick"), "of another model"), ((model,), "of a quick report")):
        done = report(*arguments, "--out", made)
        assert isinstance(done.exception, InputError) and says in str(done.exception)


def test_the_shipped_reference_numbers_are_those_of_the_demo_models_and_the_chapters_rows():
    """Of one demo model from its shipped scores, as a report measures it; what a chapter has too is the same there."""
    rows = numbers.measure(scores.of_panel(load_panel("demo"), "gemma3-values"), n_boot=2, n_permutations=10)
    shipped = reference.rows().query("panel == 'demo' and model == 'gemma3-values'")
    if "foundation_rank" not in set(rows["statistic"]):  # the dictionary belongs to others, and may be out of reach
        shipped = shipped[shipped["statistic"] != "foundation_rank"]
    both = shipped.merge(rows, on=["model", "other", "prompt", "statistic"])
    assert len(both) == len(shipped) > 15
    pd.testing.assert_series_equal(both["value_x"], both["value_y"], check_names=False, rtol=1e-4)
