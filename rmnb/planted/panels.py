"""Cases about verdicts over a panel, and about changes between two models by the groups of words left out."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from rmnb.findings.claims import CONTRADICTED, Claim, judge
from rmnb.planted.cases import Case, Outcome
from rmnb.report.replicates import GROUPS, jackknife
from rmnb.stats.estimate import estimate_from_error

N_MODELS = 10
UNIT_SHIFT = 0.05  # by how much a group of words without a matched set shifts the unit of a gap, in standard errors


def _at_zero(rng: np.random.Generator) -> pd.DataFrame:
    """Ten models whose true value is zero, each with its own 95 % interval."""
    values = rng.normal(size=N_MODELS)
    models = [f"model {place}" for place in range(N_MODELS)]
    return pd.DataFrame({"model": models, "value": values, "low": values - 1.96, "high": values + 1.96})


def _one_against_all(values: pd.DataFrame, judged: Callable[[Claim, pd.DataFrame], bool]) -> Outcome:
    """A claim that all models are above zero, and one that all are below: is one of them contradicted?"""
    claims = [Claim("zero", "", "", "", "all", "", side=side) for side in ("above", "below")]
    contradicted = any(judged(claim, values) for claim in claims)
    return Outcome(0.0, values["value"].mean(), p_value=0.0 if contradicted else 1.0)


def one_model_holm(rng: np.random.Generator) -> Outcome:
    """By the rule of the verdicts: a model contradicts after Holm's correction."""
    return _one_against_all(_at_zero(rng), lambda claim, values: judge(claim, values, {}).verdict == CONTRADICTED)


def one_model_alone(rng: np.random.Generator) -> Outcome:
    """Any model contradicts by its own interval."""

    def beyond(claim: Claim, values: pd.DataFrame) -> bool:
        return bool((values["high"] < 0).any() if claim.side == "above" else (values["low"] > 0).any())

    return _one_against_all(_at_zero(rng), beyond)


def _left_out(rng: np.random.Generator, n_sets: int) -> tuple[float, np.ndarray]:
    """A change whose truth is zero over matched sets, and the same with each group of words left out."""
    differences = rng.normal(size=n_sets)
    value = differences.mean()
    estimates = np.full(GROUPS, value)
    estimates[:n_sets] = [np.delete(differences, place).mean() for place in range(n_sets)]
    return value, estimates


def change_of_sets(n_sets: int) -> Callable[[np.random.Generator], Outcome]:
    """The jackknife over the groups of words that hold the matched sets."""

    def simulate(rng: np.random.Generator) -> Outcome:
        value, estimates = _left_out(rng, n_sets)
        return Outcome(0.0, value, *jackknife(value, estimates))

    return simulate


def change_guessed(n_sets: int) -> Callable[[np.random.Generator], Outcome]:
    """The jackknife over all groups that shift the value by a twentieth of the largest shift or more."""

    def simulate(rng: np.random.Generator) -> Outcome:
        value, estimates = _left_out(rng, n_sets)
        estimates = estimates + UNIT_SHIFT * rng.normal(size=GROUPS) / n_sets
        shifts = np.abs(estimates - value)
        counted = estimates[shifts > 0.05 * shifts.max()]
        n_groups = len(counted)
        error = float(counted.std()) * (n_groups - 1) ** 0.5
        estimate = estimate_from_error(value, error, n_groups, n_groups, df=n_groups - 1)
        return Outcome(0.0, value, estimate.ci_low, estimate.ci_high)

    return simulate


_SD = "standard deviations"
_FORMERLY = "this book, formerly"

CASES = (
    Case("One of ten models against a claim on all, Holm", "verdicts", "", one_model_holm),
    Case("One of ten models against a claim on all, alone", "verdicts", "", one_model_alone, origin=_FORMERLY),
    Case("Change of a gap, 12 sets", "changes", _SD, change_of_sets(12)),
    Case("Change of a gap, 2 sets", "changes", _SD, change_of_sets(2)),
    Case("Change of a gap, 2 sets, groups guessed", "changes", _SD, change_guessed(2), origin=_FORMERLY),
)
