"""Adapters that somebody trained: found with their base, merged into it by PEFT, and told apart by their head.

What is merged is whatever PEFT merges: LoRA with its variants (rank-stabilised, DoRA), biases, modules trained whole
(``modules_to_save``, in which TRL and transformers keep the head). A language model's adapter has its value head in a
file of its own (LLaMA-Factory).
"""

import json
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
)

from rmnb.errors import InputError, few, first_line
from rmnb.files import joint_sha256
from rmnb.models.checkpoint_files import ADAPTER, readable, refuse_pickles, value_head
from rmnb.models.hub import check_files, fetch
from rmnb.models.origin import config_sha256, tokenizer_sha256, weights_sha256

_WHOLE = "base_model.model."  # before the name of every tensor that PEFT writes


@dataclass(frozen=True)
class Merged:
    """A base with an adapter merged into it.

    Attributes
    ----------
    network : PreTrainedModel
        The whole model.
    is_decoder : bool
        Whether transformers reads its classifier at the last token, over a trunk with a linear head.
    head : dict
        Of a decoder, the tensors of its head by name.
    tokenizer
        The adapter's, else the base's.
    padding : int or None
        The id that the trainer's classifier takes for padding: the adapter's tokenizer's, else the base's.
    hashes : dict
        weights_sha256 and config_sha256, both of adapter and base; tokenizer_sha256.
    """

    network: PreTrainedModel
    is_decoder: bool
    head: dict[str, torch.Tensor]
    tokenizer: Any
    padding: int | None
    hashes: dict[str, str]

    @property
    def trunk(self) -> PreTrainedModel:
        """The network without its head."""
        return getattr(self.network, self.network.base_model_prefix)


def base_of(directory: Path, base: str | None = None) -> tuple[str, str | None]:
    """The base of an adapter, a hub id or a directory, and its revision: the one given, else its configuration's.

    Raises
    ------
    InputError
        The configuration cannot be read or names none.
    """
    try:
        config = json.loads((directory / "adapter_config.json").read_text(encoding="utf-8"))
        named, revision = config.get("base_model_name_or_path"), config.get("revision")
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"{directory}: adapter_config.json cannot be read") from error
    if base:
        return base, None
    if not named or not isinstance(named, str):
        raise InputError(f"{directory}: the adapter does not say what it was trained from: name it with --base")
    return named, revision


def merge_with_peft(directory: Path, base: str | None, dtype: torch.dtype, tokenizer: Any = None) -> Merged:
    """Load an adapter's base, merge the adapter into it, and find its head.

    Parameters
    ----------
    directory
        Holds ``adapter_config.json`` and ``adapter_model.safetensors``.
    base
        Hub id or directory of the base, in place of what the configuration says.
    dtype
        Of the merged weights; merging is done in it.
    tokenizer
        In place of the adapter's, or its base's.

    Raises
    ------
    InputError
        PEFT is missing, the base cannot be had, tensors that fit nowhere, no head.
    """
    try:
        import peft
    except ImportError as error:
        raise InputError(f"{directory} is an adapter, which takes the package peft: pip install peft") from error
    refuse_pickles(directory, ADAPTER)
    shapes = _shapes(directory)
    apart, of_score = value_head(directory), [name for name in shapes if ".score." in name]
    where, origin = _fetched(directory, base)
    if not (where / "config.json").exists():
        raise InputError(f"{directory}: its base {origin} is no checkpoint: it has no config.json")
    refuse_pickles(where)
    check_files(where)
    words = directory if any(directory.glob("tokenizer*")) else where
    with readable(where):
        config = AutoConfig.from_pretrained(where, trust_remote_code=False)
    with readable(words):
        tokenizer = tokenizer or AutoTokenizer.from_pretrained(words, trust_remote_code=False)
    # A language model with a head in a file of its own; else a classifier.
    kind: Any = AutoModelForCausalLM if apart else AutoModelForSequenceClassification
    decodes = bool(apart) or is_decoder(config)
    if outputs := {shapes[name][0] for name in of_score if name.endswith("weight") and "lora_" not in name}:
        config.num_labels = max(outputs)
    with readable(where):
        options: dict = {"config": config, "dtype": dtype, "trust_remote_code": False, "output_loading_info": True}
        options["use_safetensors"] = True
        # A head of the base that has another shape than the adapter's gives way to it.
        network, info = kind.from_pretrained(where, ignore_mismatched_sizes=True, **options)
    trained = {name.removeprefix(_WHOLE).replace(".modules_to_save", "") for name in shapes}
    lacking = [*info["missing_keys"], *(name for name, *_ in info["mismatched_keys"])]
    if untrained := [name for name in lacking if name not in trained]:
        raise InputError(
            f"{directory}: no head: neither the adapter nor its base {origin} has {few(untrained)}"
            + (": PEFT saves it where task_type is SEQ_CLS" if not apart else "")
        )
    _resize(network, shapes)
    with readable(directory), warnings.catch_warnings(action="ignore", category=UserWarning):  # the base has moved
        asked = _asked(directory)
        if not apart and asked.task_type != "SEQ_CLS":
            asked.task_type = None  # a classifier, whatever it was called in training
        adapted = peft.get_peft_model(network, asked)
        weights = peft.utils.load_peft_weights(str(directory), device="cpu")
        try:
            loaded = peft.set_peft_model_state_dict(adapted, weights)
        except RuntimeError as error:
            shapes = re.findall(r"size mismatch for (\S+):.*?(\[[\d, ]*\]).*?(\[[\d, ]*\])", str(error))
            wrong = [f"{name} {found}, not {fitting}" for name, found, fitting in shapes]
            raise InputError(
                f"{directory} does not fit its base {origin}: {few(wrong) or first_line(error)}"
            ) from error
        if astray := loaded.unexpected_keys:
            raise InputError(f"{directory}: tensors that fit nowhere in its base {origin}: {few(astray)}")
        missing = [name for name in loaded.missing_keys if "lora_" in name or "modules_to_save" in name]
        if missing:
            raise InputError(f"{directory}: the adapter lacks {few(missing)}")
        merged: Any = adapted.merge_and_unload()
    merged.to(dtype)
    head = apart or {
        name: tensor
        for name, tensor in merged.state_dict().items()
        if decodes and not name.startswith(f"{merged.base_model_prefix}.")
    }
    # TRL and its kin tell the classifier the tokenizer's padding id, which no file beside an adapter records.
    padding = tokenizer.pad_token_id if words == directory else config.get_text_config().pad_token_id
    if not decodes:
        merged.config.pad_token_id = padding
    hashes = {
        "weights_sha256": joint_sha256([weights_sha256(where), weights_sha256(directory)]),
        "tokenizer_sha256": tokenizer_sha256(words),
        "config_sha256": config_sha256(where / "config.json", directory / "adapter_config.json"),
    }
    return Merged(merged, decodes, head, tokenizer, padding, hashes)


def _asked(directory: Path):
    """The adapter's configuration as PEFT reads it."""
    import peft

    try:
        asked = peft.PeftConfig.from_pretrained(str(directory))
    except KeyError as error:
        raise InputError(f"{directory}: adapter_config.json has a peft_type unknown to PEFT: {error}") from error
    if asked.is_prompt_learning:
        kind = type(asked).__name__.removesuffix("Config")
        raise InputError(f"{directory}: an adapter of kind {kind}, which cannot be merged into a base")
    return asked


def is_decoder(config) -> bool:
    """Whether transformers pools this family's classifier at the last token, over a trunk with a `score` layer."""
    from transformers.modeling_layers import GenericForSequenceClassification

    try:
        kind = AutoModelForSequenceClassification._model_mapping[type(config)]
    except KeyError as error:
        raise InputError(f"model type {config.model_type!r} has no sequence classification in transformers") from error
    return isinstance(kind, type) and issubclass(kind, GenericForSequenceClassification)


def _fetched(directory: Path, base: str | None) -> tuple[Path, str]:
    """The base's directory and what it is called."""
    origin, revision = base_of(directory, base)
    try:
        return fetch(origin, revision), origin
    except InputError as error:
        raise InputError(f"{directory}: its base: {error}: name another place with --base") from error


def _shapes(directory: Path) -> dict[str, list[int]]:
    with readable(directory), safe_open(directory / ADAPTER, framework="pt") as file:
        return {name: file.get_slice(name).get_shape() for name in sorted(file.keys())}


def _resize(network, shapes: dict[str, list[int]]) -> None:
    """As many rows of the embedding as the adapter was trained with, where it saved them: its tokenizer has grown."""
    rows = {shape[0] for name, shape in shapes.items() if name.endswith(("embed_tokens.weight", "lm_head.weight"))}
    if rows and max(rows) != network.get_input_embeddings().weight.shape[0]:
        network.resize_token_embeddings(max(rows), mean_resizing=False)
