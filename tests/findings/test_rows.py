"""One shape of tables: what is shared, what a rated word is, each model measured, choices tried, clustered errors."""

import numpy as np
import pandas as pd
import pytest

from rmnb import stats
from rmnb.errors import InputError
from rmnb.findings import rows, tables
from rmnb.findings.released import load_released
from rmnb.stats.estimate import Estimate

TOKENS = pd.DataFrame(
    {
        "token_id": [0, 1, 2, 3, 4, 5],
        "token": [" love", "Love", "ing", "", " bad", " bad"],
        "kind": ["word_start", "word_continuation", "word_continuation", "unused", "word_start", "word_start"],
        "word": ["love", "love", "ing", "", "bad", "bad"],
        "best": [1.0, 3.0, 9.0, 9.0, -1.0, -2.0],
        "worst": [0.0, 0.0, 9.0, 9.0, 2.0, 4.0],
    }
)


def number(value: float) -> Estimate:
    return Estimate(value, value - 1, value + 1, 0.5, 0.1, 7, 5)


def test_tokens_match_by_string_without_doubles_and_words_by_folded_spelling():
    scores = TOKENS[["best", "worst"]]
    assert tables.by_token(TOKENS, scores).index.tolist() == [" love", "Love", "ing"]
    words = tables.by_word(TOKENS, scores)
    assert words.to_dict() == {"best": {"bad": -1.5, "love": 2.0}, "worst": {"bad": 3.0, "love": 0.0}}


def test_rated_tokens_and_scales():
    rated = tables.rated_tokens(TOKENS, pd.Series({"love": 3, "bad": -3}))
    assert rated["token_id"].tolist() == [0, 1, 4, 5] and rated["valence"].tolist() == [3, 3, -3, -3]
    ranked = tables.standardise(TOKENS, ["best"], "rank")["best"]
    assert ranked.mean() == pytest.approx(0) and ranked.std(ddof=0) == pytest.approx(1) and ranked[2] == ranked[3]
    assert tables.afinn()["love"] == 3 and 0 not in set(tables.afinn())


def test_every_model_is_measured_under_every_question_and_two():
    def mean(table, question, shift=0.0):
        return {"mean": number(table[question].mean() + shift)}

    def apart(table, question, other):
        return {"gap": number((table[question] - table[other]).mean())}

    single = rows.each({"m": TOKENS, "n": TOKENS}, mean, ["best", "worst"], shift=1.0)
    assert list(single) == ["model", "question", "quantity", "value", "low", "high", "n"] and len(single) == 4
    assert single["value"][0] == pytest.approx(TOKENS["best"].mean() + 1) and single["low"][0] == single["value"][0] - 1
    two = rows.each({"m": TOKENS}, apart, [("best", "worst")])
    assert two[["question", "other"]].to_numpy().tolist() == [["best", "worst"]]
    pair = rows.each_pair({"m": TOKENS, "n": TOKENS}, lambda a, b, q: {"same": number(0)}, [("m", "n")], ["best"])
    assert pair[["model", "other", "question"]].to_numpy().tolist() == [["m", "n", "best"]]


def test_a_curve_has_every_combination_that_makes_sense():
    def estimate(words, scale):
        return None if (words, scale) == ("b", "rank") else number({"a": 2, "b": 1}[words] + (scale == "rank"))

    curve = rows.curve({"words": ["a", "b"], "scale": ["score", "rank"]}, estimate)
    assert curve["value"].tolist() == [1, 2, 3] and curve.loc[curve["headline"], "value"].tolist() == [2]
    with pytest.raises(InputError, match="no combination"):
        rows.curve({"words": ["b"], "scale": ["rank"]}, estimate)


def test_named_columns_give_the_numbers_of_the_formula():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=80), "word": rng.integers(0, 30, 80).astype(str)})
    frame["y"] = 1 + 2 * frame["x"] + rng.normal(size=80)
    formula = stats.ols("y ~ x", frame, clusters="word").estimate({"x": 2.0})
    fit = stats.fit_clustered(frame["y"], pd.DataFrame({"one": 1.0, "x": frame["x"]}), frame["word"])
    fast = fit.estimate({"x": 2.0})
    assert [fast.value, fast.ci_low, fast.ci_high, fast.n_clusters] == pytest.approx(
        [formula.value, formula.ci_low, formula.ci_high, formula.n_clusters]
    )
    with pytest.raises(InputError, match="determine one another"):
        stats.fit_clustered(frame["y"], pd.DataFrame({"x": frame["x"], "twice": 2 * frame["x"]}))
    with pytest.raises(InputError, match="no coefficient z"):
        fit.estimate({"z": 1})


def test_released_numbers_have_the_shape_of_the_chapters():
    table = load_released("asymmetry")
    assert list(table)[:5] == ["quantity", "source", "model", "other", "question"] and table["value"].notna().all()
    with pytest.raises(InputError, match="choose one of agency_communion"):
        load_released("human_elo")
