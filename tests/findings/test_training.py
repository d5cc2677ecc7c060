"""Chapter 9: trajectories are read back with their words, gaps find what was planted, its cells compute the same."""

import functools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu

from rmnb.data import lexicons, text_lists
from rmnb.data.sources import UnreachableError
from rmnb.data.text_lists import TextList
from rmnb.errors import InputError
from rmnb.findings import rows, tables, training
from rmnb.panels import load_panel
from rmnb.scoring import list_scores
from rmnb.training.runs import trajectory_path

RUN, STEPS = "smollm2-values", ["0", "1", "2", "4"]
NOUNS = lexicons.agency_communion()


def nouns_of(table):
    return NOUNS.merge(table[table["part"] == "agency_communion"], on="word")


@pytest.fixture
def panel(tmp_path):
    """The demo panel with a store of its own."""
    return load_panel("demo").model_copy(update={"scores": str(tmp_path / "scores")})


@pytest.fixture
def planted(panel):
    """A run whose liking of valence grows with the step, while agency falls behind communion."""
    valence, agency = tables.afinn(), NOUNS.query("category == 'agency'")["word"]

    def score(words, step):
        words, noise = pd.Series(words), np.random.default_rng(step).normal(0, 0.3, len(words))
        return (noise + step * (0.2 * words.map(valence).fillna(0) - words.isin(agency))).to_numpy(np.float32)

    columns = {step: functools.partial(score, step=int(step)) for step in STEPS}
    list_scores.score_columns(
        trajectory_path(panel, RUN), TextList("training", ("afinn", "agency_communion"), ()), columns, {}
    )
    return tables.load_trajectories(panel)[RUN]


def test_gaps_follow_what_was_planted(planted):
    assert planted.columns.tolist() == ["part", "word", *STEPS]
    nouns = nouns_of(planted)
    gaps = rows.each({"run": nouns}, training.gap, STEPS, n_draws=200).set_index("question")
    assert gaps.loc["0", "low"] < 0 < gaps.loc["0", "high"]
    assert gaps.loc["4", "low"] > 30, "percent of the ranks: agency stands lower"
    with pytest.raises(InputError, match="fewer than two"):
        training.gap(nouns[nouns["category"] == "agency"], "4")


def test_two_runs_are_compared_on_the_same_nouns(planted):
    one = nouns_of(planted)
    other = one.assign(**{"4": one["4"] + 8 * (one["category"] == "agency")})
    pair = training.gap_between(one, other, "4", n_draws=200)["base_gap"]
    assert pair.ci_low > 50
    assert training.gap_between(other, one, "4", n_draws=200)["base_gap"].value == pytest.approx(-pair.value)
    with pytest.raises(InputError, match="other nouns"):
        training.gap_between(one, other.iloc[:-1], "4")


def test_the_chapters_cells_compute_what_the_effect_does(planted, run_cells):
    known = {"one": "run", "n_boot": 500, "seed": 0, "ratings": tables.afinn()}
    known |= {"runs": {"run": planted}, "steps": {"run": STEPS}, "nouns": {"run": nouns_of(planted)}}
    names = run_cells("09", "margin = ", "one = next(", "last = ", **known)
    effect = training.gap(names["nouns"]["run"], "4")["agency_less_communion"]
    shown = (names["value"], names["low"], names["high"])
    assert shown == pytest.approx((effect.value, effect.ci_low, effect.ci_high), abs=2.5)
    pairs = len(names["good"]) * len(names["bad"])
    won = mannwhitneyu(names["good"]["4"], names["bad"]["4"]).statistic
    assert names["learned"].loc["4", "pairs in order"] == pytest.approx(won / pairs)
    slope = np.diff(np.logaddexp(0, [1e-6, -1e-6])) / 2e-6
    assert (names["pull"][2], names["loss"][2]) == pytest.approx((-slope.item(), np.log(2)))


def test_scores_of_other_texts_are_refused_and_unreachable_ones_go_by_their_place(panel, planted, monkeypatch):
    with monkeypatch.context() as context, pytest.raises(InputError, match="agency_communion have changed"):
        context.setitem(text_lists._PARTS, "agency_communion", lambda: ["other", "words"])
        tables.load_trajectories(panel)

    def unreachable():
        raise UnreachableError("not here")

    monkeypatch.setitem(text_lists._PARTS, "agency_communion", unreachable)
    nouns = tables.load_trajectories(panel)[RUN].query("part == 'agency_communion'")["word"]
    assert nouns.iloc[-1] == "agency_communion 119"
    trajectory_path(panel, RUN).unlink()
    with pytest.raises(InputError, match="no training run of panel demo"):
        tables.load_trajectories(panel)
