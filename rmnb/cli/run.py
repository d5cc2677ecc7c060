"""`rmnb run`: a notebook, its parameters checked first."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from rmnb.errors import InputError


def run(
    notebook: Annotated[Path, typer.Argument(help="A notebook with a cell tagged `parameters`.")],
    out: Annotated[Path, typer.Argument(help="Where to write the executed notebook.")],
    parameter: Annotated[list[str] | None, typer.Option("--parameter", "-p", help="NAME=VALUE, repeatable.")] = None,
) -> None:
    """Execute a notebook, its parameters checked by name and type first; a cell that fails is shown with its error."""
    from papermill import PapermillExecutionError

    from rmnb.book.notebook import failure, run_notebook

    pairs = [text.partition("=") for text in parameter or []]
    for name, equals, _ in pairs:
        if not equals:
            raise InputError(f"parameter {name!r}: write NAME=VALUE")
    try:
        run_notebook(notebook, out, {name: value for name, _, value in pairs})
    except PapermillExecutionError as error:
        print(f"rmnb: {notebook.name}: {failure(error)}", file=sys.stderr)
        raise typer.Exit(1) from None
