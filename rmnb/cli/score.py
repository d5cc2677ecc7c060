"""`rmnb score`: the reward of each response."""

from typing import Annotated

import typer

from rmnb.cli.options import (
    BaseOption,
    DeviceMapOption,
    DeviceOption,
    DtypeOption,
    LabelOption,
    MessagesOption,
    ModelArgument,
    PanelOption,
    PresetOption,
    PromptsOption,
    ProtocolOption,
    QuantiseOption,
    ReadOption,
    SystemOption,
    asked,
    if_named,
    load,
)


def score(
    model: ModelArgument,
    responses: Annotated[list[str], typer.Argument(help="Texts to score.")],
    prompt: PromptsOption = None,
    system: SystemOption = None,
    messages: MessagesOption = None,
    protocol: ProtocolOption = "exact",
    panel: PanelOption = "demo",
    dtype: DtypeOption = None,
    device: DeviceOption = None,
    device_map: DeviceMapOption = None,
    quantise: QuantiseOption = None,
    preset: PresetOption = None,
    read: ReadOption = None,
    base: BaseOption = None,
    label: LabelOption = None,
) -> None:
    """Print the reward of each response, under each prompt."""
    from rmnb.panels import find_spec, load_panel

    questions, spec = asked(load_panel(panel), prompt, system, messages), find_spec(model, if_named(panel))
    placed = {"device": device, "device_map": device_map, "quantise": quantise}
    rm = load(spec, preset, dtype=dtype, read=read, base=base, label=label, **placed)
    for question in questions:
        if len(questions) > 1:
            typer.echo(question.text)
        for response, reward in zip(responses, rm.score(question.conversation, responses, protocol), strict=True):
            typer.echo(f"{reward:12.6f}  {response!r}")
