"""Whether one matrix over models follows another, tested by permuting models.

The n(n − 1)/2 pairs of n models are not independent, so the test permutes the models, never the pairs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.ranks import mid_ranks


@dataclass(frozen=True)
class MantelTest:
    """Spearman's correlation of two matrices' upper triangles and its one-sided permutation p-value; `n` models."""

    correlation: float
    p_value: float
    n: int


def mantel(a: ArrayLike, b: ArrayLike, n_permutations: int = 10_000, seed: int | np.random.Generator = 0) -> MantelTest:
    """Mantel's one-sided test that two symmetric matrices over the same models correlate positively.

    Parameters
    ----------
    a, b : (models, models) symmetric, both similarities or both distances; diagonals are not read.
    n_permutations, seed
        Random orders of the models.

    Raises
    ------
    InputError
        Matrices that are not symmetric, not finite, of different size, of fewer than four models, or constant.

    References
    ----------
    Mantel (1967), The detection of disease clustering. FAccT25 section on representational similarity.
    """
    x = _standard_ranks("a", a)
    y = _standard_ranks("b", b)
    if x.shape != y.shape:
        raise InputError("a and b are over different numbers of models")
    n = len(x)
    rows, columns = np.triu_indices(n, 1)
    observed = float(np.mean(x[rows, columns] * y[rows, columns]))
    # A permutation only reorders the pairs, so means, variances and ranks need computing once.
    rng = np.random.default_rng(seed)
    order = np.argsort(rng.random((n_permutations, n)), axis=1)
    null = x[order[:, rows], order[:, columns]] @ y[rows, columns] / len(rows)
    slack = 1e-10 * max(abs(observed), float(np.abs(null).max()))  # sums in another order differ in their last bits
    p_value = (1 + np.count_nonzero(null >= observed - slack)) / (1 + n_permutations)
    return MantelTest(observed, p_value, n)


def _standard_ranks(name: str, matrix: ArrayLike) -> NDArray[np.float64]:
    """The checked matrix with the ranks of its upper triangle, standardised, in place of its values."""
    square = np.array(matrix, dtype=float)
    if square.ndim != 2 or square.shape[0] != square.shape[1] or len(square) < 4:
        raise InputError(f"{name} must be square with 4 models or more, got shape {square.shape}")
    np.fill_diagonal(square, 0)
    if not np.isfinite(square).all():
        i, j = np.argwhere(~np.isfinite(square))[0]
        raise InputError(f"{name}[{i}, {j}] is {square[i, j]}: leave that model out or repair its scores")
    if not np.allclose(square, square.T):
        raise InputError(f"{name} must be symmetric")
    rows, columns = np.triu_indices(len(square), 1)
    values = mid_ranks(square[rows, columns])
    if values.std() == 0:
        raise InputError(f"{name} is constant off its diagonal: there is nothing to correlate")
    square[rows, columns] = square[columns, rows] = (values - values.mean()) / values.std()
    return square
