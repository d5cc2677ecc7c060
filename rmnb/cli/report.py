"""`rmnb report`: what one model values and what is odd about it, as a page, as JSON and for a model card."""

import functools
import os
from pathlib import Path
from typing import Annotated

import typer

from rmnb.cli.options import Json, Loading, Model, PanelName, QuickOption, echo_json, number_name
from rmnb.errors import InputError
from rmnb.files import atomic_path, check_writable


def _list_names(value: bool) -> None:
    """Print the names of all numbers, and what they mean."""
    if not value:
        return
    from rmnb.report import numbers

    for row in numbers.glossary().itertuples():
        typer.echo(f"{number_name(row):46} {row.meaning}")
    raise typer.Exit


def report(
    model: Model,
    loading: Loading,
    out: Annotated[Path | None, typer.Option(help="Directory of the report. Default: report-MODEL.")] = None,
    quick: QuickOption = False,
    panel: PanelName = "demo",
    names: Annotated[
        bool, typer.Option("--names", callback=_list_names, is_eager=True, help="List the numbers and their names.")
    ] = False,
    json: Json = False,
) -> None:
    """Report on a model: report.html, report.json, report.md. Interrupted, the same command goes on."""
    from rmnb.panels import load_panel

    spec = loading.spec(model, load_panel(panel))
    out = out or Path(f"report-{spec.name}{'-quick' if quick else ''}")
    check_writable(out / "report.html")
    say = functools.partial(typer.echo, err=json)
    rm = loading.model(spec)
    import pandas as pd

    from rmnb.book.notebook import run_notebook
    from rmnb.book.standalone import write_page
    from rmnb.report import record, scores
    from rmnb.scoring.check import check_model

    results = check_model(rm)
    for result in results:
        if result.verdict == "failed":  # a model that is read wrongly gets no report
            raise InputError(f"{rm.name} fails its check: {result.aspect}: {result.text}")
    with atomic_path(out / "check.csv") as part:
        pd.DataFrame(results).to_csv(part, index=False)
    scores.score(rm, out, quick, progress=True, tell=say)
    say("measuring, drawing and writing the page: about a minute")
    measured = record.build(scores.read(out), min(4, os.cpu_count() or 1), progress=True)
    record.write(measured, out)
    source = Path(record.__file__).with_name("report.ipynb")
    executed = run_notebook(source, out / "report.ipynb", {"model": rm.name, "directory": str(out.resolve())})
    write_page(executed, out / "report.html", f"Report on {rm.name}")
    say(f"{out / 'report.html'}, report.json and report.md beside it")
    if json:
        echo_json(measured.numbers)
