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
        """A weighted sum of coefficients, such as ``{"good": 1, "bad": -1}``; what is not named has weight 0.

        Its degrees of freedom are the fewest of the coefficients that have a weight.
        """
        unknown = set(weights) - set(self.names)
        if unknown:
            raise InputError(f"no coefficient {', '.join(sorted(unknown))}: there are {', '.join(self.names)}")
        if not any(weights.values()):
            raise InputError("every weight is 0: give at least one coefficient another weight")
        w = np.array([weights.get(name, 0.0) for name in self.names])
        variance = max(w @ self.covariance @ w, 0.0)  # rounding can leave it a little below zero
        df = float(self.df[w != 0].min())
        return estimate_from_error(float(w @ self.coefficients), np.sqrt(variance), self.n, self.n_clusters, df=df)  # pyright: ignore[reportArgumentType]


def fit_clustered(response: ArrayLike, predictors: "pd.DataFrame", clusters: ArrayLike | None = None) -> Fit:
    """Least squares on named columns, with cluster-robust (CR1) or, without clusters, White's (HC1) errors.

    The numbers are those of `ols`, without the time that parsing a formula takes. Intervals are Student's t with one
    degree of freedom fewer than there are clusters (rows, where there are no clusters).

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

    _refuse_gaps(formula, data)
    model = _build(smf.ols, formula, data)
    predictors = pd.DataFrame(model.exog, columns=model.exog_names)
    labels = None if clusters is None else data[clusters].to_numpy()
    return fit_clustered(model.endog, predictors, labels)


def mixed(formula: str, data: "pd.DataFrame", groups: str) -> Fit:
    """Linear mixed model with a random intercept a group, by REML.

    ``mixed("median ~ base * category * framing", ranks, groups="model")`` is the papers'
    ``lme(median ~ base * category * framing, random = ~1 | model)``. Its random intercept cancels out of every contrast
    within a model, so it takes prompts for independent evidence on how bases differ: compare with
    `rmnb.stats.two_group_test` of one contrast a model, which does not. Intervals use Student's t with nlme's degrees
    of freedom; statsmodels' normal ones are too short for ten models.

    Parameters
    ----------
    formula
        Its left side is a column of `data`, not a transformation of one.
    data
        The columns that the formula names, no gaps.
    groups
        A column of `data`: rows with one label share an intercept.

    Raises
    ------
    InputError
        As `ols`; fewer than two groups; a left side that is no column.

    References
    ----------
    Laird, Ware (1982), Random-effects models for longitudinal data. ICLR26 section on off-the-shelf models.
    Pinheiro, Bates (2000), section 2.4.2 (degrees of freedom). statsmodels MixedLM.
    """
    import statsmodels.formula.api as smf

    codes, n_groups = cluster_codes(data[groups].to_numpy(), len(data))
    response = formula.split("~")[0].strip()
    if response not in data:
        raise InputError(f"{formula}: {response} is no column: compute it before the fit")
    _refuse_gaps(formula, data)
    # On the raw scale the optimiser stops early for rewards of 0.01 and for ranks of 1,000 alike.
    unit = float(np.std(data[response].to_numpy(float)))
    if unit == 0:
        unit = 1.0
    model = _build(smf.mixedlm, formula, data.assign(**{response: data[response] / unit}), groups=codes)
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
    """nlme's rule: columns that are constant within groups are observed once a group, the others once a row.

    The intercept uses up a degree of freedom of the groups and is tested with those of the rows.
    """
    first_row = np.unique(codes, return_index=True)[1]
    intercept = np.array(names) == "Intercept"
    between = (design == design[first_row][codes]).all(axis=0) & ~intercept
    within = ~between & ~intercept
    df_between = float(n_groups - intercept.sum() - between.sum())
    df_within = float(len(codes) - n_groups - within.sum())
    df = np.where(between, df_between, df_within)
    if df.min() < 1:
        raise InputError(f"too few observations: {len(codes)} in {n_groups} groups for {len(names)} coefficients")
    return df


def _refuse_gaps(formula: str, data: "pd.DataFrame") -> None:
    """InputError, naming the row, if a column that the formula names has a gap or an infinite value."""
    for name in set(re.findall(r"[A-Za-z_]\w*", formula)) & set(data.columns):
        column = data[name]
        is_bad = column.isna()
        if column.dtype.kind == "f":
            is_bad |= ~np.isfinite(column)
        bad = np.flatnonzero(is_bad)
        if len(bad):
            value = f"{name} in row {data.index[bad[0]]!r} is {column.iloc[bad[0]]}"
            raise InputError(f"{value} ({len(bad)} such values): drop or repair them first")


def _build(make: Callable[..., Any], formula: str, data: "pd.DataFrame", **options) -> Any:
    """The statsmodels model; a name that is no column or a level too few is an InputError in one line."""
    try:
        return make(formula, data, missing="raise", **options)
    except Exception as error:  # patsy's and statsmodels' own kinds
        raise InputError(f"{formula}: {first_line(error)}") from error


def _check_rank(design: np.ndarray, names: tuple[str, ...]) -> None:
    """InputError if a column is a combination of the others, whatever the columns' units."""
    scale = np.where(design.any(axis=0), np.abs(design).max(axis=0), 1)
    if np.linalg.matrix_rank(design / scale) < len(names):
        raise InputError(f"predictors {', '.join(names)} determine one another: drop one")
