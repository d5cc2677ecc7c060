"""What results rows say on one claim: a number with its interval over models, and the number of each model.

Each function here makes a `Reader`, which takes the rows of one source (``released`` or ``panel``) and the base of each
model, and returns `Evidence`, or None where the rows do not hold the number.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.stats.estimate import estimate_from_error

_POSITIVE = "positive"


@dataclass(frozen=True)
class Evidence:
    """A number, with its 95 % interval over units that could have come out otherwise: models, never their words.

    Attributes
    ----------
    value, ci_low, ci_high
        The interval is NaN where a single unit was observed, and where there is a test in its place.
    n, unit
        How many units, and of what.
    values
        The number of each unit, for the count of those that agree; empty where it is of no single one.
    p_value
        One-sided, by permuting units, of a number that has a test and no interval; else NaN.
    contrast
        What was taken from what, where the number is a difference of two bases.
    measure, scale
        What the number is, and the number with its unit, where they are others than those of the claim.
    """

    value: float
    ci_low: float
    ci_high: float
    n: int
    unit: str = "models"
    values: tuple[float, ...] = ()
    p_value: float = np.nan
    contrast: str = ""
    measure: str = ""
    scale: str = ""

    @property
    def of_one(self) -> str:
        """The unit, where there is a single one."""
        return f"one {self.unit.replace('pairs', 'pair') if ' of ' in self.unit else self.unit.removesuffix('s')}"

    def clipped(self, least: float, greatest: float) -> "Evidence":
        """With an interval that ends where the number can go no further: a t interval of few units knows no bounds."""
        low, high = min(least, self.value), max(greatest, self.value)
        return replace(self, ci_low=max(self.ci_low, low), ci_high=min(self.ci_high, high))


Reader = Callable[[pd.DataFrame, Mapping[str, str]], Evidence | None]


def over_units(values: Sequence[float], unit: str = "models") -> Evidence | None:
    """Mean with its t interval over units; of a single one its value without an interval."""
    numbers = tuple(map(float, values))
    if len(numbers) < 2:
        return Evidence(numbers[0], np.nan, np.nan, 1, unit, numbers) if numbers else None
    mean = stats.mean_over_models(numbers)
    return Evidence(mean.value, mean.ci_low, mean.ci_high, len(numbers), unit, numbers)


def of_models(finding: str, statistic: str, *prompts: str, other: str | None = None) -> Reader:
    """One number a model; under several prompts the mean of each model's."""

    def read(rows: pd.DataFrame, family: Mapping[str, str]) -> Evidence | None:
        of = _chosen(rows, finding, statistic, prompts, other)
        return over_units(of[of["model"] != ""].groupby("model", sort=False)["value"].mean().tolist())

    return read


def summed(finding: str, statistic: str, first: str, second: str) -> Reader:
    """One number a model: the sum of two rows that differ in `other`."""

    def read(rows: pd.DataFrame, family: Mapping[str, str]) -> Evidence | None:
        of = _chosen(rows, finding, statistic)
        wide = of[of["model"] != ""].pivot_table(index="model", columns="other", values="value", sort=False)
        return over_units((wide[first] + wide[second]).dropna().tolist()) if {first, second} <= {*wide} else None

    return read


def of_pairs(finding: str, statistic: str, prompt: str) -> Reader:
    """Mean over pairs of models. A model is in many pairs: the interval leaves out one model at a time (jackknife)."""

    def read(rows: pd.DataFrame, family: Mapping[str, str]) -> Evidence | None:
        of = _chosen(rows, finding, statistic, (prompt,))
        of = of[of["model"] != of["other"]]
        names = list(dict.fromkeys([*of["model"], *of["other"]]))
        n, within = len(names), [(of["model"] == name) | (of["other"] == name) for name in names]
        of_each = tuple(float(of.loc[pairs, "value"].mean()) for pairs in within)
        if n < 3:
            return Evidence(float(of["value"].mean()), np.nan, np.nan, 1, "pairs of models") if n else None
        without = np.array([of.loc[~pairs, "value"].mean() for pairs in within])
        error = float(np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2)))
        mean = estimate_from_error(of["value"].mean(), error, n, n, df=n - 1)
        return Evidence(mean.value, mean.ci_low, mean.ci_high, n, values=of_each)

    return read


def of_test(finding: str, statistic: str, p_value: str, other: str) -> Reader:
    """A number that a chapter tests by permuting models, with the one-sided p-value of its being this high."""

    def read(rows: pd.DataFrame, family: Mapping[str, str]) -> Evidence | None:
        row, p_row = (
            next(iter(_chosen(rows, finding, name, other=other).to_dict("records")), None)
            for name in (statistic, p_value)
        )
        if row is None or p_row is None:
            return None
        return Evidence(row["value"], np.nan, np.nan, int(row["n"]), p_value=p_row["value"])

    return read


def of_two_bases(finding: str, statistic: str, other: str = "", unit: str = "models") -> Reader:
    """A row that is already the first base's mean less the second's, with its interval over models or recipes."""

    def read(rows: pd.DataFrame, family: Mapping[str, str]) -> Evidence | None:
        of, bases = _chosen(rows, finding, statistic, (_POSITIVE,), other), list(dict.fromkeys(family.values()))
        if len(of) != 1 or len(bases) < 2:
            return None
        row = of.iloc[0]
        return oriented(Evidence(row["value"], row["ci_low"], row["ci_high"], int(row["n"]), unit), *bases[:2])

    return read


def of_data_sets(finding: str, statistic: str, among: Sequence[str] | None = None, but: int = 0) -> Reader:
    """Rows whose model is *one base less another* and whose `other` is what both learned from: one number a data set.

    Parameters
    ----------
    among
        Only these data sets, in this order; the first `but` of those that there are stay out.
    """

    def read(rows: pd.DataFrame, family: Mapping[str, str]) -> Evidence | None:
        of = _chosen(rows, finding, statistic)
        of = of[of["model"] == "".join(of["model"].iloc[:1])].set_index("other")["value"]
        of = of if among is None else of.reindex(list(among)).dropna()
        found = over_units(of.iloc[but:].tolist(), "data sets")
        pair = "".join(rows.loc[rows["statistic"] == statistic, "model"].iloc[:1])
        return oriented(found, *pair.split(" less ", 1)) if found else None

    return read


def called(measure: str, reader: Reader, scale: str) -> Reader:
    """What the reader says, under a name and with a unit of its own."""

    def read(rows: pd.DataFrame, family: Mapping[str, str]) -> Evidence | None:
        found = reader(rows, family)
        return replace(found, measure=measure, scale=scale) if found else None

    return read


def of_pairs_of_bases(finding: str, statistic: str) -> Reader:
    """Rows whose model is *one base less another*: one number a pair of bases, mean over ways of asking."""

    def read(rows: pd.DataFrame, family: Mapping[str, str]) -> Evidence | None:
        of = _chosen(rows, finding, statistic, (_POSITIVE,)).groupby("model", sort=False)["value"].mean()
        gaps = [oriented(Evidence(gap, gap, gap, 1), *str(pair).split(" less ", 1)) for pair, gap in of.items()]
        found = over_units([gap.value for gap in gaps], "pairs of bases")
        return replace(found, contrast=gaps[0].contrast) if found else None

    return read


def first_of(*readers: Reader) -> Reader:
    """What the first of the readers that finds its rows says."""

    def read(rows: pd.DataFrame, family: Mapping[str, str]) -> Evidence | None:
        return next((found for reader in readers if (found := reader(rows, family)) is not None), None)

    return read


def oriented(found: Evidence, first: str, second: str) -> Evidence:
    """First less second as Gemma less Llama; of other bases, the way round that makes the difference positive.

    The claim has a direction only between these two. Of others one can ask whether they differ at all.
    """
    bases = [
        next((base for base in ("gemma", "llama") if name.lower().startswith(base)), "") for name in (first, second)
    ]
    forward = bases[0] == "gemma" if sorted(bases) == ["gemma", "llama"] else found.value >= 0
    if forward:
        return replace(found, contrast=f"{first} less {second}")
    low, high, values = -found.ci_high, -found.ci_low, tuple(-value for value in found.values)
    contrast = f"{second} less {first}"
    return replace(found, value=-found.value, ci_low=low, ci_high=high, values=values, contrast=contrast)


def _chosen(
    rows: pd.DataFrame, finding: str, statistic: str, prompts: Sequence[str] = (), other: str | None = None
) -> pd.DataFrame:
    """Rows of one statistic; those of the papers' protocol only where there are no others."""
    of = rows[(rows["finding"] == finding) & (rows["statistic"] == statistic)]
    of = of[of["prompt"].isin(prompts)] if prompts else of
    of = of if other is None else of[of["other"] == other]
    exact = of[of["protocol"] != "published"]
    return exact if len(exact) else of
