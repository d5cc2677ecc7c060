"""The command ``rmnb check``: the first thing to run on a new model."""

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from rmnb.cli.options import (
    ModelArgument,
    PanelOption,
    if_named,
    load,
    takes_loading_options,
)

AgainstOption = Annotated[
    str | None,
    typer.Option(
        help="Compare with the same model elsewhere: the address of a server's classify or pooling endpoint, "
        "or a file of JSON lines with prompt, response and reward."
    ),
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Exit with 1 on warnings too.")]


@takes_loading_options
def check(
    model: ModelArgument,
    panel: PanelOption = "demo",
    against: AgainstOption = None,
    strict: StrictOption = False,
    *,
    loading: Mapping[str, Any],
) -> None:
    """Say how a model is read, and score its card's examples: the first thing to run. Exit code 1 if it is wrong."""
    from rmnb.panels import find_spec

    spec = find_spec(model, if_named(panel))
    rm = load(spec, **loading)
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
