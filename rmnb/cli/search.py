"""`rmnb search`: find the sequences with the highest or the lowest reward."""

from pathlib import Path
from typing import Annotated

import typer

from rmnb.cli.options import (
    DeviceOption,
    DtypeOption,
    ModelArgument,
    PanelOption,
    PresetOption,
    ReadOption,
    if_named,
    load,
)
from rmnb.errors import InputError
from rmnb.files import check_writable


def search(
    model: ModelArgument,
    out: Annotated[Path, typer.Option(help="JSON file for the result.")],
    prompt: Annotated[
        list[str] | None, typer.Option(help="Key of a prompt or a question; repeated: averaged. Default: greatest.")
    ] = None,
    length: Annotated[int, typer.Option(help="Tokens of the response.")] = 8,
    direction: Annotated[str, typer.Option(help="max: the optimal sequence. min: the pessimal one.")] = "max",
    method: Annotated[str, typer.Option(help="gcg, or a baseline: random, exhaustive, beam.")] = "gcg",
    steps: Annotated[int, typer.Option(help="Steps at most.")] = 200,
    budget: Annotated[int | None, typer.Option(help="Sequences to score at most.")] = None,
    width: Annotated[int, typer.Option(help="Candidates of one step.")] = 256,
    allowed: Annotated[str, typer.Option(help="every, all, printable, words, ascii or language.")] = "all",
    script: Annotated[str | None, typer.Option(help="With --allowed language: latin, cyrillic, han …")] = None,
    survive: Annotated[
        bool, typer.Option("--survive/--any-ids", help="Only sequences that their own text gives back, or any ids.")
    ] = True,
    start: Annotated[
        list[str] | None, typer.Option(help="blank, best_repeated, best_mixed, sentence, random; repeatable.")
    ] = None,
    minus: Annotated[str | None, typer.Option(help="Search where the model differs most from this one.")] = None,
    also: Annotated[list[str] | None, typer.Option(help="Search the mean with these models; repeatable.")] = None,
    seed: int = 0,
    panel: PanelOption = "demo",
    dtype: DtypeOption = None,
    device: DeviceOption = None,
    preset: PresetOption = None,
    read: ReadOption = None,
) -> None:
    """Search for the response with the highest or lowest reward. Interrupted, the same command goes on."""
    from rmnb.panels import find_spec, load_panel
    from rmnb.search.config import SearchConfig

    if minus and also:
        raise InputError("give either --minus or --also, not both")
    config = SearchConfig(
        **{"length": length, "direction": direction, "method": method, "steps": steps, "budget": budget},
        **{"width": width, "allowed": allowed, "script": script, "survive": survive, "seed": seed},
        combine="difference" if minus else "mean",
        **({"starts": tuple(start)} if start else {}),
    )
    members = load_panel(panel)
    questions = [members.prompt(text) for text in prompt or ["greatest"]]
    names = [model, *([minus] if minus else []), *(also or [])]
    specs = [find_spec(name, if_named(panel)) for name in names]
    if out.suffix != ".json":
        raise InputError(f"--out {out}: results are JSON files, choose a name that ends with .json")
    check_writable(out)
    if out.exists():
        raise InputError(f"{out} exists: delete it, or choose another --out")
    from rmnb.search.run import optimise
    from rmnb.visible import visible

    models = [load(spec, preset, dtype=dtype, device=device, read=read) for spec in specs]
    scan = _scan(members, model, questions[0].key) if len(models) == len(questions) == 1 else None
    result = optimise(models, questions, config, scan=scan, output=out, progress=True)
    typer.echo(f"{result.scored:,} sequences scored, the best {len(result.sequences)} in {out}")
    for row in result.sequences.itertuples():
        typer.echo(f"{row.reward:12.6f}  {'' if row.survives else '(not as text) '}{visible(str(row.text))}")


def _scan(panel, model: str, prompt: str):
    """The panel's scan of this model and prompt, or None: a search then finds its best single tokens itself."""
    from rmnb.scoring.store import read_scores, scores_path

    if model not in panel.model_names or prompt == "custom" or not scores_path(panel, model, prompt).exists():
        return None
    return read_scores(panel, model, prompt)
