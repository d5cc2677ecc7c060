"""`rmnb audit`: are the shipped scores still what the weights give?"""

import sys
from typing import Annotated

import typer

from rmnb.cli.options import PanelOption
from rmnb.errors import InputError


def audit(
    models: Annotated[list[str] | None, typer.Argument(help="Models to audit. Default: all of the panel.")] = None,
    panel: PanelOption = "demo",
    sample: Annotated[int, typer.Option(min=1, help="Tokens of each scan to score again.")] = 64,
    seed: int = 0,
    accuracy: Annotated[bool, typer.Option("--accuracy", help="Measure held-out accuracies again: minutes.")] = False,
) -> None:
    """Score a random sample of the shipped tokens again, from the weights. Exit code 1 if they disagree."""
    from rmnb.report.audit import audit_panel

    report = audit_panel(panel, sample, seed, models, accuracy)
    if report.empty:
        raise InputError(f"panel {panel!r} has no scores to audit: run `rmnb scan` first")
    typer.echo(report.to_string(index=False, float_format="{:.1e}".format))
    if (report["verdict"] != "ok").any():
        print(f"rmnb: {(report['verdict'] != 'ok').sum()} of {len(report)} scans disagree", file=sys.stderr)
        raise typer.Exit(1)
