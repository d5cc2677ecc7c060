"""Whether one matrix over models follows another, tested by permuting models.

The n(n − 1)/2 pairs of n models are not independent, so the test permutes the models, never the pairs.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import Estimate, as_vector, check_count
from rmnb.stats.moments import standardise
from rmnb.stats.ranks import mid_ranks


def mantel(a: ArrayLike, b: ArrayLike, n_permutations: int = 10_000, seed: int | np.random.Generator = 0) -> Estimate:
    """Mantel's one-sided test that two symmetric matrices over the same models correlate positively.

    Parameters
    ----------
    a, b : (models, models) symmetric, both similarities or both distances; diagonals are not read.
    n_permutations, seed
        Random orders of the models.

    Returns
    -------
    Estimate
        Spearman's correlation of the two upper triangles, without an interval; p is one-sided.

    Raises
    ------
    InputError
        Matrices that are not symmetric, not finite, of different size, of fewer than four models, or constant; no
        permutation.

    References
    ----------
    Mantel (1967), The detection of disease clustering. FAccT25 section on representational similarity.
    """
    check_count(n_permutations, "n_permutations")
    x = _standard_ranks("a", a)
    y = _standard_ranks("b", b)
    if x.shape != y.shape:
        raise InputError("a and b are over different numbers of models")
    pairs = np.triu_indices(len(x), 1)
    observed = float(np.mean(x[pairs] * y[pairs]))
    # A permutation only reorders the pairs, so means, variances and ranks need computing once.
    rng = np.random.default_rng(seed)
    order = np.argsort(rng.random((n_permutations, len(x))), axis=1)
    null = x[order[:, pairs[0]], order[:, pairs[1]]] @ y[pairs] / len(pairs[0])
    # Sums in another order differ in their last bits.
    p_value = (1 + np.count_nonzero(null >= observed - 1e-10)) / (1 + n_permutations)
    return Estimate(observed, len(x), len(x), p_value=p_value)


def _standard_ranks(name: str, matrix: ArrayLike) -> NDArray[np.float64]:
    """The checked matrix with the ranks of its upper triangle, standardised, in place of its values."""
    square = np.array(matrix, dtype=float)
    if square.ndim != 2 or square.shape[0] != square.shape[1] or len(square) < 4:
        raise InputError(f"{name} must be square with 4 models or more, got shape {square.shape}")
    pairs = np.triu_indices(len(square), 1)
    values = as_vector(square[pairs], f"{name} above its diagonal")
    if not np.allclose(values, square.T[pairs]):
        raise InputError(f"{name} must be symmetric")
    if np.ptp(values) == 0:
        raise InputError(f"{name} is constant off its diagonal: there is nothing to correlate")
    square[pairs] = square.T[pairs] = standardise(mid_ranks(values))
    return square
