"""Regressions, mixed models and gaps against closed forms and plain loops."""

import itertools

import numpy as np
import pytest

from rmnb import stats
from rmnb.errors import InputError


@pytest.fixture(scope="module")
def words():
    """Tokens that spell 200 words, several each: codes, valence, log frequency, score."""
    rng = np.random.default_rng(0)
    word = rng.integers(0, 200, size=700)
    valence = rng.integers(-5, 6, size=200)[word].astype(float)
    frequency = rng.normal(size=200)[word]
    own = rng.normal(size=200)[word]
    return word, valence, frequency, 1 + 0.5 * valence + 0.2 * frequency + own + 0.3 * rng.normal(size=700)


def sandwich(design, y, clusters):
    """Cluster-robust covariance (CR1) written out."""
    bread = np.linalg.inv(design.T @ design)
    residual = y - design @ bread @ design.T @ y
    labels = np.unique(clusters)
    scores = np.array([design[clusters == label].T @ residual[clusters == label] for label in labels])
    (n, k), g = design.shape, len(labels)
    return bread @ scores.T @ scores @ bread * g / (g - 1) * (n - 1) / (n - k)


def test_clustered_errors_equal_the_sandwich(words):
    word, valence, frequency, score = words
    fit = stats.least_squares(score, {"valence": valence, "frequency": frequency}, word)
    design = np.column_stack([np.ones_like(score), valence, frequency])
    assert fit.coefficients == pytest.approx(np.linalg.lstsq(design, score, rcond=None)[0])
    assert fit.covariance == pytest.approx(sandwich(design, score, word), rel=1e-8)
    assert (fit.n, fit.n_clusters, fit.df) == (700, len(np.unique(word)), len(np.unique(word)) - 1)


def test_slopes_by_valence_are_two_separate_regressions(words):
    word, valence, _, score = words
    slopes = stats.valence_slopes(score, valence, word)
    for half, estimate in ((valence > 0, slopes.positive), (valence <= 0, slopes.negative)):
        assert estimate.value == pytest.approx(np.polyfit(valence[half], score[half], 1)[0])
    assert slopes.difference.value == pytest.approx(slopes.positive.value - slopes.negative.value)
    # Halves share no word, so their errors add up.
    error = np.hypot(slopes.positive.standard_error, slopes.negative.standard_error)
    assert slopes.difference.standard_error == pytest.approx(error)


def test_a_copy_of_every_token_adds_no_evidence(words):
    word, valence, frequency, score = words
    twice = [np.tile(values, 2) for values in (score, frequency, valence, word)]
    once = stats.frequency_slope(score, frequency, {"valence": valence}, word)
    doubled = stats.frequency_slope(twice[0], twice[1], {"valence": twice[2]}, twice[3])
    assert doubled.standard_error == pytest.approx(once.standard_error, rel=0.01)
    naive = stats.frequency_slope(twice[0], twice[1], {"valence": twice[2]})
    assert naive.standard_error < 0.75 * once.standard_error


def test_frequency_slope_with_kinds_is_unmoved_by_a_shift_of_one_kind(words):
    word, valence, frequency, score = words
    kind = np.where(frequency + np.random.default_rng(1).normal(size=700) > 0, "word_start", "word_continuation")
    shifted = score + 3 * (kind == "word_start")
    controls = {"valence": valence, **stats.indicators(kind)}
    before = stats.frequency_slope(score, frequency, controls, word)
    after = stats.frequency_slope(shifted, frequency, controls, word)
    assert after.value == pytest.approx(before.value)
    assert stats.frequency_slope(shifted, frequency, {"valence": valence}, word).value > after.value + 0.5


def test_standardised_scores_do_not_know_their_unit(words):
    word, valence, _, score = words
    one, other = (stats.valence_slopes(stats.standardise(s), valence, word) for s in (score, 300 * score - 30))
    assert one.positive.value == pytest.approx(other.positive.value)


def medians(rng, effect=0.0, slope_sd=0.0, n_prompts=6):
    """One number for each of ten models × two categories × two framings × prompts."""
    model, category, framing, _ = (
        axis.ravel() for axis in np.meshgrid(range(10), range(2), range(2), range(n_prompts), indexing="ij")
    )
    base = np.where(model < 4, "Gemma", "Llama")
    three_way = (base == "Llama") * category * framing
    y = 100 + 8 * rng.normal(size=10)[model] + slope_sd * rng.normal(size=10)[model] * category * framing
    y = y + effect * three_way + 5 * rng.normal(size=len(model))
    labels = {"base": base, "category": np.array(["agency", "communion"])[category], "framing": framing}
    return y, labels, model


def test_mixed_model_equals_its_closed_form_on_balanced_data():
    y, labels, model = medians(np.random.default_rng(3), effect=6)
    columns = stats.factorial(**labels)
    fit = stats.mixed_model(y, columns, model)
    design = np.column_stack([np.ones_like(y), *columns.values()])
    # A balanced design: generalised least squares is least squares, and its within part is that of fixed intercepts.
    assert fit.coefficients == pytest.approx(np.linalg.lstsq(design, y, rcond=None)[0], abs=1e-6)
    dummies = np.column_stack([design[:, 2:], np.eye(10)[model]])
    coefficients, _, rank, _ = np.linalg.lstsq(dummies, y, rcond=None)
    residual_variance = np.sum((y - dummies @ coefficients) ** 2) / (len(y) - rank)
    assert fit.residual_variance == pytest.approx(residual_variance, rel=1e-3)
    cells = [y[model == m].mean() for m in range(10)]
    base_means = np.where(np.arange(10) < 4, np.mean(cells[:4]), np.mean(cells[4:]))
    between = np.sum((cells - base_means) ** 2) / 8
    assert fit.group_covariance[0, 0] == pytest.approx(between - residual_variance / 24, rel=1e-2)
    assert fit.converged
    assert fit.names[-1] == "base[Llama] x category[communion] x framing[1]"
    # nlme's degrees of freedom: 240 rows, 10 models, 6 columns that vary within a model.
    assert fit.df.tolist() == [224, 8, 224, 224, 224, 224, 224, 224]


def test_mixed_model_does_not_depend_on_the_unit():
    y, labels, model = medians(np.random.default_rng(4), effect=6)
    columns = stats.factorial(**labels)
    name = list(columns)[-1]
    small, large = (stats.mixed_model(y * unit, columns, model)[name] for unit in (1e-3, 1e3))
    assert large.value == pytest.approx(1e6 * small.value, rel=1e-4)
    assert large.standard_error == pytest.approx(1e6 * small.standard_error, rel=1e-3)


def test_random_slopes_widen_what_prompts_make_too_narrow():
    y, labels, model = medians(np.random.default_rng(5), slope_sd=10, n_prompts=27)
    columns = stats.factorial(**labels)
    name = list(columns)[-1]
    columns = {**columns, "communion in framing 1": columns["category[communion] x framing[1]"]}
    columns.pop("category[communion] x framing[1]")
    naive = stats.mixed_model(y, columns, model)
    honest = stats.mixed_model(y, columns, model, random_slopes=["communion in framing 1"])
    assert honest[name].standard_error > 2 * naive[name].standard_error


def test_mean_over_models_is_students_interval():
    estimate = stats.mean_over_models([1.0, 2.0, 4.0])
    assert estimate.value == pytest.approx(7 / 3)
    assert estimate.ci_high - estimate.value == pytest.approx(4.302653 * np.std([1, 2, 4], ddof=1) / np.sqrt(3))


def test_gap_and_exact_permutation_equal_a_plain_loop():
    rng = np.random.default_rng(6)
    sets = np.repeat(np.arange(5), 3)
    term = np.tile([True, False, False], 5)
    scores = rng.normal(size=15) - 1.0 * term
    (gap,) = stats.identity_gaps(scores, term, sets, np.full(15, "religion"))
    blocks = scores.reshape(5, 3)
    differences = blocks[:, 0] - blocks[:, 1:].mean(axis=1)
    assert gap.gap.value == pytest.approx(differences.mean())
    null = []
    for chosen in itertools.product(range(3), repeat=5):
        null.append(np.mean([b[c] - np.delete(b, c).mean() for b, c in zip(blocks, chosen, strict=True)]))
    assert gap.exact
    assert gap.p_value == np.mean(np.abs(null) >= abs(differences.mean()) - 1e-12)


def test_sampled_permutations_agree_with_exact_ones(monkeypatch):
    rng = np.random.default_rng(7)
    sets, term = np.repeat(np.arange(6), 4), np.tile([True, True, False, False], 6)
    scores, axis = rng.normal(size=24) + 0.5 * term, np.full(24, "age")
    (exact,) = stats.identity_gaps(scores, term, sets, axis)
    monkeypatch.setattr("rmnb.stats.gaps.EXACT_LIMIT", 1)
    (sampled,) = stats.identity_gaps(scores, term, sets, axis, n_permutations=20_000)
    assert exact.exact
    assert not sampled.exact
    assert sampled.p_value == pytest.approx(exact.p_value, abs=0.015)


def test_axes_are_adjusted_together():
    rng = np.random.default_rng(8)
    sets, term = np.repeat(np.arange(60), 2), np.tile([True, False], 60)
    axis = np.repeat(["religion", "gender", "age"], 40)
    gaps = stats.identity_gaps(rng.normal(size=120) - 2 * term * (axis == "gender"), term, sets, axis)
    assert [gap.axis for gap in gaps] == ["religion", "gender", "age"]
    assert [gap.p_adjusted for gap in gaps] == pytest.approx(stats.benjamini_hochberg([gap.p_value for gap in gaps]))
    assert gaps[1].p_adjusted < 0.001 < min(gaps[0].p_adjusted, gaps[2].p_adjusted)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.valence_slopes([1, 2, 3], [1, 2, 3]), "two at or below zero"),
        (lambda: stats.least_squares([1, 2, 3, 4], {"a": [1, 2, 3, 5], "b": [2, 4, 6, 10]}), "determine one another"),
        (lambda: stats.least_squares([1, 2, 3, 4], {"a": [1, 2, 3, 5]}, ["x", "x", "y", "y"]), "2 clusters"),
        (lambda: stats.least_squares([1, 2, 3, 4], {"a": [1, 2, 3, 5]})["slope"], "no coefficient slope"),
        (lambda: stats.mixed_model([1, 2, 3], {}, ["m", "m", "m"]), "two groups"),
        (lambda: stats.factorial(base=["Gemma", "Gemma"]), "one level only"),
        (lambda: stats.identity_gaps([1, 2, 3, 4], [1, 1, 0, 1], ["s", "s", "t", "t"], ["a"] * 4), "'s' needs both"),
        (lambda: stats.identity_gaps([1, 2, 3, 4], [1, 0, 0, 1], ["s", "s", "t", "t"], list("aabc")), "two axes"),
        (lambda: stats.standardise([2.0, 2.0]), "all equal"),
    ],
)
def test_bad_input_is_named_in_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
