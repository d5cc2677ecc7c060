"""`rmnb score`: the reward of each response."""

from typing import Annotated

import typer

from rmnb.cli.options import (
    DeviceMapOption,
    DeviceOption,
    DtypeOption,
    ModelArgument,
    PanelOption,
    PresetOption,
    PromptOption,
    ProtocolOption,
    QuantiseOption,
    if_named,
    load,
)


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
    from rmnb.panels import find_spec, load_panel

    question, spec = load_panel(panel).prompt(prompt), find_spec(model, if_named(panel))
    rm = load(spec, preset, dtype=dtype, device=device, device_map=device_map, quantise=quantise)
    rewards = rm.score(question.text, responses, protocol)
    for response, reward in zip(responses, rewards, strict=True):
        typer.echo(f"{reward:12.6f}  {response!r}")
