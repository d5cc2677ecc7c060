"""One experiment on planted truth: draw a data set, apply an estimator, compare with what was planted; many times."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from rmnb.errors import InputError
from rmnb.stats import Estimate

Measure = Literal["coverage", "rejection"]
BAND: dict[Measure, tuple[float, float]] = {"coverage": (0.92, 0.98), "rejection": (0.03, 0.07)}
LEVEL = 0.05

#: Of the estimates of each section, and of the cases that differ from their section.
_UNITS = {
    "moments": "reward",
    "ranks": "correlation",
    "slopes": "reward a point of valence",
    "frequency": "reward a unit of log frequency",
    "identity": "reward",
    "bases": "ranks",
    "models": "reward a point of valence",
    "matrices": "correlation",
    "Variance, by word": "reward squared",
    "Skewness, by word": "skewness",
    "Curvature of frequency, by word": "Wald's F",
    "Base by category by framing, exact over models": "ranks, summed over 27 prompts",
    "Difference of bases, one number a model": "reward",
    "Signs of ten models": "reward",
    "One cause that adds, regression": "standardised coefficient",
    "One cause on a map, regression": "standardised coefficient",
}


def unit(name: str, group: str) -> str:
    """What the estimates of a case are in: the unit of what was planted."""
    return _UNITS.get(name, _UNITS[group])


@dataclass(frozen=True)
class Outcome:
    """What was planted and what one data set gave; intervals or p-value are NaN where the estimator has none."""

    truth: float
    estimate: float
    ci_low: float = float("nan")
    ci_high: float = float("nan")
    p_value: float = float("nan")

    @classmethod
    def of(cls, truth: float, estimate: Estimate) -> "Outcome":
        return cls(truth, estimate.value, estimate.ci_low, estimate.ci_high, estimate.p_value)


@dataclass(frozen=True)
class Case:
    """An estimator with the planted data it is tried on.

    Attributes
    ----------
    name : str, what is estimated and how
    function : str, of `rmnb.stats` (or what was used instead)
    group : str, the section of the page it is shown in
    measure : "coverage" of the 95 % interval, or "rejection" at 5 % of a true null
    holds : bool, whether we stand by it; the failing ones are here to be seen failing
    origin : str, the paper that used it, if one did
    simulate : callable, generator → `Outcome`
    slow : bool, takes a tenth of a second or so: a study tries it on fewer data sets
    """

    name: str
    function: str
    group: str
    measure: Measure
    holds: bool
    origin: str
    simulate: Callable[[np.random.Generator], Outcome]
    slow: bool = False


def run(case: Case, n_simulations: int, seed: int = 0) -> dict[str, Any]:
    """Simulate a case; simulation i of a case draws the same data whatever else is run.

    Returns
    -------
    dict
        name, function, group, measure, holds, origin of the `Case`; truth, mean_estimate and spread (standard deviation
        of the estimates) in the estimator's unit; value, the coverage or rejection rate, with its 95 % Wilson interval
        ci_low, ci_high; n_simulations; band_low, band_high, within_band.
    """
    if n_simulations < 1:
        raise InputError(f"n_simulations must be 1 or more, got {n_simulations}")
    key = zlib.crc32(case.name.encode())
    drawn = pd.DataFrame([case.simulate(np.random.default_rng([seed, key, i])) for i in range(n_simulations)])
    covered = (drawn["ci_low"] <= drawn["truth"]) & (drawn["truth"] <= drawn["ci_high"])
    hits = int(sum(covered if case.measure == "coverage" else drawn["p_value"] <= LEVEL))
    ends = binomtest(hits, n_simulations).proportion_ci(0.95, method="wilson")
    low, high = BAND[case.measure]
    return {
        **{name: getattr(case, name) for name in ("name", "function", "group", "measure", "holds", "origin")},
        "truth": drawn["truth"].mean(),
        "mean_estimate": drawn["estimate"].mean(),
        "spread": drawn["estimate"].std(),
        "value": hits / n_simulations,
        "ci_low": ends.low,
        "ci_high": ends.high,
        "n_simulations": n_simulations,
        "band_low": low,
        "band_high": high,
        "within_band": low <= hits / n_simulations <= high,
    }
