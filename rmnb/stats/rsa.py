"""Representational similarity analysis: does one matrix over models follow another? Tested by permuting models.

The n(n − 1)/2 pairs of n models are not independent, so every test here permutes the models, never the pairs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import cluster_codes
from rmnb.stats.permutation import Alternative, tail_probability
from rmnb.stats.ranks import mid_ranks

Method = Literal["spearman", "pearson"]
Seed = int | np.random.Generator


@dataclass(frozen=True)
class MantelTest:
    """Correlation of two matrices' upper triangles and its permutation p-value; `n` models."""

    correlation: float
    p_value: float
    n_permutations: int
    n: int


@dataclass(frozen=True)
class MatrixRegression:
    """Multiple regression on matrices: one standardised coefficient and p-value a predictor, R², `n` models."""

    names: tuple[str, ...]
    coefficients: NDArray[np.float64]
    p_values: NDArray[np.float64]
    r_squared: float
    n_permutations: int
    n: int


def same(labels: ArrayLike) -> NDArray[np.float64]:
    """Similarity of models by a label (base family, developer): 1 where equal, 0 elsewhere."""
    labels = np.asarray(labels)
    return (labels[:, None] == labels[None, :]).astype(float)


def closeness(values: ArrayLike) -> NDArray[np.float64]:
    """Similarity of models by a number (parameters in B, rank on a board): ``1 / (1 + |difference|)``."""
    values = np.asarray(values, dtype=float)
    return 1 / (1 + np.abs(values[:, None] - values[None, :]))


def upper(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a symmetric matrix (models, models) says of each pair, its diagonal left out."""
    return matrix[np.triu_indices(len(matrix), 1)]


def mantel(
    a: ArrayLike,
    b: ArrayLike,
    method: Method = "spearman",
    alternative: Alternative = "greater",
    n_permutations: int = 10_000,
    seed: Seed = 0,
    strata: ArrayLike | None = None,
) -> MantelTest:
    """Mantel's test of two symmetric matrices over the same models, both similarities or both dissimilarities.

    Parameters
    ----------
    a, b : (models, models) symmetric; diagonals are not read.
    method : {"spearman", "pearson"}
    alternative : {"greater", "less", "two-sided"}
    strata : (models,) labels, optional
        Permute only among models with one label. Then the test asks what `b` adds to the label (the base family): it
        holds its level whatever shape the label's effect has, which `partial_mantel` does not.

    Raises
    ------
    InputError
        Matrices that are not symmetric, not finite, of different size, of fewer than four models, or constant.

    References
    ----------
    Mantel (1967), The detection of disease clustering. FAccT25 section on representational similarity.
    """
    first, second = _pair_of_matrices(a, b, method)
    return _permute(first, second, alternative, n_permutations, seed, strata)


def partial_mantel(
    a: ArrayLike,
    b: ArrayLike,
    control: ArrayLike,
    method: Method = "spearman",
    alternative: Alternative = "greater",
    n_permutations: int = 10_000,
    seed: Seed = 0,
) -> MantelTest:
    """Mantel's test of `a` and `b` with a third matrix held constant.

    Both are replaced by their residuals on `control` (of ranks, for Spearman) and the residuals of `a` are permuted
    (method 3 of Legendre 2000, which holds its level where permuting `a` itself does not). It supposes that the control
    adds to `a` and `b` linearly and leaves the scatter alike everywhere. Where it does not, as when models of one base
    stand together on a map, too many true nulls are rejected (Guillot, Rousset 2013): use `mantel` with strata.

    References
    ----------
    Smouse, Long, Sokal (1986). Legendre (2000), Comparison of permutation methods for the partial correlation and
    partial Mantel tests. Guillot, Rousset (2013), Dismantling the Mantel tests.
    """
    first, second = _pair_of_matrices(a, b, method)
    third, _ = _pair_of_matrices(control, b, method)
    upper = np.triu_indices(len(first), 1)
    design = np.column_stack([np.ones(len(upper[0])), third[upper]])
    residuals = [_to_matrix(_residual(matrix[upper], design), len(first)) for matrix in (first, second)]
    if any(np.ptp(matrix[upper]) < 1e-12 for matrix in residuals):
        raise InputError("the control matrix explains one of the others entirely: nothing is left to correlate")
    return _permute(residuals[0], residuals[1], alternative, n_permutations, seed)


def matrix_regression(
    response: ArrayLike,
    predictors: Mapping[str, ArrayLike],
    method: Method = "spearman",
    n_permutations: int = 10_000,
    seed: Seed = 0,
) -> MatrixRegression:
    """Multiple regression on matrices, with double semi-partialling (Dekker, Krackhardt, Snijders 2007).

    All matrices are standardised (their ranks, for Spearman), so coefficients compare. For each predictor the part not
    explained by the others is permuted over models and the response refitted; t statistics are compared, two-sided.
    Supposes what `partial_mantel` supposes.

    Raises
    ------
    InputError
        As `mantel`; predictors that are linear combinations of one another, or more of them than pairs allow.
    """
    names = tuple(predictors)
    if not names:
        raise InputError("matrix_regression needs at least one predictor")
    n = len(np.asarray(response))
    upper = np.triu_indices(n, 1)
    matrices = [_pair_of_matrices(predictors[name], response, method) for name in names]
    y = _standard(matrices[0][1][upper])
    columns = np.column_stack([_standard(first[upper]) for first, _ in matrices])
    rows, width = columns.shape
    if rows <= width + 1 or np.linalg.matrix_rank(columns) < width:
        raise InputError(f"predictors {', '.join(names)} cannot be told apart over {n} models: drop one")
    coefficients = np.asarray(np.linalg.lstsq(columns, y, rcond=None)[0], dtype=np.float64)
    r_squared = 1 - np.sum((y - columns @ coefficients) ** 2) / np.sum(y**2)
    rng = np.random.default_rng(seed)
    p_values = np.empty(width)
    for k in range(width):
        others = np.column_stack([np.ones(rows), np.delete(columns, k, axis=1)])
        unique = _residual(columns[:, k], others)
        basis = np.linalg.qr(others)[0]
        shuffled = _shuffles(_to_matrix(unique, n), n_permutations, rng)
        observed = _t_statistics(unique[None, :], y, basis)[0]
        p_values[k] = tail_probability(observed, _t_statistics(shuffled, y, basis), "two-sided", exact=False)
    return MatrixRegression(names, coefficients, p_values, float(r_squared), n_permutations, n)


def _t_statistics(predictors: np.ndarray, y: np.ndarray, basis: np.ndarray) -> NDArray[np.float64]:
    """The t statistic of each row of `predictors` (tests, pairs) in the regression of `y` on it and on `basis`."""
    y = y - basis @ (basis.T @ y)
    x = predictors - (predictors @ basis) @ basis.T
    r = x @ y / np.sqrt(np.sum(x**2, axis=1) * (y @ y))
    return r * np.sqrt((len(y) - basis.shape[1] - 1) / np.maximum(1 - r**2, 1e-300))


def _permute(
    a: np.ndarray,
    b: np.ndarray,
    alternative: Alternative,
    n_permutations: int,
    seed: Seed,
    strata: ArrayLike | None = None,
) -> MantelTest:
    n = len(a)
    upper = np.triu_indices(n, 1)
    x, y = _standard(a[upper]), _standard(b[upper])
    observed = float(x @ y / len(x))
    # A permutation only reorders the pairs, so means, variances and ranks need computing once.
    null = _shuffles(_to_matrix(x, n), n_permutations, np.random.default_rng(seed), strata) @ y / len(x)
    p_value = tail_probability(observed, null, alternative, exact=False)
    return MantelTest(observed, p_value, n_permutations, n)


def _shuffles(
    matrix: np.ndarray, n_permutations: int, rng: np.random.Generator, strata: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Upper triangles (permutations, pairs) of `matrix` with its models permuted, within strata if given."""
    if n_permutations < 1:
        raise InputError(f"n_permutations must be 1 or more, got {n_permutations}")
    n = len(matrix)
    codes, n_strata = cluster_codes(np.zeros(n) if strata is None else strata, n)
    if n_strata == n:
        raise InputError("every model is a stratum of its own: nothing can be permuted")
    # Random keys sort models within their stratum; the strata's places are then given back to their members.
    order = np.empty((n_permutations, n), dtype=np.intp)
    order[:, np.argsort(codes, kind="stable")] = np.argsort(codes + rng.random((n_permutations, n)), axis=1)
    rows, columns = np.triu_indices(n, 1)
    return matrix[order[:, rows], order[:, columns]]


def _pair_of_matrices(a: ArrayLike, b: ArrayLike, method: str) -> tuple[np.ndarray, np.ndarray]:
    if method not in ("spearman", "pearson"):
        raise InputError(f"method must be 'spearman' or 'pearson', got {method!r}")
    pair = []
    for matrix in (np.asarray(a, dtype=float), np.asarray(b, dtype=float)):
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 4:
            raise InputError(f"a matrix over models must be square with four models or more, got shape {matrix.shape}")
        above = upper(matrix)
        if not np.isfinite(above).all():
            raise InputError("a matrix over models holds NaN or infinity: leave that model out")
        if not np.allclose(matrix, matrix.T, equal_nan=True):
            raise InputError("a matrix over models must be symmetric")
        if np.ptp(above) < 1e-12:
            raise InputError("a matrix over models is constant off its diagonal: there is nothing to correlate")
        pair.append(_to_matrix(mid_ranks(above) if method == "spearman" else above, len(matrix)))
    if pair[0].shape != pair[1].shape:
        raise InputError(f"matrices are over different models: {len(pair[0])} and {len(pair[1])}")
    return pair[0], pair[1]


def _to_matrix(above: np.ndarray, n: int) -> NDArray[np.float64]:
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n, 1)] = above
    return matrix + matrix.T


def _standard(values: np.ndarray) -> NDArray[np.float64]:
    return (values - values.mean()) / values.std()


def _residual(values: np.ndarray, design: np.ndarray) -> NDArray[np.float64]:
    return values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
