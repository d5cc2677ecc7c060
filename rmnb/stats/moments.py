"""The shape of a distribution: moments of scores, with intervals by word."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import Estimate, as_vector, cluster_codes, influence_interval


def standardise(scores: ArrayLike) -> NDArray[np.float64]:
    """Scores with mean 0 and standard deviation 1, so that slopes of models on different scales compare.

    Give the scores of the whole vocabulary, then select words: the unit is the model's spread over its vocabulary.

    Parameters
    ----------
    scores : (n,) finite numbers, n ≥ 2

    Returns
    -------
    ndarray
        (n,) float64; the standard deviation divides by n.

    Raises
    ------
    InputError
        Too few, equal or not finite scores.
    """
    x = as_vector(scores, "scores", minimum=2)
    if x.std() == 0 or np.ptp(x) == 0:  # the standard deviation of equal numbers need not be exactly 0
        raise InputError("scores are all equal and cannot be standardised")
    return (x - x.mean()) / x.std()


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
