"""Rank correlations with intervals in closed form: how much each row moves them, clusters summed."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import Estimate, as_vector, check_same_length, cluster_codes, influence_interval
from rmnb.stats.ranks import dense_ranks, mid_ranks


def kendall_interval(x: ArrayLike, y: ArrayLike, clusters: ArrayLike | None = None) -> Estimate:
    """Kendall's tau-b with an interval in closed form: its jackknife to first order, clusters summed.

    Each row's concordance with all others is counted in O(n log² n), about a thousand times cheaper than a bootstrap.

    References
    ----------
    Hoeffding (1948), A class of statistics with asymptotically normal distribution, section 9.
    """
    x, y = dense_ranks(as_vector(x, "x", minimum=3)), dense_ranks(as_vector(y, "y", minimum=3))
    check_same_length(x=x, y=y)
    codes, n_clusters = cluster_codes(clusters, len(x))
    n = len(x)
    concordance = row_concordance(x.astype(np.int64), y.astype(np.int64)) / (n - 1)
    untied_x, untied_y = ((n - np.bincount(values)[values]) / (n - 1) for values in (x, y))
    scale = np.sqrt(untied_x.mean() * untied_y.mean())
    if scale == 0:
        raise InputError("x or y is constant: Kendall's tau is not defined")
    tau = concordance.mean() / scale
    relative = untied_x / untied_x.mean() + untied_y / untied_y.mean() - 2
    influence = 2 * (concordance / scale - tau) - tau * relative
    return influence_interval(tau, influence, codes, n_clusters)


def spearman_interval(x: ArrayLike, y: ArrayLike, clusters: ArrayLike | None = None) -> Estimate:
    """Spearman's rho with an interval in closed form: its jackknife to first order, clusters summed; O(n log n).

    A row moves rho by its own product of ranks and by moving the ranks of all rows above it; ties share ranks.

    References
    ----------
    Borkowf (2002), Computing the nonnull asymptotic variance and the asymptotic relative efficiency of Spearman's rank
    correlation.
    """
    x, y = as_vector(x, "x", minimum=3), as_vector(y, "y", minimum=3)
    check_same_length(x=x, y=y)
    codes, n_clusters = cluster_codes(clusters, len(x))
    a, b = ((mid_ranks(values) - 0.5) / len(x) - 0.5 for values in (x, y))
    ranks = {"a": (a, dense_ranks(x)), "b": (b, dense_ranks(y))}
    covariance, moved = {}, {}
    for one, other in ("ab", "aa", "bb"):
        (u, u_levels), (v, v_levels) = ranks[one], ranks[other]
        product = u * v
        covariance[one + other] = product.mean()
        above = _mean_above(u_levels, v) + _mean_above(v_levels, u)
        moved[one + other] = product + above - 3 * product.mean()
    scale = np.sqrt(covariance["aa"] * covariance["bb"])
    if scale == 0:
        raise InputError("x or y is constant: Spearman's rho is not defined")
    rho = covariance["ab"] / scale
    spread = moved["aa"] / covariance["aa"] + moved["bb"] / covariance["bb"]
    return influence_interval(rho, moved["ab"] / scale - rho / 2 * spread, codes, n_clusters)


def _mean_above(levels: NDArray[np.integer], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each row the mean over all rows of `values` where the row is of a higher level, of half where of the same."""
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
        placed = key + (0 if weak else 1) * ~right + (1 if weak else 0) * right
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
