"""Load a reward model: trunk, head, tokenizer and dialogue, from a panel, the hub or a directory."""

import contextlib
import json
import logging
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
)
from transformers.utils import logging as transformers_logging

from rmnb.errors import InputError, few
from rmnb.files import cached_sha256, joint_sha256, sha256, shipped
from rmnb.models import attention
from rmnb.models.bases import base_directory, base_sha256, base_tokenizer
from rmnb.models.checkpoint_files import ADAPTER, is_adapter, readable, refuse_pickles, value_head
from rmnb.models.devices import DTYPES, MIXED, Placement, placement
from rmnb.models.dialogue import Dialogue
from rmnb.models.heads import Head, choose_label, find_head, read_tensors
from rmnb.models.hub import check_files, fetch
from rmnb.models.origin import config_sha256, tokenizer_sha256, weights_sha256
from rmnb.models.peft_adapters import is_decoder, merge_with_peft
from rmnb.models.precision import use_mixed_precision
from rmnb.models.reading import Reading, own_reading
from rmnb.models.reward_model import RewardModel
from rmnb.panels import ModelSpec, Panel, Read, find_spec

logger = logging.getLogger(__name__)
# A language model's own head, and positions that old versions of transformers saved.
_NOT_OF_A_HEAD = ("lm_head.weight", "lm_head.bias", "rotary_emb.inv_freq")


def load_reward_model(
    model: str | Path | ModelSpec,
    panel: str | Path | Panel | None = None,
    dtype: str | None = None,
    device: str | None = None,
    device_map: str | Mapping[str, Any] | None = None,
    quantise: str | None = None,
    compile: str | None = None,
    softcap: bool | None = None,
    read: str | None = None,
    base: str | Path | None = None,
    label: int | str | None = None,
) -> RewardModel:
    """Load a reward model.

    Parameters
    ----------
    model
        A panel's nickname, a hub id ``owner/name`` or ``owner/name@revision``, the directory of a checkpoint or of a
        PEFT adapter, or a ModelSpec.
    panel
        Where to look a nickname up; without it, the panels that ship with rmnb.
    dtype
        ``float32``, ``bfloat16`` or ``float16`` for the trunk, or ``bfloat16-mixed``: only its matrix products in
        bfloat16 (`rmnb.models.precision`). The head is always fp32. Default: the spec's own.
    device
        A torch device. Default: ``cuda`` if there is one, else ``cpu``.
    device_map
        Spread the trunk over several devices: ``auto``, or a device for each module, as accelerate takes it.
    quantise
        ``8bit`` or ``4bit``, by bitsandbytes, on a GPU.
    compile
        ``default`` (torch.compile), ``graphs`` (with CUDA graphs) or ``none``, the default.
    softcap
        False leaves out the soft-capping of attention scores that Gemma 2 was trained with. The papers' Gemma scores
        were probably made so, since the attention kernel that their version of transformers chose by itself could not
        cap; but that is inferred, not documented. Default: the spec's own, which is to cap.
    read
        ``model``: the reward is read where the checkpoint's own code reads one conversation (`rmnb.models.reading`).
        ``last``: at the last id, whatever that code does. Default: the spec's own.
    base
        Hub id or directory of the model that an adapter was trained from. Default: what its configuration says.
    label
        Which output of a classifier with several is the reward: its number, from 0, or its name.

    Raises
    ------
    InputError
        Unknown model, no configuration, pickled weights only, no chat template, a head that does not match …: one line.
    """
    if not isinstance(model, (str, Path, ModelSpec)):
        raise InputError(f"a model is a name, a directory or a ModelSpec, not a {type(model).__name__}", "model")
    spec = model if isinstance(model, ModelSpec) else find_spec(model, panel)
    dtype = number_format(dtype, spec)
    spec = spec.model_copy(update={"dtype": dtype}) if dtype else spec
    spec = spec if softcap is None else spec.model_copy(update={"softcap": softcap})
    if read not in (None, *get_args(Read)):
        raise InputError(f"unknown place to read at {read!r}: choose one of {', '.join(get_args(Read))}")
    # Our adapters are read where they were trained to be read, whatever is asked for: their panel says so.
    spec = spec.model_copy(update={"read": read}) if read and not spec.base else spec
    asked = {"base_model": None if base is None else str(base), "label": _label_number(label, spec)}
    spec = spec.model_copy(update={name: value for name, value in asked.items() if value is not None})
    place = placement(device, device_map, quantise, compile)
    if spec.base and (device_map or quantise):
        raise InputError(f"{spec.name} is an adapter, merged on loading: it takes neither device map nor quantisation")
    if spec.dtype == MIXED and (device_map or quantise):
        raise InputError(f"{MIXED} goes with neither device map nor quantisation: use bfloat16")
    if spec.base and not spec.softcap:
        raise InputError(f"{spec.name}: its attention has no soft-capping that could be switched off")
    with quiet_transformers():
        loaded = _load_demo(spec) if spec.base else _load_directory(spec, _fetch(spec), place)
    loaded.network.eval().requires_grad_(False)
    if spec.dtype == MIXED:
        use_mixed_precision(loaded.network)
    place.settle(loaded.network)
    loaded = replace(loaded, placement=place)
    if loaded.head is None:
        return loaded
    return replace(loaded, head=loaded.head.to(loaded.device))


_CALLED = {"float": "float32", "half": "float16", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def number_format(dtype: str | None, spec: ModelSpec) -> str | None:
    """The number format of a name: also torch's and usual short ones; ``auto``: as the weights are stored.

    Raises
    ------
    InputError
        An unknown name, or ``auto`` of a checkpoint that does not say.
    """
    if dtype == "auto":
        if spec.base:
            return "float32"
        config = AutoConfig.from_pretrained(_fetch(spec), trust_remote_code=False)
        dtype = str(config.dtype or "float32")
    name = (dtype or "").removeprefix("torch.")
    name = _CALLED.get(name, name)
    if dtype is not None and name not in DTYPES:
        raise InputError(f"unknown dtype {dtype!r}: choose auto, {', '.join(DTYPES)}")
    return name or None


def _label_number(label: int | str | None, spec: ModelSpec) -> int | None:
    if label is None or isinstance(label, int) or label.isdecimal():
        return None if label is None else int(label)
    names = AutoConfig.from_pretrained(_fetch(spec), trust_remote_code=False).id2label or {}
    numbers = {name: number for number, name in names.items()}
    if label not in numbers:
        raise InputError(f"{spec.name} has no label {label!r}: its labels are {few(numbers)}", label)
    return numbers[label]


def _fetch(spec: ModelSpec) -> Path:
    """The checkpoint's directory, downloaded from the hub if it is not a local one."""
    assert spec.source is not None
    return fetch(spec.source, spec.revision)


def _load_demo(spec: ModelSpec) -> RewardModel:
    assert spec.base is not None and spec.adapter is not None
    adapter = shipped_adapter(spec.name, spec.adapter)
    directory = base_directory(spec.base)
    tokenizer = base_tokenizer(spec.base)
    merged = merge_with_peft(adapter, str(directory), torch.float32, tokenizer)
    merged.trunk.to(DTYPES[spec.dtype])
    return RewardModel(
        spec=spec,
        network=merged.trunk,
        head=find_head(merged.head, merged.network.config.to_dict(), str(adapter)),
        dialogue=Dialogue(tokenizer, spec.template or trained_template(adapter)),
        plain_because=_share_prefix(merged.trunk),
        weights_sha256=joint_sha256([base_sha256(spec.base), sha256(adapter / "adapter_model.safetensors")]),
        tokenizer_sha256=cached_sha256(directory / "tokenizer.json"),
        config_sha256=config_sha256(adapter / "adapter_config.json"),  # a base has one, which its hash stands for
        reading=Reading("last"),  # our adapters are trained with a padding id that no conversation holds
    )


def shipped_adapter(name: str, adapter: str) -> Path:
    """The directory of a model's adapter, given relative to the project's data; InputError if nothing is there."""
    return shipped(Path(adapter) / "adapter_model.safetensors", name).parent


def trained_template(adapter: Path) -> str:
    """The template that an adapter was trained with: any other would give other rewards without a word."""
    return json.loads((adapter / "provenance.json").read_text(encoding="utf-8"))["template"]


def _load_directory(spec: ModelSpec, directory: Path, place: Placement) -> RewardModel:
    if is_adapter(directory):
        return _load_adapter(spec, directory, place)
    if spec.base_model:
        raise InputError(f"{directory} is no adapter: --base (`base_model` in a panel) names the base of one")
    if not (directory / "config.json").exists():
        inside = few(path.name for path in directory.glob("checkpoint-*"))
        hint = f"; inside are {inside}" if inside else ""
        raise InputError(f"{directory} is no checkpoint: it has no config.json, and no adapter_config.json{hint}")
    if (directory / ADAPTER).exists():
        logger.warning("%s holds a whole model and an adapter: the whole model is read", directory)
    refuse_pickles(directory)
    check_files(directory, with_tokenizer=spec.tokenizer is None)
    with readable(directory):
        config = AutoConfig.from_pretrained(directory, trust_remote_code=False)
    words = Path(spec.tokenizer) if spec.tokenizer else directory
    with readable(words):
        tokenizer = AutoTokenizer.from_pretrained(words, trust_remote_code=False)
    dtype = DTYPES[spec.dtype]
    hashes = {
        "weights_sha256": weights_sha256(directory),
        "tokenizer_sha256": tokenizer_sha256(words),
        "config_sha256": config_sha256(directory / "config.json"),
    }
    template = chosen_template(tokenizer.chat_template, spec, directory)
    if not is_decoder(config):
        network = _load_classifier(directory, spec.label, dtype, place)
        return _whole_classifier(spec, network, Dialogue(tokenizer, template), hashes)
    if template is None:
        raise InputError(f"{directory}: the tokenizer has no chat template: name one in a panel (key `template`)")
    if not spec.softcap:
        _uncap(config, str(directory))
    options = _options(dtype, place)
    with readable(directory):
        trunk, info = AutoModel.from_pretrained(directory, config=config, output_loading_info=True, **options)
    if info["missing_keys"]:
        raise InputError(f"{directory}: the weights lack {few(info['missing_keys'])}")
    _refuse_mismatched(info, directory)
    dialogue = Dialogue(tokenizer, template)
    of_head = {name for name in info["unexpected_keys"] if not name.endswith(_NOT_OF_A_HEAD)}
    tensors = read_tensors(directory, of_head) | value_head(directory)
    settings = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    text = trunk.config.get_text_config()
    settings["hidden_size"] = text.hidden_size
    head = find_head(tensors, settings, str(directory), dialogue, spec.head, spec.label)
    reading = own_reading(head.name, text.pad_token_id, settings)
    return _with_head(spec, trunk, head, reading, dialogue, hashes)


def _with_head(
    spec: ModelSpec,
    trunk: PreTrainedModel,
    head: Head,
    reading: Reading,
    dialogue: Dialogue,
    hashes: dict[str, str],
) -> RewardModel:
    """A decoder's trunk and head."""
    reading = reading if spec.read == "model" else replace(reading, rule="last")
    return RewardModel(spec, trunk, head, dialogue, _share_prefix(trunk), reading=reading, **hashes)


def _whole_classifier(
    spec: ModelSpec, network: PreTrainedModel, dialogue: Dialogue, hashes: dict[str, str]
) -> RewardModel:
    """An encoder, or what else pools in its own way: scored by transformers' own classifier."""
    why = f"{type(network).__name__} pools in a way of its own"
    logger.warning("scoring whole sequences, which is slower: %s", why)
    reading = Reading("own", network.config.pad_token_id)
    if spec.read == "last" or reading.padding is None:
        network.config.pad_token_id = -1  # no id is padding; without any, some refuse several conversations at once
    return RewardModel(spec, network, None, dialogue, why, reading=reading, **hashes)


def _load_adapter(spec: ModelSpec, directory: Path, place: Placement) -> RewardModel:
    """An adapter that somebody trained, merged by PEFT into the base that it names."""
    if place.device_map or place.quantise:
        raise InputError(f"{directory} is an adapter, merged on loading: it takes neither device map nor quantisation")
    if spec.tokenizer:
        raise InputError(f"{directory} is an adapter: its tokenizer is its own, or its base's", spec.tokenizer)
    merged = merge_with_peft(directory, spec.base_model, DTYPES[spec.dtype])
    config, settings = merged.network.config, merged.network.config.to_dict()
    if not spec.softcap:
        _uncap(config, str(directory))
    template = chosen_template(merged.tokenizer.chat_template, spec, directory)
    dialogue, hashes = Dialogue(merged.tokenizer, template), merged.hashes
    if not merged.is_decoder:
        choose_label(int(config.num_labels or 1), spec.label, settings, str(directory))
        return _whole_classifier(spec, merged.network, dialogue, hashes)
    if template is None:
        raise InputError(f"{directory}: the tokenizer has no chat template: name one in a panel (key `template`)")
    settings["hidden_size"] = config.get_text_config().hidden_size
    head = find_head(merged.head, settings, str(directory), dialogue, spec.head, spec.label)
    return _with_head(spec, merged.trunk, head, own_reading(head.name, merged.padding, settings), dialogue, hashes)


def chosen_template(own: str | dict[str, str] | None, spec: ModelSpec, directory: Path) -> str | None:
    """The panel's template; else the tokenizer's own, of several the one called ``default``, as transformers does.

    A panel may name one of several (``template: rag``).
    """
    if not isinstance(own, dict):
        return spec.template or own
    if spec.template in own or (spec.template is None and "default" in own):
        return own[spec.template or "default"]
    if spec.template is None:
        raise InputError(f"{directory}: several chat templates ({few(own)}): name one in a panel (key `template`)")
    return spec.template


def _uncap(config, where: str) -> None:
    """Switch attention soft-capping off in a configuration that has it."""
    text = config.get_text_config()
    if getattr(text, "attn_logit_softcapping", None) is None:
        raise InputError(f"{where}: its attention has no soft-capping that could be switched off")
    text.attn_logit_softcapping = None


def _options(dtype: torch.dtype, place: Placement) -> dict[str, Any]:
    """No code of the checkpoint's own; tensors of another shape are let through, to be named afterwards."""
    safe = {"trust_remote_code": False, "use_safetensors": True}
    return {"dtype": dtype, "ignore_mismatched_sizes": True, **safe, **place.load_options(dtype)}


def _refuse_mismatched(info, directory: Path) -> None:
    """Name the tensors whose shapes are not those that the configuration asks for."""
    if wrong := [f"{name} {list(found)}, not {list(asked)}" for name, found, asked in info["mismatched_keys"]]:
        raise InputError(f"{directory}: tensors of another shape than the configuration says: {few(wrong)}")


def _load_classifier(directory: Path, label: int | None, dtype: torch.dtype, place: Placement) -> PreTrainedModel:
    with readable(directory):
        network, info = AutoModelForSequenceClassification.from_pretrained(
            directory, output_loading_info=True, **_options(dtype, place)
        )
    _refuse_mismatched(info, directory)
    wrong = sorted({*info["missing_keys"], *info["unexpected_keys"]})
    if wrong:
        raise InputError(f"{directory}: the weights do not match the head: {few(wrong)}")
    choose_label(int(network.config.num_labels or 1), label, network.config.to_dict(), str(directory))
    return network


def _share_prefix(trunk) -> str | None:
    """Give the trunk our attention; or say why it cannot have it."""
    reason = attention.why_unsupported(trunk)
    if reason is None:
        trunk.set_attn_implementation(attention.NAME)
    else:
        logger.warning("scoring whole sequences, which is slower: %s", reason)
    return reason


@contextlib.contextmanager
def quiet_transformers():
    """Keep transformers' progress bars and reports of unused tensors off the terminal: they are checked here."""
    level, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # between PEFT and transformers
            yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()
