"""What several commands ask for: dataclasses whose fields the command line takes as options."""

import functools
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmnb.errors import InputError
from rmnb.files import shipped

if TYPE_CHECKING:
    from rmnb.models.reward_model import RewardModel
    from rmnb.panels import ModelSpec, Panel, PromptSpec

Model = Annotated[
    str,
    typer.Argument(
        help="Hub id owner/name@revision, directory of a checkpoint or an adapter, or nickname of a panel's model."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="As JSON on stdout.")]
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
        from rmnb.panels import load_prompts
        from rmnb.panels.prompt_sets import Turn

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
        return list({one.key + one.text: one for one in asked}.values())


def _read_messages(file: Path) -> "PromptSpec":
    from pydantic import ValidationError

    from rmnb.panels import PromptSpec
    from rmnb.panels.prompt_sets import Turn

    try:
        turns = tuple(Turn.model_validate(message) for message in json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"--messages {file}: {error.strerror}", file) from error
    except (ValueError, TypeError, ValidationError) as error:
        raise InputError(f"--messages {file}: not a JSON list of messages with role and content", file) from error
    if not turns or turns[-1].role != "user":
        raise InputError(f"--messages {file}: the last message must be the user's: it is the question", file)
    return PromptSpec(key="custom", text=turns[-1].content, framing="positive", history=turns[:-1])


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
            help="Any other argument of rmnb.load_reward_model: read=last, softcap=off, compile=default, "
            "device_map=auto, quantise=4bit; repeatable.",
        ),
    ] = None

    @property
    def given(self) -> bool:
        """Whether any option was given."""
        return self != Loading()

    def spec(self, name: str, members: "Panel | None" = None) -> "ModelSpec":
        """The model of that name: of the panel, else as `rmnb.panels.find_spec` finds it."""
        from rmnb.panels import find_spec

        spec = members.model(name) if members and name in members.model_names else find_spec(name)
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

        given = {"dtype": self.dtype, "device": self.device, "base": self.base, "label": self.label}
        for text in self.load or []:
            key, _, value = text.partition("=")
            try:
                given[key] = yaml.safe_load(value)
            except yaml.YAMLError:
                raise InputError(f"--load {text}: write KEY=VALUE", text) from None
        return {key: value for key, value in given.items() if value is not None}

    def model(self, spec: "ModelSpec") -> "RewardModel":
        """The loaded model."""
        arguments = self.arguments()
        if spec.adapter:
            shipped(Path(spec.adapter) / "adapter_model.safetensors", spec.name)  # said before torch is loaded
        from rmnb.scoring.parity import load_reward_model

        if unknown := arguments.keys() - inspect.signature(load_reward_model).parameters.keys():
            names = ", ".join(sorted(unknown))
            raise InputError(f"--load: rmnb.load_reward_model takes no {names}", names)
        return load_reward_model(spec, **arguments)


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameters that are dataclasses are taken field by field, as options."""
    signature = inspect.signature(command)
    bags = {name: one.annotation for name, one in signature.parameters.items() if is_dataclass(one.annotation)}

    @functools.wraps(command)
    def called(**given: Any) -> None:
        for name, bag in bags.items():
            given[name] = bag(**{field.name: given.pop(field.name) for field in fields(bag)})
        command(**given)

    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [one.replace(kind=kind) for name, one in signature.parameters.items() if name not in bags]
    for bag in bags.values():
        parameters += [
            inspect.Parameter(field.name, kind, default=field.default, annotation=field.type) for field in fields(bag)
        ]
    vars(called)["__signature__"] = signature.replace(parameters=parameters)
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called


def echo_json(value: Any) -> None:
    """Write something as JSON on stdout: a table as a list of its rows."""
    if hasattr(value, "to_json"):
        value = json.loads(value.to_json(orient="records"))
    typer.echo(json.dumps(value, ensure_ascii=False, indent=1))
