"""`rmnb plan`: what scans will take, before anything is fetched."""

from typing import Annotated

import typer

from rmnb.cli.options import Asking, Json, Loading, echo_json
from rmnb.errors import InputError


def plan(
    asking: Asking,
    models: Annotated[list[str] | None, typer.Argument(help="Models. Default: every model of the panel.")] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu or cuda of this machine, or a GPU by name: h100, a100, l4, t4 …")
    ] = None,
    dtype: Annotated[str | None, typer.Option(help="Number format. Default: float32, or a panel's.")] = None,
    json: Json = False,
) -> None:
    """Say what a scan will take before anything is fetched: operations, weights, and a range of times."""
    members = asking.members()
    specs = [Loading().spec(name, members) for name in models or members.model_names]
    questions = asking.questions()
    import pandas as pd

    from rmnb.models.devices import DTYPES
    from rmnb.scoring.plan import find_machine, plan_scan

    if dtype is not None and dtype not in DTYPES:
        raise InputError(f"unknown dtype {dtype!r}: choose one of {', '.join(DTYPES)}", dtype)
    rows, unknown = [], []
    for spec in specs:
        found = plan_scan(spec, questions[0].conversation)
        if found is None:
            unknown.append(spec.name)
            continue
        form = dtype or spec.dtype
        machine = find_machine(device, form, found.widths)
        low, high = machine.seconds(found, form)
        size = found.parameters * DTYPES[form].itemsize
        row = {
            "model": spec.name,
            "machine": machine.name,
            "format": form,
            "tokens": found.tokens,
            "ids": found.fed,
            "TFLOP": found.operations / 1e12,
            "GB": size / 1e9,
            "low": len(questions) * low,
            "high": len(questions) * high,
            "fits": size < 0.95 * machine.memory,
        }
        rows.append(row)
    if not rows:
        raise InputError(
            f"nothing is known of {', '.join(unknown) or 'no model'} before it is fetched: see `rmnb check`"
        )
    table = pd.DataFrame(rows)
    if json:
        return echo_json(table)
    typer.echo(table.drop(columns="fits").to_string(index=False, float_format="{:,.1f}".format))
    low, high = table[["low", "high"]].sum() / 60
    typer.echo(
        f"\nIn all {low:,.1f} to {high:,.1f} minutes. ids: how many each token sends through the network; "
        f"TFLOP: of one scan; GB: weights; low, high: seconds, prompts: {len(questions)}."
    )
    for name in table["model"][~table["fits"]]:
        typer.echo(f"{name} does not fit: try --dtype bfloat16, or --load device_map=auto with rmnb scan")
    if unknown:
        typer.echo(f"Left out, because nothing is known of them before they are fetched: {', '.join(unknown)}")
