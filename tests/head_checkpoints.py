"""Tiny checkpoints of every known head in the format of the real ones, each with its formula.

A case says what ``config.json`` and the weights of the published checkpoint hold besides the trunk (names, order of
rows, keys), with smaller numbers, and how the reward follows from two hidden states of the trunk: that of each
conversation's last id, [conversations, hidden], and that of the id that ends the prompt, [hidden].
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from checkpoints import DECODERS, SHAPE, randomise, tokenizer
from safetensors.torch import save_file
from torch.nn import functional
from transformers import AutoModel, PreTrainedTokenizerFast

HIDDEN, GATE, OBJECTIVES, QUANTILES, ATTRIBUTES = 16, 8, 4, 3, 5
Tensors = dict[str, torch.Tensor]
Shapes = dict[str, tuple[int, ...]]
Formula = Callable[[Tensors, torch.Tensor, torch.Tensor], torch.Tensor]

LLAMA3 = ["<|pad|>", "<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
LLAMA3_TEMPLATE = (
    "{{- bos_token }}{%- if not date_string is defined %}{%- set date_string = '26 Jul 2024' %}{%- endif %}"
    "{{- '<|start_header_id|>system<|end_header_id|>\n\nToday Date: ' + date_string + '<|eot_id|>' }}"
    "{%- for message in messages %}{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' }}"
    "{{- message['content'] | trim + '<|eot_id|>' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %}"
)
GEMMA2 = ["<pad>", "<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"]
GEMMA2_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\n' }}"
    "{{ message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
PROMPT_END = {"llama": "<|eot_id|>", "gemma2": "<end_of_turn>"}  # the id that a gate reads
BEFORE_PADDING = ("inform", "armorm", "qrm", "urm")  # own code reads before the first padding id, as was usual in 2024


@dataclass(frozen=True)
class Case:
    """A checkpoint: shapes of the head's tensors by name, formula, trunk, configuration."""

    shapes: Shapes
    formula: Formula
    name: str
    trunk: str = "llama"
    config: dict[str, Any] = field(default_factory=dict)


def layers(widths: dict[str, int], bias: bool = True, activation=functional.relu) -> tuple[Shapes, Formula]:
    """Linear layers, their outputs by name, with an activation between."""
    shapes: Shapes = {}
    for (name, out), inputs in zip(widths.items(), [HIDDEN, *widths.values()], strict=False):
        shapes |= {f"{name}.weight": (out, inputs)} | ({f"{name}.bias": (out,)} if bias else {})

    def formula(t: Tensors, last: torch.Tensor, prompt: torch.Tensor) -> torch.Tensor:
        first, *others = widths
        x = functional.linear(last, t[f"{first}.weight"], t.get(f"{first}.bias"))
        for name in others:
            x = functional.linear(activation(x), t[f"{name}.weight"], t.get(f"{name}.bias"))
        return x.squeeze(1)

    return shapes, formula


def gated(
    linear: list[int], norms: list[int], temperature: float, quantiles: int = 1, transform: bool = True
) -> tuple[Shapes, Formula]:
    """Objectives, each perhaps in quantiles, weighed by a gate that reads the prompt; one with norms has few biases."""
    gate = [f"gating.layers.{i}" for i in linear]
    shapes, _ = layers(dict(zip(gate, [GATE, GATE, GATE, OBJECTIVES], strict=True)))
    for name in gate[:-1] if norms else []:
        del shapes[f"{name}.bias"]
    for i in norms:
        shapes |= {f"gating.layers.{i}.{part}": (GATE,) for part in ("weight", "bias", "running_mean", "running_var")}
        shapes[f"gating.layers.{i}.num_batches_tracked"] = ()
    shapes |= {"gating.logit_scale": (1,), "regression_layer.weight": (OBJECTIVES * quantiles, HIDDEN)}
    if transform:
        shapes["reward_transform_matrix"] = (OBJECTIVES, OBJECTIVES)

    def formula(t: Tensors, last: torch.Tensor, prompt: torch.Tensor) -> torch.Tensor:
        x = prompt[None]
        for place, name in enumerate(gate[:-1]):
            x = functional.linear(x, t[f"{name}.weight"], t.get(f"{name}.bias")).relu()
            if norms:
                parts = ("running_mean", "running_var", "weight", "bias")
                x = functional.batch_norm(x, *(t[f"gating.layers.{norms[place]}.{part}"] for part in parts))
        x = functional.linear(x, t[f"{gate[-1]}.weight"], t[f"{gate[-1]}.bias"]) / temperature
        objectives = (last @ t["regression_layer.weight"].T).unflatten(1, (OBJECTIVES, quantiles)).mean(2)
        if transform:
            objectives = objectives @ t["reward_transform_matrix"]
        return objectives @ (x.softmax(1)[0] * t["gating.logit_scale"])

    return shapes, formula


def normalised(shapes: Shapes, formula: Formula) -> tuple[Shapes, Formula]:
    """With the mean and the spread of `NORMAL` taken off."""
    return shapes, lambda *inputs: (formula(*inputs) - NORMAL["mean"]) / NORMAL["std"]


NORMAL = {"mean": 0.7, "std": 2.5}
LINEAR = layers({"score": 1}, bias=False)
URM_WEIGHTS, weigh = layers(
    {"weights.fc.0": HIDDEN, "weights.fc.2": HIDDEN, "weights.fc.4": ATTRIBUTES}, activation=functional.selu
)
URM_SHAPES = {"score.weight": (2 * ATTRIBUTES, HIDDEN)} | URM_WEIGHTS


def urm(t: Tensors, last: torch.Tensor, prompt: torch.Tensor) -> torch.Tensor:
    normal = (last @ t["score.weight"].T).unflatten(1, (ATTRIBUTES, 2))  # mean, logarithm of the variance
    return (normal[:, :, 0] * weigh(t, last, prompt)).sum(1)


def architecture(name: str, **keys) -> dict[str, Any]:
    """The configuration's keys, with the remote code of a class that transformers does not have."""
    code = {"AutoModelForSequenceClassification": f"modeling_custom.{name}"}
    return {"architectures": [name], **keys} | ({} if hasattr(transformers, name) else {"auto_map": code})


URM_CONFIG = architecture(
    "LlamaForSequenceClassificationWithNormal_Weights",
    id2label={str(i): f"LABEL_{i}" for i in range(2 * ATTRIBUTES)},
)
GATES = {"num_objectives": OBJECTIVES, "gating_hidden_dim": GATE, "gating_n_hidden": 3}
MLP = {"vhead_layer_type": "mlp", "vhead_num_neurons": GATE}
CASES = {
    "skywork-v1": Case(*LINEAR, "linear", "gemma2", architecture("Gemma2ForSequenceClassification")),
    "openrlhf-raw": Case(
        *layers({"value_head": 1}, bias=False), "linear", config={"normalize_reward": False, **NORMAL}
    ),
    "openrlhf-normalised": Case(
        *normalised(*layers({"reward_head": 1}, bias=False)),
        "linear-normalised",
        config={"value_head_prefix": "reward_head", "normalize_reward": True, **NORMAL},
    ),
    "trl-value-head": Case(*layers({"v_head.summary": 1}), "value-head", config=architecture("LlamaForCausalLM")),
    "grm-sftreg": Case(
        *layers({"v_head.summary.0": GATE, "v_head.summary.2": 1}),
        "value-head",
        "gemma2",
        architecture("GRewardModel", vhead_num_layers=1, **MLP),
    ),
    "grm-sftreg-two-layers": Case(
        *layers({"v_head.summary.0": GATE, "v_head.summary.2": GATE, "v_head.summary.4": 1}),
        "value-head",
        config={"vhead_num_layers": 2, **MLP},
    ),
    "inf-orm": Case(
        *layers({"score.0": HIDDEN, "score.2": 1}), "inform", config=architecture("INFORMForSequenceClassification")
    ),
    "armorm": Case(
        *gated([0, 1, 2, 3], [], temperature=10),
        "armorm",
        config=architecture("LlamaForRewardModelWithGating", gating_temperature=10, **GATES),
    ),
    "qrm-llama": Case(
        *gated([0, 3, 6, 9], [2, 5, 8], temperature=5, quantiles=QUANTILES),
        "qrm",
        config=architecture("LlamaForRewardModelWithGating", gating_temperature=5, num_quantiles=QUANTILES, **GATES),
    ),
    "qrm-gemma": Case(
        *gated([0, 4, 8, 11], [2, 6, 10], temperature=1, quantiles=QUANTILES, transform=False),
        "qrm",
        "gemma2",
        architecture("Gemma2ForRewardModelWithGating", num_quantiles=QUANTILES, **GATES),
    ),
    "urm": Case(URM_SHAPES, urm, "urm", config=URM_CONFIG),
}
GATED = ["armorm", "qrm-llama", "qrm-gemma"]


def head_tokenizer(trunk: str) -> PreTrainedTokenizerFast:
    """The tiny tokenizer with the special tokens and the chat template of the trunk's family."""
    return tokenizer(GEMMA2_TEMPLATE, GEMMA2) if trunk == "gemma2" else tokenizer(LLAMA3_TEMPLATE, LLAMA3)


def head_tensors(case: Case, seed: int = 1) -> Tensors:
    """Random tensors of a head: weights that make rewards differ, variances above zero, a counter."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {name: torch.randn(shape, generator=generator) for name, shape in case.shapes.items()}
    for name in tensors:
        if name.endswith("running_var"):
            tensors[name] = tensors[name].abs() + 0.5
        if name.endswith("num_batches_tracked"):
            tensors[name] = torch.tensor(7)
    return tensors


def hidden_states(directory: Path, sequences: list[list[int]]) -> torch.Tensor:
    """Last hidden states of a checkpoint's trunk by its own attention, float64 [sequences, ids, hidden]."""
    trunk = AutoModel.from_pretrained(directory, attn_implementation="eager", dtype=torch.float32).eval()
    with torch.no_grad():
        return trunk(torch.tensor(sequences)).last_hidden_state.double()


def special_ids(words: PreTrainedTokenizerFast) -> dict[str, int]:
    """What a configuration says of a tokenizer: own code reads before the first padding id."""
    return {name: getattr(words, name) for name in ("pad_token_id", "bos_token_id", "eos_token_id")}


def write_head(directory: Path, case: str | Case, words: PreTrainedTokenizerFast | None = None, seed: int = 1) -> Path:
    """A case's checkpoint: config.json, model.safetensors, tokenizer, and the remote code that must never run.

    `words` takes the place of the tiny tokenizer; models of one case differ by `seed`.
    """
    case = CASES[case] if isinstance(case, str) else case
    words = words or head_tokenizer(case.trunk)
    kind, special = DECODERS[case.trunk]
    small = {"hidden_size": HIDDEN, "intermediate_size": 32, "num_hidden_layers": 2}
    small["max_position_embeddings"] = 1024  # answers that people compared, in few and short tokens
    shape = SHAPE | special_ids(words) | small | special
    config = kind(**shape, vocab_size=len(words))
    trunk = AutoModel.from_config(config)
    randomise(trunk, seed - 1)
    directory.mkdir(parents=True)
    text = {**config.to_dict(), "dtype": "float32", **case.config}
    (directory / "config.json").write_text(json.dumps(text))
    tensors = {f"model.{name}": tensor.contiguous() for name, tensor in trunk.state_dict().items()}
    save_file(tensors | head_tensors(case, seed), directory / "model.safetensors", metadata={"format": "pt"})
    words.save_pretrained(directory)
    (directory / "modeling_custom.py").write_text("raise SystemExit('remote code ran')\n")
    return directory
