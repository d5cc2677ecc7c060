"""Numbers of the results table inside sentences: written by rows, so that no sentence holds a number of its own.

A quoted number is its text and, marked off by control characters, the row it is from. `plain` leaves the text alone;
`rmnb.book.in_short` makes of it an element that a test of the built page holds against the table.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from rmnb.errors import InputError
from rmnb.findings.results import KEY

_MARKED = re.compile("\x02([^\x1f\x03]*)\x1f([^\x03]*)\x03")
Row = Mapping[str, Any]
FIELDS = ("value", "ci_low", "ci_high", "n")


def find(rows: pd.DataFrame, statistic: str, **where: str) -> Row | None:
    """The one row of that statistic, as a mapping, or None.

    Parameters
    ----------
    rows
        A results table.
    **where
        What columns of its key must hold, such as ``source="panel"``.

    Raises
    ------
    InputError
        More than one row fits.
    """
    found = find_all(rows, statistic, **where)
    if len(found) > 1:
        raise InputError(f"{len(found)} rows of {statistic} fit {where}: say which")
    return found[0] if found else None


def find_all(rows: pd.DataFrame, statistic: str, **where: str) -> list[Row]:
    """All rows of that statistic for which the columns hold what is asked for, in their order."""
    fits = rows["statistic"] == statistic
    for column, value in where.items():
        fits &= rows[column] == value
    return records(rows[fits])


def records(rows: pd.DataFrame) -> list[Row]:
    """Rows of a table as mappings."""
    return [{str(column): value for column, value in row.items()} for row in rows.to_dict("records")]


def quote(row: Row, form: str = "{:.2f}", field: str = "value") -> str:
    """A number of a row as it stands in a sentence, a true minus before negative ones.

    Parameters
    ----------
    row
        Of a results table, as `find` gives it.
    form
        A format of one number: ``"{:+.2f}"`` with a sign, ``"{:.0%}"`` for a share, ``"{:.0f}"`` for a count.
    field : {"value", "ci_low", "ci_high", "n"}
    """
    text = written(float(row[field]), form)
    return f"\x02{text}\x1f" + "\x1e".join([*(str(row[key]) for key in KEY), field, form]) + "\x03"


def written(value: float, form: str) -> str:
    """A number by a format, with a true minus, and none (nor a plus) before what rounds to zero."""
    text = form.format(value)
    return (text if re.search("[1-9]", text) else text.lstrip("+-")).replace("-", "−")


def interval(row: Row, form: str = "{:.2f}") -> str:
    """The ends of a row's 95 % interval: ``0.10 to 0.16``."""
    return f"{quote(row, form, 'ci_low')} to {quote(row, form, 'ci_high')}"


def with_interval(row: Row, form: str = "{:.2f}") -> str:
    """Value and 95 % interval: ``0.13 (0.10 to 0.16)``, the value alone where a row has none."""
    return quote(row, form) if row["ci_low"] != row["ci_low"] else f"{quote(row, form)} ({interval(row, form)})"


def count(row: Row) -> str:
    """A value that is a count: ``3``."""
    return quote(row, "{:.0f}")


def count_of(row: Row) -> str:
    """A count and what it is out of, the row's n: ``3 of 10``."""
    return f"{count(row)} of {quote(row, '{:.0f}', 'n')}"


def span(ordered: Sequence[Row], form: str = "{:.2f}") -> str:
    """The first and the last value of rows in order, ``0.10 to 0.16``, or the only one."""
    ends = [quote(row, form) for row in (ordered[0], ordered[-1])]
    return ends[0] if len(ordered) == 1 else " to ".join(ends)


def listed(parts: Sequence[str], last: str = "and") -> str:
    """Parts with commas, and a word before the last: ``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def plain(sentence: str) -> str:
    """The sentence as text."""
    return _MARKED.sub(r"\1", sentence)


def replace(sentence: str, number: Callable[[str, str], str], text: Callable[[str], str]) -> str:
    """The sentence with each number's text and key passed through `number`, all between them through `text`."""
    parts = _MARKED.split(sentence)
    return "".join(
        text(parts[at]) + (number(parts[at + 1], parts[at + 2]) if at + 1 < len(parts) else "")
        for at in range(0, len(parts), 3)
    )


def side(row: Row) -> int:
    """1 or -1 where the interval lies wholly above or below zero, 0 where it does not (or there is none)."""
    return int(row["ci_low"] > 0) - int(row["ci_high"] < 0)
