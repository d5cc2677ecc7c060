"""`rmnb plan`: what scans will take, before anything is fetched."""

import functools
import statistics
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from rmnb.cli.options import CompileOption, DtypeOption, PanelOption, PromptsOption, asked, if_named
from rmnb.errors import InputError

if TYPE_CHECKING:
    from rmnb.scoring.pace import ScanEstimate

_WIDTH = 80


def plan(
    models: Annotated[
        list[str] | None,
        typer.Argument(help="Nicknames of the panel, hub ids or directories. Default: every model of the panel."),
    ] = None,
    panel: PanelOption = "demo",
    prompt: PromptsOption = None,
    device: Annotated[
        str | None,
        typer.Option(help="cpu or cuda of this machine, or a GPU by name: h100, a100, l4, t4 … Default: this machine."),
    ] = None,
    dtype: DtypeOption = None,
    compile: CompileOption = None,
) -> None:
    """Say what scans will take before anything is fetched: operations, memory, time."""
    from rmnb.panels import find_spec, load_panel, load_prompts

    members = load_panel(panel)
    specs = [find_spec(name, if_named(panel)) for name in models] if models else list(members.models)
    if not specs:
        raise InputError(f"panel {members.name!r} has no reward models, only language models under `bases`")
    questions = asked(members, prompt)
    from rmnb.models.devices import DTYPES
    from rmnb.models.outline import Outline, outline
    from rmnb.scoring.estimate import Work, shape_of
    from rmnb.scoring.pace import Machine, ScanEstimate

    if dtype is not None and dtype not in DTYPES:
        raise InputError(f"unknown dtype {dtype!r}: choose one of {', '.join(DTYPES)}")
    machine = Machine(device, compile or "auto")

    @functools.cache  # models of one base are alike
    def works(found: Outline) -> list[Work]:
        shape = shape_of(found.network)
        frames = [found.frame(question.conversation) for question in questions]
        return [Work(shape, shape.vocabulary, *frame, shared=found.shared) for frame in frames]

    known = {spec.name: (spec, found) for spec in specs if (found := outline(spec))}
    planned = {
        name: [ScanEstimate(work, dtype or spec.dtype, machine, found.half) for work in works(found)]
        for name, (spec, found) in known.items()
    }
    unknown = ", ".join(spec.name for spec in specs if spec.name not in known)
    if not planned:
        raise InputError(f"nothing is known of {unknown} before it is fetched: `rmnb check` fetches it")
    if prompt:
        totals = {"": len(questions)}
    else:
        totals = {"": 1, "opposite questions": 2} | {
            f"set {key}": len(load_prompts(key)) for key in members.prompt_sets
        }
    _show(planned, totals)
    if unknown:
        _say(f"Left out, because nothing is known of them before they are fetched: {unknown}.")


def _show(planned: "dict[str, list[ScanEstimate]]", totals: dict[str, int]) -> None:
    import pandas as pd

    from rmnb.scoring.pace import duration, tera

    firsts = {name: estimates[0] for name, estimates in planned.items()}
    machine = next(iter(firsts.values())).machine
    rows = [
        {
            "model": name,
            "format": one.dtype,
            "positions": f"{one.work.tokens:,} × {one.work.fed}",
            "TFLOP": tera(one.work.operations),
            "weights": f"{one.weights / 1e9:.1f} GB",
            "memory": f"{one.memory / 1e9:.1f} GB",
            "time": duration(one.seconds),
        }
        for name, one in firsts.items()
    ]
    _say(f"What one scan takes (every token of the vocabulary as the answer to one prompt) on {machine}:")
    typer.echo()
    typer.echo(pd.DataFrame(rows).to_string(index=False))
    typer.echo("\nIn all:")
    for what, count in totals.items():
        scans = f"{_plural(len(rows), 'model')}, {_plural(count, 'prompt')}" + (f" ({what})" if what else "")
        # Prompts differ by a few ids that are run once: of several the mean. Many may repay compiling.
        each = [[replace(one, scans=count) for one in several] for several in planned.values()]
        operations = sum(statistics.fmean(one.operations for one in several) for several in each)
        seconds = sum(statistics.fmean(one.seconds for one in several) for several in each)
        typer.echo(f"  {scans:<44}{tera(count * operations):>9} TFLOP   {duration(count * seconds)}")
    weights = sum(one.weights for one in firsts.values()) / 1e9
    typer.echo()
    for word, meaning in {
        "positions": "tokens × the ids that each sends through the network: its own, and those that close the answer. "
        "The ids of the prompt are sent once for all.",
        "TFLOP": "10¹² additions and multiplications.",
        "weights": f"in this number format, {weights:,.0f} GB in all. Fetching and loading them is not in the time.",
        "memory": "the weights, and what one batch of tokens needs beside them.",
        "time": machine.source,
    }.items():
        _say(f"{word:<11}{meaning}", " " * 11)
    if tight := ", ".join(name for name, one in firsts.items() if one.memory > machine.memory):
        _say(
            f"{machine.memory / 1e9:.0f} GB are too few for {tight}. Choose a number format with fewer bits (--dtype, "
            "or rmnb scan --quantise), or several GPUs (rmnb scan --device-map auto)."
        )


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count > 1)}"


def _say(text: str, indent: str = "") -> None:
    typer.echo(textwrap.fill(text, _WIDTH, subsequent_indent=indent))
