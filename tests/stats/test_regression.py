"""Regressions and intervals over models against closed forms and plain loops."""

from dataclasses import astuple

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t, ttest_1samp

from rmnb import stats
from rmnb.errors import InputError


@pytest.mark.parametrize("clusters", ["word", None])
def test_errors_equal_the_sandwich(clusters):
    """Written out on tokens that spell 200 words: CR1 by word, and White's HC1, in which every row is a cluster."""
    rng = np.random.default_rng(0)
    word = rng.integers(0, 200, size=700)
    valence, frequency, taste = rng.normal(size=(3, 200))[:, word]
    score = 1 + 0.5 * valence + 0.2 * frequency + taste + 0.3 * rng.normal(size=700)
    words = pd.DataFrame({"word": word, "valence": valence, "frequency": frequency, "score": score})
    fit = stats.ols("score ~ valence + frequency", words, clusters=clusters)
    design = words.assign(one=1.0)[["one", "valence", "frequency"]]
    bread = np.linalg.inv(design.T @ design)
    coefficients = bread @ design.T @ words["score"]
    residual = words["score"] - design.to_numpy() @ coefficients
    scores = design.mul(residual, axis=0).groupby(words[clusters] if clusters else words.index).sum()
    meat, g = (scores.T @ scores).to_numpy(), len(scores)
    assert fit.coefficients == pytest.approx(coefficients)
    assert fit.covariance == pytest.approx(bread @ meat @ bread * g / (g - 1) * 699 / 697, rel=1e-8)
    assert (fit.n, fit.n_clusters) == (700, g)
    slope = fit["valence"]
    assert (slope.ci_high - slope.value) / slope.standard_error == pytest.approx(t.ppf(0.975, g - 1))


def test_the_jackknife_of_a_mean_is_students_interval():
    values = np.array([1.0, 2.0, 4.0, 3.0])
    found, truth = stats.jackknife_over_models(lambda of: values[of].mean(), 4), stats.mean_over_models(values)
    assert astuple(found)[:-1] == pytest.approx(astuple(truth)[:-1])  # without their units
    test = ttest_1samp(values, 0)
    expected = (2.5, *test.confidence_interval(), test.pvalue)
    assert (truth.value, truth.ci_low, truth.ci_high, truth.p_value) == pytest.approx(expected)


def test_a_sample_without_scatter_has_no_interval():
    """Perfect agreement of four rows, and models that agree to the last digit, show nothing of their error."""
    for estimate in (stats.kendall_interval([1, 2, 3, 4], [1, 2, 3, 4]), stats.mean_over_models([2.0, 2.0, 2.0])):
        assert np.isnan([estimate.ci_low, estimate.ci_high, estimate.p_value]).all()
    assert np.isnan(stats.bootstrap(np.mean, [1.0, 1.0, 1.0], n_draws=5).ci_low)


Y = [1, 2, 3, 4]
FOUR = pd.DataFrame({"y": Y, "a": [1, 2, 3, 5], "b": [2, 4, 6, 10], "w": list("xxyy")})
FOUR["gap"] = [1, 2, np.nan, 4]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.ols("y ~ a + b", FOUR), "determine one another"),
        (lambda: stats.ols("y ~ a", FOUR, clusters="w"), "2 clusters"),
        (lambda: stats.ols("y ~ gap", FOUR), "y ~ gap: factor contains missing values"),
        (lambda: stats.moments(Y, np.array(["a", "b", "c", None])), r"clusters\[3\] is missing"),
        (lambda: stats.kendall_interval([1, 2, 3], [1, 2, 3, 4]), "differ in length"),
        (lambda: stats.kendall_interval([1, np.nan, 3], [1, 2, 3]), r"x\[1\] is nan"),
        (lambda: stats.two_group_test([1, 2], [True, True]), "each group"),
        (lambda: stats.bootstrap(np.mean, [1.0, 2.0], n_draws=1), "n_draws must be 2 or more, got 1"),
        (lambda: stats.mantel(np.arange(16).reshape(4, 4), np.eye(4)), "symmetric"),
    ],
)
def test_bad_input_is_named_in_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
