"""The command ``rmnb logprobs``: what a language model would say first."""

from pathlib import Path
from typing import Annotated

import typer

from rmnb.cli.options import DtypeOption, PanelOption
from rmnb.errors import InputError
from rmnb.files import check_writable


def logprobs(
    model: Annotated[str, typer.Argument(help="Name in a panel's bases, hub id, checkpoint directory, or demo base.")],
    prompt: Annotated[str, typer.Option(help="Key of a prompt of the panel, or a question in quotes.")] = "greatest",
    wrapping: Annotated[str | None, typer.Option(help="chat, bare or user_assistant. Default: the model's.")] = None,
    out: Annotated[Path | None, typer.Option(help="Parquet file for the whole vocabulary.")] = None,
    panel: PanelOption = "demo",
    dtype: DtypeOption = None,
) -> None:
    """Show the most probable first tokens of a language model's answer; with --out, keep all of them."""
    from rmnb.panels import find_base, load_panel

    members = load_panel(panel)
    question, base = members.prompt(prompt), find_base(members, model)
    if out is not None:
        if out.suffix != ".parquet":
            raise InputError(f"--out {out}: scans are Parquet files, choose a name that ends with .parquet")
        check_writable(out)
    from rmnb.scoring import store
    from rmnb.scoring.logprobs import load_language_model, scan_logprobs

    lm = load_language_model(base, wrapping, dtype)
    scan = scan_logprobs(lm, question)
    if out is not None:
        described = {"wrapping": lm.spec.wrapping, "dtype": lm.spec.dtype, "versions": store.versions()}
        told = {"model": lm.spec.source, "revision": lm.spec.revision, "prompt": question.text, "unit": "natural log"}
        store.write_table(out, scan, told | described)
        typer.echo(f"{len(scan):,} tokens in {out}")
    for row in scan.nlargest(10, "score").itertuples():
        typer.echo(f"{row.score:10.4f}  {row.token!r}")
