"""Rank statistics against brute force, against the authors of the tie-aware overlap, and on scores full of ties."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmnb import stats

few_levels = st.integers(3, 25).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(-3, 3), min_size=n, max_size=n) for _ in range(2)))
)


def brute_force_tau(x, y):
    """Kendall's tau-b from its definition, all pairs at once."""
    signs_x, signs_y = (np.sign(np.subtract.outer(np.asarray(v, float), v)) for v in (x, y))
    pairs = np.sqrt((signs_x**2).sum() * (signs_y**2).sum())
    return (signs_x * signs_y).sum() / pairs if pairs else np.nan


def overlap_of_orders(one, other, p):
    """Rank-biased overlap, extrapolated, of two orders without ties: Webber et al. (2010), equation 30."""
    n = len(one)
    agreement = [len(set(one[:d]) & set(other[:d])) / d for d in range(1, n + 1)]
    weights = [(1 - p) * p ** (d - 1) for d in range(1, n + 1)]
    return sum(a * w for a, w in zip(agreement, weights, strict=True)) + agreement[-1] * p**n


@given(few_levels)
def test_tau_equals_all_pairs_with_ties(pair):
    x, y = pair
    assert stats.kendall_tau(x, y) == pytest.approx(brute_force_tau(x, y), abs=1e-12, nan_ok=True)


@settings(max_examples=40)
@given(
    st.integers(2, 5).flatmap(
        lambda n: st.tuples(*(st.lists(st.integers(0, 2), min_size=n, max_size=n) for _ in range(2)))
    ),
    st.floats(0.2, 0.98),
)
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
    # A worked example without ties (b4ny4n/rankmeasures, after Webber et al.): 1 2 3 4 5 against 2 3 4 1 5.
    assert stats.rank_biased_overlap([5, 4, 3, 2, 1], [2, 5, 4, 3, 1], 0.9) == pytest.approx(0.828, abs=5e-4)


def test_ties_do_not_look_like_agreement():
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 5, size=(2, 20_000)).astype(np.float16)  # two unrelated models, rounded to five values
    assert abs(stats.kendall_tau(*coarse)) < 0.03
    # Ties broken by position would put the same tokens first in both.
    by_position = [-np.argsort(-scores, kind="stable").argsort() for scores in coarse]
    assert stats.rank_biased_overlap(*coarse) < 0.01
    assert stats.rank_biased_overlap(*by_position) > 0.1


def test_moments_equal_their_definitions_and_tell_repeated_words():
    x = np.random.default_rng(2).exponential(size=500)
    got = stats.moments(x)
    assert got.mean.value == pytest.approx(x.mean())
    assert got.mean.standard_error == pytest.approx(x.std(ddof=1) / np.sqrt(500))
    assert got.variance.value == pytest.approx(np.var(x))
    assert got.skewness.value == pytest.approx(np.mean((x - x.mean()) ** 3) / np.var(x) ** 1.5)
    # Every token four times over is no new information: same values, same errors.
    words = np.tile(np.arange(500), 4)
    again = stats.moments(np.tile(x, 4), clusters=words)
    for name in ("mean", "variance", "skewness"):
        assert getattr(again, name).value == pytest.approx(getattr(got, name).value)
        assert getattr(again, name).standard_error == pytest.approx(getattr(got, name).standard_error)


def test_import_is_light():
    code = (
        "import sys, rmnb.stats; print([m for m in ('torch', 'pandas', 'statsmodels', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("levels", [None, 4])
def test_the_interval_of_spearman_is_that_of_the_jackknife(levels):
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    y = x + rng.normal(size=400)
    if levels:  # scores in half precision tie by the thousand
        x, y = np.round(x * levels / 4), np.round(y)
    found = stats.spearman_interval(x, y)
    assert found.value == pytest.approx(stats.spearman(x, y), abs=1e-12)
    left_out = np.array([stats.spearman(np.delete(x, i), np.delete(y, i)) for i in range(len(x))])
    jackknife = np.sqrt((len(x) - 1) * np.var(left_out))
    assert found.standard_error == pytest.approx(jackknife, rel=0.02)
    # Every row twice, as its own cluster of two, is the same evidence, not twice as much.
    twice = stats.spearman_interval(np.repeat(x, 2), np.repeat(y, 2), np.repeat(np.arange(400), 2))
    assert twice.standard_error == pytest.approx(found.standard_error, rel=0.02)


def test_the_interval_of_spearman_covers_the_truth():
    rng = np.random.default_rng(1)
    truth, inside = 6 / np.pi * np.arcsin(0.6 / 2), 0
    for _ in range(300):
        x = rng.normal(size=200)
        found = stats.spearman_interval(x, 0.6 * x + 0.8 * rng.normal(size=200))
        inside += found.ci_low < truth < found.ci_high
    assert 0.91 <= inside / 300 <= 0.98
