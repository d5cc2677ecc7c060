"""Merge a LoRA adapter in PEFT's format into the trunk it was trained on.

PEFT itself does the same (a test holds the two equal), but importing it and unwrapping its modules takes longer than
everything else that loading a small model does.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file

from rmnb.errors import InputError
from rmnb.files import shipped
from rmnb.models.head_formats import linear_head
from rmnb.models.heads import LinearHead

_PREFIX = "base_model.model."  # of every tensor that PEFT writes
_TRUNK = "model."  # the trunk's name in the classifiers that transformers derives for decoders


def shipped_adapter(name: str, adapter: str) -> Path:
    """The directory of a model's adapter, given relative to the project's data; InputError if nothing is there."""
    return shipped(Path(adapter) / "adapter_model.safetensors", name).parent


def merge_adapter(trunk: torch.nn.Module, directory: Path) -> LinearHead:
    """Add a reward model's adapter to the trunk's weights, in place, and return its scalar head: see `merge_lora`.

    Raises
    ------
    InputError
        As `merge_lora`, or tensors that do not fit the head.
    """
    return linear_head(merge_lora(trunk, directory), str(directory))


def merge_lora(trunk: torch.nn.Module, directory: Path) -> dict[str, torch.Tensor]:
    """Add an adapter's low-rank updates to the trunk's weights, in place, and return its other tensors by name.

    Each adapted weight W becomes W + (alpha / rank) B A (Hu et al. 2022, section 4.1).

    Parameters
    ----------
    trunk
        The network without head, float32.
    directory
        Holds ``adapter_config.json`` and ``adapter_model.safetensors``.

    Raises
    ------
    InputError
        A variant of LoRA that is not merged here, or tensors that do not fit the trunk.
    """
    config = json.loads((directory / "adapter_config.json").read_text(encoding="utf-8"))
    if config["peft_type"] != "LORA" or config.get("use_dora") or config.get("use_rslora") or config["bias"] != "none":
        raise InputError(f"{directory}: only plain LoRA adapters without bias can be merged")
    scale = config["lora_alpha"] / config["r"]
    tensors = {
        name.removeprefix(_PREFIX): tensor.float()
        for name, tensor in load_file(directory / "adapter_model.safetensors").items()
    }
    for name in [name for name in tensors if name.endswith(".lora_A.weight")]:
        module = name.removesuffix(".lora_A.weight")
        down, up = tensors.pop(name), tensors.pop(f"{module}.lora_B.weight")
        try:
            weight = trunk.get_submodule(module.removeprefix(_TRUNK)).weight
        except AttributeError as error:
            raise InputError(f"{directory}: the base has no layer {module}") from error
        weight.data += scale * (up @ down)
    return tensors
