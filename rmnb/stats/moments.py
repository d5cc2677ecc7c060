"""The shape of a distribution of scores: moments with intervals that respect repeated words, and its tails."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import Estimate, as_vector, cluster_codes, influence_interval


def standardise(scores: ArrayLike) -> NDArray[np.float64]:
    """Scores with mean 0 and standard deviation 1, so that slopes of models on different scales compare.

    Give the scores of the whole vocabulary, then select words: the unit is the model's spread over its vocabulary.
    """
    x = as_vector(scores, "scores", minimum=2)
    if x.std() == 0:
        raise InputError("scores are all equal and cannot be standardised")
    return (x - x.mean()) / x.std()


@dataclass(frozen=True)
class Moments:
    """The first three moments, each an `Estimate`; `variance` divides by n (ddof 0), `skewness` is m₃ / m₂^1.5."""

    mean: Estimate
    variance: Estimate
    skewness: Estimate


def moments(scores: ArrayLike, clusters: ArrayLike | None = None) -> Moments:
    """Mean, variance (ddof 0) and skewness of `scores`, with intervals.

    Each standard error is the root mean square of the estimator's influence function (the delta method), summed
    within clusters first: spellings of one word ("love", " Love", "LOVE") are not independent observations.

    Parameters
    ----------
    scores : (n,) finite numbers, n ≥ 3, not all equal.
    clusters : (n,) labels, optional
        Rows with one label are treated as one observation's worth of information, for instance the folded word.

    Raises
    ------
    InputError
        Too few, constant or not finite scores; fewer than two clusters.

    References
    ----------
    FAccT25 table 3 (values). Cramér (1946), Mathematical Methods of Statistics, chapter 28 (errors).
    """
    x = as_vector(scores, "scores", minimum=3)
    codes, n_clusters = cluster_codes(clusters, len(x))
    mean, variance = x.mean(), x.var()
    if variance <= 1e-24 * max(1.0, mean**2):
        raise InputError("scores are all equal: their skewness is not defined")
    z = (x - mean) / np.sqrt(variance)
    skewness = np.mean(z**3)
    bend = z**3 - skewness - 3 * z - 1.5 * skewness * (z**2 - 1)
    return Moments(
        mean=influence_interval(mean, x - mean, codes, n_clusters),
        variance=influence_interval(variance, variance * (z**2 - 1), codes, n_clusters),
        skewness=influence_interval(skewness, bend, codes, n_clusters),
    )


def tail_ratio(values: ArrayLike, share: float = 0.01) -> float:
    """Natural logarithm of the upper tail's reach over the lower one's: 0 for a symmetric distribution.

    The reach of a tail is the distance from the median to the quantile that cuts off `share` of the values; the ratio
    looks at the tails alone, while a few far values can carry a skewness.

    Raises
    ------
    InputError
        A share outside 0 to 0.5, too few values, or a tail that does not reach beyond the median.

    References
    ----------
    Hinkley (1975), On power transformations to symmetry (the same quantiles, as a difference over a sum).
    """
    x = as_vector(values, "values", minimum=3)
    if not 0 < share < 0.5:
        raise InputError(f"share must lie between 0 and 0.5, got {share}: for 1 % give 0.01")
    low, median, high = np.quantile(x, [share, 0.5, 1 - share])
    if low == median or high == median:
        raise InputError(f"more than {0.5 - share:.0%} of the values equal the median: the tails have no reach")
    return float(np.log((high - median) / (median - low)))
