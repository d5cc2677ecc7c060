"""Mean, variance and skewness of a score distribution, with intervals that respect repeated words."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import Estimate, as_vector, cluster_codes, estimate_from_error


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


def moments(scores: ArrayLike, clusters: ArrayLike | None = None, confidence: float = 0.95) -> Moments:
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
    if n_clusters < 2:
        raise InputError("scores all belong to one cluster: an interval needs two clusters or more")
    mean, variance = x.mean(), x.var()
    if variance <= 1e-24 * max(1.0, mean**2):
        raise InputError("scores are all equal: their skewness is not defined")
    z = (x - mean) / np.sqrt(variance)
    skewness = np.mean(z**3)
    influences = {
        "mean": x - mean,
        "variance": variance * (z**2 - 1),
        "skewness": z**3 - skewness - 3 * z - 1.5 * skewness * (z**2 - 1),
    }
    values = {"mean": mean, "variance": variance, "skewness": skewness}
    return Moments(
        **{
            name: influence_interval(values[name], influence, codes, n_clusters, confidence)
            for name, influence in influences.items()
        }
    )


def influence_interval(
    value: float, influence: np.ndarray, codes: np.ndarray, n_clusters: int, confidence: float = 0.95
) -> Estimate:
    """Interval of an estimator that is, to first order, `value` + the mean of its `influence` over the rows."""
    n = len(influence)
    sums = np.bincount(codes, weights=influence, minlength=n_clusters)
    error = np.sqrt(n_clusters / (n_clusters - 1) * np.sum(sums**2)) / n
    return estimate_from_error(value, error, n, n_clusters, df=n_clusters - 1, confidence=confidence)
