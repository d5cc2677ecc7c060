"""Bootstrap by word: intervals for any statistic of rows that come in clusters."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from rmnb.stats.estimate import Estimate, check_count, check_same_length, cluster_codes


def bootstrap(
    statistic: Callable[..., float],
    *arrays: ArrayLike,
    clusters: ArrayLike | None = None,
    n_draws: int = 1000,
    seed: int | np.random.Generator = 0,
) -> Estimate:
    """Bootstrap a statistic by drawing clusters (words) with replacement.

    Parameters
    ----------
    statistic : callable
        ``statistic(*arrays)`` gives a number.
    arrays : arrays that share their first axis, the rows (tokens).
    clusters : (n,) labels, optional
        All rows of a drawn cluster enter together. Without labels rows are drawn.
    n_draws, seed
        How many samples are drawn, and from which random state.

    Returns
    -------
    Estimate
        With the 95 % percentile interval of the draws in which the statistic is defined and their standard deviation,
        without a test; no interval where all draws are equal.

    Raises
    ------
    InputError
        Different lengths, fewer than two clusters or draws.

    References
    ----------
    Efron, Tibshirani (1993), An Introduction to the Bootstrap. Davison, Hinkley (1997), section 3.8 (clusters).
    """
    check_count(n_draws, "n_draws", minimum=2)
    rows = [np.asarray(array) for array in arrays]
    check_same_length(**{f"array {i}": array for i, array in enumerate(rows)})
    n = len(rows[0])
    codes, n_clusters = cluster_codes(clusters, n)
    rng = np.random.default_rng(seed)
    value = float(statistic(*rows))
    draws = np.empty(n_draws)
    for draw in range(n_draws):
        repeats = np.bincount(rng.integers(n_clusters, size=n_clusters), minlength=n_clusters)
        chosen = np.repeat(np.arange(n), repeats[codes])
        draws[draw] = statistic(*(array[chosen] for array in rows))
    # A draw may leave a statistic undefined (a constant sample); such draws say nothing about its spread.
    error = float(np.nanstd(draws, ddof=1))
    if error == 0:
        return Estimate(value, n, n_clusters)
    low, high = np.nanquantile(draws, [0.025, 0.975]).tolist()
    return Estimate(value, n, n_clusters, low, high, error)
