"""`rmnb report`: what one model values and what is odd about it, as a page, as JSON and for a model card."""

from collections.abc import Mapping
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer

from rmnb.cli.options import (
    ModelArgument,
    PanelOption,
    if_named,
    load,
    takes_loading_options,
)
from rmnb.files import atomic_path, check_writable

QuickOption = Annotated[
    bool, typer.Option("--quick", help="A sample of 5,000 tokens and shorter lists: two minutes in place of ten.")
]


@takes_loading_options
def report(
    model: ModelArgument,
    out: Annotated[Path | None, typer.Option(help="Directory of the report. Default: report-MODEL.")] = None,
    quick: QuickOption = False,
    panel: PanelOption = "demo",
    *,
    loading: Mapping[str, Any],
) -> None:
    """Report on a model: report.html, report.json, report.md. Interrupted, the same command goes on."""
    from rmnb.panels import find_spec

    spec = find_spec(model, if_named(panel))
    out = out or Path(f"report-{spec.name}{'-quick' if quick else ''}")
    check_writable(out / "report.html")
    typer.echo(f"loading {model}")
    rm = load(spec, **loading)
    from rmnb.report import scores

    _check(rm, out)
    scores.score(rm, out, quick, progress=True, tell=typer.echo)
    typer.echo("measuring, drawing and writing the page: about a minute")
    page(out, rm)
    typer.echo(f"{out / 'report.html'}, report.json and report.md beside it")


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


def page(out: Path, rm) -> None:
    """Run the report's notebook on what has been scored, and write its page."""
    from rmnb.book.notebook import run_notebook
    from rmnb.book.standalone import write_page
    from rmnb.report import scores
    from rmnb.report.floor import measured_rounding

    found = scores.read(out)
    parameters = {"model": rm.name, "directory": str(out.resolve()), "noise": measured_rounding(rm, found)}
    source = Path(str(resources.files("rmnb.report"))) / "report.ipynb"
    executed = run_notebook(source, out / "report.ipynb", parameters)
    write_page(executed, out / "report.html", f"Report on {rm.name}")
