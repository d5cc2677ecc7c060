"""Adapters: their base is loaded, PEFT merges the adapter into it, and the head is taken from either.

All that PEFT can merge is supported: LoRA and its variants (rank-stabilised, DoRA), biases, and modules that were
trained whole (``modules_to_save``, in which TRL and transformers keep the head). The adapter of a language model has
its value head in a separate file (LLaMA-Factory).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification, PreTrainedModel

from rmnb.errors import InputError, few
from rmnb.models.bases import BASES, base_directory, base_tokenizer
from rmnb.models.checkpoint_files import ADAPTER, base_of, check_files, read_tokenizer, readable, refuse_pickles
from rmnb.models.devices import DTYPES
from rmnb.models.heads import value_head
from rmnb.models.origin import hashes_of
from rmnb.panels import ModelSpec

#: For `from_pretrained`: neither code nor pickles, and tensors of another shape are reported, not refused.
LOADING = {
    "trust_remote_code": False,
    "use_safetensors": True,
    "ignore_mismatched_sizes": True,
    "output_loading_info": True,
}
_WHOLE = "base_model.model."  # before the name of every tensor that PEFT writes


@dataclass(frozen=True)
class Checkpoint:
    """What a directory holds, in memory.

    Attributes
    ----------
    network : PreTrainedModel
        The trunk of a model that transformers reads at one token, or a whole classifier.
    head : dict or None
        The tensors by name of the head over a trunk; None for a whole classifier.
    tokenizer
        Of an adapter its own, else its base's.
    hashes : dict
        weights_sha256, config_sha256, tokenizer_sha256.
    """

    network: PreTrainedModel
    head: dict[str, torch.Tensor] | None
    tokenizer: Any
    hashes: dict[str, Any]


def read_adapter(directory: Path, spec: ModelSpec) -> Checkpoint:
    """Load an adapter's base, merge the adapter into it, and find its head.

    Raises
    ------
    InputError
        The base cannot be had, a tensor has no place in it, or there is no head.
    """
    import peft

    refuse_pickles(directory, ADAPTER)
    with readable(directory):
        tensors = load_file(directory / ADAPTER)
    head: dict[str, torch.Tensor] | None = value_head(directory)
    with readable(directory / "adapter_config.json"):
        config: Any = peft.PeftConfig.from_pretrained(str(directory))
    if config.is_prompt_learning:
        raise InputError(f"{directory}: an adapter of kind {config.peft_type}, which cannot be merged into a base")
    if config.task_type != "SEQ_CLS":
        config.task_type = None  # a classifier, whatever the training called it
    base_name, revision = base_of(directory, spec.base or spec.base_model)
    try:
        base = base_directory(base_name, revision)
        check_files(base)
    except InputError as error:
        raise InputError(f"{directory}: its base: {error}: name another place with --base", error.about) from error
    words = base
    if not spec.base and (spec.tokenizer or any(directory.glob("tokenizer*"))):
        words = Path(spec.tokenizer or directory)
    tokenizer = base_tokenizer(spec.base) if spec.base else read_tokenizer(words)
    network, missing = _read_base(base, tensors, spec, bool(head))
    trained = {name.removeprefix(_WHOLE).replace(".modules_to_save", "") for name in tensors}
    if missing := set(missing) - trained:
        hint = "PEFT saves it where task_type is SEQ_CLS"
        raise InputError(f"{directory}: no head: neither adapter nor base {base_name} has {few(missing)}: {hint}")
    network = _merge(network, config, tensors, directory, base_name)
    if words != base:  # trainers give the classifier the tokenizer's padding id, which no file of an adapter records
        network.config.get_text_config().pad_token_id = tokenizer.pad_token_id
    if head or is_decoder(network.config):
        trunk = f"{network.base_model_prefix}."
        head = head or {name: value for name, value in network.state_dict().items() if not name.startswith(trunk)}
        network = network.base_model
    else:
        head = None
    hashes = hashes_of(directory, spec.base if spec.base in BASES else base, words)
    return Checkpoint(network.to(DTYPES[spec.dtype]), head, tokenizer, hashes)


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
        kind: Any = AutoModelForSequenceClassification._model_mapping[type(config)]
    except KeyError as error:
        raise InputError(f"model type {config.model_type!r} has no sequence classification in transformers") from error
    return issubclass(kind, GenericForSequenceClassification)


def _read_base(base: Path, tensors: dict[str, torch.Tensor], spec: ModelSpec, is_language_model: bool):
    """The base as a classifier or a language model, and its tensors that the adapter has to bring."""
    config = read_config(base, spec.softcap)
    outputs = [len(tensor) for name, tensor in tensors.items() if ".score." in name and "lora_" not in name]
    if outputs:
        config.num_labels = max(outputs)
    kind: Any = AutoModelForCausalLM if is_language_model else AutoModelForSequenceClassification
    # Our own adapters are small enough to be merged in fp32 whatever they are used in.
    dtype = torch.float32 if spec.base else DTYPES[spec.dtype]
    with readable(base):
        network, info = kind.from_pretrained(base, config=config, dtype=dtype, **LOADING)
    # As many rows of the embedding as the adapter was trained with, where it saved them: its tokenizer has grown.
    rows = [len(tensor) for name, tensor in tensors.items() if name.endswith(("embed_tokens.weight", "lm_head.weight"))]
    if rows and max(rows) != network.get_input_embeddings().weight.shape[0]:
        network.resize_token_embeddings(max(rows), mean_resizing=False)
    # A head of the base that has another shape than the adapter's gives way to it.
    return network, [*info["missing_keys"], *(name for name, *_ in info["mismatched_keys"])]


def _merge(network, config, tensors: dict[str, torch.Tensor], directory: Path, base_name: str) -> Any:
    """The network with the adapter merged into it; every tensor of the adapter has found its place."""
    import peft

    with readable(directory):
        adapted = peft.get_peft_model(network, config)
        try:
            loaded = peft.set_peft_model_state_dict(adapted, tensors)
        except RuntimeError as error:
            mismatch = str(error).splitlines()[-1].strip()
            raise InputError(f"{directory} does not fit its base {base_name}: {mismatch}") from error
        if loaded.unexpected_keys:
            unexpected = few(loaded.unexpected_keys)
            raise InputError(f"{directory}: tensors that fit nowhere in its base {base_name}: {unexpected}")
        missing = [name for name in loaded.missing_keys if "lora_" in name or "modules_to_save" in name]
        if missing:
            raise InputError(f"{directory}: the adapter lacks {few(missing)}")
        return adapted.merge_and_unload()
