"""The command ``rmnb noise``."""

from pathlib import Path
from typing import Annotated

import typer


def noise(
    models: Annotated[list[str] | None, typer.Argument(help="Models of the panel. Default: one of each base.")] = None,
    panel: Annotated[str, typer.Option(help="Name of a panel, or path of your own YAML.")] = "demo",
    prompt: Annotated[str, typer.Option(help="Key of a prompt of the panel, or a question in quotes.")] = "greatest",
    tokens: Annotated[int, typer.Option(min=2, help="Size of the random sample of the vocabulary.")] = 4096,
    slow_tokens: Annotated[int, typer.Option(min=2, help="Of these, how many in the ways that are slow.")] = 256,
    out: Annotated[
        Path | None, typer.Option(help="Directory of the table and the scores. Default: in the cache.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 0,
) -> None:
    """Measure how far scores move when only number format, batch size, attention or threads change."""
    from rmnb.files import cache_dir
    from rmnb.panels import load_panel
    from rmnb.scoring.noise import measure_noise, noise_table, write_noise

    members = load_panel(panel)
    directory = out or cache_dir() / "noise" / members.name
    first = {spec.base or spec.source: spec.name for spec in reversed(members.models)}
    for name in models or reversed(first.values()):
        scores, provenance = measure_noise(
            members.model(name), members.prompt(prompt), tokens, slow_tokens, seed, progress=True
        )
        table = write_noise(name, scores, provenance, directory)
        typer.echo(noise_table(scores, name).to_string(index=False, float_format="{:.5g}".format))
        typer.echo(f"written to {table}")
