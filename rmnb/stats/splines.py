"""Does a line bend? A natural cubic spline against it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import as_vector
from rmnb.stats.formulas import ols

if TYPE_CHECKING:
    import pandas as pd


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
    formula: str,
    data: "pd.DataFrame",
    variable: str,
    clusters: str | None = None,
    n_knots: int = 4,
    confidence: float = 0.95,
) -> Curvature:
    """Does a natural cubic spline in one variable of a formula fit better than its line?

    Parameters
    ----------
    formula, data, clusters
        As `rmnb.stats.ols`: the formula holds the line, ``"score ~ log_frequency + length"``.
    variable
        The numeric term that may bend, ``"log_frequency"``. Knots stand at equally spaced quantiles between 5 % and
        95 %, as in Harrell's basis, in which the terms beside the line are the bend.

    Raises
    ------
    InputError
        As `rmnb.stats.ols`; too few knots or different values for a spline.

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
    fit = ols(bent, columns, clusters, confidence)
    where = [fit.names.index(name) for name in bends]
    block = fit.covariance[np.ix_(where, where)]
    statistic = fit.coefficients[where] @ np.linalg.solve(block, fit.coefficients[where]) / len(where)
    grid = np.linspace(np.quantile(x, 0.01), np.quantile(x, 0.99), 101)
    shape = np.tile(np.asarray(smf.ols(bent, columns).exog).mean(axis=0), (len(grid), 1))
    shape[:, [fit.names.index(variable), *where]] = np.column_stack([grid, _bends(grid, knots)])
    fitted = shape @ fit.coefficients
    df = float(fit.df[0])
    reach = stdtrit(df, 0.5 + confidence / 2) * np.sqrt(np.einsum("ij,jk,ik->i", shape, fit.covariance, shape))
    p_value = float(fdtrc(len(where), df, statistic))
    return Curvature(float(statistic), len(where), df, p_value, grid, fitted, fitted - reach, fitted + reach)


def _bends(x: np.ndarray, knots: np.ndarray) -> NDArray[np.float64]:
    """Harrell's restricted cubic terms (n, knots − 2): cubic between knots, straight beyond the outer ones."""

    def cube(knot: float) -> np.ndarray:
        return np.clip(x - knot, 0, None) ** 3

    last, before = knots[-1], knots[-2]
    gap = last - before
    terms = [cube(k) - cube(before) * (last - k) / gap + cube(last) * (before - k) / gap for k in knots[:-2]]
    return np.column_stack(terms) / (last - knots[0]) ** 2
