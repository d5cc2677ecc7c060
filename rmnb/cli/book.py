"""``rmnb book``: the commands behind the book's own panel, data and pages."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from rmnb.cli.options import Loading, Model, PanelName
from rmnb.errors import InputError

app = typer.Typer(no_args_is_help=True, help="What serves the book: its panel, audit, data, trainings and notebooks.")


@app.command()
def models(panel: PanelName = "demo") -> None:
    """List a panel's models, what they were trained on, and how often they prefer what people preferred."""
    from rmnb.files import CLONE
    from rmnb.panels import load_panel
    from rmnb.training.runs import overview

    members = load_panel(panel)
    if not members.models:
        raise InputError(f"panel {members.name!r} has no reward models, only language models under `bases`")
    table = overview(members)
    typer.echo(table.to_string(index=False, float_format="{:.3f}".format, na_rep=""))
    if table["pairs"].isna().all():
        typer.echo(f"no adapter of these models is here: {CLONE}")


@app.command()
def audit(
    models: Annotated[list[str] | None, typer.Argument(help="Models to audit. Default: all of the panel.")] = None,
    panel: PanelName = "demo",
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


@app.command()
def lists(
    model: Model,
    texts: Annotated[str, typer.Argument(help="elo: rated things. words: words with meanings. training: to watch.")],
    panel: PanelName = "demo",
) -> None:
    """Score one of the panel's lists with each of its prompts. Interrupted, the same command goes on."""
    from rmnb.files import check_writable
    from rmnb.panels import load_panel
    from rmnb.scoring.list_scores import list_path, score_list

    members = load_panel(panel)
    spec = members.model(model)
    check_writable(list_path(members, spec.name, texts))
    typer.echo(score_list(Loading().model(spec), members, texts, progress=True))


@app.command()
def explorer(
    directory: Annotated[Path, typer.Argument(help="Where to write; what is there is replaced.")],
    panel: PanelName = "demo",
) -> None:
    """Write the data of the token explorer: every scan of a panel as small static files."""
    from rmnb.book.explorer import write_explorer

    typer.echo(write_explorer(panel, directory))


@app.command()
def data(
    action: Annotated[Literal["list", "pull", "verify"], typer.Argument()] = "list",
    patterns: Annotated[list[str] | None, typer.Argument(help="Only files with one of these in their names.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Pull also files of unknown size: gigabytes.")] = False,
) -> None:
    """List the external data, fetch what is not here, or check it against its hashes (exit code 2 if damaged)."""
    from rmnb.data import sources

    pins = {name: pin for name, pin in sources.pins().items() if not patterns or any(text in name for text in patterns)}
    if not pins:
        texts = " or ".join(map(repr, patterns or []))
        raise InputError(f"no data file has {texts} in its name: see `rmnb book data list`")
    if action == "verify":
        found = sources.verify(pins)
        for status, name, path in zip(found["status"], found["name"], found["path"], strict=True):
            typer.echo(f"{status}\t{name}\t{path}")
        counts = found["status"].value_counts()
        typer.echo(", ".join(f"{counts.get(status, 0)} {status}" for status in ("ok", "damaged", "absent")), err=True)
        raise typer.Exit(2 if counts.get("damaged", 0) else 0)
    for name, pin in pins.items():
        if action == "list":
            size = f"{pin.bytes / 1000:,.0f} kB" if pin.bytes else "?"
            typer.echo(f"{name}\t{size}\t{pin.use}\t{pin.licence}")
        elif patterns or everything or pin.bytes is not None:
            typer.echo(f"{name}\t{sources.locate(name)}")


@app.command()
def train(
    model: Annotated[
        str | None, typer.Argument(help="Model to train. Default: all of the panel that are not finished.")
    ] = None,
    panel: PanelName = "demo",
    out: Annotated[Path | None, typer.Option(help="Directory for the adapter. Default: the panel's.")] = None,
) -> None:
    """Train reward models by their recipes, or tune copies of language models on the answers that people chose.

    Interrupted, the same command goes on from the last checkpoint.
    """
    from rmnb.panels import load_panel
    from rmnb.training.runs import follow, train_model, unfinished

    members = load_panel(panel)
    for name in [model] if model else unfinished(members):
        measured = train_model(members, name, out)
        typer.echo(f"{name}: held-out accuracy {measured['held_out']['all']['value']:.3f}")
        if out is None and (path := follow(members, name)):
            typer.echo(f"{name}: trajectory in {path}")


@app.command()
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
            raise InputError(f"parameter {name!r}: write NAME=VALUE", name)
    try:
        run_notebook(notebook, out, {name: value for name, _, value in pairs})
    except PapermillExecutionError as error:
        print(f"rmnb: {notebook.name}: {failure(error)}", file=sys.stderr)
        raise typer.Exit(1) from None
