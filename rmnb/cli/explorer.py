"""`rmnb explorer`: the data of the book's token explorer."""

from pathlib import Path
from typing import Annotated

import typer

from rmnb.cli.options import PanelOption


def explorer(
    directory: Annotated[Path, typer.Argument(help="Where to write; what is there is replaced.")],
    panel: PanelOption = "demo",
) -> None:
    """Write the data of the book's token explorer: every scan of a panel as small static files."""
    from rmnb.book.explorer import write_explorer

    typer.echo(write_explorer(panel, directory))
