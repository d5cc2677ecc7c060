"""The command line: ``rmnb --help`` lists its commands; those with many options are in modules of their own."""

import logging
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from rmnb import data_cli
from rmnb.check_cli import check
from rmnb.errors import InputError
from rmnb.files import check_writable
from rmnb.logprobs_cli import logprobs
from rmnb.noise_cli import noise
from rmnb.scan_cli import (
    DeviceMapOption,
    DeviceOption,
    DtypeOption,
    ModelArgument,
    PanelOption,
    PresetOption,
    ProtocolOption,
    QuantiseOption,
    if_named,
    load,
    scan,
)
from rmnb.search_cli import search

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Look inside reward models one token at a time.")

app.add_typer(data_cli.app, name="data")
app.command()(scan)
app.command()(check)
app.command()(logprobs)
app.command()(noise)
app.command()(search)

_INTERRUPTED = 130  # what Typer makes of Ctrl-C: the exception itself does not come through

PromptOption = Annotated[str, typer.Option(help="Key of a prompt of the panel, or a question in quotes.")]


def main() -> None:
    """Run the command line: a user's mistake is one line on stderr and exit code 2."""
    logging.basicConfig(format="rmnb: %(message)s", level=logging.WARNING)
    try:
        app()
    except InputError as error:
        print(f"rmnb: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            print("rmnb: interrupted; the same command goes on where it stopped", file=sys.stderr)
        raise


@app.command()
def models(panel: PanelOption = "demo") -> None:
    """List a panel's models, what they were trained on, and how often they prefer what people preferred."""
    from rmnb.panel import load_panel
    from rmnb.training_runs import overview

    members = load_panel(panel)
    if not members.models:
        raise InputError(f"panel {members.name!r} has no reward models, only language models under `bases`")
    table = overview(members)
    typer.echo(table.to_string(index=False))
    for note in table.attrs["notes"]:
        typer.echo(note)


@app.command()
def score(
    model: ModelArgument,
    responses: Annotated[list[str], typer.Argument(help="Texts to score.")],
    prompt: PromptOption = "greatest",
    protocol: ProtocolOption = "exact",
    panel: PanelOption = "demo",
    dtype: DtypeOption = None,
    device: DeviceOption = None,
    device_map: DeviceMapOption = None,
    quantise: QuantiseOption = None,
    preset: PresetOption = None,
) -> None:
    """Print the reward of each response."""
    from rmnb.panel import find_spec, load_panel

    question, spec = load_panel(panel).prompt(prompt), find_spec(model, if_named(panel))
    rm = load(spec, preset, dtype=dtype, device=device, device_map=device_map, quantise=quantise)
    rewards = rm.score(question.text, responses, protocol)
    for response, reward in zip(responses, rewards, strict=True):
        typer.echo(f"{reward:12.6f}  {response!r}")


@app.command()
def score_list(
    model: ModelArgument,
    texts: Annotated[str, typer.Argument(help="elo: rated things. words: words with meanings. training: to watch.")],
    panel: PanelOption = "demo",
) -> None:
    """Score a list of texts with each of its prompts. Interrupted, the same command goes on where it stopped."""
    from rmnb.list_scores import list_path, score_list
    from rmnb.panel import load_panel

    members = load_panel(panel)
    spec = members.model(model)
    check_writable(list_path(members, spec.name, texts))
    from rmnb.models import load_reward_model

    typer.echo(score_list(load_reward_model(spec), members, texts, progress=True))


@app.command()
def audit(
    models: Annotated[list[str] | None, typer.Argument(help="Models to audit. Default: all of the panel.")] = None,
    panel: PanelOption = "demo",
    sample: Annotated[int, typer.Option(min=1, help="Tokens of each scan to score again.")] = 64,
    seed: int = 0,
    accuracy: Annotated[bool, typer.Option("--accuracy", help="Measure held-out accuracies again: minutes.")] = False,
) -> None:
    """Score a random sample of the shipped tokens again, from the weights. Exit code 1 if they disagree."""
    from rmnb.audit import audit_panel

    report = audit_panel(panel, sample, seed, models, accuracy)
    if report.empty:
        raise InputError(f"panel {panel!r} has no scores to audit: run `rmnb scan` first")
    typer.echo(report.to_string(index=False, float_format="{:.1e}".format))
    if (report["verdict"] != "ok").any():
        print(f"rmnb: {(report['verdict'] != 'ok').sum()} of {len(report)} scans disagree", file=sys.stderr)
        raise typer.Exit(1)


@app.command()
def explorer(
    directory: Annotated[Path, typer.Argument(help="Where to write; what is there is replaced.")],
    panel: PanelOption = "demo",
) -> None:
    """Write the data of the book's token explorer: every scan of a panel as small static files."""
    from rmnb.explorer import write_explorer

    typer.echo(write_explorer(panel, directory))


@app.command()
def run(
    notebook: Annotated[Path, typer.Argument(help="A notebook with a cell tagged `parameters`.")],
    out: Annotated[Path, typer.Argument(help="Where to write the executed notebook.")],
    parameter: Annotated[list[str] | None, typer.Option("--parameter", "-p", help="NAME=VALUE, repeatable.")] = None,
) -> None:
    """Execute a notebook, its parameters checked by name and type first."""
    from rmnb.runs import run_notebook

    pairs = [text.partition("=") for text in parameter or []]
    for name, equals, _ in pairs:
        if not equals:
            raise InputError(f"parameter {name!r}: write NAME=VALUE")
    run_notebook(notebook, out, {name: value for name, _, value in pairs})


@app.command()
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
    from rmnb.panel import load_panel
    from rmnb.training_runs import follow, train_model, tune_copy, tuned_copies, unfinished

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
