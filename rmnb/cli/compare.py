"""The command ``rmnb compare``: what changed between two models, and a gate for limits that must hold."""

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmnb.cli.options import (
    load,
    takes_loading_options,
)
from rmnb.files import check_writable

if TYPE_CHECKING:
    from rmnb.report.comparison_record import Record
    from rmnb.report.sides import Side

_SHOWN = 12  # numbers on the terminal
_NOTEBOOK = Path(__file__).parents[1] / "report" / "compare.ipynb"
SideArgument = Annotated[
    str,
    typer.Argument(
        help="A model (nickname, hub id owner/name[@revision], directory of a checkpoint or adapter), "
        "or a report: the directory that `rmnb report` wrote, or its report.json."
    ),
]


@takes_loading_options
def compare(
    a: SideArgument,
    b: SideArgument,
    out: Annotated[Path | None, typer.Option(help="Directory of the page. Default: compare-A-B.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Score a sample of the vocabulary and shorter lists.")] = False,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(help='"identity_gap > 0.3", of B; "|change slope_positive[greatest]| > 0.1"; repeatable.'),
    ] = None,
    limits: Annotated[Path | None, typer.Option(help="YAML file with a list of such limits under `limits:`.")] = None,
    *,
    loading: Mapping[str, Any],
) -> None:
    """Compare two models, number by number. Exit code 0: passed, 1: a limit is broken, 2: bad input."""
    from rmnb.report.limits import parse, read_limits

    wanted = [*map(parse, fail_if or []), *(read_limits(limits) if limits else [])]
    out = out or Path(f"compare-{_short(a)}-{_short(b)}")
    check_writable(out / "compare.html")
    for text in (a, b):  # before minutes are spent on the first
        _known(text)
    sides = [_side(text, out / name, quick, loading) for text, name in ((a, "a"), (b, "b"))]
    from rmnb.report import comparison_record

    workers = min(4, os.cpu_count() or 1)
    record = comparison_record.find(sides[0], sides[1], wanted, workers=workers, progress=True)
    _write(record, out)
    _show(record)
    typer.echo(f"written to {out / 'compare.html'} and {out / 'compare.json'}")
    if len(record.outcomes):
        broken = _show_outcomes(record)
        if broken:
            print(f"rmnb: {broken} limits are broken" if broken > 1 else "rmnb: a limit is broken", file=sys.stderr)
            raise typer.Exit(1)


def _short(text: str) -> str:
    path = Path(text)
    name = path.resolve().parent.name if path.name == "report.json" else path.resolve().name
    return re.sub(r"[^\w.-]+", "_", name) or "model"


def _known(text: str) -> None:
    from rmnb.panels import find_spec
    from rmnb.report.sides import is_report

    if not is_report(text):
        find_spec(text)


def _side(text: str, directory: Path, quick: bool, loading: Mapping[str, Any]) -> "Side":
    from rmnb.panels import find_spec
    from rmnb.report import floor, scores, sides

    if sides.is_report(text):
        return sides.read_report(Path(text))
    spec = find_spec(text)
    usual = not quick and not loading
    if usual and (found := sides.shipped(spec)):
        typer.echo(f"{spec.name}: of the demo panel: its shipped scores are read, nothing is scored")
        return sides.of_scores(found)
    rm = load(spec, **loading)
    typer.echo(f"{spec.name}: scored into {directory}")
    scores.score(rm, directory, quick, progress=True, tell=typer.echo)
    found = scores.read(directory)
    return sides.of_scores(found, floor.measured_rounding(rm, found))


def _write(record: "Record", out: Path) -> None:
    """The record and its page: both, or neither."""
    from rmnb.book.notebook import run_notebook
    from rmnb.book.standalone import write_page
    from rmnb.report import comparison_record

    with tempfile.TemporaryDirectory() as name:
        beside = Path(name)
        comparison_record.write(record, beside)
        executed = run_notebook(_NOTEBOOK, beside / "compare.ipynb", {"directory": name})
        write_page(executed, out / "compare.html", f"{record.a['name']} and {record.b['name']}")
    comparison_record.write(record, out)


def _show(record: "Record") -> None:
    from rmnb.findings.quoting import plain
    from rmnb.report import changes_in_short, comparison_record

    for sentence in changes_in_short.sentences(record):
        typer.echo(plain(sentence))
    largest = changes_in_short.largest(record.numbers, _SHOWN)
    if len(largest):
        typer.echo("\nlargest changes, in half widths of their 95 % intervals:")
        shown = largest.assign(
            number=[comparison_record.name(row) for row in largest.to_dict("records")],
            interval=[
                f"{low:+.3f} to {high:+.3f}" for low, high in zip(largest["ci_low"], largest["ci_high"], strict=True)
            ],
        ).rename(columns={"value_a": "A", "value_b": "B"})
        columns = ["number", "A", "B", "change", "interval", "times"]
        typer.echo(shown[columns].to_string(index=False, float_format="{:.3f}".format) + "\n")


def _show_outcomes(record: "Record") -> int:
    """Say which limits are kept and which are broken, and by what; returns how many are broken."""
    from rmnb.report import comparison_record

    broken = 0
    for limit, rows in record.outcomes.groupby("limit", sort=False):
        bad = rows[rows["broken"]].to_dict("records")
        typer.echo(f"{'broken' if bad else 'kept':7} {limit}")
        for row in bad:
            value = f"{row['value']:.3g}"
            if row["ci_low"] == row["ci_low"]:
                value += f" ({row['ci_low']:.3g} to {row['ci_high']:.3g})"
            typer.echo(f"        {comparison_record.name(row)} is {value}")
        for warning in dict.fromkeys(rows["warning"]) if rows["warning"].any() else ():
            if warning:
                print(f"rmnb: warning: {limit}: {warning}", file=sys.stderr)
        broken += bool(bad)
    return broken
