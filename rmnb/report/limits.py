"""Limits on a model's numbers, the gate of `rmnb compare`. A limit is broken by each number for which it is true::

    identity_gap > 0.3                      any identity gap of B
    identity_gap[religion].high < 0         the upper end of the interval of B's gaps of religion
    |change slope_good[greatest]| > 0.1     B minus A, whatever its sign
    |change agency_gap| > 2 seeds           more than twice what two seeds differ by, over all agency gaps

Names are those of `rmnb.report.numbers.glossary`. Brackets select by its column other, its column question, or both in
this order with a comma between: ``identity_gap[religion, positive]``.
"""

import math
import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb.errors import InputError, list_some
from rmnb.report import numbers
from rmnb.yaml_files import read_yaml

_SIGNS = {">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le}
_FORM = re.compile(
    r"(?P<bar>\|?)\s*(?P<change>change\s+)?(?P<name>\w+)\s*(?:\[(?P<selection>[^\]]*)\])?\s*(?:\.(?P<end>low|high))?"
    r"\s*(?P<close>\|?)\s*(?P<sign>[<>]=?)\s*(?P<number>[^\s]*?)\s*(?P<seeds>seeds)?"
)


@dataclass(frozen=True)
class Limit:
    """A limit as `parse` reads it.

    Attributes
    ----------
    text, name, selection : str
        As the user wrote it; the number; what stood in brackets.
    column : str
        Of a comparison, what the limit is on: b, b_low, b_high, change, low or high.
    absolute, seeds : bool
        Of the absolute value; in units of what two seeds differ by.
    sign : str
    bound : float
    """

    text: str
    name: str
    selection: str
    column: str
    absolute: bool
    seeds: bool
    sign: str
    bound: float


def parse(text: str) -> Limit:
    """Read a limit.

    Raises
    ------
    InputError
        It has another form, or there is no such number.
    """
    match = _FORM.fullmatch(text.strip())
    parts = match.groupdict("") if match else {}
    if not parts or bool(parts["bar"]) != bool(parts["close"]) or not (parts["number"] or parts["seeds"]):
        raise InputError(f'limit {text!r} cannot be read: write it like "|change identity_gap[religion]| > 0.1"', text)
    name = parts["name"]
    if name not in set(numbers.glossary()["name"]):
        raise InputError(f"limit {text!r}: there is no number {name!r}: `rmnb report --names` lists them", text)
    try:
        bound = float(parts["number"] or 1)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise InputError(f"limit {text!r}: {parts['number']!r} is not a number", text)
    if parts["seeds"] and not parts["change"]:
        raise InputError(f"limit {text!r}: what seeds differ by is a measure of changes: write change before it", text)
    end = parts["end"]
    if parts["change"]:
        column = end or "change"
    else:
        column = f"b_{end}" if end else "b"
    return Limit(
        text=text.strip(),
        name=name,
        selection=", ".join(part.strip() for part in parts["selection"].split(",")),
        column=column,
        absolute=bool(parts["bar"]),
        seeds=bool(parts["seeds"]),
        sign=parts["sign"],
        bound=bound,
    )


def read_limits(text: str | Path) -> list[Limit]:
    """One limit, or those of a YAML file by its path: a list of them as text under ``limits``.

    Raises
    ------
    InputError
        The file cannot be read or has another form, or one of its limits cannot be read.
    """
    path = Path(text)
    if path.suffix not in (".yml", ".yaml"):
        return [parse(str(text))]
    content = read_yaml(path)
    texts = content.get("limits") if isinstance(content, dict) else None
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise InputError(f'{path}: write a list of limits under "limits:", such as - "identity_gap > 0.3"', path)
    return [parse(text) for text in texts]


def check(limits: Iterable[Limit], table: pd.DataFrame) -> pd.DataFrame:
    """Test a comparison against limits.

    Parameters
    ----------
    limits
        As `parse` or `read_limits` reads them; none gives no rows.
    table
        Of `rmnb.report.comparison.compare`.

    Returns
    -------
    DataFrame
        One row for each limit and each number that it is about: limit, name, question, other (str), broken (bool),
        value (the number or the change, before its absolute value is taken), bound (float64; of a limit in seeds, times
        the root mean square over the numbers that it is about of what two seeds differ by).

    Raises
    ------
    InputError
        A limit is about no number, about one that a model lacks, about an end of an interval that is not there, or
        about seeds that were not given.
    """
    parts = []
    for limit in limits:
        rows = rows_of(limit, table)
        value = rows[limit.column]
        # Of one number alone two seeds may differ by next to nothing; so all that a limit is about are taken together.
        bound = limit.bound * float(np.sqrt((rows["seeds"] ** 2).mean())) if limit.seeds else limit.bound
        for side in ("a", "b") if limit.column in ("change", "low", "high") else ("b",):
            for missing in rows[rows[side].isna()].itertuples():
                raise InputError(f"limit {limit.text!r}: {side.upper()} has no {numbers.selector(missing)}", limit.text)
        if limit.seeds and rows["seeds"].isna().any():
            raise InputError(f"limit {limit.text!r}: seed variation not measured: give --seeds", limit.text)
        if value.isna().any():
            raise InputError(f"limit {limit.text!r}: there is no interval: too few words", limit.text)
        broken = _SIGNS[limit.sign](value.abs() if limit.absolute else value, bound)
        parts.append(rows[numbers.KEY].assign(limit=limit.text, broken=broken, value=value, bound=bound))
    columns = ["limit", *numbers.KEY, "broken", "value", "bound"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def rows_of(limit: Limit, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table of numbers that a limit is about; InputError if there is none."""
    rows = table[table["name"] == limit.name]
    if rows.empty:
        raise InputError(f"limit {limit.text!r}: these models have no {limit.name}", limit.text)
    if limit.selection:
        both = rows["other"] + ", " + rows["question"]
        chosen = rows[
            (rows["other"] == limit.selection) | (rows["question"] == limit.selection) | (both == limit.selection)
        ]
        if chosen.empty:
            present = dict.fromkeys(name for name in [*rows["other"], *rows["question"]] if name)
            raise InputError(
                f"limit {limit.text!r}: no {limit.name} of {limit.selection!r}: there is {list_some(present)}",
                limit.text,
            )
        rows = chosen
    return rows
