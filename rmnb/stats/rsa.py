"""Matrices over models: maps of them, and whether one matrix follows another, tested by permuting models.

The n(n − 1)/2 pairs of n models are not independent, so every test here permutes the models, never the pairs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.ranks import mid_ranks

Method = Literal["spearman", "pearson"]


@dataclass(frozen=True)
class MantelTest:
    """Correlation of two matrices' upper triangles and its one-sided permutation p-value; `n` models."""

    correlation: float
    p_value: float
    n: int


@dataclass(frozen=True)
class MatrixRegression:
    """Multiple regression on matrices: one standardised coefficient and two-sided p-value a predictor; `n` models."""

    names: tuple[str, ...]
    coefficients: NDArray[np.float64]
    p_values: NDArray[np.float64]
    r_squared: float
    n: int


@dataclass(frozen=True)
class Embedding:
    """Points (models, 2) of a map, centred, and Kruskal's stress-1: 0 is perfect, 0.1 fair, 0.2 poor."""

    points: NDArray[np.float64]
    stress_1: float


def embed(dissimilarities: ArrayLike, seed: int = 42) -> Embedding:
    """Metric multidimensional scaling (SMACOF) in two dimensions of a matrix such as 1 − Kendall's tau.

    As the paper ran it: ``random_state=42``, the best of four random starts. The stopping tolerance is today's 1e-6:
    since scikit-learn 1.7 the criterion is another one. Points agree with the paper's up to rotation and reflection.

    Raises
    ------
    InputError
        Not a square, symmetric, finite, non-negative matrix with a zero diagonal.

    References
    ----------
    FAccT25 figure 2B. Borg, Groenen (2005), Modern Multidimensional Scaling, chapters 3 and 8.
    """
    from sklearn.manifold import MDS  # here, because scikit-learn imports pandas

    d = _square(dissimilarities, minimum=2)
    if np.abs(np.diag(d)).max() > 1e-8 or d.min() < -1e-8:
        raise InputError("dissimilarities must be zero on the diagonal and not negative: give 1 - tau, not tau")
    d = np.clip(d, 0, None)
    scaling = MDS(metric="precomputed", n_init=4, init="random", normalized_stress="auto", random_state=seed)
    points = np.asarray(scaling.fit_transform(d))
    total = np.sum(d**2) / 2
    stress_1 = float(np.sqrt(float(scaling.stress_) / total)) if total > 0 else 0.0
    return Embedding(points - points.mean(axis=0), stress_1)


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
    n_permutations: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> MantelTest:
    """Mantel's test that two symmetric matrices over the same models go together, both similarities or both distances.

    Parameters
    ----------
    a, b : (models, models) symmetric; diagonals are not read.

    Raises
    ------
    InputError
        Matrices that are not symmetric, not finite, of different size, of fewer than four models, or constant.

    References
    ----------
    Mantel (1967), The detection of disease clustering. FAccT25 section on representational similarity.
    """
    x, y = _standard_pairs({"a": a, "b": b}, method)
    n = len(np.asarray(a))
    observed = float(x @ y / len(x))
    # A permutation only reorders the pairs, so means, variances and ranks need computing once.
    null = _shuffled(x, n, n_permutations, np.random.default_rng(seed)) @ y / len(x)
    return MantelTest(observed, _tail(observed, null), n)


def matrix_regression(
    response: ArrayLike,
    predictors: Mapping[str, ArrayLike],
    method: Method = "spearman",
    n_permutations: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> MatrixRegression:
    """Multiple regression on matrices, with double semi-partialling (Dekker, Krackhardt, Snijders 2007).

    All matrices are standardised (their ranks, for Spearman), so coefficients compare. For each predictor the part not
    explained by the others is permuted over models and the response refitted; t statistics are compared, two-sided.
    It supposes that the predictors add to the response: where models of one base stand together on a map, too many
    true null hypotheses are rejected (Guillot, Rousset 2013).

    Raises
    ------
    InputError
        As `mantel`; predictors that are linear combinations of one another, or more of them than pairs allow.
    """
    names = tuple(predictors)
    if not names:
        raise InputError("matrix_regression needs at least one predictor")
    y, *pairs = _standard_pairs({"the response": response, **predictors}, method)
    columns, n = np.column_stack(pairs), len(np.asarray(response))
    rows, width = columns.shape
    if rows <= width + 1 or np.linalg.matrix_rank(columns) < width:
        raise InputError(f"predictors {', '.join(names)} determine one another over {n} models: drop one")
    coefficients = np.linalg.lstsq(columns, y, rcond=None)[0]
    r_squared = 1 - np.sum((y - columns @ coefficients) ** 2) / np.sum(y**2)
    rng = np.random.default_rng(seed)
    p_values = np.empty(width)
    for k in range(width):
        others = np.column_stack([np.ones(rows), np.delete(columns, k, axis=1)])
        unique = columns[:, k] - others @ np.linalg.lstsq(others, columns[:, k], rcond=None)[0]
        basis = np.linalg.qr(others)[0]
        observed = abs(_t_statistics(unique[None, :], y, basis)[0])
        null = np.abs(_t_statistics(_shuffled(unique, n, n_permutations, rng), y, basis))
        p_values[k] = _tail(observed, null)
    return MatrixRegression(names, coefficients, p_values, float(r_squared), n)


def _t_statistics(predictors: np.ndarray, y: np.ndarray, basis: np.ndarray) -> NDArray[np.float64]:
    """The t statistic of each row of `predictors` (tests, pairs) in the regression of `y` on it and on `basis`."""
    y = y - basis @ (basis.T @ y)
    x = predictors - (predictors @ basis) @ basis.T
    r = x @ y / np.sqrt(np.sum(x**2, axis=1) * (y @ y))
    return r * np.sqrt((len(y) - basis.shape[1] - 1) / np.maximum(1 - r**2, 1e-300))


def _tail(observed: float, null: NDArray[np.float64]) -> float:
    """Share of arrangements at least as extreme as the observed one, which itself counts as one."""
    slack = 1e-10 * max(abs(observed), float(np.abs(null).max()))  # sums in another order differ in their last bits
    return (1 + np.count_nonzero(null >= observed - slack)) / (1 + len(null))


def _shuffled(pairs: np.ndarray, n: int, n_permutations: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """The values of the pairs (permutations, pairs) with the models permuted."""
    if n_permutations < 1:
        raise InputError(f"n_permutations must be 1 or more, got {n_permutations}")
    matrix = np.zeros((n, n))
    rows, columns = np.triu_indices(n, 1)
    matrix[rows, columns] = matrix[columns, rows] = pairs
    order = np.argsort(rng.random((n_permutations, n)), axis=1)
    return matrix[order[:, rows], order[:, columns]]


def _standard_pairs(matrices: Mapping[str, ArrayLike], method: str) -> list[NDArray[np.float64]]:
    """The upper triangles, checked, as ranks for Spearman, standardised."""
    if method not in ("spearman", "pearson"):
        raise InputError(f"method must be 'spearman' or 'pearson', got {method!r}")
    standard = []
    for name, matrix in matrices.items():
        above = upper(_square(matrix, minimum=4, name=name, diagonal=False))
        if np.ptp(above) < 1e-12:
            raise InputError(f"{name} is constant off its diagonal: there is nothing to correlate")
        values = mid_ranks(above) if method == "spearman" else above
        standard.append((values - values.mean()) / values.std())
    if len({len(values) for values in standard}) > 1:
        raise InputError(f"{', '.join(matrices)} are over different numbers of models")
    return standard


def _square(matrix: ArrayLike, minimum: int, name: str = "the matrix", diagonal: bool = True) -> NDArray[np.float64]:
    square = np.array(matrix, dtype=float)
    if square.ndim != 2 or square.shape[0] != square.shape[1] or len(square) < minimum:
        raise InputError(f"{name} must be square with {minimum} models or more, got shape {square.shape}")
    if not diagonal:
        np.fill_diagonal(square, 0)
    if not np.isfinite(square).all():
        i, j = np.argwhere(~np.isfinite(square))[0]
        raise InputError(f"{name}[{i}, {j}] is {square[i, j]}: leave that model out or repair its scores")
    if not np.allclose(square, square.T):
        raise InputError(f"{name} must be symmetric")
    return square
