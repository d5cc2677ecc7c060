"""Regressions by statsmodels, with errors clustered by word and checks of what a fit lets pass in silence."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError, TooFewError, first_line
from rmnb.stats.estimate import Estimate, as_vector, check_same_length, cluster_codes, estimate_from_error

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Fit:
    """A fitted regression; ``fit["term"]`` is the `Estimate` of one coefficient.

    Attributes
    ----------
    names : tuple of str
        Terms, in the order of the coefficients.
    coefficients : (k,) float64
    covariance : (k, k) float64
    n, n_clusters : int
        Observations and independent units; intervals are Student's t with one degree of freedom fewer than units.
    """

    names: tuple[str, ...]
    coefficients: NDArray[np.float64]
    covariance: NDArray[np.float64]
    n: int
    n_clusters: int

    def __getitem__(self, name: str) -> Estimate:
        return self.estimate({name: 1.0})

    def estimate(self, weights: Mapping[str, float]) -> Estimate:
        """A weighted sum of coefficients, such as ``{"good": 1, "bad": -1}``; what is not named has weight 0."""
        unknown = set(weights) - set(self.names)
        if unknown:
            raise InputError(f"no coefficient {', '.join(sorted(unknown))}: there are {', '.join(self.names)}")
        if not any(weights.values()):
            raise InputError("every weight is 0: give at least one coefficient another weight")
        w = np.array([weights.get(name, 0.0) for name in self.names])
        variance = max(w @ self.covariance @ w, 0.0)  # rounding can leave it a little below zero
        error = float(np.sqrt(variance))
        value = float(w @ self.coefficients)
        return estimate_from_error(value, error, self.n, self.n_clusters, df=self.n_clusters - 1)


def fit_clustered(response: ArrayLike, predictors: "pd.DataFrame", clusters: ArrayLike | None = None) -> Fit:
    """Least squares on named columns, with cluster-robust (CR1) or, without clusters, White's (HC1) errors.

    The numbers are those of `ols`, without the time that parsing a formula takes.

    Parameters
    ----------
    response
        (n,) numbers.
    predictors
        n rows, a column a coefficient; a constant is a column of ones.
    clusters
        n labels, such as words; without them every row is independent.

    Raises
    ------
    InputError
        Values that are not finite, lengths that differ, a predictor that is a combination of the others, or no more
        clusters than predictors.

    References
    ----------
    Liang, Zeger (1986), Longitudinal data analysis using generalized linear models. White (1980). statsmodels OLS.
    """
    import statsmodels.api as sm

    y = as_vector(response, "response")
    x = predictors.to_numpy(float)
    names = tuple(str(column) for column in predictors)
    check_same_length(response=y, predictors=x)
    if not np.isfinite(x).all():
        raise InputError(f"predictors {', '.join(names)} have gaps: drop or repair these rows first")
    codes, n_clusters = cluster_codes(clusters, len(y), minimum=1)
    if n_clusters <= len(names):
        raise TooFewError(
            f"{n_clusters} clusters cannot carry {len(names)} coefficients: use more words or fewer terms"
        )
    _check_rank(x, names)
    fit = sm.OLS(y, x).fit(cov_type="cluster", cov_kwds={"groups": codes}, use_t=True)
    return Fit(names, fit.params, np.atleast_2d(fit.cov_params()), len(y), n_clusters)


def ols(formula: str, data: "pd.DataFrame", clusters: str | None = None) -> Fit:
    """`fit_clustered` of a formula as statsmodels takes it: ``"score ~ valence + log_frequency"``.

    Parameters
    ----------
    data
        The columns that the formula names, no gaps.
    clusters
        A column of `data`, for instance the case-folded word.

    Raises
    ------
    InputError
        A gap or an infinite value, an unknown name, too few rows or clusters, columns that determine one another.
    """
    import pandas as pd
    import statsmodels.formula.api as smf

    try:
        model = smf.ols(formula, data, missing="raise")
    except Exception as error:  # patsy's and statsmodels' own kinds
        raise InputError(f"{formula}: {first_line(error)}") from error
    predictors = pd.DataFrame(model.exog, columns=model.exog_names)
    labels = None if clusters is None else data[clusters].to_numpy()
    return fit_clustered(model.endog, predictors, labels)


def _check_rank(design: np.ndarray, names: tuple[str, ...]) -> None:
    """TooFewError if a column is a combination of the others, whatever the columns' units."""
    scale = np.where(design.any(axis=0), np.abs(design).max(axis=0), 1)
    if np.linalg.matrix_rank(design / scale) < len(names):
        raise TooFewError(f"predictors {', '.join(names)} determine one another: use more words, or drop one")
