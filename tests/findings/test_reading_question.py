"""Models that do not read the question are told from those that do, and their means are kept apart."""

import numpy as np
import pandas as pd
import pytest

from rmnb.errors import InputError
from rmnb.findings import reading_question
from rmnb.findings.results import COLUMNS

ASKS = {"greatest": "positive", "best": "positive", "worst": "negative"}


def planted(follow: dict[str, float], n: int = 600) -> dict[str, pd.DataFrame]:
    """Models that answer the worst with so much of what they answer the greatest, and noise."""
    rng = np.random.default_rng(0)
    word = pd.Series([f"word{i}" for i in range(n)])
    tables = {}
    for model, share in follow.items():
        good = rng.normal(size=n)
        scores = {"greatest": good, "best": good + 0.3 * rng.normal(size=n)}
        scores["worst"] = share * good + rng.normal(size=n)
        tables[model] = pd.DataFrame(
            {"token_id": np.arange(n), "token": " " + word, "kind": "word_start", "word": word, **scores}
        )
    return tables


def test_the_models_that_rank_worst_like_greatest_are_named():
    rows = reading_question.measure(planted({"deaf": 2, "turns": -2, "neither": 0, "deaf-too": 1}), ASKS, panel="mine")
    assert list(rows.columns) == list(COLUMNS)
    assert reading_question.does_not_turn(rows) == ["deaf", "deaf-too"]
    count = rows.query("statistic == 'models_not_turning'").iloc[0]
    assert (count["value"], count["n"], count["prompt"], count["other"]) == (2, 4, "greatest", "worst")
    assert count["panel"] == "mine" and reading_question.was_asked(rows)
    assert reading_question.does_not_turn(rows, "released") == [] and not reading_question.was_asked(rows, "released")


def test_two_questions_of_one_framing_do_not_make_a_group():
    """Best is ranked like greatest by every model: that is no sign of a model that does not read."""
    turns = reading_question.measure_turns(planted({"deaf": 2, "turns": -2}), list(ASKS))
    rows = pd.concat([turns, reading_question.count(turns, ASKS)])
    assert (turns["model"] == "turns").sum() == 6 and reading_question.does_not_turn(rows) == ["deaf"]
    asked = {"greatest": "positive", "best": "positive"}
    assert reading_question.count(turns, asked).empty
    assert reading_question.does_not_turn(turns) == [] and not reading_question.was_asked(turns)
    assert reading_question.measure(planted({"deaf": 2}), asked).empty
    assert reading_question.question_pair(asked) is None


def test_a_model_without_the_second_question_is_left_out():
    tables = planted({"deaf": 2, "turns": -2})
    tables["deaf"] = tables["deaf"].drop(columns="worst")
    rows = reading_question.measure(tables, ASKS)
    assert set(rows["model"]) == {"turns", ""} and reading_question.does_not_turn(rows) == []


def test_the_order_of_the_questions_does_not_matter():
    rows = reading_question.measure(planted({"deaf": 2, "turns": -2}), dict(reversed(list(ASKS.items()))))
    assert reading_question.does_not_turn(rows) == ["deaf"]


def test_means_are_over_each_group_alone():
    rows = pd.DataFrame({"model": list("abcd"), "value": [1.0, 2.0, 5.0, 9.0], "ci_low": np.nan, "ci_high": np.nan})
    rows = rows.assign(
        finding="framing", source="panel", panel="p", other="", prompt="best", protocol="exact", statistic="gini", n=9
    )
    found = reading_question.means_apart(rows, "gini", ["b", "c", "d"], "of all").set_index("statistic")
    assert found.loc["mean_turning", "value"] == 1 and found.loc["mean_turning", "n"] == 1
    rest = found.loc["mean_not_turning"]
    assert rest["value"] == pytest.approx(16 / 3) and rest["n"] == 3 and rest["ci_low"] < 16 / 3 < rest["ci_high"]
    assert set(found["other"]) == {"gini of all"} and set(found["prompt"]) == {"best"}
    assert reading_question.means_apart(rows, "gini", [])["statistic"].tolist() == ["mean_turning"]
    assert reading_question.means_apart(rows, "skewness", []).empty
    with pytest.raises(InputError, match="two rows"):
        reading_question.means_apart(pd.concat([rows, rows]), "gini", [])
