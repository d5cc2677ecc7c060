"""Moments, bootstrap, changes of a share: of rows that come in clusters, such as the spellings of a word."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from rmnb.errors import InputError
from rmnb.stats.estimate import (
    Estimate,
    as_vector,
    check_count,
    check_same_length,
    cluster_codes,
    estimate_from_error,
    influence_interval,
)


def moments(scores: ArrayLike, clusters: ArrayLike | None = None) -> dict[str, Estimate]:
    """Mean, variance (ddof 0) and skewness of `scores`, with intervals.

    Each standard error comes from the estimator's influence function (the delta method), summed within clusters
    first: spellings of one word ("love", " Love", "LOVE") are not independent observations.

    Parameters
    ----------
    scores : (n,) finite numbers, n ≥ 3, not all equal.
    clusters : (n,) labels, optional
        Rows with one label are treated as one observation's worth of information, for instance the folded word.

    Returns
    -------
    dict
        mean, variance (divided by n), skewness (m₃ / m₂^1.5).

    Raises
    ------
    InputError
        Too few, constant or not finite scores; fewer than two clusters.

    References
    ----------
    FAccT25 table 3 (values). Cramér (1946), Mathematical Methods of Statistics, chapter 28 (errors).
    """
    x = as_vector(scores, "scores", minimum=3)
    codes, _ = cluster_codes(clusters, len(x))
    mean, variance = x.mean(), x.var()
    if variance <= 1e-24 * max(1.0, mean**2):
        raise InputError("scores are all equal: their skewness is not defined")
    z = (x - mean) / np.sqrt(variance)
    skewness = np.mean(z**3)
    skewness_influence = z**3 - skewness - 3 * z - 1.5 * skewness * (z**2 - 1)
    return {
        "mean": influence_interval(mean, x - mean, codes),
        "variance": influence_interval(variance, variance * (z**2 - 1), codes),
        "skewness": influence_interval(skewness, skewness_influence, codes),
    }


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


def paired_change(a: ArrayLike, b: ArrayLike, clusters: ArrayLike | None = None) -> Estimate:
    """The share of rows that the second gets right, less that of the first.

    Parameters
    ----------
    a, b
        (n,) bool: whether each of the two is right.
    clusters
        (n,) labels of rows that are not independent, such as those of one prompt.

    Returns
    -------
    Estimate
        With a 95 % interval by Student's t over clusters, to which two are added, one row in each, of which the second
        gains one and loses one: without them it would be too short where few rows change, and none where none does. Its
        p value is McNemar's exact one, which takes rows as independent.

    Raises
    ------
    InputError
        Different lengths, or fewer than two clusters.

    References
    ----------
    Agresti, Min (2005), Simple improved confidence intervals for comparing matched proportions. McNemar (1947), Note on
    the sampling error of the difference between correlated proportions or percentages.

    Examples
    --------
    >>> round(paired_change([True, True, False, True], [True, False, False, True]).value, 2)
    -0.25
    """
    from scipy.stats import binomtest  # loading it takes memory and half a second

    first, second = as_vector(a, "a"), as_vector(b, "b")
    check_same_length(a=first, b=second)
    change = second - first
    gained, lost = int(np.sum(change > 0)), int(np.sum(change < 0))
    codes, count = cluster_codes(clusters, len(change))
    codes = np.append(codes, [count, count + 1])
    adjusted = np.append(change, [1.0, -1.0])
    centre = adjusted.mean()
    sums = np.bincount(codes, weights=adjusted - centre)
    error = np.sqrt(len(sums) / (len(sums) - 1) * np.sum(sums**2)) / len(adjusted)
    interval = estimate_from_error(centre, error, len(change), count, df=count - 1)
    return Estimate(
        value=float(change.mean()),
        n=len(change),
        n_clusters=count,
        ci_low=max(-1.0, interval.ci_low),
        ci_high=min(1.0, interval.ci_high),
        standard_error=interval.standard_error,
        p_value=float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0,
    )
