"""Options that several commands share, and loading a model by them."""

import functools
import inspect
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmnb.errors import InputError
from rmnb.files import shipped

if TYPE_CHECKING:
    from rmnb.panels import ModelSpec, Panel, PromptSpec

PanelOption = Annotated[str, typer.Option(help="Name of a panel, or path of your own YAML.")]
ProtocolOption = Annotated[str, typer.Option(help="exact: the token's own id. published: as the papers' code.")]
DtypeOption = Annotated[
    str | None, typer.Option(help="float32, bfloat16, float16 or bfloat16-mixed. Default: the model's own.")
]
ModelArgument = Annotated[
    str,
    typer.Argument(help="Nickname in a panel, hub id owner/name[@revision], or directory of a checkpoint or adapter."),
]
DeviceOption = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 … Default: a GPU if there is one.")]
DeviceMapOption = Annotated[
    str | None, typer.Option(help="Spread the model over several GPUs: auto, balanced, or a JSON mapping.")
]
QuantiseOption = Annotated[str | None, typer.Option(help="8bit or 4bit (needs a GPU and bitsandbytes).")]
CompileOption = Annotated[
    str | None,
    typer.Option(
        help="default (torch.compile), graphs (and CUDA graphs), none, or auto: on a processor, where it repays. "
        "Default: auto."
    ),
]
SoftcapOption = Annotated[
    str | None,
    typer.Option(
        help="off: leave out the soft-capping of Gemma 2's attention, as the papers' Gemma scores probably did "
        "(inferred from their version of transformers, not documented). Default: on.",
    ),
]
ReadOption = Annotated[
    str | None,
    typer.Option(
        help="model: the reward is read where the checkpoint's own code reads. last: at the last id. "
        "Default: the panel's, else model."
    ),
]
BaseOption = Annotated[
    str | None, typer.Option(help="Base of an adapter, hub id or directory. Default: what the adapter names.")
]
LabelOption = Annotated[int | None, typer.Option(min=0, help="Which output of a classifier with several is scored.")]
PresetOption = Annotated[str | None, typer.Option(help="t4: what fits a GPU of 16 GB, as on Colab.")]
#: What says how a model is loaded, in the commands that score one.
LOADING = {
    "dtype": DtypeOption,
    "device": DeviceOption,
    "device_map": DeviceMapOption,
    "quantise": QuantiseOption,
    "preset": PresetOption,
    "read": ReadOption,
    "base": BaseOption,
    "label": LabelOption,
}
PromptOption = Annotated[str, typer.Option(help="Key of a prompt of the panel, or a question in quotes.")]
PromptsOption = Annotated[
    list[str] | None,
    typer.Option("--prompt", help="Key of a prompt of the panel, or a question; repeatable. Default: greatest."),
]
SystemOption = Annotated[str | None, typer.Option(help="A system prompt before the question.")]
MessagesOption = Annotated[
    Path | None,
    typer.Option(help='JSON list of {"role": …, "content": …} that ends with the question, in place of --prompt.'),
]


def asked(
    members: "Panel", prompts: Sequence[str] | None, system: str | None = None, messages: Path | None = None
) -> "list[PromptSpec]":
    """The questions that a command puts, each once; the name of a prompt set stands for all of its prompts.

    With a system prompt or earlier turns they are the user's own.
    """
    from pydantic import ValidationError

    from rmnb.panels import PromptSpec, Turn, load_prompts

    turns = (Turn(role="system", content=system),) if system else ()
    if messages is None:
        sets = {name: load_prompts(name) for name in members.prompt_sets}
        named = [sets.get(name) or [members.prompt(name)] for name in dict.fromkeys(prompts or ["greatest"])]
        found = list({prompt.key + prompt.text: prompt for several in named for prompt in several}.values())
        return [prompt.model_copy(update={"key": "custom", "history": turns}) if turns else prompt for prompt in found]
    if prompts:
        raise InputError("give either --prompt or --messages, not both")
    try:
        read = tuple(Turn.model_validate(message) for message in json.loads(messages.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"--messages {messages}: {error.strerror}") from error
    except (ValueError, TypeError, ValidationError) as error:
        raise InputError(f"--messages {messages}: not a JSON list of messages with role and content") from error
    if not read or read[-1].role != "user":
        raise InputError(f"--messages {messages}: the last message must be the user's: it is the question")
    return [PromptSpec(key="custom", text=read[-1].content, framing="positive", history=(*turns, *read[:-1]))]


def takes_loading_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `LOADING`; it takes those that were given as the mapping `loading`, for `load`."""

    @functools.wraps(command)
    def called(**arguments: Any) -> None:
        loading = {name: value for name in LOADING if (value := arguments.pop(name)) is not None}
        command(**arguments, loading=loading)

    signature = inspect.signature(command)
    own = [one for name, one in signature.parameters.items() if name != "loading"]
    kind = inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter(name, kind, default=None, annotation=option) for name, option in LOADING.items()]
    parameters = [one.replace(kind=kind) for one in own] + added
    vars(called)["__signature__"] = signature.replace(parameters=parameters)
    called.__annotations__ = {one.name: one.annotation for one in parameters}
    return called


def load(spec: "ModelSpec", preset: str | None = None, **options: Any):
    """The model, loaded with the options that are given, else the preset's, else the model's own."""
    if spec.adapter:
        shipped(Path(spec.adapter) / "adapter_model.safetensors", spec.name)  # said before torch is loaded
    from rmnb.models import devices
    from rmnb.scoring.conversations import load_reward_model

    chosen = devices.preset(preset, spec.parameters) if preset else {}
    chosen |= {name: value for name, value in options.items() if value is not None}
    if str(chosen.get("device_map", "")).startswith("{"):
        try:
            chosen["device_map"] = json.loads(chosen["device_map"])
        except ValueError as error:
            raise InputError(f"--device-map is no JSON: {error}") from error
    return load_reward_model(spec, **chosen)


def if_named(panel: str) -> str | None:
    """The panel to look a nickname up in; with the default panel, every shipped panel and other origins count too."""
    return None if panel == "demo" else panel
