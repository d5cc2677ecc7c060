"""`rmnb trace`: the reward after each token of a response."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from rmnb.cli.options import (
    MessagesOption,
    ModelArgument,
    PanelOption,
    PromptOption,
    SystemOption,
    asked,
    if_named,
    load,
    takes_loading_options,
)


@takes_loading_options
def trace(
    model: ModelArgument,
    response: Annotated[str, typer.Option(help="The text whose reward is followed.")],
    prompt: PromptOption = "greatest",
    system: SystemOption = None,
    messages: MessagesOption = None,
    out: Annotated[Path | None, typer.Option(help="Also as a file: .csv the table, .svg or .png a figure.")] = None,
    panel: PanelOption = "demo",
    *,
    loading: Mapping[str, Any],
) -> None:
    """Print the reward after each token of a response, and by how much each token changes it."""
    from rmnb.errors import InputError
    from rmnb.files import atomic_path, check_writable
    from rmnb.panels import find_spec, load_panel
    from rmnb.visible import visible

    if out is not None:
        if out.suffix not in (".csv", ".svg", ".png"):
            raise InputError(f"--out {out}: write .csv for the table, .svg or .png for a figure")
        check_writable(out)
    question = asked(load_panel(panel), None if messages else [prompt], system, messages)[0]
    rm = load(find_spec(model, if_named(panel)), **loading)
    from rmnb.scoring.trace import trace

    table = trace(rm, question.conversation, response)
    first = table.iloc[0]
    typer.echo(f"{first['reward'] - first['change']:12.6f} {'':12}  (no answer yet)")
    for row in table.itertuples():
        typer.echo(f"{row.reward:12.6f} {row.change:+12.6f}  {visible(str(row.token))}")
    if out is None:
        return
    with atomic_path(out) as temporary:
        if out.suffix == ".csv":
            table.to_csv(temporary, index=False)
        else:
            from rmnb.book.figures.style import use_style
            from rmnb.book.figures.trace import draw

            use_style()
            draw(table, f"{rm.name}: {question.text}").savefig(temporary, format=out.suffix[1:])
    typer.echo(f"written to {out}")
