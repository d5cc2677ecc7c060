"""Each kind of claim on numbers whose verdict is plain, and what independent groups make of ten models."""

import itertools

import numpy as np
import pandas as pd
import pytest

from rmnb.errors import InputError
from rmnb.findings.claims import Claim, judge, load_claims
from rmnb.panels import load_panel

SEEDS = {"m0": "a", "m1": "a", "m2": "a", "m3": "b"}
ONE = dict.fromkeys(SEEDS, "only")
FOUR = [1.0, 1.1, 1.2, 1.3]
BELOW_HALF = {"bounds": (None, 0.5), "range": (-1, 1)}


def claim(kind: str, **about) -> Claim:
    return Claim("key", "paper", "chapter", "claim", kind, "measure", **about)


def models(values, reach=0.1, df=np.inf):
    values = np.asarray(values, float)
    names = [f"m{place}" for place in range(len(values))]
    return pd.DataFrame({"model": names, "value": values, "low": values - reach, "high": values + reach, "df": df})


@pytest.mark.parametrize(
    ("kind", "about", "values", "groups", "verdict"),
    [
        ("mean", {}, FOUR, {}, "supported"),
        ("mean", {"side": "below"}, FOUR, {}, "contradicted"),
        ("mean", {}, FOUR, SEEDS, "undecided"),
        ("mean", {}, [], {}, "cannot be tested here"),
        ("all", {}, [1, 1, 1, 1], {}, "supported"),
        ("all", {}, [1, 1, 1, 1], ONE, "undecided"),
        ("all", {}, [1, 1, 1, 0.05], {}, "undecided"),
        ("all", {}, [1, 1, 1, -1], ONE, "contradicted"),
        ("some", {}, [-1, 0.2], ONE, "supported"),
        ("some", {}, [-1, 0.05], {}, "undecided"),
        ("between", BELOW_HALF, [0.1, 0.2, 0.15], {}, "supported"),
        ("between", BELOW_HALF, [0.8, 0.9, 0.85], {}, "contradicted"),
        ("half", BELOW_HALF, [0.1, 0.9, 0.2, 0.8], {}, "supported"),
        ("half", BELOW_HALF, [0.1, 0.3, 0.9, 0.8], {"m0": "a", "m1": "a"}, "contradicted"),
        ("half", BELOW_HALF, [0.1, 0.2], {}, "undecided"),
    ],
)
def test_each_kind_is_judged_by_its_rule(kind, about, values, groups, verdict):
    assert judge(claim(kind, **about), models(values), groups).verdict == verdict


def test_the_mean_is_over_groups_and_an_interval_ends_where_the_measure_does():
    two = judge(claim("mean"), models(FOUR), SEEDS)
    assert two.groups == pytest.approx({"a": 1.1, "b": 1.3}) and two.value == pytest.approx(1.2) and np.isnan(two.low)
    wide = judge(claim("between", **BELOW_HALF), models([-0.9, 0.9, 0.3]), {})
    assert (wide.low, wide.high) == (-1, 1)
    assert np.isnan(wide.detectable), "only of a mean that is held against zero"
    with pytest.raises(InputError, match="two rows of m0"):
        judge(claim("mean"), models([1, 2]).assign(model="m0"), {})


def test_pairs_have_the_jackknife_over_groups():
    pairs = pd.DataFrame(itertools.combinations(["a1", "a2", "b", "c", "d"], 2), columns=["model", "other"])
    pairs["value"] = np.random.default_rng(0).normal(0.2, 0.05, len(pairs))
    groups = {"a1": "a", "a2": "a"}
    found = judge(claim("between", **BELOW_HALF), pairs, groups)
    # a1 and a2 are one group: what they agree is no pair of groups, and with b they are one pair.
    between = pairs[pairs["other"] != "a2"].assign(model=pairs["model"].replace(groups), other=pairs["other"])
    means = between.groupby(["model", "other"])["value"].mean()
    named = means.index.map("".join)
    without = [means[~named.str.contains(group)].mean() for group in "abcd"]
    assert found.verdict == "supported" and len(means) == 6 and found.value == pytest.approx(means.mean())
    assert found.high - found.value == pytest.approx(3.182446 * np.sqrt(3) * np.std(without))
    assert found.agreeing == 9, "pairs of models of different groups"
    twins = pairs.assign(value=pairs["value"].mask(pairs["other"] == "a2", 9.0))
    assert judge(claim("between", **BELOW_HALF), twins, groups).value == found.value
    assert judge(claim("between", **BELOW_HALF), pairs, {**groups, "b": "a", "c": "a"}).verdict == "undecided"


def test_one_model_of_many_decides_only_when_it_is_clear_among_so_many():
    """Ten models at zero whose intervals are 1.96 long on each side: the lowest lies 2.2 below, p = 0.028."""
    others = [-0.5, 0, 0.3, 1, 1.2, 1.5, -1, 0.1, 0.6]
    drawn = models([-2.2, *others], reach=1.96)
    alone = judge(claim("all"), drawn.iloc[:1], {})
    among = judge(claim("all"), drawn, {})
    assert (alone.verdict, among.verdict, among.opposing) == ("contradicted", "undecided", 0)
    assert judge(claim("some", side="below"), drawn, {}).verdict == "undecided"
    far = judge(claim("all"), models([-3.5, *others], reach=1.96), {})
    assert (far.verdict, far.opposing) == ("contradicted", 1)
    # The same end of an interval with three degrees of freedom is 4.9 standard errors away: p = .016 by Student's t,
    # .0025 by the normal distribution.
    few = judge(claim("all"), models([-3.02, *others], reach=1.96, df=3), {})
    assert (few.verdict, judge(claim("all"), models([-3.02, *others], reach=1.96), {}).verdict) == (
        "undecided",
        "contradicted",
    )
    with pytest.raises(InputError, match="without its degrees of freedom"):
        judge(claim("all"), drawn.drop(columns="df"), {})


def test_bases_are_described_by_their_means_alone():
    described = judge(claim("bases"), models([1, 2, 5, 7]), {"m0": "x", "m1": "x", "m2": "y", "m3": "y"})
    assert (described.verdict, described.models, described.groups) == ("described", 4, {"x": 1.5, "y": 6.0})
    assert np.isnan([described.value, described.low, described.detectable]).all()


def test_the_detectable_mean_is_found_four_times_in_five():
    values = [-1.0, 0.0, 1.0, 0.4]
    found = judge(claim("mean"), models(values), {})
    samples = np.random.default_rng(1).normal(found.detectable, np.std(values, ddof=1), (20_000, 4))
    t = samples.mean(1) / (samples.std(1, ddof=1) / 2)
    assert np.mean(np.abs(t) > 3.182446) == pytest.approx(0.8, abs=0.015)


def test_every_claim_is_of_a_known_kind_and_the_authors_models_have_groups():
    assert {claim.kind for claim in load_claims().values()} == {"all", "some", "mean", "between", "half", "bases"}
    assert len(set(load_panel("facct2025").groups.values())) == 3
