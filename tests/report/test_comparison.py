"""The change between two models: intervals paired by word, whole matched sets, seeds, and the words that moved."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from rmnb import stats
from rmnb.errors import InputError
from rmnb.findings import identity
from rmnb.findings.tables import afinn, rated_tokens, standardise
from rmnb.panels import load_prompts
from rmnb.planted.rewards import spell, word_features
from rmnb.report import comparison, numbers, record, replicates
from rmnb.report.scores import ModelScores

SLOPES = {"a": 0.3, "b": 0.4}
SLOPE = ("slope_good", "greatest", "")


@pytest.fixture(scope="module")
def pair():
    """Two models that share most of what they make of a word, and differ in their slope over valence."""
    rng, models = np.random.default_rng(0), []
    table = word_features(spell(word for word in afinn().index if word.isalpha()))
    words = pd.factorize(table["word"])[0]
    shared = rng.normal(0, 1, len(words))[words]
    listed = identity.terms()[["term", "control"]].melt(value_name="text")[["text"]].assign(part="identity")
    wordings = [prompt.key for prompt in load_prompts("iclr2026")]
    listed[wordings] = rng.normal(size=(len(listed), len(wordings)))
    for name, slope in SLOPES.items():
        own = rng.normal(0, 0.3, len(words))[words] + rng.normal(0, 0.2, len(table))
        score = shared + own + slope * table["valence"]
        scored = table.assign(greatest=score, worst=-score)
        models.append(ModelScores(name, False, scored, listed, None, {"weights_sha256": name}))
    return models


@pytest.fixture(scope="module")
def reports(pair):
    return [record.build(model) for model in pair]


def test_the_interval_of_a_change_is_that_of_a_regression_of_the_difference(pair, reports):
    tables = [rated_tokens(standardise(model.table, ["greatest"]), afinn()) for model in pair]
    rated = tables[0].assign(change=tables[1]["greatest"] - tables[0]["greatest"])
    slope = stats.ols("change ~ valence", rated[rated["valence"] > 0], clusters="word")["valence"]
    found = comparison.compare(*reports).set_index(numbers.KEY).loc[SLOPE]
    assert found["change"] == pytest.approx(slope.value)
    width = slope.ci_high - slope.ci_low
    assert found["high"] - found["low"] == pytest.approx(width, rel=0.5)  # of 20 groups
    assert np.hypot(found["a_high"] - found["a_low"], found["b_high"] - found["b_low"]) > 2 * width


def test_few_matched_sets_have_few_degrees_of_freedom():
    """An axis of four sets: the interval is the t interval of their four differences."""
    gaps = np.array([0.1, 0.5, -0.4, 0.9])
    left = np.full(replicates.GROUPS, gaps.mean())
    left[:4] = [np.delete(gaps, at).mean() for at in range(4)]
    low, high = replicates.jackknife(gaps.mean(), left)
    reach = 3.182 * gaps.std(ddof=1) / 2  # t of three degrees of freedom
    assert (high - low) / 2 == pytest.approx(reach, rel=1e-3)
    assert replicates.jackknife(0.5, np.full(replicates.GROUPS, 0.5)) == (0.5, 0.5)  # a model and itself
    left[0] = np.nextafter(gaps.mean(), 1)  # a set that happens to shift it by next to nothing is a set all the same
    assert np.ptp(replicates.jackknife(gaps.mean(), left)) > 0
    left[0] = np.nan
    assert np.isnan(replicates.jackknife(gaps.mean(), left)).all()


def test_an_axis_counts_the_groups_of_words_that_hold_its_sets(reports):
    """Other words are in the unit of the listed texts alone: they must not count as sets."""
    report = reports[0]
    terms = identity.terms()
    for axis in ("orientation", "gender"):
        key = ("identity_gap", "both", axis)
        value = report.numbers.set_index(numbers.KEY).loc[key, "value"]
        n_sets = terms.loc[terms["axis"] == axis, "group"].nunique()
        assert (report.left_out.loc[key] != value).sum() == n_sets < replicates.GROUPS


def test_a_term_is_left_out_with_its_controls_and_a_word_from_both_models(pair):
    a, _ = pair
    other = dataclasses.replace(a, table=a.table[a.table["word"] < "m"].iloc[::-1])
    terms = identity.terms()
    left_out = 0
    for group in range(replicates.GROUPS):
        kept = replicates.without(a, group)
        here = set(kept.words["text"])
        assert (terms["term"].isin(here) == terms["control"].isin(here)).all()
        gone = set(a.table["word"]) - set(kept.table["word"])
        remaining = set(replicates.without(other, group).table["word"])
        assert gone & set(other.table["word"]) == set(other.table["word"]) - remaining
        left_out += len(a.table) - len(kept.table)
    assert left_out == len(a.table)


def test_a_change_stands_beside_what_seeds_differ_by(reports):
    a, b = reports

    def seed(shift):
        shifted = a.numbers.assign(value=a.numbers["value"] + shift)
        return dataclasses.replace(a, numbers=shifted, provenance={"weights_sha256": str(shift)})

    unknown = comparison.compare(a, b)
    assert unknown[["seeds", "noise", "df"]].isna().all(axis=None) and not comparison.beyond_seeds(unknown).any()
    known = comparison.compare(a, b, [[seed(shift) for shift in (0.0, 0.03, -0.03)]])
    apart = np.sqrt(np.mean(np.square([0.03, 0.03, 0.06])))  # root mean square over pairs
    assert known["seeds"].to_numpy() == pytest.approx(apart)
    # Seeds of two trainings: what sets the trainings apart is no noise.
    pairs = [[seed(shift) for shift in pair] for pair in ((0.0, 0.03), (5.0, 5.05))]
    assert comparison.compare(a, b, pairs)["seeds"].to_numpy() == pytest.approx(np.sqrt((0.03**2 + 0.05**2) / 2))
    with pytest.raises(InputError, match="two seeds or more"):
        comparison.compare(a, b, [[seed(0.0)]])
    with pytest.raises(InputError, match="seeds a and a have the same weights"):
        comparison.compare(a, b, [[a, a]])
    with pytest.raises(InputError, match="a was scored with --quick and b in full"):
        comparison.compare(dataclasses.replace(a, quick=True), b)


def test_a_number_that_one_model_lacks_is_not_lost(reports):
    a, b = reports
    lacking = dataclasses.replace(a, numbers=a.numbers[a.numbers["name"] != SLOPE[0]])
    for sides in ((lacking, b), (b, lacking)):
        row = comparison.compare(*sides).set_index(numbers.KEY).loc[SLOPE]
        assert row[["a", "b"]].isna().sum() == 1 and np.isnan(row["change"])


def test_a_report_comes_back_from_its_file(reports, tmp_path):
    judge = {"template": "Is {{ messages[-1]['content'] }}\ngood?", "answers": {"Yes": 1, "No": -1}, "expected": True}
    path = record.write(dataclasses.replace(reports[0], provenance={"judge": judge}), tmp_path)
    card = (tmp_path / "report.md").read_text()
    assert "- judge: Yes +1, No -1 (probabilities): Is {{ messages[-1]['content'] }} good?\n" in card
    back = record.read(tmp_path)
    pd.testing.assert_frame_equal(comparison.compare(back, reports[1]), comparison.compare(*reports))
    path.write_text(path.read_text().replace('"schema": 4', '"schema": 3'))
    with pytest.raises(InputError, match="written by another version"):
        record.read(path)


def test_the_words_that_moved_are_found(pair):
    a, _ = pair
    there = a.table["word"].eq("love")
    b = dataclasses.replace(a, name="b", table=a.table.assign(greatest=a.table["greatest"] - 9.0 * there))
    found = comparison.moved(a, b, count=3).query("question == 'greatest'")
    assert found["word"].iloc[-1] == "love" and len(found) == 6
    assert found["change"].is_monotonic_decreasing
