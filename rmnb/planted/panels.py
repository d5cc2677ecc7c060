"""Cases about verdicts over a panel, and about changes between two models by the groups of words left out."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from rmnb.findings.claims import CONTRADICTED, Claim, judge
from rmnb.planted.cases import Case, Outcome
from rmnb.report.replicates import GROUPS, jackknife

Simulation = Callable[[np.random.Generator], Outcome]
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
    return Outcome(0.0, values["value"].mean(), p_value=0.0 if contradicted else 1.0)


def one_model_holm(n_sets: float, as_normal: bool = False) -> Simulation:
    """Is it contradicted that all are above zero, or that all are below? By the verdicts' rule, with Holm's method.

    As normal: with the p-value that a normal error with this interval would have.
    """
    claims = [Claim("zero", "", "", "", "all", "", side=side) for side in ("above", "below")]

    def simulate(rng: np.random.Generator) -> Outcome:
        values = _at_zero(rng, n_sets)
        if as_normal:
            values["df"] = np.inf
        return _contradicted(values, any(judge(claim, values, {}).verdict == CONTRADICTED for claim in claims))

    return simulate


def one_model_alone(rng: np.random.Generator) -> Outcome:
    """Any model contradicts by its own interval."""
    values = _at_zero(rng, np.inf)
    is_beyond = (values["high"] < 0) | (values["low"] > 0)
    return _contradicted(values, bool(is_beyond.any()))


def change(n_sets: int) -> Simulation:
    """A change whose truth is zero over matched sets: the jackknife over the groups of words that hold them."""
    group = np.arange(n_sets) % GROUPS

    def simulate(rng: np.random.Generator) -> Outcome:
        differences = rng.normal(size=n_sets)
        value = differences.mean()
        estimates = np.full(GROUPS, value)
        for place in set(group):
            estimates[place] = differences[group != place].mean()
        return Outcome(0.0, value, *jackknife(value, estimates))

    return simulate


_SD = "standard deviations"
_FORMERLY = "this book, formerly"

#: Matched sets of the smallest axis, of the largest, and of all axes.
CASES = (
    Case("One of ten models against a claim on all, Holm", "verdicts", "", one_model_holm(np.inf)),
    Case("One of ten models against a claim on all, 4 sets each, Holm", "verdicts", "", one_model_holm(4)),
    Case("One of ten models against a claim on all, 4 sets each, Holm, p of a normal error", "verdicts", "",
         one_model_holm(4, as_normal=True), origin=_FORMERLY),
    Case("One of ten models against a claim on all, alone", "verdicts", "", one_model_alone, origin=_FORMERLY),
    Case("Change of a gap, 6 sets", "changes", _SD, change(6)),
    Case("Change of a gap, 32 sets", "changes", _SD, change(32)),
    Case("Change of a gap, 109 sets", "changes", _SD, change(109)),
)  # fmt: skip
