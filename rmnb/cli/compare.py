"""The command ``rmnb compare``: what changed between two models, and a gate for limits that must hold."""

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmnb.cli.options import Loading
from rmnb.files import atomic_path, check_writable

if TYPE_CHECKING:
    import pandas as pd

    from rmnb.report.record import Report

_SHOWN = 12  # numbers on the terminal
SideArgument = Annotated[
    str,
    typer.Argument(
        help="A model (nickname, hub id, directory of a checkpoint or adapter), "
        "or a report: the directory that `rmnb report` wrote, or its report.json."
    ),
]


def compare(
    a: SideArgument,
    b: SideArgument,
    loading: Loading,
    out: Annotated[Path | None, typer.Option(help="Directory of the page. Default: compare-A-B.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Score a sample of the vocabulary and shorter lists.")] = False,
    seeds: Annotated[
        list[str] | None,
        typer.Option(help="A report of the same training with another seed; repeatable, two or more."),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            help='"identity_gap > 0.3" or "identity_gap.high < 0", of B; "|change agency_gap| > 2 seeds"; '
            "or a YAML file with such limits under `limits:`; repeatable."
        ),
    ] = None,
) -> None:
    """Compare two models, number by number. Exit code 0: passed, 1: a limit is broken, 2: bad input."""
    from rmnb.report.limits import check, parse, read_limits

    wanted = []
    for text in fail_if or []:
        wanted += read_limits(Path(text)) if text.endswith((".yml", ".yaml")) else [parse(text)]
    out = out or Path(f"compare-{_short(a)}-{_short(b)}")
    check_writable(out / "compare.html")
    _check_known(a, b, *(seeds or []))
    from rmnb.book import comparison_page
    from rmnb.report import comparison

    sides = (_report(a, out / "a", quick, loading), _report(b, out / "b", quick, loading))
    table = comparison.compare(*sides, seeds=[_report(text, out / "seed", quick, loading) for text in seeds or []])
    outcomes = check(wanted, table)
    moved = _moved(a, b, out)
    comparison_page.write(out / "compare.html", sides, table, moved, outcomes)
    _write_json(out / "compare.json", sides, {"numbers": table, "moved": moved, "limits": outcomes})
    _show(table)
    typer.echo(f"written to {out / 'compare.html'} and {out / 'compare.json'}")
    broken = _show_outcomes(outcomes)
    if broken:
        print(f"rmnb: {broken} limits are broken" if broken > 1 else "rmnb: a limit is broken", file=sys.stderr)
        raise typer.Exit(1)


def _short(text: str) -> str:
    path = Path(text)
    name = path.resolve().parent.name if path.name == "report.json" else path.resolve().name
    return re.sub(r"[^\w.-]+", "_", name) or "model"


def _check_known(*texts: str) -> None:
    """Refuse what is no model and no report before minutes are spent on another."""
    from rmnb.panels import find_spec
    from rmnb.report.record import is_report, read

    for text in texts:
        if is_report(text):
            read(text)
        else:
            find_spec(text)


def _report(text: str, directory: Path, quick: bool, loading: Loading) -> "Report":
    """The report that an argument names; a model is scored into `directory`."""
    from rmnb.report import record, scores

    workers = min(4, os.cpu_count() or 1)
    if record.is_report(text):
        return record.read(text)
    found = None if quick or loading.given else scores.shipped(text)
    if found is None:
        spec = loading.spec(text)
        rm = loading.model(spec)
        typer.echo(f"{spec.name}: scored into {directory}")
        scores.score(rm, directory, quick, progress=True, tell=typer.echo)
        found = scores.read(directory)
    else:
        typer.echo(f"{text}: of the demo panel: its shipped scores are read, nothing is scored")
    return record.build(found, workers, progress=True)


def _moved(a: str, b: str, out: Path) -> "pd.DataFrame | None":
    """The words that moved most, where the scores of both are at hand."""
    from rmnb.report import comparison, scores

    found = []
    for text, directory in ((a, out / "a"), (b, out / "b")):
        path = Path(text).parent if text.endswith(".json") else Path(text)
        beside = [place for place in (directory, path) if any(place.glob("scores/*/greatest.exact.parquet"))]
        found.append(scores.read(beside[0]) if beside else scores.shipped(text))
    one, other = found
    return None if one is None or other is None else comparison.moved(one, other)


def _write_json(path: Path, sides: "tuple[Report, Report]", tables: "Mapping[str, pd.DataFrame | None]") -> None:
    content: dict[str, Any] = {
        side: {"model": report.name, "provenance": report.provenance} for side, report in zip("ab", sides, strict=True)
    }
    for name, table in tables.items():
        content[name] = None if table is None else json.loads(table.to_json(orient="records", double_precision=15))
    with atomic_path(path) as part:
        part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _show(table: "pd.DataFrame") -> None:
    """The largest changes, in half widths of their intervals or, where seeds were given, in what these differ by."""
    from rmnb.book.comparison_page import changes
    from rmnb.report import comparison

    measured = table["seeds"].notna().any()
    unit = table["seeds"] if measured else (table["high"] - table["low"]) / 2
    largest = (table["change"].abs() / unit).sort_values(ascending=False).index[:_SHOWN]
    typer.echo(changes(table.loc[largest]).to_string(index=False, float_format="{:.3f}".format))
    clear, known = comparison.clear(table), table["low"].notna().sum()
    typer.echo(f"clear on other words: {clear.sum()} of {known}; this says nothing of another training")
    if measured:
        typer.echo(f"larger than two seeds differ: {comparison.beyond_seeds(table).sum()} of {len(table)}")
    else:
        typer.echo(comparison.SEEDS_UNKNOWN)


def _show_outcomes(outcomes: "pd.DataFrame") -> int:
    """Say which limits are kept and which are broken, and by what; returns how many are broken."""
    broken = 0
    for limit, rows in outcomes.groupby("limit", sort=False):
        bad = rows[rows["broken"]].to_dict("records")
        typer.echo(f"{'broken' if bad else 'kept':7} {limit}")
        for row in bad:
            about = ", ".join(row[key] for key in ("other", "question") if row[key])
            typer.echo(f"        {row['name']}[{about}]: {row['value']:.3g}, the limit is {row['bound']:.3g}")
        broken += bool(bad)
    return broken
