"""A reward model before it is fetched or loaded: its network without weights, and how it frames a question."""

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedConfig, PreTrainedModel

from rmnb.errors import InputError
from rmnb.files import shipped
from rmnb.models.attention import why_unsupported
from rmnb.models.bases import BASES, base_directory, base_tokenizer
from rmnb.models.checkpoint_files import is_adapter, readable
from rmnb.models.dialogue import Dialogue, Prompt, as_messages
from rmnb.models.loading import chosen_template, quiet_transformers, trained_template
from rmnb.models.peft_adapters import base_of, is_decoder
from rmnb.models.published import PUBLISHED, Published
from rmnb.models.reading import Reading, own_reading
from rmnb.panels import ModelSpec

_LETTERS = 4  # of an English text to an id, where no tokenizer is at hand
_NEEDED = ("config.json", "tokenizer_config.json")


@dataclass(frozen=True)
class Outline:
    """What is known of a reward model that is not loaded.

    Attributes
    ----------
    network : PreTrainedModel
        Its trunk on torch's meta device: shapes, no weights.
    shared : bool
        Whether answers share their prompt, as far as the configuration tells; else whole conversations are scored.
    half : bool
        Whether the weights are stored in bfloat16.
    frame : callable
        Of a prompt: how many ids come before an answer, and how many each token of a scan feeds.
    """

    network: PreTrainedModel
    shared: bool
    half: bool
    frame: Callable[[Prompt], tuple[int, int]]


def outline(spec: ModelSpec) -> Outline | None:
    """What is known of a model from files on this machine, or of the papers' models from `PUBLISHED`; else None.

    Nothing is fetched.

    Raises
    ------
    InputError
        A directory whose files cannot be read.
    """
    with quiet_transformers():
        if spec.base:
            return _demo(spec)
        source = spec.source or ""
        if (directory := _here(source, spec.revision)) is None:
            known = PUBLISHED.get(source)
            return known and _published(known)
        if not is_adapter(directory):
            return _of_directory(spec, directory, directory)
        base = _here(*base_of(directory, spec.base_model))
        words = directory if any(directory.glob("tokenizer*")) else base
        return base and words and _of_directory(spec, base, words, adapted=True)


def _here(source: str, revision: str | None) -> Path | None:
    """The directory of a checkpoint that is on this machine: its own, or the hub's cache; None if there is none."""
    if Path(source).is_dir():
        return Path(source)
    from huggingface_hub import try_to_load_from_cache

    name, _, at = source.partition("@")
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise InputError(f"{source}: no such directory, and no hub id either (owner/name)")
    found = [try_to_load_from_cache(name, file, revision=revision or at or None) for file in _NEEDED]
    return Path(found[0]).parent if all(isinstance(file, str) for file in found) else None  # type: ignore[arg-type]


def _demo(spec: ModelSpec) -> Outline | None:
    assert spec.base is not None and spec.adapter is not None
    directory = base_directory(spec.base) if spec.base in BASES else _here(spec.base, None)
    template = spec.template or trained_template(shipped(Path(spec.adapter) / "provenance.json", spec.name).parent)
    return directory and _of_base(directory, spec.base if spec.base in BASES else str(directory), template)


@functools.cache
def _of_base(directory: Path, words: str, template: str) -> Outline:
    """One outline for all demo models of a base."""
    frame = functools.partial(_framed, Dialogue(_tokenizer(words), template), Reading("last"))
    return Outline(_network(_config(directory), directory), True, False, frame)


def _of_directory(spec: ModelSpec, directory: Path, words: Path, adapted: bool = False) -> Outline:
    config = _config(directory)
    decoder = is_decoder(config)
    tokenizer = _tokenizer(str(words))
    template = chosen_template(tokenizer.chat_template, spec, words)
    if decoder and template is None:
        raise InputError(f"{words}: the tokenizer has no chat template: name one in a panel (key `template`)")
    settings = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    padding = config.get_text_config().pad_token_id
    reading = own_reading(spec.head or "linear", padding, settings) if decoder else Reading("own")
    reading = reading if spec.read == "model" else Reading("last")
    network = _network(config, directory)
    half = str(getattr(config, "dtype", "")).endswith("bfloat16") and not adapted
    frame = functools.partial(_framed, Dialogue(tokenizer, template), reading)
    return Outline(network, decoder and why_unsupported(network) is None, half, frame)


def _published(known: Published) -> Outline:
    def frame(prompt: Prompt) -> tuple[int, int]:
        letters = sum(len(message["content"]) for message in as_messages(prompt))
        return known.opening + letters // _LETTERS + 1, 1 + known.closing

    return Outline(_network(known.config, Path(known.kind)), True, True, frame)


def _framed(dialogue: Dialogue, reading: Reading, prompt: Prompt) -> tuple[int, int]:
    prefix, closing = dialogue.frame(prompt)
    answer = -1 if reading.padding is None else reading.padding + 1
    return len(prefix), len(reading.kept(prefix, (answer, *closing)))


def _config(directory: Path) -> PreTrainedConfig:
    if not (directory / "config.json").exists():
        raise InputError(f"{directory} is no checkpoint: it has no config.json, and no adapter_config.json")
    with readable(directory):
        return AutoConfig.from_pretrained(directory, trust_remote_code=False)


def _network(config: PreTrainedConfig, where: Path) -> PreTrainedModel:
    with readable(where), torch.device("meta"):
        return AutoModel.from_config(config)


@functools.lru_cache(maxsize=4)
def _tokenizer(where: str) -> Any:
    if where in BASES:
        return base_tokenizer(where)
    with readable(Path(where)):
        return AutoTokenizer.from_pretrained(where, trust_remote_code=False)
