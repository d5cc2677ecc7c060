"""How far apart values lie: one tail against the other, the distance of two values, the entropy of places."""

import numpy as np
from numpy.typing import ArrayLike

from rmnb.errors import InputError
from rmnb.stats.estimate import Estimate, as_vector, cluster_codes
from rmnb.stats.moments import influence_interval


def mean_difference(values: ArrayLike, clusters: ArrayLike | None = None, confidence: float = 0.95) -> Estimate:
    """Gini's mean difference: the mean distance of two values drawn without replacement, with an interval.

    The interval is that of a U-statistic: each row's mean distance to all others is its influence, summed by cluster.

    Parameters
    ----------
    values : (n,) finite numbers, n ≥ 3
    clusters : (n,) labels, optional

    Raises
    ------
    InputError
        Too few or not finite values; fewer than two clusters.

    References
    ----------
    Hoeffding (1948), A class of statistics with asymptotically normal distribution, section 5.
    """
    x = as_vector(values, "values", minimum=3)
    codes, n_clusters = cluster_codes(clusters, len(x))
    if n_clusters < 2:
        raise InputError("values all belong to one cluster: an interval needs two clusters or more")
    n = len(x)
    order = np.argsort(x, kind="stable")
    ascending = x[order]
    below = np.concatenate(([0.0], np.cumsum(ascending)[:-1]))
    place = np.arange(n)
    # Distances to the values below and to those above, from running sums.
    total = place * ascending - below + (ascending.sum() - below - ascending) - (n - 1 - place) * ascending
    distance = np.empty(n)
    distance[order] = total / (n - 1)
    value = float(distance.mean())
    return influence_interval(value, 2 * (distance - value), codes, n_clusters, confidence)


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


def place_entropy(places: ArrayLike, n_bins: int = 10, confidence: float = 0.95) -> Estimate:
    """Entropy of places in a ranking, as a share of the largest possible: 1 where every part of it is equally likely.

    Parameters
    ----------
    places : (n,) numbers from 0 to 1, n ≥ 3, such as percentiles
    n_bins : int
        Equal parts of the ranking that are told apart.

    Returns
    -------
    Estimate
        Corrected for the number of values (Miller and Madow), so that groups of different size compare; not above 1.

    References
    ----------
    Miller (1955), Note on the bias of information estimates. Basharin (1959) for the interval.
    """
    x = as_vector(places, "places", minimum=3)
    if x.min() < 0 or x.max() > 1:
        raise InputError(f"places must lie between 0 and 1, got {x.min()} to {x.max()}")
    codes = np.minimum((x * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(codes, minlength=n_bins)
    surprise = -np.log(counts[codes] / len(x))
    plain = surprise.mean()
    corrected = min(plain + (np.count_nonzero(counts) - 1) / (2 * len(x)), np.log(n_bins))
    influence = (surprise - plain) / np.log(n_bins)
    rows = np.arange(len(x))
    return influence_interval(float(corrected / np.log(n_bins)), influence, rows, len(x), confidence)
