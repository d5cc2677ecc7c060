"""The command line: ``rmnb models | score | scan | audit | train | data | run``."""

import json
import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from rmnb import data_cli
from rmnb.errors import InputError
from rmnb.files import cache_dir, check_writable, data_dir
from rmnb.panel import Panel, find_spec, load_panel

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Look inside reward models one token at a time.")

app.add_typer(data_cli.app, name="data")

PanelOption = Annotated[str, typer.Option(help="Name of a panel, or path of your own YAML.")]
PromptOption = Annotated[str, typer.Option(help="Key of a prompt of the panel, or a question in quotes.")]
ProtocolOption = Annotated[str, typer.Option(help="exact: the token's own id. published: as the papers' code.")]
DtypeOption = Annotated[str | None, typer.Option(help="float32, bfloat16 or float16. Default: the model's own.")]
ModelArgument = Annotated[str, typer.Argument(help="Nickname in a panel, hub id owner/name, or checkpoint directory.")]


def main() -> None:
    """Run the command line: a user's mistake is one line on stderr and exit code 2."""
    logging.basicConfig(format="rmnb: %(message)s", level=logging.WARNING)
    try:
        app()
    except InputError as error:
        print(f"rmnb: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("rmnb: interrupted; the same command goes on where it stopped", file=sys.stderr)
        sys.exit(130)


@app.command()
def models(panel: PanelOption = "demo") -> None:
    """List a panel's models."""
    rows = [["model", "base", "recipe", "pairs", "steps", "held-out accuracy"]]
    for spec in load_panel(panel).models:
        row = [spec.name, spec.base or spec.source or "", spec.recipe or "", "", "", ""]
        described = data_dir() / (spec.adapter or "-") / "provenance.json"
        if described.exists():
            provenance = json.loads(described.read_text())
            row[3:5] = str(provenance["pairs"]), str(provenance["steps"])
            if evaluation := provenance.get("evaluation"):
                measured = evaluation["held_out"]["all"]
                row[5] = f"{measured['value']:.3f} [{measured['low']:.3f}, {measured['high']:.3f}]"
        rows.append(row)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@app.command()
def score(
    model: ModelArgument,
    responses: Annotated[list[str], typer.Argument(help="Texts to score.")],
    prompt: PromptOption = "greatest",
    protocol: ProtocolOption = "exact",
    panel: PanelOption = "demo",
    dtype: DtypeOption = None,
) -> None:
    """Print the reward of each response."""
    from rmnb.models import load_reward_model

    question, spec = load_panel(panel).prompt(prompt), find_spec(model, _if_named(panel))
    rewards = load_reward_model(spec, dtype=dtype).score(question.text, responses, protocol)
    for response, reward in zip(responses, rewards, strict=True):
        typer.echo(f"{reward:12.6f}  {response!r}")


@app.command()
def scan(
    model: ModelArgument,
    prompt: PromptOption = "greatest",
    out: Annotated[Path | None, typer.Option(help="Parquet file. Default: the panel's own store of scores.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only ids below this one.")] = None,
    protocol: ProtocolOption = "exact",
    panel: PanelOption = "demo",
    dtype: DtypeOption = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Tokens at once. Default: from free memory.")] = None,
) -> None:
    """Score every token of a vocabulary. Interrupted, the same command goes on where it stopped."""
    from rmnb import store

    members = load_panel(panel)
    question = members.prompt(prompt)
    spec = find_spec(model, _if_named(panel))
    if out is None and (question.key == "custom" or limit or spec.name not in members.model_names):
        raise InputError("a scan with a limit, a question of your own or a model outside the panel needs --out FILE")
    if out is not None and out.suffix != ".parquet":
        raise InputError(f"--out {out}: scans are Parquet files, choose a name that ends with .parquet")
    path = out or store.scores_path(members, spec.name, question.key, protocol)
    check_writable(path)
    from rmnb.models import load_reward_model  # only now: what is wrong so far is said without waiting for torch
    from rmnb.scanning import scan_vocabulary

    rm = load_reward_model(spec, dtype=dtype)
    if path.exists():
        _refuse_other(
            path,
            {
                "weights_sha256": rm.weights_sha256,
                "prompt": question.text,
                "protocol": protocol,
                "dtype": rm.spec.dtype,
                "tokens": min(limit or rm.vocabulary_size, rm.vocabulary_size),
            },
        )
        typer.echo(f"{path} is already complete")
        return
    frame = scan_vocabulary(rm, question, protocol, limit, path, batch_size, progress=True)
    provenance = frame.attrs["provenance"]
    if out is None:
        store.write_scores(members, frame, provenance)
    else:
        store.write_scan(out, frame, provenance)
    store.Shards.discard(path)
    ranked = frame.sort_values("score", kind="stable")
    typer.echo(f"{len(frame):,} tokens in {path}")
    typer.echo("optimal:  " + " ".join(repr(token) for token in ranked["token"].iloc[:-6:-1]))
    typer.echo("pessimal: " + " ".join(repr(token) for token in ranked["token"].iloc[:5]))


@app.command()
def audit(
    models: Annotated[list[str] | None, typer.Argument(help="Models to audit. Default: all of the panel.")] = None,
    panel: PanelOption = "demo",
    sample: Annotated[int, typer.Option(min=1, help="Tokens of each scan to score again.")] = 64,
    seed: int = 0,
) -> None:
    """Score a random sample of the shipped tokens again, from the weights. Exit code 1 if they disagree."""
    from rmnb.audit import audit_panel

    report = audit_panel(panel, sample, seed, models)
    if report.empty:
        raise InputError(f"panel {panel!r} has no scores to audit: run `rmnb scan` first")
    typer.echo(report.to_string(index=False, float_format="{:.1e}".format))
    if (report["verdict"] != "ok").any():
        print(f"rmnb: {(report['verdict'] != 'ok').sum()} of {len(report)} scans disagree", file=sys.stderr)
        raise typer.Exit(1)


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
        str | None, typer.Argument(help="Model to train. Default: those of the panel without adapter.")
    ] = None,
    panel: PanelOption = "demo",
    out: Annotated[Path | None, typer.Option(help="Directory for the adapter. Default: the panel's.")] = None,
) -> None:
    """Train reward models by their recipes; interrupted, the same command goes on from the last checkpoint."""
    members = load_panel(panel)
    trainable = [spec for spec in members.models if spec.recipe and spec.adapter]
    todo = [spec for spec in trainable if not (data_dir() / str(spec.adapter) / "provenance.json").exists()]
    for spec in [members.model(model)] if model else todo:
        _train(members, spec.name, out)


def _train(panel: Panel, name: str, out: Path | None) -> None:
    from rmnb.evaluation import evaluate
    from rmnb.files import atomic_path
    from rmnb.models import load_reward_model
    from rmnb.recipes import load_recipe
    from rmnb.train import fit

    spec = panel.model(name)
    if spec.recipe is None or spec.adapter is None:
        raise InputError(f"{name} has no recipe: only the demo panel's models can be trained")
    recipe = load_recipe(spec.recipe)
    output = out or data_dir() / spec.adapter
    described = output / "provenance.json"
    if not described.exists():
        fit(spec, recipe, output, cache_dir() / "training" / panel.name / name)
    measured = evaluate(load_reward_model(spec.model_copy(update={"adapter": str(output.resolve())})), recipe, panel)
    provenance = json.loads(described.read_text()) | {"evaluation": measured}
    with atomic_path(described) as path:
        path.write_text(json.dumps(provenance, indent=1) + "\n")
    typer.echo(f"{name}: held-out accuracy {measured['held_out']['all']['value']:.3f}, written to {output}")


def _if_named(panel: str) -> str | None:
    """The panel to look a nickname up in; with the default panel, every shipped panel and other origins count too."""
    return None if panel == "demo" else panel


def _refuse_other(path: Path, asked: dict) -> None:
    from rmnb.store import read_scan

    _, provenance = read_scan(path)
    for key, value in asked.items():
        if provenance[key] != value:
            raise InputError(f"{path} holds another scan (it differs in {key}): delete it, or choose another --out")
