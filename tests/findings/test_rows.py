"""One shape of tables: what is shared, what a rated word is, each model measured."""

import numpy as np
import pandas as pd
import pytest

from rmnb.errors import InputError
from rmnb.findings import rows, tables
from rmnb.panels import load_panel
from rmnb.stats.estimate import Estimate

TOKENS = pd.DataFrame({"token": [" love", "Love", "ing", "", " bad", " bad"], "token_id": range(6)})
TOKENS["word"] = TOKENS["token"].str.strip().str.lower()
TOKENS["kind"] = ["word_start", "word_continuation", "word_continuation", "unused", "word_start", "word_start"]
TOKENS["best"], TOKENS["worst"] = [1.0, 3.0, 9.0, 9.0, -1.0, -2.0], [0.0, 0.0, 9.0, 9.0, 2.0, 4.0]


def number(value):
    return Estimate(value, 7, 5, value - 1, value + 1, 0.5, 0.1)


def test_every_spelling_of_a_rated_word_is_rated_and_nothing_else():
    rated = tables.rated_tokens(TOKENS, pd.Series({"love": 3, "bad": -3}))
    assert rated["token_id"].tolist() == [0, 1, 4, 5] and rated["valence"].tolist() == [3, 3, -3, -3]


def test_every_model_is_measured_under_every_question_and_two():
    def mean(table, question, other=None, shift=0.0):
        return {"mean": number(table[question].mean() + shift)}

    models = {"m": TOKENS, "n": TOKENS}
    single = rows.measure_each(models, mean, ["best", "worst"], shift=1.0)
    assert list(single) == ["model", "question", *rows.NUMBERS] and len(single) == 4
    assert rows.measure_each(models, mean, iter(["best", "worst"]), shift=1.0).equals(single), (
        "questions may be read once only"
    )
    assert single.loc[0, rows.ENDS].tolist() == pytest.approx(TOKENS["best"].mean() + np.array([1, 0, 2]))
    two = rows.measure_each(models, mean, [("best", "worst")])
    pair = rows.measure_each_pair(models, lambda a, b, question: mean(a, question), [("m", "n")], ["best"])
    assert two.loc[1, ["model", "question", "other"]].tolist() == ["n", "best", "worst"]
    assert pair.loc[0, ["model", "other", "question"]].tolist() == ["m", "n", "best"]


def test_a_panels_scores_are_shared_by_string_or_word_in_its_order(monkeypatch):
    panel = load_panel("demo")
    first, *others = panel.model_names
    other = pd.DataFrame({"token": [" bad", " love", "LOVE", "爱", "only"], "kind": "word_start"})
    other = other.assign(token_id=range(5), best=[5.0, 4.0, 2.0, 1.0, 0.0])

    def read(panel, model, question, protocol):
        return (other if model == first else TOKENS).rename(columns={question: "score"})

    monkeypatch.setattr(tables, "read_scores", read)
    by_string = tables.load_scores(panel, "best")
    assert list(by_string) == [first, *others] and by_string.to_dict("index") == {
        " love": {first: 4.0} | dict.fromkeys(others, 1.0)
    }
    by_word = tables.load_scores(panel, "best", how="word")
    assert by_word[[first, others[0]]].to_dict("split")["data"] == [[5.0, -1.5], [3.0, 2.0]]
    with pytest.raises(InputError, match="choose token or word"):
        tables.load_scores(panel, "best", how="fuzzy")
    with pytest.raises(InputError, match="no question"):
        tables.load_tables(panel, [])


def test_an_interval_shows_on_which_side_of_zero_it_ends():
    assert rows.interval_text(-0.004, 0.12) == "-0.004 to 0.120"
    assert rows.interval_text(0.123, 4) == "0.12 to 4.00" and rows.interval_text(0.0, 0.5) == "0.00 to 0.50"
    assert rows.interval_text(np.nan, np.nan) == ""
