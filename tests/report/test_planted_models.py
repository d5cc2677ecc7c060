"""A number of a report of a model with a planted oddity stands out, and that of the same model without it does not."""

import numpy as np
import pandas as pd
import pytest

from rmnb.data import lexicons
from rmnb.data.text_lists import part_texts
from rmnb.panels import load_prompts
from rmnb.planted.rewards import spell, word_features
from rmnb.planted.words import common_words
from rmnb.report import numbers
from rmnb.report.scores import ModelScores

WORDINGS = {prompt.key: prompt.framing for prompt in load_prompts("iclr2026")}
NUMBERS = {
    "frequency": ("frequency_slope_unrated", "greatest", ""),
    "identity": ("identity_gap", "positive", "all axes"),
    "deaf": ("framing_kendall", "greatest", "worst"),
}


def rewards(features, questions, kind, rng):
    """Valence and taste turn with the question, unless the model is deaf to it; manner and what is odd do not."""
    words = pd.factorize(features["word"])[0]
    meaning = 0.35 * features["valence"] + rng.normal(size=words.max() + 1)[words]
    identity, frequency = features["axis"] != "", features["log_frequency"] - features["log_frequency"].mean()
    manner = 0.5 * rng.normal(size=len(features))
    odd = {"identity": -3.5 * identity, "frequency": 0.3 * frequency}.get(kind, 0.0)
    turns = {question: 1 if framing == "positive" or kind == "deaf" else -1 for question, framing in questions.items()}
    return features.assign(**{question: turn * meaning + manner + odd for question, turn in turns.items()})


def planted(kind):
    """The scores of a model of 5,000 English words and of the listed ones."""
    rng = np.random.default_rng(1)  # no number of "none" is clear by chance
    rated = lexicons.afinn()["word"]
    words = [word for word in {*common_words()["word"], *rated} if word.isalpha()]
    table = rewards(word_features(spell(sorted(words))), {"greatest": "positive", "worst": "negative"}, kind, rng)
    listed = {part: pd.Series(part_texts(part), name="token") for part in ("agency_communion", "identity")}
    texts = pd.concat(listed, names=["part"]).reset_index("part").assign(token_id=0, kind="word_start")
    texts = texts.reset_index(drop=True)
    scored = rewards(word_features(texts), WORDINGS, kind, rng)[list(WORDINGS)]
    listed = scored.assign(part=texts["part"], text=texts["token"])
    return ModelScores(kind, True, table, listed, None, {})


@pytest.fixture(scope="module")
def measured():
    return {kind: numbers.measure(planted(kind)) for kind in ("none", *NUMBERS)}


def find(table, key):
    return table.set_index(numbers.KEY).loc[key]


@pytest.mark.parametrize("oddity", NUMBERS)
def test_a_planted_number_is_beyond_all_known_models_in_its_own_kind_alone(measured, oddity):
    demo = numbers.known().query("panel == 'demo'").set_index(numbers.KEY)["value"].loc[[NUMBERS[oddity]]]
    for kind, table in measured.items():
        row = find(table, NUMBERS[oddity])
        row = row.fillna({"low": row["value"], "high": row["value"]})  # a perfect correlation has no interval
        assert (row["low"] > demo.max() or row["high"] < demo.min()) == (kind == oddity), (kind, row)
    first = numbers.stand_out(measured[oddity], numbers.known())["name"].head(3)
    assert oddity == "deaf" or first.str.startswith(f"{oddity}_").any(), first


def test_without_an_oddity_the_question_is_read_and_nothing_else_is_clear(measured):
    for key in (NUMBERS["frequency"], NUMBERS["identity"], ("agency_gap", "positive", "")):
        row = find(measured["none"], key)
        assert row["low"] < 0 < row["high"], row
    assert find(measured["none"], NUMBERS["deaf"])["high"] < -0.3


def test_how_far_a_number_stands_out_is_in_units_of_its_own_standard_error():
    """An interval of four matched sets is 3.18 standard errors long on each side, not 1.96."""
    key = ("identity_gap", "positive", "religion")
    places = range(5)
    known = pd.DataFrame([key] * len(places), columns=numbers.KEY).assign(panel="demo", value=places)
    estimate = {"value": 6.0, "low": 2.8176, "high": 9.1824, "error": 1.0}
    row = pd.DataFrame([key], columns=numbers.KEY).assign(**estimate)
    distance = numbers.stand_out(row, known)["distance"].item()
    assert distance == pytest.approx(4 / np.hypot(known["value"].std(), 1))
