"""Planted rewards are what they say, estimators recover them, and those that do not are seen not to."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

from rmnb import stats
from rmnb.data import lexicons
from rmnb.errors import InputError
from rmnb.files import data_dir, sha256
from rmnb.planted import rewards, study
from rmnb.planted.rewards import PlantedEffects
from rmnb.stats.estimate import Estimate

CASES = study.CASES


@pytest.fixture(scope="module")
def features():
    return rewards.word_features(rewards.spell(["love", "war", "table", "kindness"], [4, 2, 1, 1]))


def test_without_scatter_the_reward_is_the_stated_function(features):
    valences = dict(valence_positive=0.5, valence_negative=0.25, negative_framing=-0.5)
    effects = PlantedEffects(intercept=1, log_frequency=0.1, length=-0.01, word_sd=0, noise_sd=0, **valences)
    words = features["word"]
    valence = words.map(lexicons.afinn().set_index("word")["valence"]).fillna(0)
    liking = valence * np.where(valence > 0, 0.5, 0.25)
    rest = 1 - 0.01 * words.str.len() + 0.1 * np.log(10 ** (lexicons.zipf(words) - 3))
    for framing, turned in (("positive", 1), ("negative", -0.5)):
        scores = rewards.planted_scores(features, effects, np.random.default_rng(0), framing)
        np.testing.assert_allclose(scores, rest + turned * liking)


def test_spellings_share_the_effect_of_their_word(features):
    scores = rewards.planted_scores(features, PlantedEffects(word_sd=1, noise_sd=0), np.random.default_rng(0))
    assert np.ptp(scores[:4]) == 0 < np.ptp(scores)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_estimators_recover_what_was_planted_and_those_that_do_not_are_seen_to_fail(case):
    n = 60 if case["slow"] else 150  # the shipped study tries all of them on many more
    if not case["holds"]:
        n *= 4  # an interval that holds the truth too often is seen to only in many samples
    result = study.run(case, n, seed=11)
    low, high = study.BAND[result["measure"]]
    assert (result["ci_low"] <= high and result["ci_high"] >= low) == case["holds"]
    if case["holds"] and not np.isnan(result["truth"]):
        assert abs(result["mean_estimate"] - result["truth"]) < 5 * result["spread"] / np.sqrt(n)


def test_the_shipped_study_covers_every_estimator_and_supports_what_is_claimed_of_it():
    shipped = study.read_study()
    file = data_dir() / "simulations" / "coverage.csv"
    assert json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))["sha256"] == sha256(file)
    for column in study.COLUMNS[:3]:
        assert shipped[column].tolist() == [case[column] for case in CASES]
    assert shipped["n_simulations"].min() >= 200
    assert shipped["within_band"].equals(shipped["holds"])


def test_a_study_counts_what_it_should():
    def estimate(rng):
        x = rng.uniform()
        return 0.0, Estimate(x, 1, 1, ci_low=x - 0.7, ci_high=x + 1)

    def test(rng):
        return 0.0, Estimate(0.0, 1, 1, p_value=rng.uniform())

    blank = dict.fromkeys(["group", "unit", "origin", "holds", "slow"])
    cases = [{**blank, "name": "one", "simulate": estimate}, {**blank, "name": "other", "simulate": test}]
    table = study.study(400, cases=cases)
    assert table["measure"].tolist() == ["coverage", "rejection"]
    assert table["value"].tolist() == pytest.approx([0.7, 0.05], abs=0.06)
    assert (table["ci_low"] < table["value"]).all() and (table["value"] < table["ci_high"]).all()
    assert study.study(400, cases=cases[1:]).loc[0].equals(table.loc[1])  # the same data whatever else is run
    with pytest.raises(InputError, match="n_simulations must be 1 or more, got 0"):
        study.study(0)


def test_every_interval_that_is_offered_is_tried_on_planted_truth():
    """The bootstrap and the jackknife are tried by the effects that use them, the paired change in its own test."""
    functions = {name: getattr(stats, name) for name in stats.__all__ if inspect.isfunction(getattr(stats, name))}
    returned = {name: inspect.signature(function).return_annotation for name, function in functions.items()}
    modules = Path(study.__file__).parent.glob("*.py")
    tried = "".join(path.read_text(encoding="utf-8") for path in modules)
    untried = {name for name, kind in returned.items() if kind is Estimate and name not in tried}
    assert untried == {"bootstrap", "jackknife_over_models", "paired_change"}
