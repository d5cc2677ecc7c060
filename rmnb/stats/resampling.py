"""Bootstrap by word: intervals for any statistic of rows that come in clusters."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import Estimate, check_same_length, cluster_codes


@dataclass(frozen=True)
class Bootstrap:
    """A statistic and its bootstrap distribution.

    Attributes
    ----------
    value, ci_low, ci_high, standard_error : float, or array of the statistic's shape
        The interval is the 95 % percentile interval of the draws in which the statistic is defined.
    draws : array, n_draws by the statistic's shape
    n, n_clusters : int
    """

    value: NDArray[np.float64]
    ci_low: NDArray[np.float64]
    ci_high: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    draws: NDArray[np.float64]
    n: int
    n_clusters: int

    def as_estimate(self) -> Estimate:
        """The same of a statistic that is one number, without a test; no interval where all draws are equal."""
        error = float(self.standard_error)
        if error == 0:
            return Estimate(float(self.value), self.n, self.n_clusters)
        ends = float(self.ci_low), float(self.ci_high)
        return Estimate(float(self.value), self.n, self.n_clusters, *ends, error)


def bootstrap(
    statistic: Callable[..., ArrayLike],
    *arrays: ArrayLike,
    clusters: ArrayLike | None = None,
    n_draws: int = 1000,
    seed: int | np.random.Generator = 0,
) -> Bootstrap:
    """Bootstrap a statistic by drawing clusters (words) with replacement.

    Parameters
    ----------
    statistic : callable
        ``statistic(*arrays)`` gives a number or an array of fixed shape.
    arrays : arrays that share their first axis, the rows (tokens).
    clusters : (n,) labels, optional
        All rows of a drawn cluster enter together. Without labels rows are drawn.
    n_draws, seed
        How many samples are drawn, and from which random state.

    Raises
    ------
    InputError
        No array, different lengths, fewer than two clusters or draws.

    References
    ----------
    Efron, Tibshirani (1993), An Introduction to the Bootstrap. Davison, Hinkley (1997), section 3.8 (clusters).
    """
    if not arrays:
        raise InputError("bootstrap needs at least one array to resample")
    if n_draws < 2:
        raise InputError(f"n_draws must be 2 or more, got {n_draws}")
    rows = [np.asarray(array) for array in arrays]
    check_same_length(**{f"array {i}": array for i, array in enumerate(rows)})
    n = len(rows[0])
    codes, n_clusters = cluster_codes(clusters, n)
    rng = np.random.default_rng(seed)
    value = np.asarray(statistic(*rows), dtype=float)
    draws = np.empty((n_draws, *value.shape))
    for draw in range(n_draws):
        repeats = np.bincount(rng.integers(n_clusters, size=n_clusters), minlength=n_clusters)
        chosen = np.repeat(np.arange(n), repeats[codes])
        draws[draw] = statistic(*(array[chosen] for array in rows))
    # A draw may leave a statistic undefined (a constant sample); such draws say nothing about its spread.
    low, high = np.nanquantile(draws, [0.025, 0.975], axis=0)
    return Bootstrap(value, low, high, np.nanstd(draws, axis=0, ddof=1), draws, n, n_clusters)
