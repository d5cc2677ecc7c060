"""`rmnb report`: what one model values and what is odd about it, as a page, as JSON and for a model card."""

import functools
import os
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmnb.cli.options import Json, Loading, Model, PanelName, echo_json
from rmnb.files import atomic_path, check_writable

if TYPE_CHECKING:
    import pandas as pd

QuickOption = Annotated[
    bool, typer.Option("--quick", help="A sample of 5,000 tokens and shorter lists: two minutes in place of ten.")
]


def _list_names(value: bool) -> None:
    """Print the names of all numbers, and what they mean."""
    if not value:
        return
    from rmnb.report import numbers

    for (part, name), rows in numbers.glossary().groupby(["part", "name"], sort=False):
        typer.echo(f"{name} ({part}): {rows['meaning'].iloc[0]}")
        brackets = [", ".join(filter(None, key)) for key in zip(rows["other"], rows["question"], strict=True)]
        typer.echo("    " + " ".join(f"[{text}]" for text in brackets))
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
    say(f"loading {model}")
    rm = loading.model(spec)
    from rmnb.report import scores

    _check(rm, out)
    scores.score(rm, out, quick, progress=True, tell=say)
    say("measuring, drawing and writing the page: about a minute")
    found = page(out)
    say(f"{out / 'report.html'}, report.json and report.md beside it")
    if json:
        echo_json(found)


def _check(rm, out: Path) -> None:
    """Keep what `rmnb check` says of the model; one that is read wrongly gets no report."""
    import pandas as pd

    from rmnb.errors import InputError
    from rmnb.scoring.check import check_model

    findings = check_model(rm)
    if bad := [finding for finding in findings if finding.verdict == "failed"]:
        raise InputError(f"{rm.name} fails its check: {bad[0].aspect}: {bad[0].text}")
    with atomic_path(out / "check.csv") as part:
        pd.DataFrame([asdict(finding) for finding in findings]).to_csv(part, index=False)


def page(out: Path) -> "pd.DataFrame":
    """Measure what was scored, write ``report.json``, run the notebook on it, write its page; give the numbers."""
    from rmnb.book.notebook import run_notebook
    from rmnb.book.standalone import write_page
    from rmnb.report import record, scores

    found = record.build(scores.read(out), min(4, os.cpu_count() or 1), progress=True)
    record.write(found, out)
    source = Path(str(resources.files("rmnb.report"))) / "report.ipynb"
    executed = run_notebook(source, out / "report.ipynb", {"model": found.name, "directory": str(out.resolve())})
    write_page(executed, out / "report.html", f"Report on {found.name}")
    return found.numbers
