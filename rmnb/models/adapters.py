"""Adapters: their base is loaded, PEFT merges the adapter into it, and the head is taken from either.

All that PEFT can merge is supported: LoRA and its variants (rank-stabilised, DoRA), biases, and modules that were
trained whole (``modules_to_save``, in which TRL and transformers keep the head). The adapter of a language model has
its value head in a separate file (LLaMA-Factory).
"""

import logging
import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, PreTrainedModel

from rmnb.errors import InputError, list_some
from rmnb.models.checkpoint_files import (
    LOADING,
    check_files,
    read_config,
    read_tensors,
    readable,
    weight_files,
)
from rmnb.models.devices import DTYPES
from rmnb.models.origin import ModelFiles
from rmnb.models.reading import STEPS, is_decoder
from rmnb.models.readouts import trunk_name

logger = logging.getLogger(__name__)
_WHOLE = "base_model.model."  # before the name of every tensor that PEFT writes


#: The tensors by name that could be the head over a trunk; the language model that it is the trunk of; None for a whole
#: classifier.
Head = dict[str, torch.Tensor] | PreTrainedModel | None


def read_adapter(files: ModelFiles) -> tuple[PreTrainedModel, Head]:
    """Load an adapter's base, merge the adapter into it, and find its head: the trunk, or a whole classifier, and that.

    Raises
    ------
    InputError
        The base cannot be had or is quantised, a tensor has no place in it, or there is no head.
    """
    import peft

    spec, directory, base, base_name = files.spec, files.directory, files.network, files.source
    [adapter, *_] = weight_files(directory)
    with readable(adapter):
        tensors = load_file(adapter)
    head: Any = read_tensors(directory, set())
    with readable(directory / "adapter_config.json"):
        peft_config: Any = peft.PeftConfig.from_pretrained(str(directory))
    if peft_config.is_prompt_learning:
        raise InputError(f"{directory}: an adapter of kind {peft_config.peft_type}, which cannot be merged into a base")
    if peft_config.task_type == "TOKEN_CLS":
        raise InputError(f"{directory}: {STEPS.format('an adapter of a token classifier')}")
    if peft_config.task_type != "SEQ_CLS":
        peft_config.task_type = None  # a classifier, whatever the training called it
    peft_config.inference_mode = False  # then PEFT says which tensors were trained
    try:
        check_files(base)
    except InputError as error:
        raise InputError(f"{directory}: its base: {error}: name another place with --base", error.about) from error
    config = read_config(base, spec.softcap)
    if getattr(config, "quantization_config", None):
        hint = "an adapter is merged into unquantised weights: name those with --base"
        raise InputError(f"{directory}: its base {base_name} is quantised: {hint}", base_name)
    is_language_model = spec.readout.reads_language_head or bool(head)
    decodes = is_language_model or is_decoder(config)
    kind: Any = AutoModelForCausalLM if is_language_model else AutoModelForSequenceClassification
    # Our own adapters are small enough to be merged in fp32 whatever they are used in.
    dtype = torch.float32 if spec.base else DTYPES[spec.dtype]
    if not is_language_model and (outputs := _outputs(tensors, kind._model_mapping[type(config)].base_model_prefix)):
        config.num_labels = outputs
    with readable(base):
        network, info = kind.from_pretrained(base, config=config, dtype=dtype, **LOADING)
    rows = _rows(network, peft_config, tensors)
    if rows != network.get_input_embeddings().weight.shape[0]:
        network.resize_token_embeddings(rows, mean_resizing=False)
    # A head of the base that has another shape than the adapter's gives way to it.
    missing = {*info["missing_keys"], *(name for name, *_ in info["mismatched_keys"])}
    if missing := missing - {name.removeprefix(_WHOLE).replace(".modules_to_save", "") for name in tensors}:
        names = list_some(missing)
        hint = "PEFT saves it where task_type is SEQ_CLS"
        raise InputError(f"{directory}: no head: neither adapter nor base {base_name} has {names}: {hint}")
    network = _merge(network, peft_config, tensors, directory, base_name)
    network = network.to(DTYPES[spec.dtype])
    if not decodes:
        return network, None
    trunk = trunk_name(network)
    if spec.readout.reads_language_head:
        head = network
    elif not head:
        parameters = network.named_parameters(remove_duplicate=False)  # a head that is tied to the embedding stays so
        head = {name: tensor for name, tensor in parameters if not name.startswith(f"{trunk}.")}
    return network.get_submodule(trunk), head


def _outputs(tensors: dict[str, torch.Tensor], trunk: str) -> int | None:
    """How many outputs the head has that an adapter brings whole: the fewest rows of what is outside the trunk."""
    inside = (f"{_WHOLE}{trunk}.", f"{_WHOLE}lm_head.")
    rows = [len(tensor) for name, tensor in tensors.items() if "lora_" not in name and not name.startswith(inside)]
    return min(rows, default=None)


def _rows(network, config, tensors: dict[str, torch.Tensor]) -> int:
    """How many rows the embedding had in training, whose tokenizer may have grown: as saved, or as ids were trained."""
    ends = ("embed_tokens.weight", "lm_head.weight", "base_layer.weight", "lora_embedding_A")
    saved = [
        tensor.shape[-1 if name.endswith("lora_embedding_A") else 0]
        for name, tensor in tensors.items()
        if name.endswith(ends)
    ]
    if saved:
        return max(saved)
    trained = getattr(config, "trainable_token_indices", None) or getattr(config, "token_indices", None) or []
    by_layer = trained.values() if isinstance(trained, dict) else [trained]
    highest = max((index for indices in by_layer for index in indices), default=0)
    return max(network.get_input_embeddings().weight.shape[0], highest + 1)


def _untie(network, config, tensors: dict[str, torch.Tensor]) -> None:
    """Give the output layer weights of its own where an adapter changes it or the embedding to which it is tied.

    Merged into weights that both share, a change of one would be a change of both. An adapter that was tied itself
    still is, by the configuration: PEFT then makes the same change on either side.
    """
    inputs, outputs = network.get_input_embeddings(), network.get_output_embeddings()
    if outputs is None or outputs.weight is not inputs.weight:
        return
    layers = [name for name, module in network.named_modules() if module in (inputs, outputs)]
    if any(name.startswith(tuple(f"{_WHOLE}{layer}." for layer in layers)) for name in tensors):
        outputs.weight = torch.nn.Parameter(outputs.weight.detach().clone(), False)
        is_tied_itself = ("ensure_weight_tying", "trainable_token_indices")
        network.config.tie_word_embeddings = any(getattr(config, key, None) for key in is_tied_itself)


def _merge(network, config, tensors: dict[str, torch.Tensor], directory: Path, base_name: str) -> Any:
    """The network with the adapter merged into it; every tensor of the adapter has found its place."""
    import peft

    _untie(network, config, tensors)
    config.base_model_name_or_path = None  # it may lie elsewhere here, of which PEFT would warn
    with readable(directory), warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        adapted = peft.get_peft_model(network, config)
        try:
            loaded = peft.set_peft_model_state_dict(adapted, tensors)
        except RuntimeError as error:
            mismatch = str(error).splitlines()[-1].strip()
            raise InputError(f"{directory} does not fit its base {base_name}: {mismatch}") from error
        if loaded.unexpected_keys:
            unexpected = list_some(loaded.unexpected_keys)
            raise InputError(f"{directory}: tensors that fit nowhere in its base {base_name}: {unexpected}")
        trained = {name for name, parameter in adapted.named_parameters() if parameter.requires_grad}
        if missing := trained & set(loaded.missing_keys):
            raise InputError(f"{directory}: the adapter lacks {list_some(missing)}")
        merged: Any = adapted.merge_and_unload()
    of_peft = [str(each.message).partition("\n")[0] for each in found if "peft" in Path(each.filename).parts]
    for text in dict.fromkeys(of_peft):
        logger.warning("%s: PEFT says: %s", directory, text)
    return merged
