"""What several commands ask for: dataclasses whose fields the command line takes as options."""

import functools
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from rmnb.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from rmnb.models.reward_model import RewardModel
    from rmnb.panels import ModelSpec, Panel, PromptSpec

Model = Annotated[
    str,
    typer.Argument(
        help="Hub id owner/name@revision, directory of a checkpoint or an adapter, or nickname of a panel's model."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="As JSON on stdout.")]
QuickOption = Annotated[
    bool, typer.Option("--quick", help="A sample of 5,000 tokens and shorter lists: two minutes in place of ten.")
]
PanelName = Annotated[str, typer.Option(help="Name of a panel, or path of your own YAML.")]


@dataclass(frozen=True)
class Asking:
    """Which questions are put."""

    prompt: Annotated[
        list[str] | None,
        typer.Option(help="A question in quotes, or the key of a panel's; repeatable. Default: greatest."),
    ] = None
    system: Annotated[str | None, typer.Option(help="A system prompt, before everything else.")] = None
    messages: Annotated[
        Path | None,
        typer.Option(help='JSON list of {"role": …, "content": …} that ends with the question, in place of --prompt.'),
    ] = None
    panel: PanelName = "demo"

    def members(self) -> "Panel":
        from rmnb.panels import load_panel

        return load_panel(self.panel)

    def questions(self) -> "list[PromptSpec]":
        """Each question once; the name of a prompt set stands for all of its prompts."""
        from rmnb.panels import Turn, load_prompts

        if self.messages is not None:
            if self.prompt:
                raise InputError("give either --prompt or --messages, not both")
            asked = [_read_messages(self.messages)]
        else:
            members, asked = self.members(), []
            for name in self.prompt or ["greatest"]:
                asked += load_prompts(name) if name in members.prompt_sets else [members.prompt(name)]
        if self.system:
            system = Turn(role="system", content=self.system)
            asked = [one.model_copy(update={"key": "custom", "history": (system, *one.history)}) for one in asked]
        return list(dict.fromkeys(asked))


def _read_messages(file: Path) -> "PromptSpec":
    from pydantic import TypeAdapter

    from rmnb.panels import PromptSpec, Turn

    try:
        *before, last = TypeAdapter(tuple[Turn, ...]).validate_json(file.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"--messages {file}: not a JSON list of messages with role and content", file) from error
    if last.role != "user":
        raise InputError(f"--messages {file}: the last message must be the user's: it is the question", file)
    return PromptSpec(key="custom", text=last.content, framing="positive", history=tuple(before))


@dataclass(frozen=True)
class Loading:
    """How a model is loaded."""

    dtype: Annotated[
        str | None,
        typer.Option(
            help="auto (as stored), float32, bfloat16, float16, bfloat16-mixed. Default: float32, or a panel's."
        ),
    ] = None
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 … Default: a GPU if there is one.")] = None
    template: Annotated[Path | None, typer.Option(help="File with the chat template (Jinja).")] = None
    tokenizer: Annotated[Path | None, typer.Option(help="Directory of the tokenizer, if it is another one.")] = None
    base: Annotated[str | None, typer.Option(help="Base of an adapter. Default: what the adapter names.")] = None
    label: Annotated[str | None, typer.Option(help="Which output of a classifier with several: name or number.")] = None
    load: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Any other option of rmnb.load_reward_model, or of from_pretrained of transformers: read=last, "
            "softcap=off, compile=default, device_map=auto; repeatable.",
        ),
    ] = None

    def spec(self, name: str, members: "Panel | None" = None) -> "ModelSpec":
        """The model of that name: of the panel, else as `rmnb.panels.find_spec` finds it."""
        from rmnb.panels import find_spec

        spec = find_spec(name, members)
        changes: dict[str, Any] = {}
        if self.template:
            try:
                changes["template"] = self.template.read_text(encoding="utf-8")
            except (OSError, UnicodeError) as error:
                raise InputError(f"--template {self.template} cannot be read", self.template) from error
        if self.tokenizer:
            changes["tokenizer"] = str(self.tokenizer)
        return spec.model_copy(update=changes)

    def arguments(self) -> dict[str, Any]:
        """What `rmnb.load_reward_model` is given beside the model."""
        import yaml

        own = ("dtype", "device", "base", "label")
        given = {key: value for key in own if (value := getattr(self, key)) is not None}
        for text in self.load or []:
            key, _, value = text.partition("=")
            try:
                given[key] = yaml.safe_load(value)
            except yaml.YAMLError:
                raise InputError(f"--load {text}: write KEY=VALUE", text) from None
        return given

    def model(self, model: "str | ModelSpec", members: "Panel | None" = None) -> "RewardModel":
        """The loaded model, by its name as `spec` takes it, or as `spec` gave it."""
        spec = self.spec(model, members) if isinstance(model, str) else model
        from rmnb.scoring.parity import load_reward_model

        return load_reward_model(spec, **self.arguments())


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters that are dataclasses are taken field by field, as options."""
    asked = inspect.signature(command).parameters.values()
    bags = {each.name: each.annotation for each in asked if hasattr(each.annotation, "__dataclass_fields__")}
    parameters = [parameter for parameter in asked if parameter.name not in bags]
    for bag in bags.values():
        parameters += inspect.signature(bag).parameters.values()

    @functools.wraps(command)
    def called(**given: Any) -> None:
        for name, bag in bags.items():
            given[name] = bag(**{field.name: given.pop(field.name) for field in fields(bag)})
        command(**given)

    keywords = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in parameters]
    vars(called)["__signature__"] = inspect.Signature(keywords)
    return called


def fail(message: str) -> NoReturn:
    """End with a line on stderr and exit code 1: what was asked for is there, and not as it should be."""
    typer.echo(f"rmnb: {message}", err=True)
    raise typer.Exit(1)


def number_name(row: Any) -> str:
    """A number of a report as ``--fail-if`` takes it: its name, and in brackets which of several it is."""
    about = ", ".join(filter(None, (row.other, row.question)))
    return f"{row.name}[{about}]" if about else row.name


def json_rows(table: "pd.DataFrame | None") -> Any:
    """A table as a list of its rows, which JSON can hold."""
    return None if table is None else json.loads(table.to_json(orient="records", double_precision=15))


def echo_json(table: "pd.DataFrame") -> None:
    """Write a table as a JSON list of its rows on stdout."""
    typer.echo(json.dumps(json_rows(table), ensure_ascii=False, indent=1))
