"""One shape of tables: what is shared, what a rated word is, each model measured, choices tried, clustered errors."""

import numpy as np
import pandas as pd
import pytest

from rmnb import stats
from rmnb.errors import InputError
from rmnb.findings import rows, tables
from rmnb.panels import ModelSpec, Panel, PromptSpec
from rmnb.scoring.store import write_scores
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


def test_a_panels_scores_are_shared_by_string_or_word_in_its_order(tmp_path, monkeypatch):
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path))
    prompt = PromptSpec(key="best", text="What is best?", framing="positive")
    specs = tuple(ModelSpec(name=name, source=f"someone/{name}") for name in ("b", "a"))
    panel = Panel(name="pair", title="Pair", models=specs, prompts=(prompt,))
    other = pd.DataFrame({"token": [" bad", " love", "LOVE", "爱", "only"], "kind": "word_start"})
    for name, table in (("a", TOKENS), ("b", other.assign(token_id=range(5), best=[5.0, 4.0, 2.0, 1.0, 0.0]))):
        scan = table[["token_id", "token", "kind"]].assign(score=table["best"].astype(np.float32))
        about = {"model": name, "prompt": prompt.text, "prompt_key": "best", "protocol": "exact", "dtype": "float32"}
        write_scores(panel, scan.astype({"token_id": "int32"}), {**about, "tokenizer_sha256": name * 64})
    by_string = tables.load_scores(panel, "best")
    assert list(by_string) == ["b", "a"] and by_string.to_dict("index") == {" love": {"b": 4.0, "a": 1.0}}
    assert tables.load_scores(panel, "best", how="word").to_dict("index") == {
        "bad": {"b": 5.0, "a": -1.5},
        "love": {"b": 3.0, "a": 2.0},
    }
    for mistake, said in (({"how": "fuzzy"}, "choose token or word"), ({"protocol": "published"}, "no scores of b")):
        with pytest.raises(InputError, match=said):
            tables.load_scores(panel, "best", **mistake)
    with pytest.raises(InputError, match="no question"):
        tables.load_tables(panel, [])
