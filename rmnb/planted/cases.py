"""A case of the study: an estimator, the planted data that it is tried on, and what comes of one data set."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rmnb.stats import Estimate


@dataclass(frozen=True)
class Outcome:
    """The truth and the estimate from one data set; interval or p-value are NaN if the estimator has none."""

    truth: float
    estimate: float
    ci_low: float = float("nan")
    ci_high: float = float("nan")
    p_value: float = float("nan")

    @classmethod
    def of(cls, truth: float, estimate: Estimate) -> "Outcome":
        """The truth beside an estimate with its interval and p-value."""
        return cls(truth, estimate.value, estimate.ci_low, estimate.ci_high, estimate.p_value)


@dataclass(frozen=True)
class Case:
    """An estimator and the planted data that it is tried on.

    Attributes
    ----------
    name : str
        What is estimated, and how.
    group : str
        The section of the book's page on estimators.
    unit : str
        Of the estimate.
    simulate : callable
        Generator to `Outcome`.
    origin : str
        Who uses it, if the book does not, because its error rates are wrong; else empty.
    slow : bool
        Tried on two fifths of the data sets.
    """

    name: str
    group: str
    unit: str
    simulate: Callable[[np.random.Generator], Outcome]
    origin: str = ""
    slow: bool = False

    @property
    def holds(self) -> bool:
        """Whether the book relies on it; the other cases show how estimators fail."""
        return not self.origin
