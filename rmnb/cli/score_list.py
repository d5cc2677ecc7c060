"""`rmnb score-list`: a list of texts under many prompts."""

from typing import Annotated

import typer

from rmnb.cli.options import ModelArgument, PanelOption
from rmnb.files import check_writable


def score_list(
    model: ModelArgument,
    texts: Annotated[str, typer.Argument(help="elo: rated things. words: words with meanings. training: to watch.")],
    panel: PanelOption = "demo",
) -> None:
    """Score a list of texts with each of its prompts. Interrupted, the same command goes on where it stopped."""
    from rmnb.panels import load_panel
    from rmnb.scoring.list_scores import list_path, score_list

    members = load_panel(panel)
    spec = members.model(model)
    check_writable(list_path(members, spec.name, texts))
    from rmnb.scoring.conversations import load_reward_model

    typer.echo(score_list(load_reward_model(spec), members, texts, progress=True))
