"""`rmnb data`: list, fetch and check the external data."""

from typing import Annotated

import typer

from rmnb.errors import InputError

app = typer.Typer(no_args_is_help=True, help="External data: list it, fetch it, check it.")
Patterns = Annotated[list[str] | None, typer.Argument(help="Only files whose name contains one of these texts.")]


def _chosen(patterns: list[str] | None) -> list[str]:
    from rmnb.data import sources

    names = [name for name in sources.pins() if not patterns or any(pattern in name for pattern in patterns)]
    if not names:
        raise InputError(f"no data file has {' or '.join(map(repr, patterns or []))} in its name: see `rmnb data list`")
    return names


@app.command("list")
def list_files(patterns: Patterns = None) -> None:
    """Show the pinned files: name, size, use, licence."""
    from rmnb.data import sources

    for name in _chosen(patterns):
        pin = sources.pins()[name]
        size = f"{pin.bytes / 1000:,.0f} kB" if pin.bytes else "?"
        typer.echo(f"{name}\t{size}\t{pin.use}\t{pin.licence}")


@app.command()
def pull(
    patterns: Patterns = None,
    everything: Annotated[bool, typer.Option("--all", help="Also files whose size is not known: gigabytes.")] = False,
) -> None:
    """Download what is not on this machine; a damaged file in the cache is replaced."""
    from rmnb.data import sources

    names = _chosen(patterns)
    if not patterns and not everything:
        names = [name for name in names if sources.pins()[name].bytes is not None]
    for name in names:
        typer.echo(f"{name}\t{sources.pull(name)}")


@app.command()
def verify(patterns: Patterns = None) -> None:
    """Check the files that are on this machine against their pinned hashes; exit code 2 if one is damaged."""
    from rmnb.data import sources

    found = sources.verify(_chosen(patterns))
    for status, name, path in zip(found["status"], found["name"], found["path"], strict=True):
        typer.echo(f"{status}\t{name}\t{path}")
    counts = {status: list(found["status"]).count(status) for status in ("ok", "damaged", "absent")}
    typer.echo(", ".join(f"{count} {status}" for status, count in counts.items()), err=True)
    if counts["damaged"]:
        raise typer.Exit(2)
