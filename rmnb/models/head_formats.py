"""Which head a checkpoint has, by its configuration and the names of its tensors, and how it is read from them.

A format is a set of tensor names, in one or a few layouts. The layout that differs least from what the checkpoint holds
besides its trunk is taken; whatever then is missing or left over is an error that names it.

Not confirmed, because the published checkpoints could not be opened: QRM's configuration files (the temperature is the
configuration's; the value assumed where it has none is given at `_temperature`), the values of ``vhead_*`` in GRM's
-sftreg checkpoints, and URM's names beyond those that SGLang loads. The order of the modules in QRM-Gemma-2-27B's gate
comes from its tensor names; its own code is said to drop a doubled BOS when it scores one sequence alone, which is not
done here. ArmoRM's own code computes its head in the trunk's half precision, the authors of QRM in fp32, as here.
"""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rmnb.errors import InputError, few
from rmnb.models.gated_heads import Gate, GatedHead, gate_pattern
from rmnb.models.heads import Checkpoint, Head, Layer, LinearHead, Mlp, MlpHead, UrmHead, choose_label

_BATCH_NORM_EPSILON = 1e-5  # torch's default, which all public code leaves as it is


@dataclass(frozen=True)
class Layout:
    """Tensor names: those that must be there, those that may, and a prefix of those that this reading leaves aside."""

    required: frozenset[str]
    optional: frozenset[str] = frozenset()
    aside: str | None = None

    def missing(self, found: set[str]) -> list[str]:
        return sorted(self.required - found)

    def left(self, found: set[str]) -> list[str]:
        left = found - self.required - self.optional
        return sorted(name for name in left if self.aside is None or not name.startswith(self.aside))


@dataclass(frozen=True)
class Format:
    """A kind of head: the layouts it is stored in, given the configuration, and how it is built."""

    layouts: Callable[[dict[str, Any]], list[Layout]]
    build: Callable[[Checkpoint], Head]
    by_name_only: bool = False


def find_head(checkpoint: Checkpoint, name: str | None = None) -> Head:
    """The head of a checkpoint.

    Parameters
    ----------
    checkpoint
        Tensors, configuration, dialogue.
    name
        A key of `FORMATS`; without it, the format that fits the tensors best.

    Raises
    ------
    InputError
        A tensor is missing, left over, or of another shape than the format says; each time it is named.
    """
    found = set(checkpoint.tensors)
    formats = {name: FORMATS[name]} if name else {key: kind for key, kind in FORMATS.items() if not kind.by_name_only}
    candidates = [(kind, layout) for kind in formats.values() for layout in kind.layouts(checkpoint.config)]
    kind, layout = min(candidates, key=lambda each: len(each[1].missing(found)) + len(each[1].left(found)))
    missing, left = layout.missing(found), layout.left(found)
    if missing:
        plural = "s" if len(missing) > 1 else ""
        raise InputError(
            f"{checkpoint.where}: no head: expected the tensor{plural} {few(missing)}, "
            f"found besides the trunk: {few(left or sorted(found)) or 'none'}"
        )
    if left:
        raise InputError(f"{checkpoint.where}: tensors that belong to no known head: {few(left)}")
    return kind.build(checkpoint)


def linear_head(tensors: dict[str, Tensor], where: str) -> LinearHead:
    """The scalar head of an adapter: ``score.weight`` [1, hidden] and perhaps ``score.bias`` [1]; see `find_head`."""
    head = find_head(Checkpoint(tensors, {}, where), "linear")
    assert isinstance(head, LinearHead)
    return head


def _parts(*prefixes: str, ends: Iterable[str] = ("weight", "bias")) -> frozenset[str]:
    return frozenset(f"{prefix}.{end}" for prefix in prefixes for end in ends)


# Linear: transformers and TRL's RewardTrainer write `score`; OpenRLHF the name in `value_head_prefix`, in its first
# versions `value_head` without saying so.


def _linear_layouts(config: dict[str, Any]) -> list[Layout]:
    prefixes = dict.fromkeys((config.get("value_head_prefix") or "score", "score", "value_head"))
    return [Layout(frozenset({f"{prefix}.weight"}), frozenset({f"{prefix}.bias"})) for prefix in prefixes]


def _linear(checkpoint: Checkpoint) -> LinearHead:
    """OpenRLHF normalises only when told to; a configuration that says ``normalize_reward`` is told to."""
    name = next(name for name in checkpoint.tensors if name.endswith(".weight"))
    weight = checkpoint.tensor(name, None, checkpoint.width)
    label = choose_label(len(weight), checkpoint.label, checkpoint.config, checkpoint.where)
    bias_name = name.removesuffix("weight") + "bias"
    bias = checkpoint.tensor(bias_name, len(weight))[label] if bias_name in checkpoint.tensors else None
    head = LinearHead(weight[label], bias)
    return _normalised(head, checkpoint) if checkpoint.config.get("normalize_reward") else head


def _linear_normalised(checkpoint: Checkpoint) -> LinearHead:
    raw = {key: value for key, value in checkpoint.config.items() if key != "normalize_reward"}
    return _normalised(_linear(dataclasses.replace(checkpoint, config=raw)), checkpoint)


def _normalised(head: LinearHead, checkpoint: Checkpoint) -> LinearHead:
    """(reward - mean) / std, with OpenRLHF's ``mean`` and ``std`` of the configuration."""
    try:
        mean, std = (float(checkpoint.config[key]) for key in ("mean", "std"))
    except KeyError as error:
        raise InputError(
            f"{checkpoint.where}: normalised rewards need {error} in config.json: use head: linear"
        ) from error
    bias = (torch.zeros(()) if head.bias is None else head.bias) - mean
    return LinearHead(head.weight / std, bias / std, name="linear-normalised")


# Value head: TRL's AutoModelForCausalLMWithValueHead has one layer, GRM's the same with hidden layers and ReLU.
# Dropout is for training.


def _value_head_layouts(config: dict[str, Any]) -> list[Layout]:
    depth = config.get("vhead_num_layers") or 1
    return [
        Layout(_parts("v_head.summary")),
        Layout(_parts(*(f"v_head.summary.{2 * index}" for index in range(depth + 1)))),
    ]


def _value_head(checkpoint: Checkpoint) -> MlpHead:
    return _mlp_head(checkpoint, "v_head.summary", "value-head")


# INF-ORM: Linear, ReLU, Linear.


def _inform_layouts(config: dict[str, Any]) -> list[Layout]:
    return [Layout(_parts("score.0", "score.2"))]


def _inform(checkpoint: Checkpoint) -> MlpHead:
    return _mlp_head(checkpoint, "score", "inform")


def _mlp_head(checkpoint: Checkpoint, prefix: str, name: str) -> MlpHead:
    mlp = _mlp(checkpoint, prefix)
    if (outputs := len(mlp.layers[-1].weight)) != 1:
        raise InputError(f"{checkpoint.where}: {prefix} has {outputs} outputs; a reward model has one")
    return MlpHead(mlp, name)


# URM: ten outputs, the mean and the logarithm of the variance of five attributes in turn, and an MLP with SELU.


def _urm_layouts(config: dict[str, Any]) -> list[Layout]:
    return [Layout(frozenset({"score.weight"}) | _parts("weights.fc.0", "weights.fc.2", "weights.fc.4"))]


def _urm(checkpoint: Checkpoint) -> UrmHead:
    means = checkpoint.tensor("score.weight", None, checkpoint.width)[::2]
    weights = _mlp(checkpoint, "weights.fc", activation="selu")
    if len(weights.layers[-1].weight) != len(means):
        raise InputError(
            f"{checkpoint.where}: score.weight has {len(means)} pairs of outputs and weights.fc "
            f"{len(weights.layers[-1].weight)} outputs: they should be equal"
        )
    return UrmHead(means, weights)


def _urm_plain_layouts(config: dict[str, Any]) -> list[Layout]:
    return [Layout(frozenset({"score.weight"}), aside="weights.")]


def _urm_plain(checkpoint: Checkpoint) -> LinearHead:
    """What transformers computes without URM's own code: its first output alone, the mean of the first attribute."""
    return LinearHead(checkpoint.tensor("score.weight", None, checkpoint.width)[0], name="urm-plain")


# ArmoRM and QRM: rewards of several objectives, weighted by a gate. ArmoRM's gate is an MLP with ReLU; QRM's has a
# batch normalisation behind each ReLU and, in QRM-Gemma-2-27B, dropout between hidden layers, which shifts the numbers.


def _armorm_layouts(config: dict[str, Any]) -> list[Layout]:
    layers = (f"gating.layers.{index}" for index in range(config.get("gating_n_hidden", 3) + 1))
    return [Layout(_parts(*layers) | {"gating.logit_scale", "regression_layer.weight", "reward_transform_matrix"})]


def _qrm_layouts(config: dict[str, Any]) -> list[Layout]:
    hidden = config.get("gating_n_hidden", 3)
    layouts = []
    for step, last in ((3, 3 * hidden), (4, 4 * hidden - 1)):
        norms = [f"gating.layers.{step * index + 2}" for index in range(hidden)]
        layouts.append(
            Layout(
                _parts(*(f"gating.layers.{step * index}" for index in range(hidden)), ends=["weight"])
                | _parts(*norms, ends=["weight", "bias", "running_mean", "running_var"])
                | _parts(f"gating.layers.{last}")
                | {"gating.logit_scale", "regression_layer.weight"},
                optional=_parts(*norms, ends=["num_batches_tracked"]) | {"reward_transform_matrix"},
            )
        )
    return layouts


def _armorm(checkpoint: Checkpoint) -> GatedHead:
    return _gated(checkpoint, quantiles=1, name="armorm")


def _qrm(checkpoint: Checkpoint) -> GatedHead:
    return _gated(checkpoint, quantiles=checkpoint.config.get("num_quantiles", 19), name="qrm")


def _gated(checkpoint: Checkpoint, quantiles: int, name: str) -> GatedHead:
    """Rows of the regression layer are ordered by objective, then quantile; the mean over quantiles is linear."""
    assert checkpoint.dialogue is not None
    mlp = _mlp(checkpoint, "gating.layers")
    count, width = len(mlp.layers[-1].weight), checkpoint.width
    rows = checkpoint.tensor("regression_layer.weight", count * quantiles, width)
    transform = None
    if "reward_transform_matrix" in checkpoint.tensors:
        transform = checkpoint.tensor("reward_transform_matrix", count, count)
    gate = Gate(
        mlp=mlp,
        temperature=_temperature(checkpoint.config, name),
        scale=checkpoint.tensor("gating.logit_scale", 1)[0],
        pattern=gate_pattern(checkpoint.dialogue),
    )
    return GatedHead(rows.reshape(count, quantiles, -1).mean(1), transform, gate, name)


def _temperature(config: dict[str, Any], name: str) -> float:
    """The configuration's, or what the public code assumes: 10, and 1 for QRM on Gemma 2."""
    assumed = 1 if name == "qrm" and config.get("model_type") == "gemma2" else 10
    return float(config.get("gating_temperature", assumed))


def _mlp(checkpoint: Checkpoint, prefix: str, activation: str = "relu") -> Mlp:
    """The layers below a prefix, in the order of their numbers; a normalisation joins the layer before it."""
    inside = [name.removeprefix(f"{prefix}.") for name in checkpoint.tensors if name.startswith(prefix)]
    layers: list[Layer] = []
    width = checkpoint.width
    for number in sorted({name.rpartition(".")[0] for name in inside}, key=lambda number: int(number or 0)):
        module = f"{prefix}.{number}" if number else prefix
        if f"{module}.running_var" in checkpoint.tensors:
            layers[-1] = dataclasses.replace(layers[-1], **_batch_norm(checkpoint, module, width))
            continue
        weight = checkpoint.tensor(f"{module}.weight", None, width)
        width = len(weight)
        bias = checkpoint.tensor(f"{module}.bias", width) if f"{module}.bias" in checkpoint.tensors else None
        layers.append(Layer(weight, bias))
    return Mlp(tuple(layers), activation)  # type: ignore[arg-type]


def _batch_norm(checkpoint: Checkpoint, module: str, width: int | None) -> dict[str, Tensor]:
    """A batch normalisation as it is after training, a scale and a shift."""
    parts = ("weight", "bias", "running_mean", "running_var")
    weight, bias, mean, variance = (checkpoint.tensor(f"{module}.{part}", width) for part in parts)
    scale = weight / (variance + _BATCH_NORM_EPSILON).sqrt()
    return {"scale": scale, "shift": bias - mean * scale}


FORMATS: dict[str, Format] = {
    "linear": Format(_linear_layouts, _linear),
    "linear-normalised": Format(_linear_layouts, _linear_normalised, by_name_only=True),
    "value-head": Format(_value_head_layouts, _value_head),
    "inform": Format(_inform_layouts, _inform),
    "armorm": Format(_armorm_layouts, _armorm),
    "qrm": Format(_qrm_layouts, _qrm),
    "urm": Format(_urm_layouts, _urm),
    "urm-plain": Format(_urm_plain_layouts, _urm_plain, by_name_only=True),
}
