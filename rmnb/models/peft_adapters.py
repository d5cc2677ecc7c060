"""Adapters: found with their base, merged into it by PEFT, and told apart by their head.

What is merged is whatever PEFT merges: LoRA with its variants (rank-stabilised, DoRA), biases, modules trained whole
(``modules_to_save``, in which TRL and transformers keep the head). A language model's adapter has its value head in a
file of its own (LLaMA-Factory).
"""

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

from rmnb.errors import InputError, few
from rmnb.models.bases import BASES, base_directory, base_tokenizer
from rmnb.models.checkpoint_files import ADAPTER, base_of, check_files, readable, refuse_pickles
from rmnb.models.devices import DTYPES
from rmnb.models.heads import value_head
from rmnb.models.hub import fetch
from rmnb.models.origin import hashes_of
from rmnb.panels import ModelSpec

SAFE = {"trust_remote_code": False, "use_safetensors": True}
_WHOLE = "base_model.model."  # before the name of every tensor that PEFT writes


@dataclass(frozen=True)
class Checkpoint:
    """What a directory holds, in memory.

    Attributes
    ----------
    network : PreTrainedModel
        Of a decoder the trunk, else the whole classifier.
    is_decoder : bool
        Whether transformers reads its classifier at the last token, over a trunk with a linear head.
    head : dict
        Of a decoder, the tensors of its head by name.
    tokenizer
        Of an adapter its own, else its base's.
    padding : int or None
        The id that the trainer's classifier takes for padding.
    hashes : dict
        weights_sha256, config_sha256, tokenizer_sha256.
    """

    network: PreTrainedModel
    is_decoder: bool
    head: dict[str, torch.Tensor]
    tokenizer: Any
    padding: Any
    hashes: dict[str, Any]


def read_adapter(directory: Path, spec: ModelSpec) -> Checkpoint:
    """Load an adapter's base, merge the adapter into it, and find its head.

    Raises
    ------
    InputError
        The base cannot be had, tensors that fit nowhere, no head.
    """
    import peft

    refuse_pickles(directory, ADAPTER)
    with readable(directory), safe_open(directory / ADAPTER, framework="pt") as file:
        shapes = {name: file.get_slice(name).get_shape() for name in sorted(file.keys())}
    apart = value_head(directory)
    with readable(directory / "adapter_config.json"):
        asked: Any = peft.PeftConfig.from_pretrained(str(directory))
    if asked.is_prompt_learning:
        raise InputError(f"{directory}: an adapter of kind {asked.peft_type}, which cannot be merged into a base")
    if not apart and asked.task_type != "SEQ_CLS":
        asked.task_type = None  # a classifier, whatever it was called in training
    origin, revision = (spec.base, None) if spec.base else base_of(directory, spec.base_model)
    try:
        base = base_directory(origin) if spec.base else fetch(origin, revision)
        check_files(base)
    except InputError as error:
        raise InputError(f"{directory}: its base: {error}: name another place with --base", error.about) from error
    words, tokenizer = base, None
    if spec.base:
        tokenizer = base_tokenizer(spec.base)
    elif spec.tokenizer or any(directory.glob("tokenizer*")):
        words = Path(spec.tokenizer or directory)
    with readable(words):
        tokenizer = tokenizer or AutoTokenizer.from_pretrained(words, trust_remote_code=False)
    network, lacking = _read_base(base, shapes, spec, bool(apart))
    trained = {name.removeprefix(_WHOLE).replace(".modules_to_save", "") for name in shapes}
    if untrained := [name for name in lacking if name not in trained]:
        hint = "PEFT saves it where task_type is SEQ_CLS"
        raise InputError(f"{directory}: no head: neither adapter nor base {origin} has {few(untrained)}: {hint}")
    merged = _merge(network, asked, directory, origin)
    decodes = bool(apart) or is_decoder(merged.config)
    head = apart or {
        name: tensor
        for name, tensor in merged.state_dict().items()
        if decodes and not name.startswith(f"{merged.base_model_prefix}.")
    }
    # TRL and its kin tell the classifier the tokenizer's padding id, which no file beside an adapter records.
    padding: Any = merged.config.get_text_config().pad_token_id if words == base else tokenizer.pad_token_id
    trunk = getattr(merged, merged.base_model_prefix) if decodes else merged
    hashes = hashes_of(directory, spec.base if spec.base in BASES else base, words)
    return Checkpoint(trunk.to(DTYPES[spec.dtype]), decodes, head, tokenizer, padding, hashes)


def read_config(directory: Path, softcap: bool = True):
    """A checkpoint's configuration; without attention soft-capping if that is to be left out.

    Raises
    ------
    InputError
        The configuration cannot be read, or has no soft-capping that could be left out.
    """
    with readable(directory):
        config = AutoConfig.from_pretrained(directory, trust_remote_code=False)
    text = config.get_text_config()
    if not softcap:
        if getattr(text, "attn_logit_softcapping", None) is None:
            raise InputError(f"{directory}: its attention has no soft-capping that could be switched off", "softcap")
        text.attn_logit_softcapping = None
    return config


def is_decoder(config) -> bool:
    """Whether transformers pools this family's classifier at the last token, over a trunk with a `score` layer."""
    from transformers.modeling_layers import GenericForSequenceClassification

    try:
        kind = AutoModelForSequenceClassification._model_mapping[type(config)]
    except KeyError as error:
        raise InputError(f"model type {config.model_type!r} has no sequence classification in transformers") from error
    return isinstance(kind, type) and issubclass(kind, GenericForSequenceClassification)


def _read_base(base: Path, shapes: dict[str, list[int]], spec: ModelSpec, is_language_model: bool):
    """The base as a classifier or a language model, and its tensors that the adapter has to bring."""
    config = read_config(base, spec.softcap)
    outputs = [shape[0] for name, shape in shapes.items() if ".score." in name and "lora_" not in name]
    if outputs:
        config.num_labels = max(outputs)
    kind: Any = AutoModelForCausalLM if is_language_model else AutoModelForSequenceClassification
    # Our own adapters are small enough to be merged in fp32 whatever they are used in.
    dtype = torch.float32 if spec.base else DTYPES[spec.dtype]
    with readable(base):
        # A head of the base that has another shape than the adapter's gives way to it.
        network, info = kind.from_pretrained(
            base, config=config, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=True, **SAFE
        )
    # As many rows of the embedding as the adapter was trained with, where it saved them: its tokenizer has grown.
    rows = [shape[0] for name, shape in shapes.items() if name.endswith(("embed_tokens.weight", "lm_head.weight"))]
    if rows and max(rows) != network.get_input_embeddings().weight.shape[0]:
        network.resize_token_embeddings(max(rows), mean_resizing=False)
    return network, [*info["missing_keys"], *(name for name, *_ in info["mismatched_keys"])]


def _merge(network, asked, directory: Path, origin: str) -> Any:
    """The network with the adapter merged into it, every tensor of which has found its place."""
    import peft

    with readable(directory), warnings.catch_warnings(action="ignore", category=UserWarning):  # the base has moved
        adapted = peft.get_peft_model(network, asked)
        try:
            weights = peft.utils.load_peft_weights(str(directory), device="cpu")
            loaded = peft.set_peft_model_state_dict(adapted, weights)
        except RuntimeError as error:
            wrong = str(error).splitlines()[-1].strip()
            raise InputError(f"{directory} does not fit its base {origin}: {wrong}") from error
        if astray := loaded.unexpected_keys:
            raise InputError(f"{directory}: tensors that fit nowhere in its base {origin}: {few(astray)}")
        missing = [name for name in loaded.missing_keys if "lora_" in name or "modules_to_save" in name]
        if missing:
            raise InputError(f"{directory}: the adapter lacks {few(missing)}")
        return adapted.merge_and_unload()
