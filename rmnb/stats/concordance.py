"""Rank correlations with intervals in closed form: how much each row moves them, clusters summed."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import Estimate, as_vector, check_same_length, cluster_codes, influence_interval
from rmnb.stats.ranks import dense_ranks, mid_ranks


def kendall_interval(x: ArrayLike, y: ArrayLike, clusters: ArrayLike | None = None) -> Estimate:
    """Kendall's tau-b with an interval in closed form: its jackknife to first order, clusters summed.

    Each row's concordance with all others is counted in O(n log² n), so no bootstrap is needed.

    Parameters
    ----------
    x, y : (n,) finite numbers, n ≥ 3; ties count as ties
    clusters : (n,) labels, optional
        Rows with one label, such as the spellings of a word, count as one independent unit.

    Raises
    ------
    InputError
        Too few values, values that are not finite, different lengths, a constant vector, fewer than two clusters.

    References
    ----------
    Hoeffding (1948), A class of statistics with asymptotically normal distribution, section 9.
    """
    tau, influence = kendall_influence(x, y)
    return influence_interval(tau, influence, *cluster_codes(clusters, len(influence)))


def kendall_influence(x: ArrayLike, y: ArrayLike) -> tuple[float, NDArray[np.float64]]:
    """Kendall's tau-b and the influence of each row on it, (n,): those of several taus of the same rows add up."""
    x = dense_ranks(as_vector(x, "x", minimum=3))
    y = dense_ranks(as_vector(y, "y", minimum=3))
    check_same_length(x=x, y=y)
    n = len(x)
    concordance = row_concordance(x.astype(np.int64), y.astype(np.int64)) / (n - 1)
    # For each row the share of the others that are not tied with it.
    untied_x = (n - np.bincount(x)[x]) / (n - 1)
    untied_y = (n - np.bincount(y)[y]) / (n - 1)
    scale = np.sqrt(untied_x.mean() * untied_y.mean())
    if scale == 0:
        raise InputError("x or y is constant: Kendall's tau is not defined")
    tau = concordance.mean() / scale
    relative = untied_x / untied_x.mean() + untied_y / untied_y.mean() - 2
    return float(tau), 2 * (concordance / scale - tau) - tau * relative


def spearman_interval(x: ArrayLike, y: ArrayLike, clusters: ArrayLike | None = None) -> Estimate:
    """Spearman's rho with an interval in closed form: its jackknife to first order, clusters summed; O(n log n).

    A row moves rho by its own product of ranks and by moving the ranks of all rows above it; ties share ranks.
    Parameters and errors as of `kendall_interval`.

    References
    ----------
    Borkowf (2002), Computing the nonnull asymptotic variance and the asymptotic relative efficiency of Spearman's rank
    correlation.
    """
    x = as_vector(x, "x", minimum=3)
    y = as_vector(y, "y", minimum=3)
    check_same_length(x=x, y=y)
    codes, n_clusters = cluster_codes(clusters, len(x))
    covariance, influence = _rank_covariance(x, y)
    variance_x, influence_x = _rank_covariance(x, x)
    variance_y, influence_y = _rank_covariance(y, y)
    scale = np.sqrt(variance_x * variance_y)
    if scale == 0:
        raise InputError("x or y is constant: Spearman's rho is not defined")
    rho = covariance / scale
    spread = influence_x / variance_x + influence_y / variance_y
    return influence_interval(rho, influence / scale - rho / 2 * spread, codes, n_clusters)


def _rank_covariance(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[np.float64, NDArray[np.float64]]:
    """Covariance of the centred ranks of x and y, each divided by n, and how much each row moves it."""
    x_ranks = (mid_ranks(x) - 0.5) / len(x) - 0.5
    y_ranks = (mid_ranks(y) - 0.5) / len(y) - 0.5
    product = x_ranks * y_ranks
    covariance = product.mean()
    above = _mean_above(dense_ranks(x), y_ranks) + _mean_above(dense_ranks(y), x_ranks)
    return covariance, product + above - 3 * covariance


def _mean_above(levels: NDArray[np.integer], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each row, the sum of `values` of the rows on higher levels and half that of its own level, divided by n."""
    sums = np.bincount(levels, values)
    return (sums.sum() - np.cumsum(sums) + sums / 2)[levels] / len(values)


def row_concordance(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each row, rows concordant with it less rows discordant with it; ties count as neither. Dense ranks in."""
    total = np.zeros(len(x), dtype=np.int64)
    for a, b in ((x, y), (x.max() - x, y.max() - y)):
        below = np.concatenate(([0], np.cumsum(np.bincount(a))))[a]
        # Of the rows with a smaller a: those with smaller b, less those with larger b.
        total += _dominated(a, b) + _dominated(a, b, weak=True) - below
    return total


def _dominated(a: np.ndarray, b: np.ndarray, weak: bool = False) -> NDArray[np.int64]:
    """For each row i, how many rows j have ``a[j] < a[i]`` and ``b[j] < b[i]`` (``<=`` if `weak`).

    A merge sort from the bottom, one level for all blocks at once.
    """
    n = len(a)
    # Rows of one a must not count one another: within one a, put the largest b first (the smallest b last).
    order = np.lexsort((-b, a))
    # Even keys leave room for the odd ones that decide between equal b below.
    key = 2 * b[order]
    count = np.zeros(n, dtype=np.int64)
    # Within one a, b falls; so an earlier row of the same a never has the smaller b, but may have the same b.
    same = _earlier_twins(a[order], b[order]) if weak else 0
    span = 2 * int(b.max()) + 4
    position = np.arange(n)
    width = 1
    while width < n:
        block = position // (2 * width)
        right = (position // width) % 2 == 1
        # Left rows sort just after equal right rows when strict, just before when weak.
        placed = key + (right if weak else ~right)
        rank = np.argsort(block * span + placed, kind="stable")
        lefts_before = np.cumsum(~right[rank])
        first_left = block[rank] * width  # lefts in all earlier blocks, each of which is full
        gained = (lefts_before - first_left) * right[rank]
        count[rank] += gained
        width *= 2
    result = np.empty(n, dtype=np.int64)
    result[order] = count - same
    return result


def _earlier_twins(a: np.ndarray, b: np.ndarray) -> NDArray[np.int64]:
    """In rows sorted so that twins (equal a and b) are adjacent, how many twins come before each row."""
    starts = np.flatnonzero(np.concatenate(([True], (np.diff(a) != 0) | (np.diff(b) != 0))))
    return np.arange(len(a)) - np.repeat(starts, np.diff(np.append(starts, len(a))))
