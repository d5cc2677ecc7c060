"""What a comparison found, as one file: ``compare.json``, which the page is made from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rmnb.errors import InputError, first_line
from rmnb.files import atomic_path
from rmnb.findings.results import COLUMNS
from rmnb.report import comparison, floor, limits, sides

_FILE = "compare.json"
_FACTS = ("model", "source", "revision", "dtype", "head", "read_token", "attention", "tokens", "weights_sha256")
#: Columns of the tables that may be empty.
_COLUMNS = {
    "alike": list(COLUMNS),
    "moved": ["unit", "prompt", "text", "z_a", "z_b", "change"],
    "outcomes": [field.name for field in fields(limits.Outcome)],
}
_TABLES = ("alike", "numbers", "moved", "outcomes")
_SIDES = {"a": "_a", "b": "_b", "change": ""}


@dataclass(frozen=True)
class Record:
    """Two models held against each other.

    Attributes
    ----------
    a, b : dict
        name, provenance, and noise: the standard deviation of the scores' rounding errors, or None.
    paired : bool
        Whether the intervals of changes are paired by word.
    alike : DataFrame
        Of `rmnb.report.comparison.alike`; empty without scores.
    numbers : DataFrame
        Of `rmnb.report.comparison.compare`, with times (the change in half widths of its interval), floor_b and
        floor_change.
    moved : DataFrame
        Of `rmnb.report.comparison.moved`; empty without scores.
    outcomes : DataFrame
        The fields of `rmnb.report.limits.Outcome`; empty without limits.
    """

    a: dict[str, Any]
    b: dict[str, Any]
    paired: bool
    alike: pd.DataFrame
    numbers: pd.DataFrame
    moved: pd.DataFrame
    outcomes: pd.DataFrame

    @property
    def rows(self) -> pd.DataFrame:
        """The numbers as rows of the results table, their panel ``a``, ``b`` or ``change``: what sentences quote."""
        parts = []
        for panel, suffix in _SIDES.items():
            ends = {end: self.numbers[f"{end}{suffix}"] for end in ("ci_low", "ci_high")}
            value = self.numbers[f"value{suffix}" if suffix else "change"]
            about = {
                "finding": "comparison",
                "source": "panel",
                "panel": panel,
                "model": self.a["name"] if panel == "a" else self.b["name"],
            }
            parts.append(self.numbers.assign(**about, protocol="exact", value=value, **ends)[list(COLUMNS)])
        return pd.concat(parts, ignore_index=True)

    @property
    def limits(self) -> pd.DataFrame:
        """`outcomes` for readers: with name, what a limit calls the number, and kept, ``kept`` or ``broken``."""
        rows = self.outcomes
        kept = np.where(rows["broken"].astype(bool), "broken", "kept")
        return rows.assign(name=[name(row) for row in rows.to_dict("records")], kept=kept)

    @property
    def facts(self) -> pd.DataFrame:
        """What was compared: a line a fact, a column a side."""
        told = {fact: [str(side["provenance"].get(fact) or "")[:60] for side in (self.a, self.b)] for fact in _FACTS}
        return pd.DataFrame([(fact, *both) for fact, both in told.items()], columns=["what was scored", "A", "B"])


def name(row: Mapping[Any, Any]) -> str:
    """A number as a limit names it: ``identity_gap[religion, greatest]``."""
    of = ", ".join(str(row[part]) for part in ("other", "prompt") if row[part])
    return f"{row['statistic']}[{of}]" if of else str(row["statistic"])


def find(
    a: sides.Side, b: sides.Side, wanted: Sequence[limits.Limit] = (), *, workers: int = 1, progress: bool = False
) -> Record:
    """Compare two models and hold the second against limits.

    Parameters
    ----------
    a, b
        Models or reports.
    wanted
        Limits.
    workers, progress
        As in `rmnb.report.comparison.compare`.

    Raises
    ------
    InputError
        They have no number in common, one is quick and the other is not, or a limit is about no number of theirs.
    """
    alike, moved = (pd.DataFrame(columns=_COLUMNS[table]) for table in ("alike", "moved"))
    floors = {}
    if a.scores is not None and b.scores is not None:
        if wanted:  # before minutes are spent: a limit about no number of theirs
            had = comparison.in_both(a.scores, b.scores).reset_index()
            _ = [limits.rows_of(limit, had) for limit in wanted]
        table = comparison.compare(a.scores, b.scores, workers=workers, progress=progress)
        alike, moved = comparison.alike(a.scores, b.scores), comparison.moved(a.scores, b.scores)
        floors = {side: floor.floor(one.scores, one.noise) for side, one in (("a", a), ("b", b)) if one.scores}
    else:
        table = comparison.compare_rows(a.measured(), b.measured())
    table = _with_floors(table, floors)
    half = (table["ci_high"] - table["ci_low"]) / 2
    table = table.assign(times=(table["change"].abs() / half.where(half > 0)).fillna(0.0).where(half.notna()))
    outcomes = pd.DataFrame([asdict(one) for one in limits.check(wanted, table)], columns=_COLUMNS["outcomes"])
    return Record(_about(a), _about(b), bool(floors), alike, table, moved, outcomes)


def write(record: Record, directory: Path) -> Path:
    """Write ``compare.json`` into a directory; returns its path."""
    told = {"a": record.a, "b": record.b, "paired": record.paired}
    told |= {table: _plain(getattr(record, table)) for table in _TABLES}
    path = Path(directory) / _FILE
    with atomic_path(path) as part:
        part.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def read(directory: Path | str) -> Record:
    """What `write` has written.

    Raises
    ------
    InputError
        It is not there, or damaged.
    """
    path = Path(directory) / _FILE
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        alike, numbers, moved, outcomes = (
            pd.DataFrame(told.pop(table), columns=_COLUMNS.get(table)) for table in _TABLES
        )
        numeric = [column for column in map(str, numbers) if column.startswith(("ci_", "floor_", "times"))]
        numbers = numbers.astype({**dict.fromkeys(numeric, float), "n": "Int64"})
        return Record(**told, alike=alike, numbers=numbers, moved=moved, outcomes=outcomes)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is not a comparison: {first_line(error)}") from error


def _about(side: sides.Side) -> dict[str, Any]:
    noise = side.noise if side.scores is None or side.noise is not None else floor.rounding(side.scores)
    return {"name": side.name, "provenance": side.provenance, "noise": noise}


def _with_floors(table: pd.DataFrame, floors: dict[str, pd.Series]) -> pd.DataFrame:
    key = pd.MultiIndex.from_frame(table[comparison.KEY])
    known = {side: values.reindex(key).to_numpy() for side, values in floors.items()}
    nothing = np.full(len(table), np.nan)
    one, other = known.get("a", nothing), known.get("b", nothing)
    return table.assign(floor_b=other, floor_change=one + other)


def _plain(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return json.loads(frame.to_json(orient="records", double_precision=15))
