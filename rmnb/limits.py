"""Limits on numbers, the gates of `rmnb score` and `rmnb compare`. A limit is broken by each number that meets it::

    accuracy < 0.9                          of all rows
    change accuracy[chat] < -0.01           B minus A, of the rows of one part
    lower change accuracy < -0.02           the lower end of the interval of that change
    identity_gap > 0.3                      any identity gap of B
    upper identity_gap[religion] < 0        the upper end of the interval of B's gaps of religion
    |change slope_good[greatest]| > 0.1     B minus A, whatever its sign
    |change agency_gap| > seeds             more than another seed would make, in either direction
    change human_spearman < -seeds          a fall that is more than another seed would make

Names are those of `rmnb.scoring.pairs.pair_numbers` or `rmnb.report.numbers.glossary`. Brackets select by a table's
column other, its column question, or both in this order with a comma between: ``identity_gap[religion, positive]``.
Without brackets a limit is on the number of all rows, if there is one, else on each number of that name.

A limit in seeds is a test: where B is another seed of what A was trained with, it is broken in at most 5 % of releases,
whatever the count of numbers that it names. Each change is divided by the noise of its own number, held against
Student's t with the degrees of freedom of that noise, and corrected for the count by Holm's method.

References: Holm (1979), A simple sequentially rejective multiple test procedure.
"""

import math
import operator
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from rmnb.errors import InputError, list_some
from rmnb.yaml_files import read_yaml

KEY = ["name", "question", "other"]  # the columns of a table of numbers that say which number a row is
_SIGNS = {">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le}
LEVEL = 0.05
_FORM = re.compile(
    r"(?P<bar>\|)?\s*(?:(?P<end>lower|upper)\s+)?(?P<change>change\s+)?(?P<name>[\w-]+)\s*(?:\[(?P<selection>[^\]]*)\])?"
    r"\s*(?(bar)\|)\s*(?P<sign>[<>]=?)\s*(?=\S)(?P<number>\S*?)\s*(?P<seeds>seeds)?"
)
_ENDS = {"lower": "low", "upper": "high", "": ""}


@dataclass(frozen=True)
class Limit:
    """A limit as `parse` reads it.

    Attributes
    ----------
    text, name, selection : str
        As the user wrote it; the number; what stood in brackets.
    column : str
        Of a comparison, what the limit is on: b, b_low, b_high, change, low or high.
    absolute : bool
        Of the absolute value.
    sign : str
    bound : float or None
        None: a test against what seeds differ by.
    """

    text: str
    name: str
    selection: str
    column: str
    absolute: bool
    sign: str
    bound: float | None


def parse(text: str, names: Collection[str]) -> Limit:
    """Read a limit on one of these numbers.

    Raises
    ------
    InputError
        It has another form, or there is no such number.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise InputError(f'limit {text!r} cannot be read: write it like "|change identity_gap[religion]| > 0.1"', text)
    parts = match.groupdict("")
    name, number, sign, end = parts["name"], parts["number"], parts["sign"], _ENDS[parts["end"]]
    if name not in names:
        raise InputError(f"limit {text!r}: there is no number {name!r} here, there is {list_some(names)}", text)
    is_rise = sign[0] == ">" and not number
    is_fall = sign[0] == "<" and number == "-" and not parts["bar"]
    bound = None
    if not parts["seeds"]:
        bound = float(pd.to_numeric(number, errors="coerce"))
        if not math.isfinite(bound):
            raise InputError(f"limit {text!r}: {number!r} is not a number", text)
    elif end or not parts["change"]:
        raise InputError(f"limit {text!r}: seeds are a measure of changes: write it like change NAME > seeds", text)
    elif not (is_rise or is_fall):
        raise InputError(
            f'limit {text!r}: how far is too far follows from the level: write "|change {name}| > seeds", '
            f'"change {name} > seeds" or "change {name} < -seeds"',
            text,
        )
    if parts["change"]:
        column = end or "change"
    else:
        column = f"b_{end}" if end else "b"
    selection = ", ".join(part.strip() for part in parts["selection"].split(","))
    return Limit(text.strip(), name, selection, column, bool(parts["bar"]), sign, bound)


def read_limits(texts: Iterable[str | Path], names: Collection[str]) -> list[Limit]:
    """Limits on numbers of these names, and those of YAML files by their paths: a list of texts under ``limits``.

    Raises
    ------
    InputError
        A file cannot be read or has another form, or a limit cannot be read.
    """
    limits = []
    for text in map(str, texts):
        listed: Any = [text]
        if text.endswith((".yml", ".yaml")):
            content = read_yaml(Path(text))
            listed = content.get("limits") if isinstance(content, dict) else None
        if not isinstance(listed, list) or not listed or not all(isinstance(limit, str) for limit in listed):
            raise InputError(f'{text}: write a list of limits under "limits:", such as - "accuracy < 0.9"', text)
        limits += [parse(limit, names) for limit in listed]
    return limits


def check(limits: Iterable[Limit], table: pd.DataFrame) -> pd.DataFrame:
    """Test a comparison against limits.

    Parameters
    ----------
    limits
        As `parse` or `read_limits` reads them; none gives no rows.
    table
        `KEY`, b, b_low, b_high; of a comparison also a, change, low, high; with seeds also noise and df.

    Returns
    -------
    DataFrame
        One row for each limit and each number that it is about, of each limit the number first that is farthest beyond
        its bound or nearest to it: limit, name, question, other (str), broken (bool), value (the number or the change,
        before its absolute value is taken), bound (float64).

    Raises
    ------
    InputError
        A limit is about no number, about one that a model lacks, about an end of an interval that is not there, or
        about seeds that were not given.
    """
    parts = []
    for limit in limits:
        rows = rows_of(limit, table)
        if limit.column not in rows:
            raise InputError(f"limit {limit.text!r}: nothing is compared here: changes are those of `rmnb compare`")
        for side in ("a", "b") if limit.column in ("change", "low", "high") else ("b",):
            for missing in rows[rows[side].isna()].itertuples():
                raise InputError(f"limit {limit.text!r}: {side.upper()} has no {selector(missing)}", limit.text)
        value = rows[limit.column]
        if value.isna().any():
            raise InputError(f"limit {limit.text!r}: there is no interval: too little data", limit.text)
        compared = value.abs() if limit.absolute else value
        direction = 1 if limit.sign.startswith(">") else -1
        bound: Any = limit.bound
        nearness = direction * compared
        if bound is None:
            if "noise" not in rows or rows["noise"].isna().any():
                raise InputError(f"limit {limit.text!r}: seed variation not measured: give --seeds", limit.text)
            nearness /= rows["noise"]
            strength = critical(nearness.to_numpy(), rows["df"].iloc[0], limit.absolute)
            bound = direction * rows["noise"] * strength
        broken = _SIGNS[limit.sign](compared, bound)
        outcome = rows[KEY].assign(limit=limit.text, broken=broken, value=value, bound=bound)
        parts.append(outcome.loc[nearness.sort_values(ascending=False, kind="stable").index])
    columns = ["limit", *KEY, "broken", "value", "bound"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def verdicts(outcomes: pd.DataFrame) -> list[str]:
    """What `check` found, as lines: each limit's verdict, the numbers that break it or the nearest one, the bound."""
    lines = []
    for limit, rows in outcomes.groupby("limit", sort=False):
        broken = rows[rows["broken"]]
        lines.append(f"{'kept' if broken.empty else 'broken':7} {limit}")
        nearest = f", the nearest of {len(rows)}" if broken.empty and len(rows) > 1 else ""
        for row in rows.head(max(1, len(broken))).itertuples():
            lines.append(f"        {selector(row)}: {row.value:.3g}, the limit is {row.bound:.3g}{nearest}")
    return lines


def selector(row: Any) -> str:
    """A row with the columns `KEY` as a limit names it: the number, and in brackets which of several it is."""
    selection = ", ".join(filter(None, (row.other, row.question)))
    return f"{row.name}[{selection}]" if selection else row.name


def critical(strengths: NDArray[np.float64], df: float, absolute: bool) -> float:
    """The strength beyond which changes break a limit in seeds: that of the last step of Holm's method.

    Parameters
    ----------
    strengths
        (n,) changes, in standard deviations of their noise.
    df
        Degrees of freedom of the noise, which numbers of one name share.
    absolute
        Whether a change in either direction breaks the limit.
    """
    tail = LEVEL / 2 if absolute else LEVEL
    steps = stdtrit(df, 1 - tail / np.arange(len(strengths), 0, -1))
    kept = np.flatnonzero(np.sort(strengths)[::-1] <= steps)
    return float(steps[kept[0]] if len(kept) else steps[-1])


def rows_of(limit: Limit, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table of numbers that a limit is about; InputError if there is none."""
    rows = table[table["name"] == limit.name]
    if rows.empty:
        raise InputError(f"limit {limit.text!r}: there is no {limit.name} of this", limit.text)
    other, question = rows["other"], rows["question"]
    if not limit.selection:
        overall = rows[(other == "") & (question == "")]
        return rows if overall.empty else overall
    is_chosen = [names == limit.selection for names in (other, question, other + ", " + question)]
    chosen = rows[np.any(is_chosen, axis=0)]
    if chosen.empty:
        present = dict.fromkeys(name for name in [*other, *question] if name)
        raise InputError(
            f"limit {limit.text!r}: no {limit.name} of {limit.selection!r}: there is {list_some(present)}",
            limit.text,
        )
    return chosen
