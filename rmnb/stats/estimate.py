"""A number with its uncertainty, and the checks that every estimator makes on its input."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError, TooFewError


@dataclass(frozen=True)
class Estimate:
    """An estimate with a 95 % confidence interval, or without one.

    Attributes
    ----------
    value : float
    n : int
        Observations.
    n_clusters : int
        Independent units: the number of clusters, or `n` where every observation is independent.
    ci_low, ci_high, standard_error : float
        In the unit of `value`; NaN where there is no interval.
    p_value : float
        Of the hypothesis that the quantity is zero, two-sided but of `mantel`; NaN where no test was made.
    units : tuple of str
        The names of the independent units, where they are matched sets; else empty.
    """

    value: float
    n: int
    n_clusters: int
    ci_low: float = math.nan
    ci_high: float = math.nan
    standard_error: float = math.nan
    p_value: float = math.nan
    units: tuple[str, ...] = ()


def estimate_from_error(value: float, standard_error: float, n: int, n_clusters: int, *, df: float) -> Estimate:
    """Student's t interval and two-sided test from a value and its standard error; `df` degrees of freedom.

    A standard error of zero is a sample too small or too perfect to show any scatter: it gives no interval and no test.
    """
    from scipy.special import stdtr, stdtrit  # not scipy.stats, which takes most of a second to import

    if standard_error == 0:
        return Estimate(float(value), int(n), int(n_clusters))
    reach = stdtrit(df, 0.975) * standard_error
    return Estimate(
        value=float(value),
        n=int(n),
        n_clusters=int(n_clusters),
        ci_low=float(value - reach),
        ci_high=float(value + reach),
        standard_error=float(standard_error),
        p_value=float(2 * stdtr(df, -abs(value) / standard_error)),
    )


def influence_interval(value: float, influence: np.ndarray, clusters: ArrayLike | None) -> Estimate:
    """Interval of an estimator from the influence of each row on it (the delta method), summed by cluster first.

    Parameters
    ----------
    influence
        (n,) float64 of mean 0: to first order the estimator is the true value plus the mean of these.
    clusters
        (n,) labels, as `cluster_codes` takes them.
    """
    n = len(influence)
    codes, n_clusters = cluster_codes(clusters, n)
    sums = np.bincount(codes, weights=influence, minlength=n_clusters)
    error = np.sqrt(n_clusters / (n_clusters - 1) * np.sum(sums**2)) / n
    return estimate_from_error(value, error, n, n_clusters, df=n_clusters - 1)


def as_vector(values: ArrayLike, name: str, *, minimum: int = 1) -> NDArray[np.float64]:
    """`values` as a finite float64 vector of at least `minimum` entries.

    Raises
    ------
    InputError
        Not one-dimensional, not numeric, or a NaN or infinity (its position is named); `TooFewError` if too short.
    """
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers: {error}") from error
    if vector.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, got shape {vector.shape}")
    if len(vector) < minimum:
        raise TooFewError(f"{name} needs at least {minimum} values, got {len(vector)}")
    bad = np.flatnonzero(~np.isfinite(vector))
    if len(bad):
        raise InputError(f"{name}[{bad[0]}] is {vector[bad[0]]} ({len(bad)} such values): drop or repair them first")
    return vector


def check_count(count: int, name: str, *, minimum: int = 1) -> None:
    """Raise, naming the argument, if fewer shuffles or draws are asked for than give an answer."""
    if count < minimum:
        raise InputError(f"{name} must be {minimum} or more, got {count}")


def check_same_length(**arrays: np.ndarray) -> None:
    """Raise, naming the lengths, unless all arrays have one length."""
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise InputError("arrays differ in length: " + ", ".join(f"{name} {size}" for name, size in lengths.items()))


def cluster_codes(clusters: ArrayLike | None, n: int, minimum: int = 2) -> tuple[NDArray[np.intp], int]:
    """Labels as codes 0..k-1 and their number k; without labels every row is its own cluster.

    Raises
    ------
    InputError
        Not one label a row, or a missing label; `TooFewError` if there are fewer than `minimum` clusters.
    """
    import pandas as pd  # its factorize is several times as fast on strings as numpy's unique

    if clusters is None:
        codes = np.arange(n)
        count = n
    else:
        labels = np.asarray(clusters)
        if labels.shape != (n,):
            raise InputError(f"clusters must be one label a row: expected shape ({n},), got {labels.shape}")
        codes, levels = pd.factorize(labels)
        count = len(levels)
        missing = np.flatnonzero(codes < 0)
        if len(missing):
            raise InputError(f"clusters[{missing[0]}] is missing ({len(missing)} such labels): drop these rows first")
    if count < minimum:
        raise TooFewError(f"an interval needs {minimum} clusters or more, got {count}")
    return codes, count
