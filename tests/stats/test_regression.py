"""Regressions, mixed models and gaps against closed forms and plain loops."""

import itertools

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy.stats import ttest_1samp

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
    assert (fit.n, fit.n_clusters, set(fit.df)) == (700, g, {g - 1})


@pytest.mark.parametrize("unit", [1e-3, 1, 1e3])
def test_mixed_model_equals_its_closed_form_on_balanced_data_in_any_unit(unit):
    """One number for each of ten models × two categories × two framings × six prompts."""
    rng = np.random.default_rng(3)
    model, category, framing, _ = (axis.ravel() for axis in np.indices((10, 2, 2, 6)))
    base = np.where(model < 4, "Gemma", "Llama")
    three_way = (base == "Llama") * category * framing
    y = unit * (100 + 8 * rng.normal(size=10)[model] + 6 * three_way + 5 * rng.normal(size=len(model)))
    rows = pd.DataFrame({"y": y, "model": model, "base": base, "category": category, "framing": framing})
    formula = "y ~ base * category * framing"
    fit = stats.mixed(formula, rows, groups="model")
    design = smf.ols(formula, rows).exog
    # A balanced design: generalised least squares is least squares, and its within part is that of fixed intercepts.
    assert fit.coefficients == pytest.approx(np.linalg.lstsq(design, y, rcond=None)[0], abs=1e-6 * unit)
    # The error of a contrast within models is that of a regression with an intercept for every model.
    dummies = np.column_stack([design[:, 2:], np.eye(10)[model]])
    coefficients, _, rank, _ = np.linalg.lstsq(dummies, y, rcond=None)
    residual_variance = np.sum((y - dummies @ coefficients) ** 2) / (len(y) - rank)
    within = np.linalg.pinv(dummies.T @ dummies)[5, 5] * residual_variance
    highest = "base[T.Llama]:category:framing"
    assert fit[highest].standard_error == pytest.approx(np.sqrt(within), rel=1e-3)
    assert fit.names[-1] == highest
    # nlme's degrees of freedom: 240 rows, 10 models, 6 columns that vary within a model.
    assert fit.df.tolist() == [224, 8, 224, 224, 224, 224, 224, 224]


def test_without_an_intercept_the_groups_keep_its_degree_of_freedom():
    rows = pd.DataFrame({"model": np.repeat(np.arange(10), 24)})
    rows["x"] = np.random.default_rng(0).normal(size=240)
    rows["base"] = np.where(rows["model"] < 4, "Gemma", "Llama")
    rows["y"] = np.random.default_rng(1).normal(size=240)
    assert stats.mixed("y ~ base + x", rows, "model").df.tolist() == [229, 8, 229]
    # Pinheiro and Bates (2000), page 91: 10 groups less two columns, 240 rows less 10 groups and one column.
    assert stats.mixed("y ~ 0 + base + x", rows, "model").df.tolist() == [8, 8, 229]


def test_the_jackknife_of_a_mean_is_students_interval():
    values = np.array([1.0, 2.0, 4.0, 3.0])
    found, truth = stats.jackknife_over_models(lambda of: values[of].mean(), 4), stats.mean_over_models(values)
    assert vars(found) == pytest.approx(vars(truth))
    test = ttest_1samp(values, 0)
    expected = (2.5, *test.confidence_interval(), test.pvalue)
    assert (truth.value, truth.ci_low, truth.ci_high, truth.p_value) == pytest.approx(expected)


def test_gap_and_exact_permutation_equal_a_plain_loop():
    rng = np.random.default_rng(6)
    sets = np.repeat(np.arange(5), 3)
    term = np.tile([True, False, False], 5)
    scores = rng.normal(size=15) - 1.0 * term
    (gap,) = stats.identity_gaps(scores, term, sets, np.full(15, "religion"))
    blocks = scores.reshape(5, 3)
    differences = blocks[:, 0] - blocks[:, 1:].mean(axis=1)
    assert gap.gap.value == pytest.approx(differences.mean())
    lifted = 1.5 * (blocks - blocks.mean(axis=1, keepdims=True))  # each one's gap to the mean of the other two
    null = [np.mean(lifted[range(5), chosen]) for chosen in itertools.product(range(3), repeat=5)]
    assert gap.exact and gap.p_value == np.mean(np.abs(null) >= abs(differences.mean()) - 1e-12)


def test_sampled_permutations_agree_with_exact_ones(monkeypatch):
    rng = np.random.default_rng(7)
    sets, term = np.repeat(np.arange(6), 4), np.tile([True, True, False, False], 6)
    scores, axis = rng.normal(size=24) + 0.5 * term, np.full(24, "age")
    (exact,) = stats.identity_gaps(scores, term, sets, axis)
    monkeypatch.setattr("rmnb.stats.gaps.EXACT_LIMIT", 1)
    (sampled,) = stats.identity_gaps(scores, term, sets, axis, n_permutations=20_000)
    assert exact.exact and not sampled.exact
    assert sampled.p_value == pytest.approx(exact.p_value, abs=0.015)


Y, SETS = [1, 2, 3, 4], list("sstt")
FOUR = pd.DataFrame({"y": Y, "a": [1, 2, 3, 5], "b": [2, 4, 6, 10], "w": list("xxyy")})
FOUR["gap"] = [1, 2, np.nan, 4]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.ols("y ~ a + b", FOUR), "determine one another"),
        (lambda: stats.ols("y ~ a", FOUR, clusters="w"), "2 clusters"),
        (lambda: stats.ols("y ~ a", FOUR)["slope"], "no coefficient slope"),
        (lambda: stats.ols("y ~ gap", FOUR), r"gap in row 2 is nan \(1 such values\)"),
        (lambda: stats.mixed("gap ~ a", FOUR, "w"), r"gap in row 2 is nan \(1 such values\)"),
        (lambda: stats.mixed("np.log(y) ~ a", FOUR, "w"), r"np.log\(y\) is no column"),
        (lambda: stats.ols("y ~ a", FOUR).estimate({}), "every weight is 0"),
        (lambda: stats.moments(Y, np.array(["a", "b", "c", None])), r"clusters\[3\] is missing"),
        (lambda: stats.standardise([0.1] * 3), "all equal"),
        (lambda: stats.ols("y ~ q", FOUR), "name 'q' is not defined"),
        (lambda: stats.mixed("y ~ a", FOUR.assign(w="m"), groups="w"), "2 clusters"),
        (lambda: stats.identity_gaps(Y, [1, 1, 0, 1], SETS, list("aaaa")), "'s' needs both"),
        (lambda: stats.identity_gaps(Y, [1, 0, 0, 1], SETS, list("aabc")), "two axes"),
        (lambda: stats.kendall_tau([1, 2, 3], [1, 2]), "differ in length"),
        (lambda: stats.kendall_tau([1, np.nan, 3], [1, 2, 3]), r"x\[1\] is nan"),
        (lambda: stats.spearman(["a", "b"], [1, 2]), "must be numbers"),
        (lambda: stats.bootstrap(np.mean, [1.0, 2.0], clusters=["a"]), "one label a row"),
        (lambda: stats.two_group_test([1, 2], [True, True]), "each group"),
        (lambda: stats.mantel(np.eye(5), np.eye(5)), "constant"),
        (lambda: stats.mantel(np.arange(16).reshape(4, 4), np.eye(4)), "symmetric"),
    ],
)
def test_bad_input_is_named_in_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
