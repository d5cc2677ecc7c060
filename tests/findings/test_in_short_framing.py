"""The box on framing says what planted models do, whatever they do, and no more than their number allows."""

import dataclasses

import pandas as pd
import pytest

from rmnb.findings import asymmetry, framing, framing_curve, reading_question
from rmnb.findings.in_short import framing as in_short
from rmnb.findings.quoting import plain
from rmnb.findings.results import Results

ASKS: dict = {"greatest": "positive", "worst": "negative"}


def results(negative_framing: dict[str, float]) -> pd.DataFrame:
    """The chapter's rows of models that follow valence under the worst so many times as under the greatest."""
    tables = {}
    for model, factor in negative_framing.items():
        effects = dataclasses.replace(framing.PLANTED, negative_framing=factor, word_sd=0.02, noise_sd=0.8)
        tables |= {m: t.iloc[::6] for m, t in asymmetry.planted_tables(ASKS, [model], 1, effects).items()}
    numbers = Results("framing", "planted")
    numbers.extend(framing.measure(tables, ASKS, n_boot=5, panel="planted"))
    alike = reading_question.does_not_turn(numbers.frame())
    for group, models in zip(in_short.GROUPS, (set(tables) - set(alike), alike), strict=True):
        numbers.extend(framing_curve.measure(framing_curve.curves({"exact": tables}, ASKS, models), group, "planted"))
    numbers.extend(framing.published_contrasts())
    numbers.extend(framing.summary(numbers.frame()))
    return numbers.frame()


def said(rows: pd.DataFrame) -> str:
    return "\n".join(plain(sentence) for sentence in in_short.sentences(rows))


def test_models_that_do_not_read_are_named_and_left_out_of_the_mean():
    rows = results({"a": -0.5, "b": -0.55, "c": -0.6, "deaf": 1.0})
    text = said(rows)
    assert "1 of 4 models do not read the question and rank greatest and worst alike" in text and ": deaf. " in text
    assert "0.44 points" in text
    assert "As claimed, valence counts for less under the bad question in the 3 models that turn" in text
    assert "12 of 12 for greatest and worst; in the models that do not 12 of 12" in text
    damping = rows.query("statistic == 'framing_damping' and source == 'panel' and model != ''").set_index("model")
    mean = rows.query("statistic == 'mean_turning' and other == 'framing_damping'").iloc[0]
    assert mean["value"] == pytest.approx(damping.loc[["a", "b", "c"], "value"].mean()) and mean["n"] == 3


def test_what_is_planted_the_other_way_round_is_said_so():
    text = said(results({"a": -1.6, "b": -1.5, "c": -1.7}))
    assert "all 3 models turn" in text and "The other way round than claimed" in text


def test_two_models_that_differ_cannot_tell():
    text = said(results({"a": -0.3, "b": -1.5}))
    assert "cannot be told with the 2 models" in text


def test_one_model_has_no_interval_over_models():
    text = said(results({"a": -0.5}))
    assert "The one model of this panel turns with the question" in text and "In the one model that turns" in text
    assert "over models" not in text
    text = said(results({"deaf": 1.0}))
    assert (
        "The one model of this panel does not read the question" in text
        and "valence counts for less under the bad" not in text
    )


def test_a_panel_without_a_bad_question_says_so():
    rows = results({"a": -0.5, "deaf": 1.0})
    rows = rows[~rows["statistic"].isin(["models_not_turning", "mean_turning", "mean_not_turning"])]
    sentences = [plain(sentence) for sentence in in_short.sentences(rows)]
    assert len(sentences) == 2 and "cannot be told" in sentences[1]


def test_sentences_under_figures_have_something_to_say_of_any_rows():
    for factors in ({"a": -0.5}, {"deaf": 1.0}, {"a": -0.5, "deaf": 1.0}):
        rows = results(factors)
        for of in (rows, rows[:0]):
            for write in (in_short.contrasts, in_short.axes, in_short.changes):
                assert all(plain(sentence) for sentence in write(of))
