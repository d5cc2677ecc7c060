"""Bootstrap, closed-form intervals and permutation tests against independent computations."""

import itertools

import numpy as np
import pytest
from scipy.stats import kendalltau

from rmnb import stats


def test_closed_form_error_of_tau_equals_the_jackknife():
    rng = np.random.default_rng(0)
    words = rng.integers(0, 80, size=200)
    x = rng.normal(size=80)[words].round(1) + rng.normal(size=200).round(1)
    y = x + rng.normal(size=200).round(1)
    estimate = stats.kendall_interval(x, y, words)
    assert estimate.value == pytest.approx(kendalltau(x, y).statistic, abs=1e-12)
    labels = np.unique(words)
    left_out = np.array([kendalltau(x[words != label], y[words != label]).statistic for label in labels])
    jackknife = np.sqrt((len(labels) - 1) / len(labels) * np.sum((left_out - left_out.mean()) ** 2))
    assert estimate.standard_error == pytest.approx(jackknife, rel=0.08)


def test_bootstrap_of_a_mean_by_word_equals_its_formula():
    rng = np.random.default_rng(1)
    words = np.repeat(np.arange(60), rng.integers(1, 9, size=60)).astype(str)
    x = rng.normal(size=60)[words.astype(int)] * 2 + rng.normal(size=len(words))
    by_word = stats.bootstrap(np.mean, x, clusters=words, n_draws=2000, seed=0)
    formula = stats.moments(x, words)["mean"]
    assert by_word.standard_error == pytest.approx(formula.standard_error, rel=0.1)
    assert by_word.n_clusters == 60


def test_many_models_are_sampled_and_never_give_zero():
    values = np.r_[np.full(15, 5.0), np.zeros(15)] + np.random.default_rng(0).normal(size=30) * 0.01
    got = stats.two_group_test(values, np.arange(30) < 15, n_permutations=999)
    assert got.p_value == pytest.approx(1 / 1000)


def test_arrangements_that_differ_by_rounding_alone_are_ties():
    values = [42.7, 40.2, 41.6, 41.5, 43.8, 40.3, 41.6, 40.2]  # sums of 166.0 and 165.9: none can be closer
    assert stats.two_group_test(values, np.arange(8) < 4).p_value == 1


def test_sign_flips_of_five_models_go_no_lower_than_one_in_sixteen():
    assert stats.sign_flip_test([1, 2, 3, 4, 5]).p_value == 2 / 32
    assert stats.sign_flip_test([1, -1, 2, -2]).p_value == 1
    assert stats.sign_flip_test([0.1, 0.2, 0.3]).p_value == stats.sign_flip_test([0.3, 0.1, 0.2]).p_value == 1 / 4


def test_random_signs_agree_with_all_of_them():
    values = np.random.default_rng(0).normal(0.4, 1, 17)
    exact, sampled = stats.sign_flip_test(values), stats.sign_flip_test([*values, 0.0], n_permutations=20_000)
    plain = [abs(np.dot(signs, values)) >= abs(values.sum()) - 1e-9 for signs in itertools.product([1, -1], repeat=17)]
    assert exact.p_value == pytest.approx(np.mean(plain))
    assert sampled.p_value == pytest.approx(exact.p_value, abs=0.01)


def test_mantel_needs_no_diagonal_and_knows_its_direction():
    tau = np.corrcoef(np.random.default_rng(4).normal(size=(10, 20)))
    itself = stats.mantel(tau, 1 - tau)
    assert (itself.value, itself.p_value) == (pytest.approx(-1), 1)
    assert stats.mantel(tau, tau).p_value == pytest.approx(1 / 10_001)
