"""`rmnb score`: the reward of each response."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from rmnb.cli.options import (
    MessagesOption,
    ModelArgument,
    PanelOption,
    PromptsOption,
    ProtocolOption,
    SystemOption,
    asked,
    if_named,
    load,
    takes_loading_options,
)


@takes_loading_options
def score(
    model: ModelArgument,
    responses: Annotated[list[str], typer.Argument(help="Texts to score.")],
    prompt: PromptsOption = None,
    system: SystemOption = None,
    messages: MessagesOption = None,
    protocol: ProtocolOption = "exact",
    panel: PanelOption = "demo",
    *,
    loading: Mapping[str, Any],
) -> None:
    """Print the reward of each response, under each prompt."""
    from rmnb.panels import find_spec, load_panel

    questions, spec = asked(load_panel(panel), prompt, system, messages), find_spec(model, if_named(panel))
    rm = load(spec, **loading)
    for question in questions:
        if len(questions) > 1:
            typer.echo(question.text)
        for response, reward in zip(responses, rm.score(question.conversation, responses, protocol), strict=True):
            typer.echo(f"{reward:12.6f}  {response!r}")
