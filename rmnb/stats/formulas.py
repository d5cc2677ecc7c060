"""Regressions as formulas: statsmodels fits, and here is what a formula lets pass in silence.

`ols` and `mixed` are ``smf.ols(formula, data).fit(cov_type="cluster", …, use_t=True)`` and ``smf.mixedlm`` with three
checks before and one correction after. Collinear columns, gaps in the data and too few clusters are named instead of
fitted; intervals of a mixed model use Student's t with nlme's degrees of freedom instead of the normal distribution,
which makes the intervals of ten models too short.
"""

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rmnb.errors import InputError, first_line
from rmnb.stats.estimate import Estimate, cluster_codes, estimate_from_error

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Fit:
    """A fitted formula; ``fit["term"]`` is the `Estimate` of one coefficient, named as statsmodels names it.

    Attributes
    ----------
    names : tuple of str, in the order of the coefficients
    coefficients : (k,) float64
    covariance : (k, k) float64
    df : (k,) float64, degrees of freedom of the t intervals
    n, n_clusters : int, observations and independent units
    confidence : float
    group_covariance : (r, r) float64, of a mixed model's random intercept and slopes; empty for `ols`
    residual_variance, log_likelihood : float, restricted for a mixed model
    converged : bool
    """

    names: tuple[str, ...]
    coefficients: NDArray[np.float64]
    covariance: NDArray[np.float64]
    df: NDArray[np.float64]
    n: int
    n_clusters: int
    confidence: float
    group_covariance: NDArray[np.float64]
    residual_variance: float
    log_likelihood: float
    converged: bool

    def __getitem__(self, name: str) -> Estimate:
        return self.contrast({name: 1.0})

    def contrast(self, weights: Mapping[str, float]) -> Estimate:
        """The weighted sum of coefficients, for instance ``{"positive": 1, "negative": -1}``."""
        unknown = set(weights) - set(self.names)
        if unknown:
            raise InputError(f"no coefficient {', '.join(sorted(unknown))}: there are {', '.join(self.names)}")
        w = np.array([weights.get(name, 0.0) for name in self.names])
        variance = max(w @ self.covariance @ w, 0.0)  # rounding can leave it a little below zero
        value, error = float(w @ self.coefficients), float(np.sqrt(variance))
        df = float(self.df[w != 0].min())
        return estimate_from_error(value, error, self.n, self.n_clusters, df=df, confidence=self.confidence)


def ols(formula: str, data: "pd.DataFrame", clusters: str | None = None, confidence: float = 0.95) -> Fit:
    """Least squares with cluster-robust (CR1) or, without clusters, heteroscedasticity-robust (HC1) covariance.

    Parameters
    ----------
    formula
        As statsmodels (patsy) takes it: ``"score ~ valence + log_frequency"``.
    data
        The columns that the formula names, no gaps.
    clusters
        A column of `data`, for instance the case-folded word.

    Raises
    ------
    InputError
        A gap or an infinite value, too few rows or clusters, columns that determine one another.

    References
    ----------
    Liang, Zeger (1986), Longitudinal data analysis using generalized linear models. White (1980). statsmodels OLS.
    """
    import statsmodels.formula.api as smf

    model = _checked(smf.ols, formula, data)
    codes, n_clusters = cluster_codes(None if clusters is None else data[clusters].to_numpy(object), len(data))
    names = tuple(model.exog_names)
    if n_clusters <= len(names):
        raise InputError(f"{n_clusters} clusters cannot carry {len(names)} coefficients: use more words or fewer terms")
    _check_rank(model.exog, names)
    fit = model.fit(cov_type="cluster", cov_kwds={"groups": codes}, use_t=True)
    k, df = len(names), np.full(len(names), n_clusters - 1.0)
    covariance = np.asarray(fit.cov_params()).reshape(k, k)
    some = (np.empty((0, 0)), float(fit.scale), float(fit.llf), True)
    return Fit(names, np.asarray(fit.params), covariance, df, len(data), n_clusters, confidence, *some)


def mixed(formula: str, data: "pd.DataFrame", groups: str, random: str | None = None, confidence: float = 0.95) -> Fit:
    """Linear mixed model, REML: a random intercept and `random` slopes a group.

    ``mixed("median ~ base * category * framing", ranks, groups="model")`` is the papers'
    ``lme(median ~ base * category * framing, random = ~1 | model)``. Its random intercept cancels out of every contrast
    within a model, so it takes prompts for independent evidence on how bases differ: compare with
    `rmnb.stats.two_group_test` of one contrast a model, which does not.

    Parameters
    ----------
    random
        What has a random slope beside the intercept, as a formula: ``"~ valence"``.

    Raises
    ------
    InputError
        As `ols`; fewer than two groups.

    References
    ----------
    Laird, Ware (1982), Random-effects models for longitudinal data. ICLR26 section on off-the-shelf models.
    statsmodels MixedLM.
    """
    import statsmodels.formula.api as smf

    codes, n_groups = cluster_codes(data[groups].to_numpy(object), len(data))
    if n_groups < 2:
        raise InputError("a mixed model needs two groups or more")
    response = formula.split("~")[0].strip()
    # On the raw scale the optimiser stops early for rewards of 0.01 and for ranks of 1,000 alike.
    unit = float(np.std(data[response].to_numpy(float))) or 1.0
    scaled = data.assign(**{response: data[response] / unit})
    model = _checked(smf.mixedlm, formula, scaled, groups=codes, re_formula=random)
    names = tuple(model.exog_names)
    _check_rank(model.exog, names)
    with warnings.catch_warnings(record=True):  # reported through `converged`
        warnings.simplefilter("always")
        fit = model.fit(reml=True)
        covariance = np.asarray(fit.cov_params())[: len(names), : len(names)]  # warns of variances estimated as zero
    df = _degrees_of_freedom(model.exog, model.exog_re[:, 1:], codes, n_groups, names)
    return Fit(
        names,
        np.asarray(fit.fe_params) * unit,
        covariance * unit**2,
        df,
        len(data),
        n_groups,
        confidence,
        np.atleast_2d(np.asarray(fit.cov_re)) * unit**2,
        float(fit.scale) * unit**2,
        float(fit.llf) - (len(data) - len(names)) * np.log(unit),
        bool(fit.converged),
    )


def _checked(make: Callable[..., Any], formula: str, data: "pd.DataFrame", **options) -> Any:
    """The statsmodels model; a gap, a name that is no column or a level too few in one line."""
    for name in set(re.findall(r"[A-Za-z_]\w*", formula)) & set(data.columns):
        column = data[name]
        bad = np.flatnonzero(column.isna() | (~np.isfinite(column) if column.dtype.kind == "f" else False))
        if len(bad):
            what = f"{name} in row {data.index[bad[0]]!r} is {column.iloc[bad[0]]}"
            raise InputError(f"{what} ({len(bad)} such values): drop or repair them first")
    try:
        return make(formula, data, missing="raise", **options)
    except InputError:
        raise
    except Exception as error:  # patsy's and statsmodels' own kinds
        raise InputError(f"{formula}: {first_line(error)}") from error


def _check_rank(design: np.ndarray, names: tuple[str, ...]) -> None:
    scale = np.where(design.any(axis=0), np.abs(design).max(axis=0), 1)
    if np.linalg.matrix_rank(design / scale) < len(names):
        raise InputError(f"predictors {', '.join(names)} determine one another: drop one")


def _degrees_of_freedom(
    design: np.ndarray, slopes: np.ndarray, codes: np.ndarray, n_groups: int, names: tuple[str, ...]
) -> NDArray[np.float64]:
    """nlme's rule (Pinheiro, Bates 2000, section 2.4.2), in which the intercept counts as varying within groups.

    An effect whose slope is random varies between groups, as does its interaction with what is constant within them:
    ten models are ten observations of it.
    """
    constant = np.array([name == "Intercept" for name in names])
    between = _proportional_within_groups(design, np.ones((len(codes), 1)), codes, n_groups) & ~constant
    df = np.full(design.shape[1], len(codes) - n_groups - np.count_nonzero(~between) + 1.0)
    df[between] = n_groups - 1 - between.sum()
    for slope in slopes.T:
        carried = _proportional_within_groups(design, slope[:, None], codes, n_groups) & ~between & ~constant
        df[carried] = n_groups - carried.sum()
    if df.min() < 1:
        raise InputError(f"too few observations: {len(codes)} in {n_groups} groups for {design.shape[1]} coefficients")
    return df


def _proportional_within_groups(
    design: np.ndarray, column: np.ndarray, codes: np.ndarray, n_groups: int
) -> NDArray[np.bool_]:
    """Which columns of the design are, within every group, a multiple of the given column."""

    def sums(values: np.ndarray) -> np.ndarray:
        return np.array([values[codes == group].sum(axis=0) for group in range(n_groups)])

    gap = sums(design**2) * sums(column**2) - sums(design * column) ** 2  # Cauchy and Schwarz
    return np.all(gap <= 1e-9 * sums(design**2) * sums(column**2), axis=0)
