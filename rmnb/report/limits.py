"""Limits on a model's numbers: what must not hold, written as ``|change identity_gap[religion]| > 0.3``.

A limit names a statistic of `rmnb.findings.results.statistics` and, in brackets, the `other` or the `prompt` of its
rows, or both with a comma between; without brackets it is about all of its rows. Bare it is about the second model's
number, after ``change`` about the second's less the first's. It is broken where what it says holds.
"""

import difflib
import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

from rmnb.errors import InputError, few
from rmnb.findings.results import statistics
from rmnb.yaml_files import read_yaml

_SIGNS = {">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le}
_FORM = re.compile(
    r"(?P<bar>\|?)\s*(?P<change>change\s+)?(?P<statistic>\w+)\s*(?:\[(?P<of>[^\]]*)\])?\s*(?P<end>\|?)"
    r"\s*(?P<sign>[<>]=?)\s*(?P<number>\S+)"
)
_EXAMPLE = 'write it like "identity_gap > 0.3" or "|change slope_positive[greatest]| > 0.1"'


@dataclass(frozen=True)
class Limit:
    """A limit as `parse` reads it.

    Attributes
    ----------
    text : str
        As the user wrote it.
    statistic, of : str
        `of` is what stood in brackets, or empty.
    change, absolute : bool
    sign : {"<", ">", "<=", ">="}
    number : float
    """

    text: str
    statistic: str
    of: str
    change: bool
    absolute: bool
    sign: Literal["<", ">", "<=", ">="]
    number: float


@dataclass(frozen=True)
class Outcome:
    """One number held against one limit.

    Attributes
    ----------
    limit, statistic, other, prompt : str
    broken : bool
    value, ci_low, ci_high : float
        The number, or its change, as it is: not its absolute value.
    warning : str
        Says that the limit's number is below the noise floor, or empty.
    """

    limit: str
    statistic: str
    other: str
    prompt: str
    broken: bool
    value: float
    ci_low: float
    ci_high: float
    warning: str = ""


def parse(text: str) -> Limit:
    """Read a limit.

    Raises
    ------
    InputError
        It has another form, names no statistic, or no number.
    """
    found = _FORM.fullmatch(text.strip())
    if not found or bool(found["bar"]) != bool(found["end"]):
        raise InputError(f"limit {text!r} cannot be read: {_EXAMPLE}")
    if found["statistic"] not in statistics():
        near = difflib.get_close_matches(found["statistic"], list(statistics()), cutoff=0.5)
        meant = f"did you mean {' or '.join(near)}?" if near else "rows of report.json have the names"
        raise InputError(f"limit {text!r}: there is no statistic {found['statistic']!r}: {meant}")
    try:
        number = float(found["number"])
    except ValueError:
        number = float("nan")
    if number - number != 0:  # NaN and infinity
        raise InputError(f"limit {text!r}: {found['number']!r} is not a number")
    of = (found["of"] or "").strip()
    sign: Literal["<", ">", "<=", ">="] = found["sign"]  # pyright: ignore[reportAssignmentType]
    return Limit(text.strip(), found["statistic"], of, bool(found["change"]), bool(found["bar"]), sign, number)


def read_limits(path: Path) -> list[Limit]:
    """The limits of a YAML file: a list of them as text under ``limits``.

    Raises
    ------
    InputError
        It has another form, or one of them cannot be read.
    """
    found = read_yaml(path)
    texts = found.get("limits") if isinstance(found, dict) else None
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise InputError(f'{path}: write a list of limits under "limits:", such as - "identity_gap > 0.3"')
    return [parse(text) for text in texts]


def check(limits: Iterable[Limit], table: pd.DataFrame) -> list[Outcome]:
    """Hold the numbers of two models against limits.

    Parameters
    ----------
    limits
        As `parse` reads them.
    table
        Of `rmnb.report.comparison.compare`, with the columns floor_b and floor_change, NaN where no floor is known.

    Returns
    -------
    list of Outcome
        One for each limit and each row that it is about.

    Raises
    ------
    InputError
        A limit is about no row.
    """
    return [outcome for limit in limits for outcome in _outcomes(limit, table)]


def rows_of(limit: Limit, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table of numbers that a limit is about; InputError if there is none."""
    rows = table[table["statistic"] == limit.statistic]
    if rows.empty:
        have = table["statistic"].unique()
        near = difflib.get_close_matches(limit.statistic, have, cutoff=0.5)
        meant = f"; there is {' and '.join(near)}" if near else ""
        raise InputError(f"limit {limit.text!r}: these models have no {limit.statistic}{meant}")
    if limit.of:
        both = rows["other"] + ", " + rows["prompt"]
        chosen = rows[(rows["other"] == limit.of) | (rows["prompt"] == limit.of) | (both == limit.of)]
        if chosen.empty:
            known = dict.fromkeys(name for name in [*rows["other"], *rows["prompt"]] if name)
            raise InputError(f"limit {limit.text!r}: no {limit.statistic} of {limit.of!r}: there is {few(known)}")
        rows = chosen
    return rows


def _outcomes(limit: Limit, table: pd.DataFrame) -> list[Outcome]:
    value, low, high = ("change", "ci_low", "ci_high") if limit.change else ("value_b", "ci_low_b", "ci_high_b")
    floor = "floor_change" if limit.change else "floor_b"
    outcomes = []
    for row in rows_of(limit, table).to_dict("records"):
        held = abs(row[value]) if limit.absolute else row[value]
        noisy = abs(limit.number) < row[floor]
        warning = f"{limit.number:g} is below the noise floor of this number, {row[floor]:.2g}" if noisy else ""
        broken = bool(_SIGNS[limit.sign](held, limit.number))
        about = (limit.text, limit.statistic, row["other"], row["prompt"], broken)
        outcomes.append(Outcome(*about, row[value], row[low], row[high], warning))
    return outcomes
