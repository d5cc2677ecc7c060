"""The results table: every number of every chapter, one a row, whatever its origin.

`source` says where a number is from: ``published`` (printed or drawn in a paper), ``released`` (recomputed from the
authors' data), ``panel`` (recomputed from scores of a panel), ``planted`` (a known truth, or its estimate).
"""

import functools
import math
import re
from importlib import resources
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pandas as pd

from rmnb.errors import InputError
from rmnb.files import atomic_path

SOURCES = ("published", "released", "panel", "planted")
PROTOCOLS = ("", "exact", "published")
KEY = ("finding", "source", "panel", "model", "other", "prompt", "protocol", "statistic")
COLUMNS = (*KEY, "value", "ci_low", "ci_high", "n")
_TYPES = {name: "str" for name in KEY} | {"value": "float64", "ci_low": "float64", "ci_high": "float64", "n": "Int64"}


@runtime_checkable
class WithInterval(Protocol):
    """Anything with a value, the ends of its interval and the observations behind it."""

    @property
    def value(self) -> Any: ...
    @property
    def ci_low(self) -> Any: ...
    @property
    def ci_high(self) -> Any: ...
    @property
    def n(self) -> Any: ...


@functools.cache
def statistics() -> dict[str, str]:
    """Every statistic's one name with its definition, in the order in which the book lists them."""
    table = _list("statistics.tsv", sep="\t")
    return dict(zip(table["statistic"], table["definition"], strict=True))


class Results:
    """Collects the rows of a finding, checked one by one; a chapter's are written as ``<finding>.csv``.

    Parameters
    ----------
    finding : str
        Short name of the chapter, lower case with underscores: the file's name.
    panel : str
        Name of the panel the numbers are about, unless `add` says otherwise.
    """

    def __init__(self, finding: str, panel: str = ""):
        if not re.fullmatch(r"[a-z][a-z0-9_]*", finding):
            raise InputError(f"finding {finding!r} names a file: use lower-case letters, digits and underscores")
        self.finding, self.panel = finding, panel
        self._rows: dict[tuple, dict] = {}

    def add(
        self,
        source: str,
        statistic: str,
        value: "float | WithInterval",
        *,
        model: str = "",
        other: str = "",
        prompt: str = "",
        protocol: str = "",
        panel: str | None = None,
        ci_low: float = math.nan,
        ci_high: float = math.nan,
        n: int | None = None,
    ) -> None:
        """Add one number. What has an interval (`Estimate`, `Bootstrap`, a row of a table) brings it and n with it.

        Raises
        ------
        InputError
            An unknown source, statistic or protocol, a value that is not finite, an interval that does not hold its
            order, or a row that is there already.
        """
        if isinstance(value, WithInterval):
            value, ci_low, ci_high, n = float(value.value), float(value.ci_low), float(value.ci_high), int(value.n)
        row = {
            "finding": self.finding,
            "source": _one_of(source, SOURCES, "source"),
            "panel": self.panel if panel is None else panel,
            "model": model,
            "other": other,
            "prompt": prompt,
            "protocol": _one_of(protocol, PROTOCOLS, "protocol"),
            "statistic": statistic,
        }
        if statistic not in statistics():
            raise InputError(
                f"unknown statistic {statistic!r}: give it a definition in rmnb/data/lists/statistics.tsv first"
            )
        what = f"{statistic} of {model or row['panel'] or self.finding} ({source})"
        if not math.isfinite(value):
            raise InputError(f"{what} is {value}: leave the row out and say why in the text")
        if ci_low > ci_high:
            raise InputError(f"{what} has an interval from {ci_low} down to {ci_high}")
        key = tuple(row.values())
        if key in self._rows:
            raise InputError(f"{what} is in the table already: what tells the two apart?")
        self._rows[key] = {**row, "value": float(value), "ci_low": ci_low, "ci_high": ci_high, "n": n}

    def extend(self, table: pd.DataFrame) -> None:
        """Add the rows of a table with the columns source, statistic and value, and any of the others of `add`."""
        fields = [column for column in COLUMNS[1:] if column in table]
        for values in zip(*(table[field] for field in fields), strict=True):
            row = dict(zip(fields, values, strict=True))
            n = row.pop("n", pd.NA)
            self.add(row.pop("source"), row.pop("statistic"), row.pop("value"), n=None if n is pd.NA else n, **row)

    def frame(self) -> pd.DataFrame:
        """The rows added so far, with all columns of the results table, in the order added."""
        return pd.DataFrame(list(self._rows.values()), columns=list(COLUMNS)).astype(_TYPES)

    def write(self, directory: Path | str) -> Path:
        """Write ``<finding>.csv`` into `directory` at once or not at all; returns its path."""
        path = Path(directory) / f"{self.finding}.csv"
        with atomic_path(path) as part:
            self.frame().to_csv(part, index=False)
        return path


def of_effects(finding: str, frame: pd.DataFrame, statistics_of: dict[str, str], **about: str) -> pd.DataFrame:
    """Rows of the results table of what `rmnb.findings.rows.each` gave: those whose quantity is named, by statistic.

    `about` is source, panel and protocol, the same of all.
    """
    results = Results(finding)
    named = frame.rename(columns={"question": "prompt", "low": "ci_low", "high": "ci_high"})
    named = named.assign(statistic=named["quantity"].map(statistics_of), **about)
    results.extend(named.dropna(subset="statistic"))
    return results.frame()


def read_results(directory: Path | str) -> pd.DataFrame:
    """All findings of a directory in one table.

    Raises
    ------
    InputError
        The directory has no results, or a file is no results table.
    """
    paths = [path for path in sorted(Path(directory).glob("*.csv")) if not path.read_text().startswith("quantity,")]
    if not paths:
        raise InputError(f"no results in {directory}: run the notebooks first (`make book`)")
    return pd.concat([read_table(path) for path in paths], ignore_index=True)


def read_table(path: Path | str) -> pd.DataFrame:
    """One file of `Results.write`; InputError if it is not there or is no results table."""
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        if tuple(table.columns) != COLUMNS:
            raise InputError(f"its columns are {', '.join(map(str, table.columns))}")
        for column in COLUMNS[len(KEY) :]:
            table[column] = pd.to_numeric(table[column].replace("", None))
        return table.astype(_TYPES)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path} is not a results table: {error}") from error


def side_by_side(
    table: pd.DataFrame, statistic: str | list[str] | None = None, protocol: str = "exact"
) -> pd.DataFrame:
    """Published, released, panel and planted values of the same numbers next to each other.

    Parameters
    ----------
    table : DataFrame
        A results table.
    statistic : str or list of str, optional
        Only these.
    protocol : {"exact", "published"}
        Of the panel's and planted numbers; rows without a protocol are kept.

    Returns
    -------
    DataFrame
        Index (statistic, prompt, model, other), columns published, released, panel, planted (float64, missing where
        there is none), rows in the order of `table`.
    """
    rows = table
    if statistic is not None:
        rows = rows.loc[rows["statistic"].isin([statistic] if isinstance(statistic, str) else statistic)]
    computed_here = rows["source"].isin(["panel", "planted"])
    rows = rows.loc[~computed_here | rows["protocol"].isin(["", _one_of(protocol, PROTOCOLS, "protocol")])]
    key = ["statistic", "prompt", "model", "other"]
    twice = rows.duplicated([*key, "source"])
    if twice.any():
        row = rows.loc[twice].iloc[0]
        what = f"{row['source']} values of {row['statistic']} for {row['model'] or 'the panel'}"
        raise InputError(f"two {what}: choose one panel or one finding")
    wide = rows.set_index([*key, "source"])["value"].unstack("source")
    order = pd.MultiIndex.from_frame(rows[key].drop_duplicates())
    return wide.reindex(index=order, columns=list(SOURCES))


def published() -> pd.DataFrame:
    """The numbers that the two papers print or draw.

    Returns
    -------
    DataFrame
        The columns of the results table, and mark (``data``: in the authors' published data; ``fig``: read off a
        figure; ``text``: printed in the text), tolerance (float64, how far the true value may lie from the one read),
        where (table, figure or section) and decimals (int64, as printed).
    """
    table = _list("published.csv", sep=",", numbers=("tolerance",))
    return table.assign(
        decimals=table["value"].str.partition(".")[2].str.len(),
        value=table["value"].astype("float64"),
        source="published",
        ci_low=math.nan,
        ci_high=math.nan,
        n=pd.array([None] * len(table), dtype="Int64"),
    )


def _list(name: str, sep: str, numbers: tuple[str, ...] = ()) -> pd.DataFrame:
    with resources.files("rmnb.data").joinpath("lists", name).open(encoding="utf-8") as file:
        table = pd.read_csv(file, sep=sep, dtype=str, keep_default_na=False)
    return table.astype({column: "float64" for column in numbers})


def _one_of(value: str, allowed: tuple[str, ...], what: str) -> str:
    if value not in allowed:
        raise InputError(f"unknown {what} {value!r}: choose one of {', '.join(repr(name) for name in allowed)}")
    return value
