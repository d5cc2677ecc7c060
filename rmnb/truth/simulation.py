"""One experiment on planted truth: draw a data set, apply an estimator, compare with what was planted; many times."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rmnb.errors import InputError
from rmnb.stats import Estimate

Measure = Literal["coverage", "rejection"]
BAND: dict[Measure, tuple[float, float]] = {"coverage": (0.92, 0.98), "rejection": (0.03, 0.07)}
LEVEL = 0.05


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


@dataclass(frozen=True)
class Result:
    """How a `Case` did: `value` is the coverage or rejection rate, with its 95 % Wilson interval.

    `truth`, `mean_estimate` and `spread` (standard deviation of the estimates) are in the estimator's unit.
    """

    case: Case
    truth: float
    mean_estimate: float
    spread: float
    value: float
    ci_low: float
    ci_high: float
    n_simulations: int

    @property
    def within_band(self) -> bool:
        low, high = BAND[self.case.measure]
        return low <= self.value <= high


def run(case: Case, n_simulations: int, seed: int = 0) -> Result:
    """Simulate a case; simulation i of a case draws the same data whatever else is run."""
    if n_simulations < 1:
        raise InputError(f"n_simulations must be 1 or more, got {n_simulations}")
    key = zlib.crc32(case.name.encode())
    outcomes = [case.simulate(np.random.default_rng([seed, key, i])) for i in range(n_simulations)]
    if case.measure == "coverage":
        hits = sum(outcome.ci_low <= outcome.truth <= outcome.ci_high for outcome in outcomes)
    else:
        hits = sum(outcome.p_value <= LEVEL for outcome in outcomes)
    estimates = np.array([outcome.estimate for outcome in outcomes])
    low, high = wilson(hits, n_simulations)
    return Result(
        case,
        float(np.mean([outcome.truth for outcome in outcomes])),
        float(estimates.mean()),
        float(estimates.std(ddof=1)) if n_simulations > 1 else float("nan"),
        hits / n_simulations,
        low,
        high,
        n_simulations,
    )


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a proportion."""
    z = 1.959964
    centre = (hits + z**2 / 2) / (n + z**2)
    reach = z / (n + z**2) * np.sqrt(hits * (n - hits) / n + z**2 / 4)
    return float(centre - reach), float(centre + reach)
