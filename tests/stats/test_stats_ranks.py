"""Rank statistics against brute force, against the authors of the tie-aware overlap, and on scores full of ties."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, skew, spearmanr

from rmnb import stats
from rmnb.stats.concordance import row_concordance


def two_lists(shortest, longest, highest):
    """Whole numbers from 0, full of ties."""
    return st.integers(shortest, longest).flatmap(
        lambda n: st.tuples(*[st.lists(st.integers(0, highest), min_size=n, max_size=n)] * 2)
    )


def overlap_of_orders(one, other, p):
    """Rank-biased overlap, extrapolated, of two orders without ties: Webber et al. (2010), equation 30."""
    n = len(one)
    agreement = [len(set(one[:d]) & set(other[:d])) / d for d in range(1, n + 1)]
    weights = [(1 - p) * p ** (d - 1) for d in range(1, n + 1)]
    return sum(a * w for a, w in zip(agreement, weights, strict=True)) + agreement[-1] * p**n


@given(two_lists(3, 25, 6))
def test_tau_and_the_concordance_of_each_row_equal_all_pairs_with_ties(pair):
    signs = [np.sign(np.subtract.outer(values, values)) for values in pair]
    concordance = (signs[0] * signs[1]).sum(axis=1)
    assert np.array_equal(row_concordance(*map(np.array, pair)), concordance)
    if all(np.ptp(values) for values in pair):
        assert stats.kendall_interval(*pair).value == pytest.approx(kendalltau(*pair).statistic, abs=1e-12)


@settings(max_examples=40)
@given(two_lists(2, 5, 2), st.floats(0.2, 0.98))
def test_overlap_averages_over_all_ways_to_break_ties(pair, p):
    def orders(scores):
        groups = [[i for i, s in enumerate(scores) if s == level] for level in sorted(set(scores), reverse=True)]
        ways = itertools.product(*(itertools.permutations(group) for group in groups))
        return [list(itertools.chain.from_iterable(way)) for way in ways]

    expected = np.mean([overlap_of_orders(a, b, p) for a in orders(pair[0]) for b in orders(pair[1])])
    assert stats.rank_biased_overlap(*pair, p=p) == pytest.approx(expected, abs=1e-12)


def test_overlap_equals_published_values():
    # Values printed by Corsi and Urbano's own implementation (julian-urbano/sigir2024-rbo) for the rankings
    # (a b) c (d e f) g and c (a d) (b g) f e.
    one = [4, 4, 3, 2, 2, 2, 1]
    other = [4, 3, 5, 4, 1, 2, 3]
    for p, value in {0.8: 0.5746986666666668, 0.9: 0.7569, 0.95: 0.8695216901041667}.items():
        assert stats.rank_biased_overlap(one, other, p) == pytest.approx(value, abs=1e-12)


def test_moments_equal_their_definitions_and_repeated_words_are_no_evidence():
    x = np.random.default_rng(2).exponential(size=500)
    once, again = stats.moments(x), stats.moments(np.tile(x, 4), clusters=np.tile(np.arange(500), 4))
    assert once["mean"].standard_error == pytest.approx(x.std(ddof=1) / np.sqrt(500))
    for name, value in {"mean": x.mean(), "variance": np.var(x), "skewness": skew(x)}.items():
        single, fourfold = once[name], again[name]
        assert (single.value, single.standard_error) == pytest.approx((value, fourfold.standard_error))
        assert fourfold.value == pytest.approx(value)
        left_out = [stats.moments(np.delete(x, place))[name].value for place in range(500)]
        assert single.standard_error == pytest.approx(np.sqrt(499 * np.var(left_out)), rel=0.1)


@pytest.mark.parametrize("decimals", [9, 0])  # scores in half precision tie by the thousand
def test_the_interval_of_spearman_is_that_of_the_jackknife(decimals):
    x, noise = np.random.default_rng(0).normal(size=(2, 400))
    x, y = x.round(decimals), (x + noise).round(decimals)
    found = stats.spearman_interval(x, y)
    assert found.value == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)
    left_out = [spearmanr(np.delete(x, i), np.delete(y, i)).statistic for i in range(400)]
    assert found.standard_error == pytest.approx(np.sqrt(399 * np.var(left_out)), rel=0.02)
    # Every row twice, as its own cluster of two, is the same evidence, not twice as much.
    twice = stats.spearman_interval(np.repeat(x, 2), np.repeat(y, 2), np.repeat(np.arange(400), 2))
    assert twice.standard_error == pytest.approx(found.standard_error, rel=0.02)
