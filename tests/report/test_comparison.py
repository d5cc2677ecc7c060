"""The change between two models: intervals paired by word, whole matched sets, and the words that moved."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from rmnb.errors import InputError
from rmnb.findings import identity
from rmnb.findings.results import Results
from rmnb.findings.scan_tables import afinn
from rmnb.report import comparison
from rmnb.report.floor import ROUNDING, floor, rounding
from rmnb.report.scores import ModelScores
from rmnb.scoring.noise import read_noise
from rmnb.truth.planted import spell

SLOPE = {"a": 0.3, "b": 0.4}


@pytest.fixture(scope="module")
def pair():
    """Two models that share most of what they make of a word, and differ by 0.1 in their slope over valence."""
    rng = np.random.default_rng(0)
    words = afinn().query("valence > 0 and word.str.isalpha()")
    table = spell(words["word"]).assign(token_id=lambda tokens: np.arange(len(tokens)))
    table["word"] = table["token"].str.strip().str.casefold()
    valence = table["word"].map(words.set_index("word")["valence"]).to_numpy(float)
    number = pd.factorize(table["word"])[0]
    shared = rng.normal(0, 1, number.max() + 1)[number]
    models = []
    for name, slope in SLOPE.items():
        own = rng.normal(0, 0.3, number.max() + 1)[number] + rng.normal(0, 0.2, len(table))
        score = shared + own + slope * valence
        listed = pd.DataFrame({"part": "identity", "text": identity.terms()["term"]})
        scored = table.assign(greatest=score, worst=-score)
        models.append(ModelScores(name, False, scored, listed, None, {"dtype": "float32"}))
    return models


def slope(scores):
    """The slope over valence among good words, by least squares; its interval by cluster is the paired one's rival."""
    rated = scores.table.merge(afinn(), on="word")
    fit = smf.ols("greatest ~ valence", rated).fit(
        cov_type="cluster", cov_kwds={"groups": pd.factorize(rated["word"])[0]}
    )
    results, ends = Results("asymmetry", "report"), fit.conf_int().loc["valence"]
    about = {"model": scores.name, "prompt": "greatest", "ci_low": ends[0], "ci_high": ends[1], "n": len(rated)}
    results.add("panel", "slope_positive", fit.params["valence"], **about)
    results.add("panel", "curvature_p", 0.5, model=scores.name)
    return results.frame()


def width(row):
    return row["ci_high"] - row["ci_low"]


def test_the_interval_of_a_change_is_that_of_a_regression_of_the_difference(pair):
    a, b = pair
    difference = dataclasses.replace(a, table=a.table.assign(greatest=b.table["greatest"] - a.table["greatest"]))
    rival = slope(difference).iloc[0]
    found = [comparison.compare(a, b, measure=slope, seed=seed) for seed in range(6)]
    assert all(table["statistic"].tolist() == ["slope_positive"] for table in found)  # p-values have no change
    first = found[0].iloc[0]
    assert first["change"] == pytest.approx(rival["value"]) == first["value_b"] - first["value_a"]
    assert first["ci_low"] < 0.1 < first["ci_high"]
    assert np.mean([width(table.iloc[0]) for table in found]) == pytest.approx(width(rival), rel=0.2)
    unpaired = comparison.compare_rows(slope(a), slope(b)).iloc[0]
    assert unpaired["change"] == pytest.approx(first["change"]) and width(unpaired) > 2 * width(rival)


def test_of_intervals_nine_in_ten_or_more_hold_the_truth():
    rng, hits = np.random.default_rng(1), []
    for _ in range(400):
        groups = rng.integers(comparison.GROUPS, size=200)
        values = rng.normal(size=200)
        left = np.array([values[groups != group].mean() for group in range(comparison.GROUPS)])
        low, high = comparison.jackknife(values.mean(), left)
        hits.append(low <= 0 <= high)
    assert 0.92 <= np.mean(hits) <= 0.98


def test_few_matched_sets_have_few_degrees_of_freedom():
    """An axis of four sets: the interval is the t interval of their four differences."""
    gaps = np.array([0.1, 0.5, -0.4, 0.9])
    left = np.full(comparison.GROUPS, gaps.mean())
    left[:4] = [np.delete(gaps, at).mean() for at in range(4)]
    low, high = comparison.jackknife(gaps.mean(), left)
    reach = 3.182 * gaps.std(ddof=1) / 2  # t of three degrees of freedom
    assert (high - low) / 2 == pytest.approx(reach, rel=1e-3)
    assert comparison.jackknife(0.5, np.full(comparison.GROUPS, 0.5)) == (0.5, 0.5)  # a model and itself
    left[0] = np.nan
    assert np.isnan(comparison.jackknife(gaps.mean(), left)).all()


def test_a_term_is_left_out_with_its_controls_and_a_word_from_both_models(pair):
    a, _ = pair
    other = dataclasses.replace(a, table=a.table[a.table["word"] < "m"].iloc[::-1])
    terms = identity.terms()
    both = pd.concat([terms["term"], terms["control"]])
    a = dataclasses.replace(a, words=pd.DataFrame({"part": "identity", "text": both}))
    left_out = 0
    for group in range(comparison.GROUPS):
        kept = comparison.without(a, group)
        here = set(kept.words["text"])
        assert (terms["term"].isin(here) == terms["control"].isin(here)).all()
        gone = set(a.table["word"]) - set(kept.table["word"])
        assert gone & set(other.table["word"]) == set(other.table["word"]) - set(
            comparison.without(other, group).table["word"]
        )
        left_out += len(a.table) - len(kept.table)
    assert left_out == len(a.table)


def test_a_quick_report_is_not_compared_with_a_whole_one(pair):
    a, b = pair
    with pytest.raises(InputError, match="a was scored with --quick and b in full"):
        comparison.compare(dataclasses.replace(a, quick=True), b, measure=slope)


def test_the_words_that_moved_are_found(pair):
    a, _ = pair
    there = a.table["word"].eq("love")
    b = dataclasses.replace(a, name="b", table=a.table.assign(greatest=a.table["greatest"] - 9.0 * there))
    found = comparison.moved(a, b, count=3)
    words = found[(found["unit"] == "words") & (found["prompt"] == "greatest")]
    assert words["text"].iloc[-1] == "love" and len(words) == 6
    assert words["change"].is_monotonic_decreasing
    tokens = found[(found["unit"] == "tokens") & (found["prompt"] == "greatest")]
    assert set(tokens["text"].tail(3).str.strip().str.casefold()) == {"love"}
    fewer = dataclasses.replace(b, table=b.table.iloc[1:])
    assert set(comparison.moved(a, fewer)["unit"]) == {"words"}


def test_the_floor_grows_with_the_rounding_of_the_precision(pair):
    a, _ = pair
    half = dataclasses.replace(a, provenance={"dtype": "bfloat16"})
    floors = [floor(one, measure=slope).iloc[0] for one in (a, half)]
    assert 0 < floors[0] < 1e-5 < 1e-3 < floors[1] < 0.1
    assert floor(a, 0.0, measure=slope).eq(0).all()
    assert rounding(half) / rounding(a) == pytest.approx(ROUNDING["bfloat16"] / ROUNDING["float32"])


def test_what_rounding_is_said_to_do_is_what_was_measured():
    """Median differences of the shipped table, in standard deviations; 1.48 makes them standard deviations."""
    table = read_noise()
    for dtype, known in ROUNDING.items():
        same = table["change"].eq(dtype) if dtype != "float32" else table["change"].isin(["batch 1", "attention sdpa"])
        measured = (1.48 * table["median_difference"] / table["score_sd"])[same].max()
        assert known / 3 < measured < 2 * known
