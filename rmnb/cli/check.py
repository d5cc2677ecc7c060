"""The command ``rmnb check``: the first thing to run on a new model."""

import sys
from typing import Annotated

import typer

from rmnb.cli.options import (
    BaseOption,
    DeviceMapOption,
    DeviceOption,
    DtypeOption,
    LabelOption,
    ModelArgument,
    PanelOption,
    PresetOption,
    QuantiseOption,
    ReadOption,
    if_named,
    load,
)

AgainstOption = Annotated[
    str | None,
    typer.Option(
        help="Compare with the same model elsewhere: the address of a server's classify or pooling endpoint, "
        "or a file of JSON lines with prompt, response and reward."
    ),
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Exit with 1 on warnings too.")]


def check(
    model: ModelArgument,
    panel: PanelOption = "demo",
    dtype: DtypeOption = None,
    device: DeviceOption = None,
    device_map: DeviceMapOption = None,
    quantise: QuantiseOption = None,
    preset: PresetOption = None,
    read: ReadOption = None,
    base: BaseOption = None,
    label: LabelOption = None,
    against: AgainstOption = None,
    strict: StrictOption = False,
) -> None:
    """Say how a model is read, and score its card's examples: the first thing to run. Exit code 1 if it is wrong."""
    from rmnb.panels import find_spec

    spec = find_spec(model, if_named(panel))
    placed = {"device": device, "device_map": device_map, "quantise": quantise}
    rm = load(spec, preset, dtype=dtype, read=read, base=base, label=label, **placed)
    from rmnb.scoring.check import check_model

    findings = check_model(rm)
    if against:
        from rmnb.scoring.against import check_against

        findings.append(check_against(rm, against))
    for finding in findings:
        typer.echo(f"{finding.verdict:8} {finding.aspect:13} {finding.text}")
    bad = [finding for finding in findings if finding.verdict in (("failed", "warning") if strict else ("failed",))]
    if bad:
        print(f"rmnb: {spec.name}: {len(bad)} of {len(findings)} findings are bad", file=sys.stderr)
        raise typer.Exit(1)
