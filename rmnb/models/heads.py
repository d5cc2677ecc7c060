"""Heads: from the hidden state at the position that is read to the reward, always in fp32.

Here are the heads that read one hidden state; `rmnb.models.gated_heads` has those that weigh objectives by the prompt,
and `rmnb.models.head_formats` finds out which head a checkpoint's tensors belong to. Nothing of a checkpoint's own code
runs.

Sources, read for the formulas only: ``AutoModelForSequenceClassification`` (transformers) and OpenRLHF's
``get_llm_for_sequence_regression`` for the linear head; ``rewardbench/models/inform.py`` (allenai/reward-bench) for
INF-ORM; ``rewardbench/models/grm.py`` and ``rm_eval/grm_utils.py`` (YangRui2015/Generalizable-Reward-Model) for GRM's
value head, which is TRL's with hidden layers; SGLang's ``LlamaForSequenceClassificationWithNormal_Weights``, which
SGLang tests against the model's own code, for URM.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import torch
from jaxtyping import Float
from safetensors import safe_open
from torch import Tensor

from rmnb.errors import InputError, few
from rmnb.models.dialogue import Dialogue


def _moved(value: Any, device: torch.device | str) -> Any:
    """A value with every tensor inside on a device."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, tuple):
        return tuple(_moved(each, device) for each in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return dataclasses.replace(value, **{each.name: _moved(getattr(value, each.name), device) for each in fields})
    return value


class Head:
    """What all heads share.

    Attributes
    ----------
    name : str
        Its name in `rmnb.models.head_formats.FORMATS` and in a panel's key ``head``.
    """

    name: str

    def to(self, device: torch.device | str) -> Self:
        """The head with its tensors on a device."""
        return _moved(self, device)


@dataclass(frozen=True)
class LinearHead(Head):
    """reward = weight · hidden + bias, what ``AutoModelForSequenceClassification`` with one label computes."""

    weight: Float[Tensor, " hidden"]
    bias: Float[Tensor, ""] | None = None
    name: str = "linear"

    def __call__(self, hidden: Float[Tensor, "batch hidden"]) -> Float[Tensor, " batch"]:
        reward = hidden.float() @ self.weight
        return reward if self.bias is None else reward + self.bias


@dataclass(frozen=True)
class Layer:
    """One fully connected layer; `scale` and `shift` are a batch normalisation that follows the activation."""

    weight: Float[Tensor, "out inputs"]
    bias: Float[Tensor, " out"] | None = None
    scale: Float[Tensor, " out"] | None = None
    shift: Float[Tensor, " out"] | None = None


@dataclass(frozen=True)
class Mlp:
    """Layers with an activation after each but the last, in fp32."""

    layers: tuple[Layer, ...]
    activation: Literal["relu", "selu"] = "relu"

    def __call__(self, inputs: Float[Tensor, "batch inputs"]) -> Float[Tensor, "batch outputs"]:
        values = inputs.float()
        for index, layer in enumerate(self.layers):
            values = torch.nn.functional.linear(values, layer.weight, layer.bias)
            if index < len(self.layers) - 1:
                values = getattr(torch.nn.functional, self.activation)(values)
            if layer.scale is not None and layer.shift is not None:
                values = values * layer.scale + layer.shift
        return values


@dataclass(frozen=True)
class MlpHead(Head):
    """reward = MLP(hidden), one output: GRM's and TRL's value head, INF-ORM."""

    mlp: Mlp
    name: str

    def __call__(self, hidden: Float[Tensor, "batch hidden"]) -> Float[Tensor, " batch"]:
        return self.mlp(hidden)[:, 0]


@dataclass(frozen=True)
class UrmHead(Head):
    """reward = Σ weights(hidden) × means · hidden, over URM's attributes, of whose distributions the means count.

    Unlike the gates of `rmnb.models.gated_heads`, the weights are an MLP over the very hidden state that is scored,
    and are not normalised.
    """

    means: Float[Tensor, "attributes hidden"]
    weights: Mlp
    name: str = "urm"

    def __call__(self, hidden: Float[Tensor, "batch hidden"]) -> Float[Tensor, " batch"]:
        return (hidden.float() @ self.means.T * self.weights(hidden)).sum(-1)


@dataclass(frozen=True)
class Checkpoint:
    """What a head is read from.

    Attributes
    ----------
    tensors
        By name, those that the trunk did not take.
    config
        ``config.json``.
    where
        The checkpoint, for messages.
    dialogue
        The model's, for gates; an adapter's head needs none.
    label
        Which output is the reward, where a linear head has several.
    """

    tensors: dict[str, Tensor]
    config: dict[str, Any]
    where: str
    dialogue: Dialogue | None = None
    label: int | None = None

    def tensor(self, name: str, *shape: int | None) -> Tensor:
        """A tensor in fp32; InputError if its shape is not the expected one, in which None stands for any number."""
        tensor = self.tensors[name]
        if tensor.ndim != len(shape) or any(
            want not in (None, have) for have, want in zip(tensor.shape, shape, strict=True)
        ):
            expected = ", ".join("any" if size is None else str(size) for size in shape)
            raise InputError(f"{self.where}: {name} has the shape {list(tensor.shape)}, expected [{expected}]")
        return tensor.float()

    @property
    def width(self) -> int | None:
        """The size of a hidden state, or None if the configuration does not say."""
        return self.config.get("hidden_size")


def choose_label(outputs: int, label: int | None, config: Mapping[str, Any], where: str) -> int:
    """Which of a classifier's outputs is the reward: the only one, or the one that is asked for.

    Raises
    ------
    InputError
        There are several and none is asked for, or there is none such.
    """
    names = config.get("id2label") or {}
    known = few([f"{i} ({names.get(str(i), names.get(i, 'unnamed'))})" for i in range(outputs)])
    if label is None and outputs != 1:
        raise InputError(
            f"{where}: the head has {outputs} outputs: it is a classifier with the labels {known}, where a "
            "reward model has one: choose one with --label (`label` in a panel)"
        )
    if label is not None and label >= outputs:
        raise InputError(f"{where}: there is no label {label}: the head's are {known}")
    return label or 0


def read_tensors(directory: Path, names: set[str]) -> dict[str, Tensor]:
    """The named tensors of a checkpoint directory's safetensors files.

    Raises
    ------
    InputError
        The files lack one of them.
    """
    found = {}
    for file in sorted(directory.glob("*.safetensors")):
        with safe_open(file, framework="pt") as tensors:
            found.update({name: tensors.get_tensor(name) for name in names & set(tensors.keys())})
    if missing := sorted(names - set(found)):
        raise InputError(f"{directory}: the weights lack {', '.join(missing)}")
    return found
