"""`rmnb train`: reward models by their recipes."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from rmnb.cli.options import PanelOption


def train(
    model: Annotated[
        str | None, typer.Argument(help="Model to train. Default: all of the panel that are not finished.")
    ] = None,
    panel: PanelOption = "demo",
    out: Annotated[Path | None, typer.Option(help="Directory for the adapter. Default: the panel's.")] = None,
    objective: Annotated[
        Literal["reward", "sft"],
        typer.Option(help="What to train where no model is named: reward models, or (sft) copies of language models."),
    ] = "reward",
) -> None:
    """Train reward models by their recipes, or tune copies of language models on the answers that people chose.

    Interrupted, the same command goes on from the last checkpoint.
    """
    from rmnb.panels import load_panel
    from rmnb.training.runs import follow, train_model, tune_copy, tuned_copies, unfinished

    members = load_panel(panel)
    if objective == "sft" or model in tuned_copies(members):
        for name in [model] if model else tuned_copies(members):
            measured = tune_copy(members, name, out)
            typer.echo(f"{name}: implicit reward, held-out accuracy {measured['held_out']['all']['value']:.3f}")
        return
    for name in [model] if model else unfinished(members):
        measured = train_model(members, name, out)
        typer.echo(f"{name}: held-out accuracy {measured['held_out']['all']['value']:.3f}")
        if out is None:
            typer.echo(f"{name}: trajectory in {follow(members, name)}")
