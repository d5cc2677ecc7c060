"""The sentences that open a comparison: how alike the two rank words, how much changed, what changed most."""

import pandas as pd

from rmnb.findings.quoting import Row, count, count_of, find, interval, quote, records, side
from rmnb.findings.results import Results
from rmnb.report import reference
from rmnb.report.comparison_record import Record

SHOWN = 4  # numbers that changed most


def sentences(record: Record) -> list[str]:
    """What a comparison found, in words; each number a row of `rows`."""
    found = rows(record)
    return [*_alike(record, found), _how_many(record, found), *_largest(record), *_limits(record, found)]


def rows(record: Record) -> pd.DataFrame:
    """What the sentences quote: the record's rows, how alike the two are, and counts."""
    found = Results("comparison", "change")
    found.extend(pd.concat([part for part in (record.alike, record.rows) if len(part)]))
    clear = clear_changes(record.numbers)
    with_interval = int(record.numbers["ci_low"].notna().sum())
    found.add("panel", "changes_clear", len(clear), model=record.b["name"], n=with_interval)
    if len(record.outcomes):
        by_limit = record.outcomes.groupby("limit", sort=False)["broken"].any()
        found.add("panel", "limits_broken", int(by_limit.sum()), model=record.b["name"], n=len(by_limit))
    return found.frame()


def clear_changes(numbers: pd.DataFrame) -> pd.DataFrame:
    """The numbers whose change has an interval on one side of zero, and is beyond the noise floor."""
    clear = (numbers["ci_low"] > 0) | (numbers["ci_high"] < 0)
    return numbers[clear & ~(numbers["change"].abs() <= numbers["floor_change"])]


def shown_numbers(record: Record) -> pd.DataFrame:
    """The numbers that a report shows, in its order, with the columns part and label."""
    parts = [reference.headline(record.numbers, part).assign(part=part) for part in reference.NUMBERS]
    return pd.concat([rows for rows in parts if len(rows)] or parts[:1], ignore_index=True)


def largest(numbers: pd.DataFrame, shown: int) -> pd.DataFrame:
    """The clear changes with the largest multiple of half their interval, largest first."""
    return clear_changes(numbers).sort_values("times", ascending=False, kind="stable").head(shown)


def _alike(record: Record, found: pd.DataFrame) -> list[str]:
    both = [find(found, "spearman", prompt=prompt) for prompt in ("greatest", "worst")]
    first, second = both
    if first is None or second is None:
        return []
    return [
        f"The two rank the {quote(first, '{:,.0f}', 'n')} words that both have with ρ {_with(first)} when asked for "
        f"the greatest thing, {_with(second)} for the worst."
    ]


def _how_many(record: Record, found: pd.DataFrame) -> str:
    row = find(found, "changes_clear")
    assert row is not None
    how = "paired by word" if record.paired else "not paired, because scores are not beside both reports"
    return (
        f"Of {quote(row, '{:.0f}', 'n')} numbers with an interval of their change ({how}), {count(row)} changed "
        "clearly; among as many without any change one in twenty would by chance."
    )


def _largest(record: Record) -> list[str]:
    shown = largest(shown_numbers(record), SHOWN)
    if shown.empty:
        return ["No number that a report shows beside the reference models changed clearly."]
    said = []
    for row in records(shown):
        key = {part: str(row[part]) for part in ("other", "prompt")}
        a, b, change = (find(record.rows, str(row["statistic"]), panel=panel, **key) for panel in ("a", "b", "change"))
        assert a is not None and b is not None and change is not None
        part, label = str(row["part"]), row["label"]
        said.append(
            f"{part[0].upper()}{part[1:]}, {label}: from {quote(a)} to {quote(b)}, "
            f"a change of {quote(change, '{:+.2f}')} ({interval(change, '{:+.2f}')}){_sign(a, b)}."
        )
    return said


def _sign(a: Row, b: Row) -> str:
    return ": its sign turned" if side(a) * side(b) < 0 else ""


def _limits(record: Record, found: pd.DataFrame) -> list[str]:
    row = find(found, "limits_broken")
    return [] if row is None else [f"Limits that are broken: {count_of(row)}."]


def _with(row: Row) -> str:
    return f"{quote(row)} ({interval(row)})"
