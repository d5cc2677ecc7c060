"""Numbers of the results table inside sentences: written by rows, so that no sentence holds a number of its own.

A quoted number is its text and, marked off by control characters, the row it is from. `plain` leaves the text alone;
`rmnb.book.in_short` makes of it an element that a test of the built page holds against the table.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from rmnb.errors import InputError
from rmnb.findings.results import KEY, Results

_MARKED = re.compile("\x02([^\x1f\x03]*)\x1f([^\x03]*)\x03")
FIELDS = ("value", "ci_low", "ci_high", "n")


def find(rows: pd.DataFrame, statistic: str, **where: str) -> dict[str, Any] | None:
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
    fits = rows["statistic"] == statistic
    for column, value in where.items():
        fits &= rows[column] == value
    if fits.sum() > 1:
        raise InputError(f"{fits.sum()} rows of {statistic} fit {where}: say which")
    return {str(column): value for column, value in rows[fits].iloc[0].items()} if fits.any() else None


def quote(row: Mapping[str, Any], form: str = "{:.2f}", field: str = "value") -> str:
    """A number of a row as it stands in a sentence, a true minus before negative ones.

    Parameters
    ----------
    row
        Of a results table, as `find` gives it.
    form
        A format of one number: ``"{:+.2f}"`` with a sign, ``"{:.0%}"`` for a share, ``"{:.0f}"`` for a count.
    field : {"value", "ci_low", "ci_high", "n"}
    """
    text = form.format(float(row[field])).replace("-", "−")
    return f"\x02{text}\x1f" + "\x1e".join([*(str(row[key]) for key in KEY), field, form]) + "\x03"


def with_interval(row: Mapping[str, Any], form: str = "{:.2f}") -> str:
    """Value and 95 % interval: ``0.13 (0.10 to 0.16)``, the value alone where a row has none."""
    if row["ci_low"] != row["ci_low"]:
        return quote(row, form)
    return f"{quote(row, form)} ({quote(row, form, 'ci_low')} to {quote(row, form, 'ci_high')})"


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


def side(row: Mapping[str, Any]) -> int:
    """1 or -1 where the interval lies wholly above or below zero, 0 where it does not (or there is none)."""
    return int(row["ci_low"] > 0) - int(row["ci_high"] < 0)


def sign_counts(rows: pd.DataFrame, statistic: str, what: str = "") -> pd.DataFrame:
    """In how many models a number is above zero, clearly so, and clearly below: three rows of one finding.

    Parameters
    ----------
    rows
        Rows of a results table that differ in their model alone; those of other statistics or without a model are
        left out.
    statistic
        Which number.
    what
        What tells this count from others of the same statistic, for `other`.

    Returns
    -------
    DataFrame
        Results rows models_above, models_clearly_above and models_clearly_below, `other` the statistic and `what`, `n`
        the models; none where there are no models.
    """
    of = rows[(rows["statistic"] == statistic) & (rows["model"] != "")]
    if of.empty:
        return of
    if of["model"].duplicated().any():
        raise InputError(f"two rows of {statistic} for one model: choose prompt, source and protocol first")
    about = {column: of[column].iloc[0] for column in ("panel", "source", "prompt", "protocol")}
    results = Results(of["finding"].iloc[0], about.pop("panel"))
    counts = {
        "models_above": (of["value"] > 0).sum(),
        "models_clearly_above": (of["ci_low"] > 0).sum(),
        "models_clearly_below": (of["ci_high"] < 0).sum(),
    }
    source = about.pop("source")
    for name, value in counts.items():
        results.add(source, name, int(value), other=f"{statistic} {what}".strip(), n=len(of), **about)
    return results.frame()


def specification_counts(
    survived: Mapping[str, int], finding: str, panel: str, what: str = "", source: str = "panel"
) -> pd.DataFrame:
    """Of `rmnb.findings.specifications.survival`, rows specifications_same_sign and specifications_clear.

    `other` names the question where a chapter has several; `n` is the number of specifications.
    """
    results = Results(finding, panel)
    for name in ("same_sign", "clear"):
        results.add(source, f"specifications_{name}", survived[name], other=what, n=survived["specifications"])
    return results.frame()
