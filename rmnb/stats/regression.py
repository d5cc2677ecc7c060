"""Regressions by statsmodels, with errors clustered by word and checks of what a fit lets pass in silence."""

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError, first_line
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
    df : (k,) float64
        Degrees of freedom of the t intervals.
    n, n_clusters : int
        Observations and independent units.
    """

    names: tuple[str, ...]
    coefficients: NDArray[np.float64]
    covariance: NDArray[np.float64]
    df: NDArray[np.float64]
    n: int
    n_clusters: int

    def __getitem__(self, name: str) -> Estimate:
        return self.estimate({name: 1.0})

    def estimate(self, weights: Mapping[str, float]) -> Estimate:
        """A weighted sum of coefficients, such as ``{"good": 1, "bad": -1}``; what is not named has weight 0."""
        unknown = set(weights) - set(self.names)
        if unknown:
            raise InputError(f"no coefficient {', '.join(sorted(unknown))}: there are {', '.join(self.names)}")
        w = np.array([weights.get(name, 0.0) for name in self.names])
        variance = max(w @ self.covariance @ w, 0.0)  # rounding can leave it a little below zero
        df = float(self.df[w != 0].min())
        return estimate_from_error(float(w @ self.coefficients), np.sqrt(variance), self.n, self.n_clusters, df=df)


def fit_clustered(response: ArrayLike, predictors: "pd.DataFrame", clusters: ArrayLike | None = None) -> Fit:
    """Least squares on named columns, with cluster-robust (CR1) or, without clusters, White's (HC1) errors.

    The numbers are those of `ols`, in 2 ms instead of 117.

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

    y, x, names = as_vector(response, "response"), predictors.to_numpy(float), tuple(map(str, predictors))
    check_same_length(response=y, predictors=x)
    if not np.isfinite(x).all():
        raise InputError(f"predictors {', '.join(names)} have gaps: drop or repair these rows first")
    codes, n_clusters = cluster_codes(clusters, len(y), minimum=1)
    if n_clusters <= len(names):
        raise InputError(f"{n_clusters} clusters cannot carry {len(names)} coefficients: use more words or fewer terms")
    _check_rank(x, names)
    fit = sm.OLS(y, x).fit(cov_type="cluster", cov_kwds={"groups": codes}, use_t=True)
    df = np.full(len(names), n_clusters - 1.0)
    return Fit(names, fit.params, np.atleast_2d(fit.cov_params()), df, len(y), n_clusters)


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

    model = _checked(smf.ols, formula, data)
    predictors = pd.DataFrame(model.exog, columns=model.exog_names)
    return fit_clustered(model.endog, predictors, None if clusters is None else data[clusters].to_numpy())


def mixed(formula: str, data: "pd.DataFrame", groups: str) -> Fit:
    """Linear mixed model with a random intercept a group, by REML.

    ``mixed("median ~ base * category * framing", ranks, groups="model")`` is the papers'
    ``lme(median ~ base * category * framing, random = ~1 | model)``. Its random intercept cancels out of every contrast
    within a model, so it takes prompts for independent evidence on how bases differ: compare with
    `rmnb.stats.two_group_test` of one contrast a model, which does not. Intervals use Student's t with nlme's degrees
    of freedom; statsmodels' normal ones are too short for ten models.

    Raises
    ------
    InputError
        As `ols`; fewer than two groups.

    References
    ----------
    Laird, Ware (1982), Random-effects models for longitudinal data. ICLR26 section on off-the-shelf models.
    Pinheiro, Bates (2000), section 2.4.2 (degrees of freedom). statsmodels MixedLM.
    """
    import statsmodels.formula.api as smf

    codes, n_groups = cluster_codes(data[groups].to_numpy(), len(data))
    response = formula.split("~")[0].strip()
    # On the raw scale the optimiser stops early for rewards of 0.01 and for ranks of 1,000 alike.
    unit = float(np.std(data[response].to_numpy(float))) or 1.0
    model = _checked(smf.mixedlm, formula, data.assign(**{response: data[response] / unit}), groups=codes)
    names = tuple(model.exog_names)
    _check_rank(model.exog, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of variances that are estimated as zero
        fit = model.fit(reml=True)
        covariance = np.asarray(fit.cov_params())[: len(names), : len(names)]
    df = _degrees_of_freedom(model.exog, codes, n_groups, names)
    return Fit(names, np.asarray(fit.fe_params) * unit, covariance * unit**2, df, len(data), n_groups)


def _degrees_of_freedom(
    design: np.ndarray, codes: np.ndarray, n_groups: int, names: tuple[str, ...]
) -> NDArray[np.float64]:
    """nlme's rule: columns that are constant within groups are observed once a group, the others once a row."""
    first = np.unique(codes, return_index=True)[1]
    between = (design == design[first][codes]).all(axis=0) & (np.array(names) != "Intercept")
    within = len(codes) - n_groups - np.count_nonzero(~between) + 1.0
    df = np.where(between, n_groups - 1 - between.sum(), within)
    if df.min() < 1:
        raise InputError(f"too few observations: {len(codes)} in {n_groups} groups for {len(names)} coefficients")
    return df


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
    except Exception as error:  # patsy's and statsmodels' own kinds
        raise InputError(f"{formula}: {first_line(error)}") from error


def _check_rank(design: np.ndarray, names: tuple[str, ...]) -> None:
    scale = np.where(design.any(axis=0), np.abs(design).max(axis=0), 1)
    if np.linalg.matrix_rank(design / scale) < len(names):
        raise InputError(f"predictors {', '.join(names)} determine one another: drop one")


@dataclass(frozen=True)
class Curvature:
    """A natural cubic spline against a straight line.

    Attributes
    ----------
    statistic, df_numerator, df_denominator, p_value : float
        Wald's F test that every non-linear term is zero.
    grid, fitted, ci_low, ci_high : (points,) float64
        The curve over the middle 98 % of the variable, all else at its mean, with a pointwise interval.
    """

    statistic: float
    df_numerator: int
    df_denominator: float
    p_value: float
    grid: NDArray[np.float64]
    fitted: NDArray[np.float64]
    ci_low: NDArray[np.float64]
    ci_high: NDArray[np.float64]


def curvature(
    formula: str, data: "pd.DataFrame", variable: str, clusters: str | None = None, n_knots: int = 4
) -> Curvature:
    """Does a natural cubic spline in one variable of a formula fit better than its line?

    Parameters
    ----------
    formula, data, clusters
        As `ols`: the formula holds the line, ``"score ~ log_frequency + length"``.
    variable
        The numeric term that may bend, ``"log_frequency"``. Knots stand at equally spaced quantiles between 5 % and
        95 %, as in Harrell's basis, in which the terms beside the line are the bend.

    Raises
    ------
    InputError
        As `ols`; too few knots or different values for a spline.

    References
    ----------
    Harrell (2015), Regression Modeling Strategies, section 2.4.5.
    """
    import statsmodels.formula.api as smf
    from scipy.special import fdtrc, stdtrit

    if n_knots < 3:
        raise InputError(f"a natural spline bends with three knots or more, got {n_knots}")
    x = as_vector(data[variable], variable)
    knots = np.unique(np.quantile(x, np.linspace(0.05, 0.95, n_knots)))
    if len(knots) < 3:
        raise InputError(f"{variable} takes too few different values for a spline: use a line")
    bends = {f"bend_{i}": column for i, column in enumerate(_bends(x, knots).T, start=1)}
    bent, columns = " + ".join([formula, *bends]), data.assign(**bends)
    fit = ols(bent, columns, clusters)
    where = [fit.names.index(name) for name in bends]
    block = fit.covariance[np.ix_(where, where)]
    statistic = float(fit.coefficients[where] @ np.linalg.solve(block, fit.coefficients[where]) / len(where))
    grid = np.linspace(np.quantile(x, 0.01), np.quantile(x, 0.99), 101)
    shape = np.tile(np.asarray(smf.ols(bent, columns).exog).mean(axis=0), (len(grid), 1))
    shape[:, [fit.names.index(variable), *where]] = np.column_stack([grid, _bends(grid, knots)])
    fitted = shape @ fit.coefficients
    df = float(fit.df[0])
    reach = stdtrit(df, 0.975) * np.sqrt(np.einsum("ij,jk,ik->i", shape, fit.covariance, shape))
    p_value = float(fdtrc(len(where), df, statistic))
    return Curvature(statistic, len(where), df, p_value, grid, fitted, fitted - reach, fitted + reach)


def _bends(x: np.ndarray, knots: np.ndarray) -> NDArray[np.float64]:
    """Harrell's restricted cubic terms (n, knots − 2): cubic between knots, straight beyond the outer ones."""

    def cube(knot: float) -> np.ndarray:
        return np.clip(x - knot, 0, None) ** 3

    last, before = knots[-1], knots[-2]
    gap = last - before
    terms = [cube(k) - cube(before) * (last - k) / gap + cube(last) * (before - k) / gap for k in knots[:-2]]
    return np.column_stack(terms) / (last - knots[0]) ** 2
