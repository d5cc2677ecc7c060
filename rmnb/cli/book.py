"""``rmnb book``: the commands behind the book's own panel, data and pages."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Exit, Option, Typer, echo

from rmnb.cli.options import Json, Loading, Model, PanelName, Restart, echo_table, fail, flat, key_values, need
from rmnb.cli.scan import show_plans
from rmnb.errors import InputError, LackError, TooFewError
from rmnb.files import CLONE
from rmnb.panels import load_panel

TRAINING = ("datasets", "sklearn", "trl")  # what only the extra `train` installs

app = Typer(no_args_is_help=True, help="Commands that build and check the book.")


def models(panel: PanelName = "demo") -> None:
    """List a panel's models, what they were trained on, and how often they prefer what people preferred."""
    from rmnb.training.runs import overview

    table = overview(load_panel(panel).require(models=1)).dropna(axis="columns", how="all")
    counts = table.select_dtypes("Int64")
    table[counts.columns] = counts.astype("string").fillna("none")
    echo_table(table)
    if "steps" not in table:
        echo(f"nothing more is known of them here: {CLONE}")
    else:
        echo("none: not measured; apart: only of recipes with held-out pairs that share no text with training")


def plan(panel: PanelName = "demo", device: str | None = None, dtype: str | None = None, json: Json = False) -> None:
    """Say what all that `make book PANEL=…` scores will take, as `rmnb plan` says it of a scan.

    Parameters
    ----------
    device
        cpu or cuda of this machine, or a GPU by name: h100, a100, l4, t4 …
    dtype
        Number format. Default: the panel's.
    """
    from rmnb.data.list_scores import book_answers

    members = load_panel(panel)
    show_plans(members.models, members.scanned_prompts, book_answers(members), device, dtype, json)


def audit(
    models: Annotated[list[str] | None, Argument(help="Models to audit. Default: all of the panel.")] = None,
    panel: PanelName = "demo",
    accuracy: bool = False,
) -> None:
    """Score a random sample of the shipped tokens again, from the weights. Exit code 1 if they disagree.

    Parameters
    ----------
    accuracy
        Measure held-out accuracies again: minutes.
    """
    from rmnb.report.audit import audit_panel

    report = audit_panel(panel, models=models, accuracy=accuracy)
    if report.empty:
        raise InputError(f"panel {panel!r} has no scores to audit: run `rmnb scan` first")
    echo_table(report, "{:.1e}")
    if wrong := (report["verdict"] != "ok").sum():
        fail(f"{wrong} of {len(report)} scans disagree")


def lists(model: Model, texts: list[str], loading: Loading) -> None:
    """Score some of the panel's lists with each of their prompts. Interrupted, the same command goes on.

    Parameters
    ----------
    texts
        elo (rated things), words (agency, communion, identity), identity_pairs (answers about one group of people after
        another) or training (scored at each saved step).
    """
    from rmnb.data.list_scores import score_list
    from rmnb.findings.identity import score_pairs

    members = load_panel(loading.panel)
    rm = loading.model(members.model(model).name)
    for name in texts:
        echo(score_pairs(rm, members) if name == "identity_pairs" else score_list(rm, members, name, progress=True))


def explorer(directory: Path, panel: PanelName = "demo") -> None:
    """Write the data of the token explorer: every scan of a panel as small static files.

    Parameters
    ----------
    directory
        Where to write; an explorer that is there is replaced.
    """
    from rmnb.book.explorer import write_explorer

    echo(write_explorer(panel, directory))


def data(
    action: Annotated[Literal["list", "pull", "verify"], Argument(help="What to do with them.")] = "list",
    patterns: Annotated[list[str] | None, Argument(help="Only files with one of these in their names.")] = None,
) -> None:
    """List the external data, fetch what is not here, or check it against its hashes (exit code 2 if damaged).

    Files of unknown size, which may be gigabytes, are fetched by name only.
    """
    from rmnb.data import sources

    pins = {name: pin for name, pin in sources.pins().items() if not patterns or any(text in name for text in patterns)}
    if not pins:
        raise InputError(f"no data file has one of {patterns} in its name: see `rmnb book data list`")
    if action == "verify":
        states = sources.verify(pins)
        echo(states[["status", "name", "path"]].to_csv(sep="\t", header=False, index=False), nl=False)
        raise Exit(2 if "damaged" in set(states["status"]) else 0)
    for name, pin in pins.items():
        if action == "list":
            size = f"{pin.bytes / 1000:,.0f} kB" if pin.bytes else "?"
            echo(f"{name}\t{size}\t{pin.use}\t{pin.licence}")
        elif patterns or pin.bytes:
            echo(f"{name}\t{sources.locate(name)}")


def train(
    model: Annotated[
        str | None, Argument(help="Model to train. Default: all of the panel that are not finished.")
    ] = None,
    panel: PanelName = "demo",
    out: Path | None = None,
    restart: Restart = False,
) -> None:
    """Train reward models by their recipes, or tune copies of language models on the answers that people chose.

    Interrupted, the same command goes on from the last checkpoint, or with the next measurement of a trained model.

    Parameters
    ----------
    out
        Directory for the adapter. Default: the panel's.
    """
    need(*TRAINING)
    from rmnb.training.runs import follow, train_model, unfinished

    members = load_panel(panel)
    for name in [model] if model else unfinished(members):
        measured = train_model(members, name, out, restart)
        echo(f"{name}: held-out accuracy {measured['held_out']['all']['value']:.3f}")
        if out is None and (path := follow(members, name)):
            echo(f"{name}: trajectory in {path}")


def run(
    notebook: Path,
    out: Path,
    parameter: Annotated[list[str] | None, Option("--parameter", "-p", help="NAME=VALUE, repeatable.")] = None,
    leave_out: bool = False,
) -> None:
    """Execute a notebook, its parameters checked by name and type first; a cell that fails is shown with its error.

    Parameters
    ----------
    notebook
        A notebook with a cell tagged `parameters`.
    out
        Where to write the executed notebook.
    leave_out
        Where the panel lacks what a chapter needs, write a page that says so.
    """
    from rmnb.book import results
    from rmnb.book.notebook import run_notebook

    try:
        run_notebook(notebook, out, key_values("--parameter", parameter, read=str))
    except (LackError, TooFewError) as error:
        if not leave_out:
            raise
        results.leave_out(notebook, out, str(error))
        echo(f"left out: {error}")


for command in (models, plan, audit, lists, explorer, data, train, run):
    app.command()(flat(command))
