"""`rmnb models`: what a panel holds, and how good its models are."""

import typer

from rmnb.cli.options import PanelOption
from rmnb.errors import InputError


def models(panel: PanelOption = "demo") -> None:
    """List a panel's models, what they were trained on, and how often they prefer what people preferred."""
    from rmnb.panels import load_panel
    from rmnb.training.runs import overview

    members = load_panel(panel)
    if not members.models:
        raise InputError(f"panel {members.name!r} has no reward models, only language models under `bases`")
    table = overview(members)
    typer.echo(table.to_string(index=False))
    for note in table.attrs["notes"]:
        typer.echo(note)
