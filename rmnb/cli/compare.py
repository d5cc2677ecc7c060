"""The command ``rmnb compare``: what changed between two models, and a gate for limits that must hold."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmnb.cli.options import Loading, QuickOption, fail, json_rows, number_name
from rmnb.files import atomic_path, check_writable

if TYPE_CHECKING:
    import pandas as pd

    from rmnb.report.record import Report
    from rmnb.report.scores import ModelScores

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
    quick: QuickOption = False,
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
    from rmnb.panels import find_spec
    from rmnb.report import record
    from rmnb.report.limits import check, parse, read_limits

    wanted = []
    for text in fail_if or []:
        wanted += read_limits(Path(text)) if text.endswith((".yml", ".yaml")) else [parse(text)]
    out = out or Path(f"compare-{_directory(a).name}-{_directory(b).name}")
    check_writable(out / "compare.html")
    others = [record.read(text) for text in seeds or []]
    for text in (a, b):  # what is neither a model nor a report is refused before minutes are spent on the other
        (record.read if record.is_report(text) else find_spec)(text)
    from rmnb.book import comparison_page
    from rmnb.report import comparison

    (one, scores), (other, other_scores) = _side(a, out / "a", quick, loading), _side(b, out / "b", quick, loading)
    table = comparison.compare(one, other, others)
    outcomes = check(wanted, table)
    moved = comparison.moved(scores, other_scores) if scores and other_scores else None
    comparison_page.write(out / "compare.html", (one, other), table, moved, outcomes)
    content = {
        "a": {"model": one.name, "provenance": one.provenance},
        "b": {"model": other.name, "provenance": other.provenance},
        "numbers": json_rows(table),
        "moved": json_rows(moved),
        "limits": json_rows(outcomes),
    }
    with atomic_path(out / "compare.json") as part:
        part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    _show(table)
    typer.echo(f"written to {out / 'compare.html'} and {out / 'compare.json'}")
    for limit, rows in outcomes.groupby("limit", sort=False):
        broken = rows[rows["broken"]]
        typer.echo(f"{'kept' if broken.empty else 'broken':7} {limit}")
        for row in broken.itertuples():
            typer.echo(f"        {number_name(row)}: {row.value:.3g}, the limit is {row.bound:.3g}")
    if outcomes["broken"].any():
        fail("a limit is broken")


def _directory(text: str) -> Path:
    return Path(text.removesuffix("report.json")).resolve()


def _side(text: str, directory: Path, quick: bool, loading: Loading) -> "tuple[Report, ModelScores | None]":
    """The report that an argument names, and the scores behind it if they are here; a model is scored first."""
    from rmnb.report import record, scores

    if record.is_report(text):
        beside = _directory(text)
        return record.read(text), scores.read(beside) if (beside / "scores").exists() else None
    found = None if quick or loading != Loading() else scores.shipped(text)
    if found is None:
        scores.score(loading.model(text), directory, quick, progress=True, tell=typer.echo)
        found = scores.read(directory)
    else:
        typer.echo(f"{text}: of the demo panel: its shipped scores are read, nothing is scored")
    return record.build(found, min(4, os.cpu_count() or 1), progress=True), found


def _show(table: "pd.DataFrame") -> None:
    """The largest changes, in half widths of their intervals or, where seeds were given, in what these differ by."""
    from rmnb.book.comparison_page import changes
    from rmnb.report import comparison

    unit = table["seeds"].fillna((table["high"] - table["low"]) / 2)
    largest = (table["change"].abs() / unit).nlargest(12).index
    typer.echo(changes(table.loc[largest]).to_string(index=False, float_format="{:.3f}".format))
    known = table["low"].notna().sum()
    typer.echo(
        f"clear on other words: {comparison.clear(table).sum()} of {known}; this says nothing of another training"
    )
    beyond = f"larger than two seeds differ: {comparison.beyond_seeds(table).sum()} of {len(table)}"
    typer.echo(comparison.SEEDS_UNKNOWN if table["seeds"].isna().all() else beyond)
