"""Cases about verdicts over a panel, and about changes between two models by the groups of words left out."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from rmnb.findings.claims import CONTRADICTED, Claim, judge
from rmnb.planted.cases import Case, Outcome
from rmnb.report.replicates import GROUPS, jackknife

N_MODELS = 10
UNIT_SHIFT = 0.05  # by how much a group of words without a matched set shifts the unit of a gap, in standard errors


def _at_zero(rng: np.random.Generator) -> pd.DataFrame:
    """Ten models whose true value is zero, each with its own 95 % interval."""
    values = rng.normal(size=N_MODELS)
    models = [f"model {place}" for place in range(N_MODELS)]
    return pd.DataFrame({"model": models, "value": values, "low": values - 1.96, "high": values + 1.96})


def _contradicted(values: pd.DataFrame, contradicted: bool) -> Outcome:
    """The mean of the models, and whether a claim on all of them is held for contradicted."""
    return Outcome(0.0, values["value"].mean(), p_value=0.0 if contradicted else 1.0)


def one_model_holm(rng: np.random.Generator) -> Outcome:
    """Is it contradicted that all are above zero, or that all are below? By the verdicts' rule, with Holm's method."""
    values = _at_zero(rng)
    claims = [Claim("zero", "", "", "", "all", "", side=side) for side in ("above", "below")]
    return _contradicted(values, any(judge(claim, values, {}).verdict == CONTRADICTED for claim in claims))


def one_model_alone(rng: np.random.Generator) -> Outcome:
    """Any model contradicts by its own interval."""
    values = _at_zero(rng)
    is_beyond = (values["high"] < 0) | (values["low"] > 0)
    return _contradicted(values, bool(is_beyond.any()))


def _left_out(rng: np.random.Generator, n_sets: int) -> tuple[float, np.ndarray]:
    """A change whose truth is zero over matched sets, and the same with each group of words left out."""
    differences = rng.normal(size=n_sets)
    value = differences.mean()
    estimates = np.full(GROUPS, value)
    estimates[:n_sets] = [np.delete(differences, place).mean() for place in range(n_sets)]
    return value, estimates


def change(n_sets: int, guessed: bool = False) -> Callable[[np.random.Generator], Outcome]:
    """The jackknife over the groups of words that hold the matched sets.

    Guessed: over all groups that shift the value by a twentieth of the largest shift or more.
    """

    def simulate(rng: np.random.Generator) -> Outcome:
        value, estimates = _left_out(rng, n_sets)
        if guessed:
            estimates = estimates + UNIT_SHIFT * rng.normal(size=GROUPS) / n_sets
            shifts = np.abs(estimates - value)
            estimates = estimates[shifts > 0.05 * shifts.max()]
        return Outcome(0.0, value, *jackknife(value, estimates))

    return simulate


_SD = "standard deviations"
_FORMERLY = "this book, formerly"

CASES = (
    Case("One of ten models against a claim on all, Holm", "verdicts", "", one_model_holm),
    Case("One of ten models against a claim on all, alone", "verdicts", "", one_model_alone, origin=_FORMERLY),
    Case("Change of a gap, 12 sets", "changes", _SD, change(12)),
    Case("Change of a gap, 2 sets", "changes", _SD, change(2)),
    Case("Change of a gap, 2 sets, groups guessed", "changes", _SD, change(2, guessed=True), origin=_FORMERLY),
)
