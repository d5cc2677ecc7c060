"""`rmnb report` on a tiny checkpoint, from the command line: what it writes, what it refuses."""

import numpy as np
import pandas as pd
import pytest
from checkpoints import write_decoder
from typer.testing import CliRunner

import rmnb
from rmnb.cli.main import app
from rmnb.errors import InputError
from rmnb.panels import load_panel
from rmnb.report import numbers, record, scores


def report(*arguments):
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


@pytest.fixture(scope="module")
def made(directory, tmp_path_factory):
    """The directory of a quick report."""
    out = tmp_path_factory.mktemp("made") / "report"
    done = report(directory, "--quick", "--out", out)
    assert done.exit_code == 0, done.output
    return out


def test_the_page_begins_with_what_stands_out(made):
    page = (made / "report.html").read_text(encoding="utf-8")
    assert page.index("What stands out") < page.index("Best and worst words") < page.index("All numbers")


def test_its_json_and_its_table_for_a_model_card_hold_the_numbers_of_the_scores(made):
    found, again = record.read(made), numbers.measure(scores.read(made))
    pd.testing.assert_frame_equal(found.numbers, again, check_dtype=False)
    assert found.quick and found.provenance["weights_sha256"] and found.left_out.shape == (len(again), 20)
    card = (made / "report.md").read_text(encoding="utf-8")
    assert f"{again['value'].iloc[-1]:.2f}" in card and card.count("\n| ") == len(again) + 1


def test_travel_compares_words_alone_with_the_same_words_in_whole_sentences(made, directory):
    read = scores.read(made)
    said = read.table.dropna(subset=scores.SENTENCE)
    assert len(said) > 10 and said["token"].str.startswith(" ").all()
    question = load_panel("demo").prompt("greatest").text
    sentences = [f"The greatest thing ever is{token}." for token in said["token"]]
    whole = rmnb.load_reward_model(directory, device="cpu").score(question, sentences)
    np.testing.assert_allclose(said[scores.SENTENCE], whole, atol=1e-4 * whole.std() + 1e-5)
    (found,) = numbers.measure(read).query("name == 'travel'")["value"]
    assert found == pytest.approx(said["greatest"].corr(said[scores.SENTENCE], method="kendall"))


def test_scores_of_another_model_or_of_another_kind_of_report_are_not_taken_for_its_own(made, directory, tmp_path):
    same_name = write_decoder(tmp_path / directory.name, rows=400, seed=1)
    other_name = write_decoder(tmp_path / "other", rows=400, seed=1)
    for arguments, says in (
        ((same_name, "--quick"), "differs in weights"),
        ((other_name, "--quick"), f"is the report of {directory.name}"),
        ((directory,), "differs in ids"),
    ):
        done = report(*arguments, "--out", made)
        assert isinstance(done.exception, InputError) and says in str(done.exception)


def test_the_shipped_numbers_of_known_models_are_those_of_their_scores():
    measured = numbers.measure(scores.of_panel(load_panel("demo"), "smollm2-values"))
    known = numbers.known().query("panel == 'demo' and model == 'smollm2-values'")
    if "foundation_rank" not in set(measured["name"]):  # the dictionary belongs to others, and may be out of reach
        known = known[known["name"] != "foundation_rank"]
    both = known.merge(measured, on=numbers.KEY)
    assert len(both) == len(known) > 35
    pd.testing.assert_series_equal(both["value_x"], both["value_y"], check_names=False, rtol=1e-4)


def test_every_number_has_a_name_and_a_meaning():
    listed = CliRunner().invoke(app, ["report", "--names"])
    glossary = numbers.glossary()
    assert listed.exit_code == 0 and all(name in listed.output for name in glossary["name"])
    assert not glossary.duplicated(numbers.KEY).any() and (glossary["meaning"] != "").all()
