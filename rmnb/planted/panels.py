"""Cases about verdicts over a panel, and about changes between two models by the groups of words left out."""

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from rmnb.findings.claims import CONTRADICTED, Claim, judge
from rmnb.planted.words import Outcome
from rmnb.report.replicates import GROUPS, jackknife
from rmnb.stats import Estimate

N_MODELS = 10


def _at_zero(rng: np.random.Generator, n_sets: float) -> pd.DataFrame:
    """Ten models whose true value is zero, each with the t interval of so many matched sets."""
    df = n_sets - 1
    values = rng.normal(size=N_MODELS)
    reach = stdtrit(df, 0.975)
    if np.isfinite(df):
        reach = reach * np.sqrt(rng.chisquare(df, size=N_MODELS) / df)
    models = [f"model {place}" for place in range(N_MODELS)]
    return pd.DataFrame({"model": models, "value": values, "low": values - reach, "high": values + reach, "df": df})


def _contradicted(values: pd.DataFrame, contradicted: bool) -> Outcome:
    """The mean of the models, and whether a claim on all of them is held for contradicted."""
    return 0.0, Estimate(values["value"].mean(), N_MODELS, N_MODELS, p_value=0.0 if contradicted else 1.0)


def one_model_holm(rng: np.random.Generator, n_sets: float = np.inf, as_normal: bool = False) -> Outcome:
    """Is it contradicted that all are above zero, or that all are below? By the verdicts' rule, with Holm's method.

    As normal: with the p-value that a normal error with this interval would have.
    """
    values = _at_zero(rng, n_sets)
    if as_normal:
        values["df"] = np.inf
    claims = [Claim("zero", "", "", "", "all", "", side=side) for side in ("above", "below")]
    return _contradicted(values, any(judge(claim, values, {}).verdict == CONTRADICTED for claim in claims))


def one_model_alone(rng: np.random.Generator) -> Outcome:
    """Any model contradicts by its own interval."""
    values = _at_zero(rng, np.inf)
    is_beyond = (values["high"] < 0) | (values["low"] > 0)
    return _contradicted(values, bool(is_beyond.any()))


def change(rng: np.random.Generator, n_sets: int) -> Outcome:
    """A change whose truth is zero over matched sets: the jackknife over the groups of words that hold them."""
    group = np.arange(n_sets) % GROUPS
    differences = rng.normal(size=n_sets)
    value = differences.mean()
    estimates = np.full(GROUPS, value)
    for place in set(group):
        estimates[place] = differences[group != place].mean()
    return 0.0, Estimate(value, n_sets, n_sets, *jackknife(value, estimates))
