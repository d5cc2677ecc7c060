"""Maps and similarity analysis against known geometry and a plain double loop."""

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from rmnb import stats
from rmnb.errors import InputError


def distances(points):
    return np.linalg.norm(points[:, None] - points[None, :], axis=2)


def noisy_matrix(rng, n, signal=None, weight=0.0):
    matrix = rng.normal(size=(n, n))
    matrix = (matrix + matrix.T) / np.sqrt(2)
    return matrix if signal is None else matrix + weight * signal


def test_a_map_of_plane_distances_is_the_plane_again():
    points = np.random.default_rng(0).normal(size=(10, 2))
    embedding = stats.embed(distances(points))
    assert embedding.stress_1 < 0.01
    assert np.allclose(distances(embedding.points), distances(points), atol=0.02)
    assert np.array_equal(embedding.points, stats.embed(distances(points)).points)


@pytest.mark.parametrize(("method", "correlation"), [("spearman", spearmanr), ("pearson", pearsonr)])
def test_mantel_equals_a_double_loop(method, correlation):
    rng = np.random.default_rng(3)
    b = noisy_matrix(rng, 7)
    a = noisy_matrix(rng, 7, b, 1.0).round(1)
    upper = np.triu_indices(7, 1)
    observed = correlation(a[upper], b[upper]).statistic
    null = []
    for _ in range(2000):
        order = rng.permutation(7)
        null.append(correlation(a[np.ix_(order, order)][upper], b[upper]).statistic)
    test = stats.mantel(a, b, method, n_permutations=20_000)
    assert test.correlation == pytest.approx(observed)
    assert test.p_value == pytest.approx(np.mean(np.array(null) >= observed), abs=0.02)


def test_mantel_needs_only_the_upper_triangle_and_knows_its_direction():
    rng = np.random.default_rng(4)
    tau = noisy_matrix(rng, 10)
    np.fill_diagonal(tau, 1)
    itself = stats.mantel(tau, 1 - tau)
    assert itself.correlation == pytest.approx(-1)
    assert itself.p_value == 1
    assert stats.mantel(tau, tau).p_value == pytest.approx(1 / 10_001)


def test_regression_sees_through_a_shared_cause():
    rng = np.random.default_rng(5)
    base = stats.same(["G", "G", "G", "G", "L", "L", "L", "L", "L", "L", "Q", "Q"])
    size = noisy_matrix(rng, 12, base, 2.0)  # goes along with base, does nothing by itself
    tau = noisy_matrix(rng, 12, base, 2.0)
    assert stats.mantel(tau, size).p_value < 0.05
    fit = stats.matrix_regression(tau, {"base": base, "size": size})
    assert dict(zip(fit.names, fit.p_values < 0.05, strict=True)) == {"base": True, "size": False}


def test_matrix_regression_coefficients_are_least_squares_on_pairs():
    rng = np.random.default_rng(6)
    a, b = noisy_matrix(rng, 9), noisy_matrix(rng, 9)
    y = noisy_matrix(rng, 9, a - b, 1.0)
    upper = np.triu_indices(9, 1)
    z = [(m[upper] - m[upper].mean()) / m[upper].std() for m in (y, a, b)]
    expected = np.linalg.lstsq(np.column_stack(z[1:]), z[0], rcond=None)[0]
    fit = stats.matrix_regression(y, {"a": a, "b": b}, method="pearson", n_permutations=99)
    assert fit.coefficients == pytest.approx(expected)
    assert 0 < fit.r_squared < 1


def test_theoretical_matrices():
    assert stats.closeness([1, 3]).tolist() == [[1, 1 / 3], [1 / 3, 1]]
    assert stats.same(["a", "b", "a"]).tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.embed(np.eye(3)), "1 - tau"),
        (lambda: stats.embed([[0, np.nan], [np.nan, 0]]), r"\[0, 1\] is nan"),
        (lambda: stats.mantel(np.eye(3), np.eye(3)), "4 models"),
        (lambda: stats.mantel(np.eye(5), np.eye(5)), "constant"),
        (lambda: stats.mantel(np.arange(16).reshape(4, 4), np.eye(4)), "symmetric"),
    ],
)
def test_bad_input_is_named_in_one_line(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
