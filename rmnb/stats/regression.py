"""Least squares with errors that respect repeated words: slopes of valence and of word frequency.

"love", " Love" and "LOVE" share one valence, one frequency and much of their reward. Errors are therefore clustered by
the case-folded word; taking every token for an independent observation makes intervals too short.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import Estimate, as_vector, check_same_length, cluster_codes, estimate_from_error

INTERCEPT = "intercept"


@dataclass(frozen=True)
class Regression:
    """A fitted linear model; ``fit["name"]`` is the `Estimate` of one coefficient.

    Attributes
    ----------
    names : tuple of str, in the order of the coefficients
    coefficients : (k,) float64
    covariance : (k, k) float64, cluster-robust where clusters were given, else heteroscedasticity-robust
    df : float, degrees of freedom of the t intervals: clusters − 1
    n, n_clusters : int
    confidence : float
    """

    names: tuple[str, ...]
    coefficients: NDArray[np.float64]
    covariance: NDArray[np.float64]
    df: float
    n: int
    n_clusters: int
    confidence: float

    def __getitem__(self, name: str) -> Estimate:
        return self.contrast({name: 1.0})

    def contrast(self, weights: Mapping[str, float]) -> Estimate:
        """The weighted sum of coefficients, for instance ``{"positive": 1, "negative": -1}``."""
        unknown = set(weights) - set(self.names)
        if unknown:
            raise InputError(f"no coefficient {', '.join(sorted(unknown))}: there are {', '.join(self.names)}")
        w = np.array([weights.get(name, 0.0) for name in self.names])
        value, error = float(w @ self.coefficients), float(np.sqrt(w @ self.covariance @ w))
        return estimate_from_error(value, error, self.n, self.n_clusters, df=self.df, confidence=self.confidence)


@dataclass(frozen=True)
class ValenceSlopes:
    """Slopes of the score over word valence: among positive words, among the rest, and the first less the second."""

    positive: Estimate
    negative: Estimate
    difference: Estimate


def standardise(scores: ArrayLike) -> NDArray[np.float64]:
    """Scores with mean 0 and standard deviation 1, so that slopes of models on different scales compare.

    Give the scores of the whole vocabulary, then select words: the unit is the model's spread over its vocabulary.
    """
    x = as_vector(scores, "scores", minimum=2)
    if x.std() == 0:
        raise InputError("scores are all equal and cannot be standardised")
    return (x - x.mean()) / x.std()


def indicators(labels: ArrayLike, name: str = "kind") -> dict[str, NDArray[np.float64]]:
    """One 0/1 column a label, without the most frequent one, which the others are compared with."""
    labels = np.asarray(labels).astype(str)
    levels, counts = np.unique(labels, return_counts=True)
    reference = levels[np.argmax(counts)]
    return {f"{name}[{level}]": (labels == level).astype(float) for level in levels if level != reference}


def least_squares(
    response: ArrayLike,
    predictors: Mapping[str, ArrayLike],
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
    intercept: bool = True,
) -> Regression:
    """Least squares with cluster-robust (CR1) or, without clusters, heteroscedasticity-robust (HC1) covariance.

    Parameters
    ----------
    response : (n,) scores
    predictors : name → (n,) numbers
    clusters : (n,) labels, optional, for instance the case-folded word

    Raises
    ------
    InputError
        Different lengths, values that are not finite, too few rows or clusters, predictors that determine one another.

    References
    ----------
    Liang, Zeger (1986), Longitudinal data analysis using generalized linear models. White (1980). statsmodels OLS.
    """
    from statsmodels.regression.linear_model import OLS  # here, because statsmodels imports pandas

    y = as_vector(response, "response", minimum=3)
    columns = {name: as_vector(values, name) for name, values in predictors.items()}
    check_same_length(response=y, **columns)
    if intercept:
        columns = {INTERCEPT: np.ones(len(y)), **columns}
    names = tuple(columns)
    design = np.column_stack(list(columns.values()))
    codes, n_clusters = cluster_codes(clusters, len(y))
    if n_clusters <= len(names):
        raise InputError(f"{n_clusters} clusters cannot carry {len(names)} coefficients: use more words or fewer terms")
    scale = np.where(design.any(axis=0), np.abs(design).max(axis=0), 1)
    if np.linalg.matrix_rank(design / scale) < len(names):
        raise InputError(f"predictors {', '.join(names)} determine one another: drop one")
    if clusters is None:
        fit = OLS(y, design).fit(cov_type="HC1")
    else:
        fit = OLS(y, design).fit(cov_type="cluster", cov_kwds={"groups": codes})
    return Regression(names, fit.params, fit.cov_params(), n_clusters - 1, len(y), n_clusters, confidence)


def valence_slopes(
    score: ArrayLike, valence: ArrayLike, clusters: ArrayLike | None = None, confidence: float = 0.95
) -> ValenceSlopes:
    """``score ~ valence`` among words with valence > 0 and among the rest, as the paper splits them, in one fit.

    One fit instead of two gives the same slopes and an interval for their difference.

    References
    ----------
    FAccT25 figure 3 A–C (ordinary least squares on tokens).
    """
    v = as_vector(valence, "valence")
    high = (v > 0).astype(float)
    low = 1 - high
    if min(np.unique(v[v > 0]).size, np.unique(v[v <= 0]).size) < 2:
        raise InputError("valence needs two different values above zero and two at or below zero")
    columns = {"level_positive": high, "level_negative": low, "positive": high * v, "negative": low * v}
    fit = least_squares(score, columns, clusters, confidence, intercept=False)
    return ValenceSlopes(fit["positive"], fit["negative"], fit.contrast({"positive": 1, "negative": -1}))


def frequency_slope(
    score: ArrayLike,
    log_frequency: ArrayLike,
    controls: Mapping[str, ArrayLike] | None = None,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Slope of the score over log frequency with `controls` (valence, length, `indicators` of token kind) in the model.

    References
    ----------
    FAccT25 figure 3D: ``score ~ log(freq) + value``.
    """
    columns = {"log_frequency": log_frequency, **(controls or {})}
    return least_squares(score, columns, clusters, confidence)["log_frequency"]
