"""The change of a share between two raters of the same rows."""

import numpy as np
from numpy.typing import ArrayLike

from rmnb.stats.estimate import Estimate, as_vector, check_same_length, cluster_codes, estimate_from_error


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
