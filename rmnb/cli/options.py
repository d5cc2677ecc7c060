"""Options that several commands share, and loading a model by them."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmnb.errors import InputError

if TYPE_CHECKING:
    from rmnb.panels import ModelSpec

PanelOption = Annotated[str, typer.Option(help="Name of a panel, or path of your own YAML.")]
ProtocolOption = Annotated[str, typer.Option(help="exact: the token's own id. published: as the papers' code.")]
DtypeOption = Annotated[
    str | None, typer.Option(help="float32, bfloat16, float16 or bfloat16-mixed. Default: the model's own.")
]
ModelArgument = Annotated[str, typer.Argument(help="Nickname in a panel, hub id owner/name, or checkpoint directory.")]
DeviceOption = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 … Default: a GPU if there is one.")]
DeviceMapOption = Annotated[
    str | None, typer.Option(help="Spread the model over several GPUs: auto, balanced, or a JSON mapping.")
]
QuantiseOption = Annotated[str | None, typer.Option(help="8bit or 4bit (needs a GPU and bitsandbytes).")]
CompileOption = Annotated[str | None, typer.Option(help="default (torch.compile) or graphs (and CUDA graphs).")]
SoftcapOption = Annotated[
    str | None,
    typer.Option(
        help="off: leave out the soft-capping of Gemma 2's attention, as the papers' Gemma scores probably did "
        "(inferred from their version of transformers, not documented). Default: on.",
    ),
]
PresetOption = Annotated[str | None, typer.Option(help="t4: what fits a GPU of 16 GB, as on Colab.")]
PromptOption = Annotated[str, typer.Option(help="Key of a prompt of the panel, or a question in quotes.")]


def load(spec: "ModelSpec", preset: str | None = None, **options: Any):
    """The model, loaded with the options that are given, else the preset's, else the model's own."""
    from rmnb.models import devices
    from rmnb.scoring.engine import load_reward_model

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
