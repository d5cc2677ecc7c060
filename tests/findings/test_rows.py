"""One shape of tables: what is shared, what a rated word is, each model measured, choices tried, clustered errors."""

import pandas as pd
import pytest

from rmnb.errors import InputError
from rmnb.findings import rows, tables
from rmnb.panels import ModelSpec, Panel, PromptSpec
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


def number(value):
    return Estimate(value, value - 1, value + 1, 0.5, 0.1, 7, 5)


def test_rated_tokens_and_scales():
    rated = tables.rated_tokens(TOKENS, pd.Series({"love": 3, "bad": -3}))
    assert rated["token_id"].tolist() == [0, 1, 4, 5] and rated["valence"].tolist() == [3, 3, -3, -3]
    ranked = tables.standardise(TOKENS, ["best"], "rank")["best"]
    assert ranked.mean() == pytest.approx(0) and ranked.std(ddof=0) == pytest.approx(1) and ranked[2] == ranked[3]


def test_every_model_is_measured_under_every_question_and_two():
    def mean(table, question, other=None, shift=0.0):
        return {"mean": number(table[question].mean() + shift)}

    single = rows.each({"m": TOKENS, "n": TOKENS}, mean, ["best", "worst"], shift=1.0)
    assert list(single) == ["model", "question", *rows.NUMBERS] and len(single) == 4
    assert single["value"][0] == pytest.approx(TOKENS["best"].mean() + 1) and single["low"][0] == single["value"][0] - 1
    two = rows.each({"m": TOKENS}, mean, [("best", "worst")])
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


def test_a_panels_scores_are_shared_by_string_or_word_in_its_order(monkeypatch):
    specs = tuple(ModelSpec(name=name, source=f"someone/{name}") for name in ("b", "a"))
    prompt = PromptSpec(key="best", text="What is best?", framing="positive")
    panel = Panel(name="pair", title="Pair", models=specs, prompts=(prompt,))
    other = pd.DataFrame({"token": [" bad", " love", "LOVE", "爱", "only"], "kind": "word_start"})
    scans = {"a": TOKENS, "b": other.assign(token_id=range(5), best=[5.0, 4.0, 2.0, 1.0, 0.0])}

    def read(panel, model, question, protocol):
        return scans[model].rename(columns={question: "score"})

    monkeypatch.setattr(tables, "read_scores", read)
    by_string = tables.load_scores(panel, "best")
    assert list(by_string) == ["b", "a"] and by_string.to_dict("index") == {" love": {"b": 4.0, "a": 1.0}}
    by_word = tables.load_scores(panel, "best", how="word").to_dict("index")
    assert by_word == {"bad": {"b": 5.0, "a": -1.5}, "love": {"b": 3.0, "a": 2.0}}
    with pytest.raises(InputError, match="choose token or word"):
        tables.load_scores(panel, "best", how="fuzzy")
    with pytest.raises(InputError, match="no question"):
        tables.load_tables(panel, [])
