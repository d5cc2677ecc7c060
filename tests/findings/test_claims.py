"""Each kind of claim on numbers whose verdict is plain, and what independent groups make of ten models."""

import numpy as np
import pandas as pd
import pytest

from rmnb.errors import InputError
from rmnb.findings.claims import Claim, judge, load_claims
from rmnb.panels import load_panel


def claim(kind: str, **about) -> Claim:
    return Claim("key", "paper", "chapter", "claim", kind, "measure", **about)


def models(values, reach=0.1):
    values = np.asarray(values, float)
    names = [f"m{place}" for place in range(len(values))]
    return pd.DataFrame({"model": names, "value": values, "low": values - reach, "high": values + reach})


def test_the_mean_is_over_groups_and_seeds_of_one_recipe_count_once():
    values, groups = models([1.0, 1.1, 1.2, 1.3]), {"m0": "a", "m1": "a", "m2": "a", "m3": "b"}
    assert judge(claim("mean"), values, {}).verdict == "supported"
    two = judge(claim("mean"), values, groups)
    assert two.verdict == "undecided" and np.isnan(two.low) and two.value == pytest.approx((1.1 + 1.3) / 2)
    assert judge(claim("mean", side="below"), values, {}).verdict == "contradicted"
    assert judge(claim("mean"), models([1.0, -1.0, 0.5]), {}).verdict == "undecided"


def test_all_is_contradicted_by_one_clear_model_whatever_the_groups():
    one = {f"m{place}": "only" for place in range(4)}
    assert judge(claim("all"), models([1, 1, 1, 1]), {}).verdict == "supported"
    assert judge(claim("all"), models([1, 1, 1, 1]), one).verdict == "undecided"
    assert judge(claim("all"), models([1, 1, 1, 0.05]), {}).verdict == "undecided"
    assert judge(claim("all"), models([1, 1, 1, -1]), one).verdict == "contradicted"


def test_some_needs_one_model_and_absence_never_contradicts():
    exact = pd.DataFrame({"model": ["m0", "m1"], "value": [-1.0, 0.2]})
    assert judge(claim("some"), exact, {}).verdict == "supported"
    assert judge(claim("some"), models([-1, 0.05]), {}).verdict == "undecided"


def test_between_takes_the_whole_interval_and_ends_where_the_measure_does():
    bounded = claim("between", bounds=(None, 0.5), range=(-1, 1))
    assert judge(bounded, models([0.1, 0.2, 0.15]), {}).verdict == "supported"
    assert judge(bounded, models([0.8, 0.9, 0.85]), {}).verdict == "contradicted"
    wide = judge(bounded, models([-0.9, 0.9, 0.3]), {})
    assert wide.verdict == "undecided" and (wide.low, wide.high) == (-1, 1)


def test_pairs_have_the_jackknife_over_groups():
    names = ["a1", "a2", "b", "c", "d"]
    rng = np.random.default_rng(0)
    pairs = pd.DataFrame([(x, y) for i, x in enumerate(names) for y in names[i + 1 :]], columns=["model", "other"])
    pairs["value"] = rng.normal(0.2, 0.05, len(pairs))
    found = judge(claim("between", bounds=(None, 0.5)), pairs, {"a1": "a", "a2": "a"})
    without = [
        pairs.loc[~(pairs["model"].str.startswith(g) | pairs["other"].str.startswith(g)), "value"].mean()
        for g in "abcd"
    ]
    error = np.sqrt(3 / 4 * np.sum((without - np.mean(without)) ** 2))
    assert found.verdict == "supported" and found.value == pytest.approx(pairs["value"].mean())
    assert found.high - found.value == pytest.approx(3.182446 * error)
    assert (
        judge(claim("between", bounds=(None, 0.5)), pairs, dict.fromkeys(names, "a") | {"d": "d"}).verdict
        == "undecided"
    )


def test_two_bases_are_described_and_no_number_is_no_verdict():
    found = judge(claim("bases"), models([1, 2, 5, 7]), {"m0": "x", "m1": "x", "m2": "y", "m3": "y"})
    assert found.verdict == "described" and found.groups == {"x": 1.5, "y": 6.0} and np.isnan(found.low)
    assert judge(claim("mean"), None, {}).verdict == "cannot be tested here"
    with pytest.raises(InputError, match="two rows of m0"):
        judge(claim("mean"), models([1, 2]).assign(model="m0"), {})


def test_the_detectable_mean_is_found_four_times_in_five():
    rng = np.random.default_rng(1)
    found = judge(claim("mean"), models([-1.0, 0.0, 1.0, 0.4]), {})
    sd = np.std([-1.0, 0.0, 1.0, 0.4], ddof=1)
    samples = rng.normal(found.detectable, sd, (20_000, 4))
    t = samples.mean(1) / (samples.std(1, ddof=1) / 2)
    assert np.mean(np.abs(t) > 3.182446) == pytest.approx(0.8, abs=0.015)


def test_every_claim_is_of_a_known_kind_and_every_model_of_the_panels_has_a_group():
    claims = load_claims()
    assert len(claims) == 15 and {one.kind for one in claims.values()} == {"all", "some", "mean", "between", "bases"}
    assert len(set(load_panel("demo").groups.values())) == 4 and len(set(load_panel("facct2025").groups.values())) == 3
