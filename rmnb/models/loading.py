"""Load a reward model: trunk, head, tokenizer and dialogue, from a panel, the hub or a directory."""

import contextlib
import json
import logging
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel, AutoModelForSequenceClassification, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from rmnb.errors import InputError, few, first_line
from rmnb.files import shipped
from rmnb.models import attention
from rmnb.models.checkpoint_files import ADAPTER, check_files, fetch, is_adapter, read_tokenizer, readable
from rmnb.models.devices import DTYPES, MIXED, find_device
from rmnb.models.dialogue import Dialogue, plain_template
from rmnb.models.heads import GatedHead, choose_label, find_head, gate_pattern, read_tensors, value_head
from rmnb.models.origin import hashes_of
from rmnb.models.peft_adapters import LOADING, Checkpoint, is_decoder, read_adapter, read_config
from rmnb.models.precision import use_mixed_precision
from rmnb.models.reading import Reading, is_language_model, own_reading, trainer_of
from rmnb.models.reward_model import RewardModel
from rmnb.panels import ModelSpec, Panel, find_spec
from rmnb.panels.specs import validate

logger = logging.getLogger(__name__)
_OF_SPEC = ("dtype", "read", "label", "softcap", "head", "template", "tokenizer")
_SPREAD = {"device_map", "quantization_config"}  # with these, transformers puts the weights where they go
# A language model's own head, and positions that old versions of transformers saved.
_NOT_OF_A_HEAD = ("lm_head.weight", "lm_head.bias", "rotary_emb.inv_freq")


def load_reward_model(
    model: str | Path | ModelSpec,
    panel: str | Path | Panel | None = None,
    device: str | None = None,
    base: str | Path | None = None,
    compile: str | None = None,
    **options: Any,
) -> RewardModel:
    """Load a reward model.

    Parameters
    ----------
    model
        A panel's nickname, a hub id ``owner/name`` or ``owner/name@revision``, the directory of a checkpoint or of a
        PEFT adapter, or a ModelSpec.
    panel
        Where to look a nickname up; without it, the panels that ship with rmnb.
    device
        A torch device. Default: ``cuda`` if there is one, else ``cpu``.
    base
        Hub id or directory of the model that an adapter was trained from. Default: what its configuration says.
    compile
        A mode of torch.compile, such as ``default`` or ``reduce-overhead``, for the network. Default: not compiled.
    **options
        These take the place of the spec's own (see `rmnb.panels.ModelSpec`):

        - ``dtype``: ``float32``, ``bfloat16`` or ``float16`` for the trunk, ``auto`` (as stored), or
          ``bfloat16-mixed``: only its matrix products in bfloat16 (`rmnb.models.precision`). The head is always fp32.
        - ``read``: ``model``, as the checkpoint says that it was trained (`rmnb.models.reading`); ``trl``,
          ``openrlhf`` or ``llama-factory``, as that trainer feeds and reads a conversation; or ``last``, at the last id
          of the filled template, whatever that code does.
        - ``label``: which output of a classifier with several is the reward: its number, from 0, or its name.
        - ``softcap``: False leaves out the soft-capping of attention scores that Gemma 2 was trained with. The
          papers' Gemma scores were probably made so, since the attention kernel that their version of transformers
          chose by itself could not cap; but that is inferred, not documented.
        - ``head``, ``template``, ``tokenizer``.

        All others go to ``from_pretrained`` of transformers: ``device_map="auto"`` spreads the trunk over several
        devices, ``quantization_config={"load_in_8bit": True}`` quantises it on a GPU.

    Raises
    ------
    InputError
        Unknown model, no configuration, pickled weights only, no chat template, a head that does not match …: one line.
    """
    spec = model if isinstance(model, ModelSpec) else find_spec(model, panel)
    target = find_device(device)
    options = {name: value for name, value in options.items() if value is not None}
    changes = {name: options.pop(name) for name in _OF_SPEC if name in options}
    if base is not None:
        changes["base_model"] = str(base)
    quantisation: Any = options.get("quantization_config")
    if hasattr(quantisation, "to_dict"):
        options["quantization_config"] = quantisation.to_dict()  # as it is kept in score files
    with quiet_transformers():
        directory = shipped_adapter(spec.name, spec.adapter) if spec.adapter else fetch(str(spec.source), spec.revision)
        spec = _with_changes(spec, changes, directory)
        adapts = is_adapter(directory)
        if options and (adapts or spec.dtype == MIXED):
            kind = "an adapter, merged when it is loaded" if adapts else f"loaded in {MIXED}"
            raise InputError(f"{spec.name} is {kind}: it takes no {few(options)}", few(options))
        checkpoint = read_adapter(directory, spec) if adapts else _read_whole(directory, spec, options)
        rm = _assemble(spec, directory, checkpoint)
    network: Any = rm.network.eval().requires_grad_(False)
    if spec.dtype == MIXED:
        use_mixed_precision(network)
    try:
        if not _SPREAD & options.keys():
            network.to(target)
        if compile is not None:
            network.compile(mode=compile)
            options["compile"] = compile
    except RuntimeError as error:
        advice = ": try device_map=auto or a half-precision dtype" if isinstance(error, torch.OutOfMemoryError) else ""
        raise InputError(f"{spec.name} on {target}: {first_line(error)}{advice}") from error
    if rm.head is not None:
        rm.head.to(rm.device)
    return replace(rm, options=options)


def _with_changes(spec: ModelSpec, changes: Mapping[str, Any], directory: Path) -> ModelSpec:
    """The spec with options in place of its own, checked as a panel is; dtype and label may be names."""
    fields = {**spec.model_dump(), **changes}
    dtype = fields["dtype"]
    label = fields["label"]
    if dtype == "auto":
        stored = None if is_adapter(directory) else read_config(directory).dtype
        dtype = stored or "float32"
    name = str(dtype).removeprefix("torch.")
    canonical = getattr(torch, name, name)  # torch.half is torch.float16
    fields["dtype"] = str(canonical).removeprefix("torch.")
    if isinstance(label, str) and not label.isdecimal():
        numbers = {name: number for number, name in (read_config(directory).id2label or {}).items()}
        if label not in numbers:
            raise InputError(f"{spec.name} has no label {label!r}: its labels are {few(numbers)}", label)
        fields["label"] = numbers[label]
    return validate(ModelSpec, fields, spec.name)


def shipped_adapter(name: str, adapter: str) -> Path:
    """The directory of a model's adapter, given relative to the project's data; InputError if nothing is there."""
    return shipped(Path(adapter) / ADAPTER, name).parent


def _read_whole(directory: Path, spec: ModelSpec, options: Mapping[str, Any]) -> Checkpoint:
    """A checkpoint with all its weights."""
    check_files(directory, with_tokenizer=spec.tokenizer is None)
    if spec.base_model:
        raise InputError(f"{directory} is no adapter: --base (`base_model` in a panel) names the base of one")
    words = Path(spec.tokenizer or directory)
    tokenizer = read_tokenizer(words)
    config = read_config(directory, spec.softcap)
    decodes = is_decoder(config)
    kind: Any = AutoModel if decodes else AutoModelForSequenceClassification
    with readable(directory):  # also where an option is one of `LOADING`
        network, info = kind.from_pretrained(directory, config=config, dtype=DTYPES[spec.dtype], **LOADING, **options)
    if shapes := [f"{name} {list(stored)}, not {list(shape)}" for name, stored, shape in info["mismatched_keys"]]:
        raise InputError(f"{directory}: tensors of another shape than the configuration says: {few(shapes)}")
    if missing := info["missing_keys"]:
        raise InputError(f"{directory}: the weights lack {few(missing)}")
    unread = {name for name in info["unexpected_keys"] if not name.endswith(_NOT_OF_A_HEAD)}
    if unread and not decodes:
        raise InputError(f"{directory}: the weights do not match the head: {few(unread)}")
    head = read_tensors(directory, unread) | value_head(directory) if decodes else None
    return Checkpoint(network, head, tokenizer, hashes_of(directory, tokenizer=words))


def _assemble(spec: ModelSpec, directory: Path, checkpoint: Checkpoint) -> RewardModel:
    """A reward model of what a directory holds."""
    network = checkpoint.network
    config = checkpoint.network.config
    padding = config.get_text_config().pad_token_id  # of the trainer's classifier
    template = chosen_template(checkpoint.tokenizer, spec, directory)
    trainer = trainer_of(spec.read, config.to_dict(), directory)
    dialogue = Dialogue(checkpoint.tokenizer, template, trainer)
    if template is None and (checkpoint.head is not None or is_language_model(config)):
        raise InputError(
            f"{directory}: a language model's classifier, and its tokenizer has no chat template: give one with "
            "--template (`template` in a panel), or --template plain for prompt, answer and EOS as TRL feeds them"
        )
    if checkpoint.head is None:
        choose_label(int(config.num_labels or 1), spec.label, config.to_dict(), directory)
        head = None
        reading = Reading("own", padding)
        reason = f"{type(network).__name__} pools in a way of its own"
        # -1: no id is padding; without any, some refuse several conversations at once.
        config.pad_token_id = -1 if spec.read == "last" or padding is None else padding
    else:
        settings = {**config.to_dict(), "hidden_size": config.get_text_config().hidden_size}
        head = find_head(checkpoint.head, settings, directory, spec.head, spec.label)
        if isinstance(head, GatedHead):
            head.pattern = gate_pattern(dialogue)
        reading = own_reading(head.name, padding, trainer)
        if spec.base or spec.read == "last":  # our own were trained with a padding id that no conversation holds
            reading = Reading("last", None if spec.base else padding)
        reason = attention.why_unsupported(network)
    if reason is None:
        network.set_attn_implementation(attention.NAME)
    else:
        logger.warning("scoring whole sequences, which is slower: %s", reason)
    return RewardModel(spec, network, head, dialogue, reason, reading, checkpoint.hashes)


def chosen_template(tokenizer: PreTrainedTokenizerBase, spec: ModelSpec, directory: Path) -> str | None:
    """The panel's template, or one called ``plain``; else the one an adapter of ours was trained with; else its own.

    Of several, a panel may name one (``template: rag``); transformers takes the one called ``default``.
    """
    if spec.template == "plain":
        return plain_template(tokenizer)
    if spec.base and not spec.template:  # any other would give other rewards without a word
        return json.loads((directory / "provenance.json").read_text(encoding="utf-8"))["template"]
    if tokenizer.chat_template is None:
        return spec.template
    with readable(directory):
        return tokenizer.get_chat_template(spec.template)


@contextlib.contextmanager
def quiet_transformers():
    """Keep progress bars, warnings and reports of unused tensors off the terminal: tensors are checked here."""
    level = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()
