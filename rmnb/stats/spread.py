"""How far apart values lie: the distance of two values, and the entropy of places in a ranking."""

import numpy as np
from numpy.typing import ArrayLike

from rmnb.errors import InputError
from rmnb.stats.estimate import Estimate, as_vector, cluster_codes, influence_interval


def mean_difference(values: ArrayLike, clusters: ArrayLike | None = None) -> Estimate:
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
    return influence_interval(value, 2 * (distance - value), codes, n_clusters)


def place_entropy(places: ArrayLike, n_bins: int = 10) -> Estimate:
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
    return influence_interval(float(corrected / np.log(n_bins)), influence, rows, len(x))
