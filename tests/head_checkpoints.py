"""Tiny checkpoints of every known head in the format of the real ones, each with its formula in NumPy.

A case says what ``config.json`` and the weights of the published checkpoint hold besides the trunk (names, order of
rows, keys), with smaller numbers, and how the reward follows from two hidden states of the trunk: that of each
conversation's last id, [conversations, hidden], and that of the id that ends the prompt, [hidden].
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from checkpoints import DECODERS, SHAPE, randomise, tokenizer
from safetensors.torch import save_file
from transformers import AutoModel, PreTrainedTokenizerFast

HIDDEN, GATE, OBJECTIVES, QUANTILES, ATTRIBUTES = 16, 8, 4, 3, 5
Tensors = dict[str, np.ndarray]

LLAMA3 = ["<|pad|>", "<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
LLAMA3_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "{{ '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n' + m['content'] | trim + '<|eot_id|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
GEMMA2 = ["<pad>", "<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"]
GEMMA2_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "{{ '<start_of_turn>' + ('model' if m['role'] == 'assistant' else m['role']) + '\n' }}"
    "{{ m['content'] | trim + '<end_of_turn>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
DIALOGUES = {
    "llama": (LLAMA3, LLAMA3_TEMPLATE),
    "qwen3": (LLAMA3, LLAMA3_TEMPLATE),
    "gemma2": (GEMMA2, GEMMA2_TEMPLATE),
}
PROMPT_END = {"llama": "<|eot_id|>", "gemma2": "<end_of_turn>"}  # the id that a gate reads


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def selu(x: np.ndarray) -> np.ndarray:
    return 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(np.minimum(x, 0)) - 1))


def softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


@dataclass(frozen=True)
class Case:
    """A checkpoint: trunk, shapes of the head's tensors by name, configuration, formula; and how it is found."""

    shapes: dict[str, tuple[int, ...]]
    formula: Callable[[Tensors, np.ndarray, np.ndarray], np.ndarray]
    name: str
    trunk: str = "llama"
    config: dict[str, Any] = field(default_factory=dict)
    asked: str | None = None

    @property
    def before_padding(self) -> bool:
        """Whether its own code reads at the id before the first padding id, as transformers did in 2024."""
        return self.name in ("inform", "armorm", "qrm", "urm")


def _gate_shapes(linear: list[int], norms: list[int], bias: bool) -> dict[str, tuple[int, ...]]:
    widths = [HIDDEN, *[GATE] * (len(linear) - 1), OBJECTIVES]
    shapes: dict[str, tuple[int, ...]] = {"gating.logit_scale": (1,)}
    for place, index in enumerate(linear):
        shapes[f"gating.layers.{index}.weight"] = (widths[place + 1], widths[place])
        if bias or index == linear[-1]:
            shapes[f"gating.layers.{index}.bias"] = (widths[place + 1],)
    for index in norms:
        shapes |= {
            f"gating.layers.{index}.{part}": (GATE,) for part in ("weight", "bias", "running_mean", "running_var")
        }
        shapes[f"gating.layers.{index}.num_batches_tracked"] = ()
    return shapes


def _armorm(t: Tensors, last: np.ndarray, prompt: np.ndarray) -> np.ndarray:
    x = prompt
    for i in range(3):
        x = relu(t[f"gating.layers.{i}.weight"] @ x + t[f"gating.layers.{i}.bias"])
    x = softmax((t["gating.layers.3.weight"] @ x + t["gating.layers.3.bias"]) / 10) * t["gating.logit_scale"][0]
    return (last @ t["regression_layer.weight"].T @ t["reward_transform_matrix"]) @ x


def _qrm(linear: list[int], norms: list[int], temperature: float):
    def formula(t: Tensors, last: np.ndarray, prompt: np.ndarray) -> np.ndarray:
        x = prompt
        for i, n in zip(linear, norms, strict=False):
            x = relu(t[f"gating.layers.{i}.weight"] @ x)
            x = (x - t[f"gating.layers.{n}.running_mean"]) / np.sqrt(t[f"gating.layers.{n}.running_var"] + 1e-5)
            x = x * t[f"gating.layers.{n}.weight"] + t[f"gating.layers.{n}.bias"]
        i = linear[-1]
        x = (t[f"gating.layers.{i}.weight"] @ x + t[f"gating.layers.{i}.bias"]) / temperature
        quantiles = (last @ t["regression_layer.weight"].T).reshape(len(last), OBJECTIVES, QUANTILES)
        transform = t.get("reward_transform_matrix", np.eye(OBJECTIVES))
        return quantiles.mean(2) @ transform @ (softmax(x) * t["gating.logit_scale"][0])

    return formula


def _urm(t: Tensors, last: np.ndarray, prompt: np.ndarray) -> np.ndarray:
    x = selu(last @ t["weights.fc.0.weight"].T + t["weights.fc.0.bias"])
    x = selu(x @ t["weights.fc.2.weight"].T + t["weights.fc.2.bias"])
    x = x @ t["weights.fc.4.weight"].T + t["weights.fc.4.bias"]
    normal = (last @ t["score.weight"].T).reshape(len(last), ATTRIBUTES, 2)  # mean, logarithm of the variance
    return (normal[:, :, 0] * x).sum(1)


def _perceptron(*names: str):
    def formula(t: Tensors, last: np.ndarray, prompt: np.ndarray) -> np.ndarray:
        x = last
        for name in names:
            x = x @ t[f"{name}.weight"].T + t[f"{name}.bias"]
            x = x if name == names[-1] else relu(x)
        return x[:, 0]

    return formula


def _both(name: str, out: int, inputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (out, inputs), f"{name}.bias": (out,)}


_URM_SHAPES = {"score.weight": (2 * ATTRIBUTES, HIDDEN)} | {
    name: shape
    for index, out in ((0, HIDDEN), (2, HIDDEN), (4, ATTRIBUTES))
    for name, shape in _both(f"weights.fc.{index}", out, HIDDEN).items()
}
_URM_CONFIG = {
    "architectures": ["LlamaForSequenceClassificationWithNormal_Weights"],
    "auto_map": {
        "AutoModelForSequenceClassification": "modeling_custom.LlamaForSequenceClassificationWithNormal_Weights"
    },
    "id2label": {str(i): f"LABEL_{i}" for i in range(2 * ATTRIBUTES)},
}
_GATE_CONFIG = {
    "num_objectives": OBJECTIVES,
    "gating_hidden_dim": GATE,
    "gating_n_hidden": 3,
    "auto_map": {"AutoModelForSequenceClassification": "modeling_custom.LlamaForRewardModelWithGating"},
}
_SCORE = {"score.weight": (1, HIDDEN)}


def _linear(t: Tensors, last: np.ndarray, prompt: np.ndarray) -> np.ndarray:
    return last @ t["score.weight"][0]


CASES = {
    "skywork-v1": Case(_SCORE, _linear, "linear", "gemma2", {"architectures": ["Gemma2ForSequenceClassification"]}),
    "skywork-v2": Case(_SCORE, _linear, "linear", "qwen3", {"architectures": ["Qwen3ForSequenceClassification"]}),
    "grm-ft": Case(_SCORE, _linear, "linear", config={"architectures": ["LlamaForSequenceClassification"]}),
    "openrlhf-raw": Case(
        {"value_head.weight": (1, HIDDEN)},
        lambda t, last, prompt: last @ t["value_head.weight"][0],
        "linear",
        config={"normalize_reward": False, "mean": 0.7, "std": 2.5},
    ),
    "openrlhf-normalised": Case(
        {"reward_head.weight": (1, HIDDEN)},
        lambda t, last, prompt: (last @ t["reward_head.weight"][0] - 0.7) / 2.5,
        "linear-normalised",
        config={"value_head_prefix": "reward_head", "normalize_reward": True, "mean": 0.7, "std": 2.5},
    ),
    "openrlhf-asked-to-normalise": Case(
        _SCORE,
        lambda t, last, prompt: (last @ t["score.weight"][0] - 0.7) / 2.5,
        "linear-normalised",
        config={"value_head_prefix": "score", "normalize_reward": False, "mean": 0.7, "std": 2.5},
        asked="linear-normalised",
    ),
    "trl-value-head": Case(
        _both("v_head.summary", 1, HIDDEN),
        _perceptron("v_head.summary"),
        "value-head",
        config={"architectures": ["LlamaForCausalLM"]},
    ),
    "grm-sftreg": Case(
        _both("v_head.summary.0", GATE, HIDDEN) | _both("v_head.summary.2", 1, GATE),
        _perceptron("v_head.summary.0", "v_head.summary.2"),
        "value-head",
        "gemma2",
        {
            "architectures": ["GRewardModel"],
            "vhead_layer_type": "mlp",
            "vhead_num_neurons": GATE,
            "vhead_num_layers": 1,
        },
    ),
    "grm-sftreg-two-layers": Case(
        _both("v_head.summary.0", GATE, HIDDEN)
        | _both("v_head.summary.2", GATE, GATE)
        | _both("v_head.summary.4", 1, GATE),
        _perceptron("v_head.summary.0", "v_head.summary.2", "v_head.summary.4"),
        "value-head",
        config={"vhead_layer_type": "mlp", "vhead_num_neurons": GATE, "vhead_num_layers": 2},
    ),
    "inf-orm": Case(
        _both("score.0", HIDDEN, HIDDEN) | _both("score.2", 1, HIDDEN),
        _perceptron("score.0", "score.2"),
        "inform",
        config={"architectures": ["INFORMForSequenceClassification"]},
    ),
    "armorm": Case(
        _gate_shapes([0, 1, 2, 3], [], bias=True)
        | {"regression_layer.weight": (OBJECTIVES, HIDDEN), "reward_transform_matrix": (OBJECTIVES, OBJECTIVES)},
        _armorm,
        "armorm",
        config={"architectures": ["LlamaForRewardModelWithGating"], "gating_temperature": 10, **_GATE_CONFIG},
    ),
    "qrm-llama": Case(
        _gate_shapes([0, 3, 6, 9], [2, 5, 8], bias=False)
        | {
            "regression_layer.weight": (OBJECTIVES * QUANTILES, HIDDEN),
            "reward_transform_matrix": (OBJECTIVES, OBJECTIVES),
        },
        _qrm([0, 3, 6, 9], [2, 5, 8], temperature=5),
        "qrm",
        config={
            "architectures": ["LlamaForRewardModelWithGating"],
            "gating_temperature": 5,
            "num_quantiles": QUANTILES,
            **_GATE_CONFIG,
        },
    ),
    "qrm-gemma": Case(
        _gate_shapes([0, 4, 8, 11], [2, 6, 10], bias=False)
        | {"regression_layer.weight": (OBJECTIVES * QUANTILES, HIDDEN)},
        _qrm([0, 4, 8, 11], [2, 6, 10], temperature=1),
        "qrm",
        "gemma2",
        {"architectures": ["Gemma2ForRewardModelWithGating"], "num_quantiles": QUANTILES, **_GATE_CONFIG},
    ),
    "urm": Case(_URM_SHAPES, _urm, "urm", config=_URM_CONFIG),
    "urm-plain": Case(
        _URM_SHAPES,
        lambda t, last, prompt: last @ t["score.weight"][0],
        "urm-plain",
        config=_URM_CONFIG,
        asked="urm-plain",
    ),
}
GATED = ["armorm", "qrm-llama", "qrm-gemma"]


def head_tokenizer(trunk: str) -> PreTrainedTokenizerFast:
    """The tiny tokenizer with the special tokens and the chat template of the trunk's family."""
    special, template = DIALOGUES[trunk]
    return tokenizer(template, special)


def head_tensors(case: Case, seed: int = 1) -> dict[str, torch.Tensor]:
    """Random tensors of a head: weights that make rewards differ, variances above zero, a counter."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {name: torch.randn(shape, generator=generator) for name, shape in case.shapes.items()}
    for name in tensors:
        if name.endswith("running_var"):
            tensors[name] = tensors[name].abs() + 0.5
        if name.endswith("num_batches_tracked"):
            tensors[name] = torch.tensor(7)
    return tensors


def write_head(directory: Path, key: str) -> Path:
    """A case's checkpoint: config.json, model.safetensors, tokenizer, and the remote code that must never run."""
    case = CASES[key]
    words = head_tokenizer(case.trunk)
    kind, special = DECODERS[case.trunk]
    shape = SHAPE | {"hidden_size": HIDDEN, "intermediate_size": 32, "num_hidden_layers": 2} | special
    config = kind(**shape, vocab_size=len(words))
    trunk = AutoModel.from_config(config)
    randomise(trunk)
    directory.mkdir()
    text = {**config.to_dict(), "dtype": "float32", **case.config}
    (directory / "config.json").write_text(json.dumps(text))
    tensors = {f"model.{name}": tensor.contiguous() for name, tensor in trunk.state_dict().items()}
    save_file(tensors | head_tensors(case), directory / "model.safetensors", metadata={"format": "pt"})
    words.save_pretrained(directory)
    (directory / "modeling_custom.py").write_text("raise SystemExit('remote code ran')\n")
    return directory
