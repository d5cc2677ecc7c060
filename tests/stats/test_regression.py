"""Regressions, mixed models and gaps against closed forms and plain loops."""

import itertools

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy.stats import ttest_1samp

from rmnb import stats
from rmnb.errors import InputError


@pytest.fixture(scope="module")
def words() -> pd.DataFrame:
    """Tokens that spell 200 words, several each: word, valence, log frequency, score."""
    rng = np.random.default_rng(0)
    word = rng.integers(0, 200, size=700)
    valence = rng.integers(-5, 6, size=200)[word].astype(float)
    frequency = rng.normal(size=200)[word]
    own = rng.normal(size=200)[word]
    score = 1 + 0.5 * valence + 0.2 * frequency + own + 0.3 * rng.normal(size=700)
    return pd.DataFrame({"word": word, "valence": valence, "frequency": frequency, "score": score})


@pytest.mark.parametrize("clusters", ["word", None])
def test_errors_equal_the_sandwich(words, clusters):
    """Written out: CR1 by word, and White's HC1, in which every row is a cluster."""
    fit = stats.ols("score ~ valence + frequency", words, clusters=clusters)
    design = words[["valence", "frequency"]].assign(one=1.0)[["one", "valence", "frequency"]].to_numpy()
    bread = np.linalg.inv(design.T @ design)
    coefficients = bread @ design.T @ words["score"]
    residual = (words["score"] - design @ coefficients).to_numpy()
    scores = (
        pd.DataFrame(design * residual[:, None])
        .groupby((words[clusters] if clusters else words.index).to_numpy())
        .sum()
    )
    meat, g = (scores.T @ scores).to_numpy(), len(scores)
    assert fit.coefficients == pytest.approx(coefficients)
    assert fit.covariance == pytest.approx(bread @ meat @ bread * g / (g - 1) * 699 / 697, rel=1e-8)
    assert (fit.n, fit.n_clusters, set(fit.df)) == (700, g, {g - 1})


def test_a_copy_of_every_token_adds_no_evidence(words):
    def error(rows, clusters=None):
        return stats.ols("score ~ frequency + valence", rows, clusters=clusters)["frequency"].standard_error

    once, twice = error(words, "word"), pd.concat([words, words])
    assert error(twice, "word") == pytest.approx(once, rel=0.01)
    assert error(twice) < 0.75 * once


def medians(rng):
    """One number for each of ten models × two categories × two framings × six prompts."""
    model, category, framing, _ = (axis.ravel() for axis in np.indices((10, 2, 2, 6)))
    base = np.where(model < 4, "Gemma", "Llama")
    three_way = (base == "Llama") * category * framing
    y = 100 + 8 * rng.normal(size=10)[model] + 6 * three_way + 5 * rng.normal(size=len(model))
    return pd.DataFrame({"y": y, "model": model, "base": base, "category": category, "framing": framing})


FACTORIAL = "y ~ base * category * framing"
HIGHEST = "base[T.Llama]:category:framing"


def test_mixed_model_equals_its_closed_form_on_balanced_data():
    rows = medians(np.random.default_rng(3))
    fit = stats.mixed(FACTORIAL, rows, groups="model")
    y, model = rows["y"].to_numpy(), rows["model"].to_numpy()
    design = smf.ols(FACTORIAL, rows).exog
    # A balanced design: generalised least squares is least squares, and its within part is that of fixed intercepts.
    assert fit.coefficients == pytest.approx(np.linalg.lstsq(design, y, rcond=None)[0], abs=1e-6)
    # The error of a contrast within models is that of a regression with an intercept for every model.
    dummies = np.column_stack([design[:, 2:], np.eye(10)[model]])
    coefficients, _, rank, _ = np.linalg.lstsq(dummies, y, rcond=None)
    residual_variance = np.sum((y - dummies @ coefficients) ** 2) / (len(y) - rank)
    within = np.linalg.pinv(dummies.T @ dummies)[5, 5] * residual_variance
    assert fit[HIGHEST].standard_error == pytest.approx(np.sqrt(within), rel=1e-3)
    assert fit.names[-1] == HIGHEST
    # nlme's degrees of freedom: 240 rows, 10 models, 6 columns that vary within a model.
    assert fit.df.tolist() == [224, 8, 224, 224, 224, 224, 224, 224]


def test_mixed_model_does_not_depend_on_the_unit():
    rows = medians(np.random.default_rng(4))
    small, large = (
        stats.mixed(FACTORIAL, rows.assign(y=rows["y"] * unit), groups="model")[HIGHEST] for unit in (1e-3, 1e3)
    )
    assert large.value == pytest.approx(1e6 * small.value, rel=1e-4)
    assert large.standard_error == pytest.approx(1e6 * small.standard_error, rel=1e-3)


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


FOUR = pd.DataFrame({"y": [1, 2, 3, 4], "a": [1, 2, 3, 5], "b": [2, 4, 6, 10], "w": list("xxyy")})
FOUR["gap"] = [1, 2, np.nan, 4]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.ols("y ~ a + b", FOUR), "determine one another"),
        (lambda: stats.ols("y ~ a", FOUR, clusters="w"), "2 clusters"),
        (lambda: stats.ols("y ~ a", FOUR)["slope"], "no coefficient slope"),
        (lambda: stats.ols("y ~ gap", FOUR), r"gap in row 2 is nan \(1 such values\)"),
        (lambda: stats.ols("y ~ q", FOUR), "name 'q' is not defined"),
        (lambda: stats.mixed("y ~ a", FOUR.assign(w="m"), groups="w"), "2 clusters"),
        (lambda: stats.identity_gaps([1, 2, 3, 4], [1, 1, 0, 1], ["s", "s", "t", "t"], ["a"] * 4), "'s' needs both"),
        (lambda: stats.identity_gaps([1, 2, 3, 4], [1, 0, 0, 1], ["s", "s", "t", "t"], list("aabc")), "two axes"),
        (lambda: stats.standardise([2.0, 2.0]), "all equal"),
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
