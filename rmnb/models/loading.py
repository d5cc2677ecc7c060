"""From a checkpoint's files to all that scoring needs: configuration, trunk, readout, dialogue."""

import contextlib
import logging
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
import transformers
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from rmnb.errors import InputError, first_line, list_some
from rmnb.models import attention
from rmnb.models.adapters import Head, read_adapter
from rmnb.models.checkpoint_files import (
    ADAPTER,
    LOADING,
    check_files,
    is_adapter,
    read_config,
    read_tensors,
    readable,
)
from rmnb.models.devices import DTYPES, find_device, input_device
from rmnb.models.dialogue import PLAIN, PROBES, Dialogue, common_prefix
from rmnb.models.heads import ALL, choose_outputs, find_head, output_names
from rmnb.models.origin import ModelFiles, checkpoint_directory, find_files, hashes_of, trained_template
from rmnb.models.reading import Reading, is_decoder, is_language_model, own_reading, trainer_of
from rmnb.models.readouts import (
    AnswerLikelihood,
    AnswerTokens,
    ClassifierOutputs,
    GatedHead,
    Readout,
    opening_ids,
    trunk_name,
)
from rmnb.panels import Judge, ModelSpec
from rmnb.panels.specs import LINES, READOUT_KEYS, HeadSpec, ImplicitSpec, JudgeSpec, LogProbabilitySpec, validate

logger = logging.getLogger(__name__)
_OF_SPEC = {"base_model", "dtype", "read", "softcap", "template", "tokenizer", *READOUT_KEYS}
# With these, transformers would read other files than those that are checked and hashed here.
_OTHER_FILES = {"revision", "subfolder", "gguf_file", "state_dict", "config"}
_SPREAD = {"device_map", "quantization_config"}  # with these, transformers puts the weights where they go
# A language model's own head, and positions that old versions of transformers saved.
_NOT_OF_A_HEAD = ("lm_head.weight", "lm_head.bias", "rotary_emb.inv_freq")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint in memory, whatever it was: a trunk and how a reward is read from it.

    Attributes
    ----------
    spec : ModelSpec
        Name, origin, dtype.
    network : PreTrainedModel
        The trunk without head; or, where `reading` is its ``own``, a whole classifier (an encoder).
    readout : Readout
        From the hidden state at the id that is read to the reward, in fp32.
    dialogue : Dialogue
        Tokenizer and template.
    why_not_shared : str or None
        Why the engine scores whole sequences instead of sharing the prefix, or None if it shares it.
    reading : Reading
        At which id of a conversation the reward is read.
    hashes : dict
        weights_sha256, config_sha256 and tokenizer_sha256, for provenance.
    options : dict
        What loading passed on to ``from_pretrained``: a device map, say; ``compile``, the mode of torch.compile.
    reference : Checkpoint or None
        Of an implicit reward, the language model whose log-probabilities are taken off.
    """

    spec: ModelSpec
    network: PreTrainedModel
    readout: Readout
    dialogue: Dialogue
    why_not_shared: str | None
    reading: Reading = field(default_factory=Reading)
    hashes: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    reference: "Checkpoint | None" = None

    @property
    def shares_prefix(self) -> bool:
        """Whether continuations share the prefix; else whole sequences are scored."""
        return self.why_not_shared is None

    @property
    def pools_itself(self) -> bool:
        """Whether the network is a whole classifier."""
        return self.reading.rule == "own"

    @property
    def outputs(self) -> list[str]:
        """What is read of a conversation: ``reward``, or, of the label ``all``, the names of the outputs."""
        return list(self.readout.outputs)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def beta(self) -> float:
        """Of an implicit reward, its factor."""
        asked: Any = self.spec.readout
        return asked.beta

    @property
    def tokenizer(self):
        return self.dialogue.tokenizer

    @property
    def device(self) -> torch.device:
        """Where ids go in and rewards come out."""
        return input_device(self.network)

    @property
    def vocabulary_size(self) -> int:
        """Rows of the embedding, one for every id that the model can read."""
        return self.network.get_input_embeddings().weight.shape[0]  # pyright: ignore[reportIndexIssue, reportReturnType]

    @property
    def context(self) -> int | None:
        """The most ids that the model's positions are made for, or None if its configuration sets no limit."""
        config = self.network.config.get_text_config()
        limit = getattr(config, "max_position_embeddings", None) or 0
        if limit <= 0:
            return None
        scaling = getattr(config, "rope_parameters", None) or {}
        stretched = scaling.get("factor", 1) * scaling.get("original_max_position_embeddings", 0)
        limit = max(limit, int(stretched))
        for name, module in self.network.named_modules():
            if name.endswith("position_embeddings"):
                padding = getattr(module, "padding_idx", None)  # RoBERTa's positions begin after it
                return limit if padding is None else limit - padding - 1
        return limit


_Kind = TypeVar("_Kind", bound=Checkpoint)


def read_checkpoint(
    spec: ModelSpec, device: str | None, compile: str | None, kind: type[_Kind] = Checkpoint, **options: Any
) -> _Kind:
    """Read a model's files, whole or an adapter's and its base's; the options are those of `rmnb.load_reward_model`.

    `kind` is the class of what is returned: a checkpoint, or one that can do more.
    """
    target = find_device(device)
    spec_options = options
    options = {name: value for name, value in options.items() if value is not None and name not in _OF_SPEC}
    if "torch_dtype" in options:
        raise InputError("no option torch_dtype: it is called dtype", "torch_dtype")
    if others := list_some(_OTHER_FILES & options.keys()):
        raise InputError(f"no option {others}: name the checkpoint itself, a directory or owner/name@revision", others)
    if hasattr(quantisation := options.get("quantization_config"), "to_dict"):
        options["quantization_config"] = quantisation.to_dict()  # type: ignore[union-attr]  # as score files keep it
    with quiet_transformers():
        files = find_files(_with_changes(spec, spec_options))
        spec, directory = files.spec, files.directory
        adapts = is_adapter(directory)
        if options and adapts:
            names = list_some(options)
            raise InputError(f"{spec.name} is an adapter, merged when it is loaded: it takes no {names}", names)
        network: Any
        network, head = read_adapter(files) if adapts else _read_whole(files, options)
        dialogue = dialogue_of(files)
        if adapts and files.tokenizer != files.network:
            # Trainers give the classifier its padding id, which no file of an adapter records.
            network.config.get_text_config().pad_token_id = dialogue.tokenizer.pad_token_id
        readout, reading = _readout(spec, directory, network, head, dialogue)
        hashes = hashes_of(files, options.get("variant"))
    whole: Any = head if isinstance(head, PreTrainedModel) else network
    whole.eval().requires_grad_(False)
    reason = attention.why_unsupported(network)
    if head is None:
        reason = f"{type(network).__name__} pools in a way of its own"
    if reason is None:
        network.set_attn_implementation(attention.NAME)
    else:
        logger.warning("scoring whole sequences, which is slower: %s", reason)
    try:
        if not _SPREAD & options.keys():
            whole.to(target)
        if compile is not None:
            network.compile(mode=compile)
            options["compile"] = compile
    except RuntimeError as error:
        advice = ": try device_map=auto or a half-precision dtype" if isinstance(error, torch.OutOfMemoryError) else ""
        raise InputError(f"{spec.name} on {target}: {first_line(error)}{advice}") from error
    readout.to(input_device(network))
    return kind(spec, network, readout, dialogue, reason, reading, hashes, options)


def read_dialogue(spec: ModelSpec, **options: Any) -> Dialogue:
    """How a model's conversations are written, from its files without the weights; options as `read_checkpoint`'s."""
    with quiet_transformers():
        return dialogue_of(find_files(_with_changes(spec, options)))


def dialogue_of(files: ModelFiles) -> Dialogue:
    """How the conversations of a model are written, from its files; InputError if no template says so."""
    tokenizer = files.read_tokenizer()
    asked = files.spec.readout
    template = asked.asked_in(own_template(tokenizer, files.spec, files.directory))
    config = read_config(files.network)
    trainer, is_known = trainer_of(files.spec, config.to_dict(), files.directory)
    reads_pairs = not (is_language_model(config) or is_decoder(config) or (is_known and files.spec.read != "last"))
    if template is None and not reads_pairs and not isinstance(asked, LogProbabilitySpec):
        raise InputError(
            f"{files.directory}: trained on conversations or texts, and its tokenizer has no chat template: give one "
            "with --template (`template` in a panel), or --template plain for prompt, answer and EOS as TRL feeds them"
        )
    is_head = isinstance(asked, HeadSpec) and not asked.reads_language_head
    if is_head and template and "sentence_transformers" in config.to_dict() and not (files.spec.template or is_known):
        raise InputError(
            f"{files.directory}: trained by sentence-transformers, which writes pairs in a way of its own: give its "
            "template with --template, or --read trl if it was trained on conversations nevertheless"
        )
    return Dialogue(tokenizer, template, trainer, is_known)


def language_model(checkpoint: Checkpoint) -> Any:
    """transformers' language model, of whose trunk and head a checkpoint's network and readout are made."""
    readout: Any = checkpoint.readout
    return readout.whole[0]


def _with_changes(spec: ModelSpec, options: Mapping[str, Any]) -> ModelSpec:
    """The spec with options in place of its own, checked as a panel is; dtype may be ``auto``: as it is stored."""
    changes = {name: options[name] for name in _OF_SPEC & options.keys() if options[name] is not None}
    fields = {**spec.model_dump(), **changes}
    dtype = fields["dtype"]
    if dtype == "auto":
        directory: Any = checkpoint_directory(spec)
        dtype = (None if is_adapter(directory) else read_config(directory).dtype) or "float32"
    name = str(dtype).removeprefix("torch.")
    fields["dtype"] = str(getattr(torch, name, name)).removeprefix("torch.")  # torch.half is torch.float16
    return validate(ModelSpec, fields, spec.name)


def _read_whole(files: ModelFiles, options: Mapping[str, Any]) -> tuple[PreTrainedModel, Head]:
    """A checkpoint with all its weights."""
    spec, directory = files.spec, files.directory
    variant = options.get("variant")
    check_files(directory, spec.tokenizer is None, variant)
    if spec.base_model:
        raise InputError(f"{directory} is no adapter: --base (`base_model` in a panel) names the base of one")
    if (directory / ADAPTER).exists():
        logger.warning("%s holds an adapter beside whole weights: they are read as merged, without it", directory)
    config = read_config(directory, spec.softcap)
    kind: Any = AutoModelForCausalLM
    if spec.readout.reads_language_head:
        if any(name.endswith("Classification") for name in config.architectures or ()):
            raise InputError(f"{directory} is a classifier, and this asks for a language model")
    else:
        kind = AutoModel if is_decoder(config) else AutoModelForSequenceClassification
    with readable(directory):  # also where an option is one of `LOADING`
        network, info = kind.from_pretrained(directory, config=config, dtype=DTYPES[spec.dtype], **LOADING, **options)
    if shapes := [f"{name} {list(stored)}, not {list(shape)}" for name, stored, shape in info["mismatched_keys"]]:
        raise InputError(f"{directory}: tensors of another shape than the configuration says: {list_some(shapes)}")
    unread = set(info["unexpected_keys"])
    if missing := info["missing_keys"]:
        raise InputError(f"{directory}: the weights lack {list_some(missing)}{_prefix(missing, unread, network)}")
    unread = {name for name in unread if not name.endswith(_NOT_OF_A_HEAD)}
    head = None
    if kind is AutoModelForCausalLM:
        head = network
        network = network.get_submodule(trunk_name(network))
    elif kind is AutoModel:
        head = read_tensors(directory, unread, variant)
    elif unread:
        raise InputError(f"{directory}: the weights do not match the head: {list_some(unread)}")
    return network, head


def _prefix(missing: set[str], unread: set[str], network: PreTrainedModel) -> str:
    """What to say where every tensor that is missing is there under a longer name."""
    name = min(missing)
    for longer in sorted(unread):
        prefix = longer.removesuffix(name)
        if prefix != longer:
            prefix = prefix.removesuffix(f"{network.base_model_prefix}.")
            return f": all names begin with {prefix!r}, as a compiled or wrapped model's do: save the model inside it"
    return ""


def _readout(
    spec: ModelSpec, directory: Path, network: PreTrainedModel, head: Any, dialogue: Dialogue
) -> tuple[Readout, Reading]:
    """How the reward is read from a trunk, and where."""
    config = network.config
    padding = getattr(config.get_text_config(), "pad_token_id", None)  # of the trainer's classifier
    settings = {**config.to_dict(), "hidden_size": config.get_text_config().hidden_size}
    asked = spec.readout
    if head is None:
        readout = ClassifierOutputs()
        choose_outputs(readout, output_names(int(config.num_labels or 1), settings), asked.label, directory)
        # -1: no id is padding; without any, some refuse several conversations at once.
        config.pad_token_id = -1 if spec.read == "last" or padding is None else padding
        return readout, Reading("own", padding)
    if isinstance(asked, JudgeSpec):
        own = replace(dialogue, template=own_template(dialogue.tokenizer, spec, directory) or LINES)
        answers = answer_ids(dialogue, asked.judge, own)
        readout = AnswerTokens(head, list(answers), asked.judge.expected)
        names = dialogue.tokenizer.convert_ids_to_tokens(list(answers))
        choose_outputs(readout, names, asked.label or tuple(answers.values()), directory)
        return readout, Reading()
    if isinstance(asked, HeadSpec) and asked.reads_language_head:  # its own logits, which it may cap or scale
        count = len(network.get_input_embeddings().weight)  # pyright: ignore[reportArgumentType]
        if asked.label in (None, ALL):
            raise InputError(f"{directory}: a language head has {count:,} outputs, one an id: name some with --label")
        readout = Readout()
        choose_outputs(readout, list(map(str, range(count))), asked.label, directory)
        chosen: Any = readout.chosen
        [ids] = chosen[:, 0].nonzero(as_tuple=True)
        readout = AnswerTokens(head, ids.tolist())
        readout.chosen, readout.name = chosen[ids], str(asked.head)
        return readout, Reading()
    if not isinstance(asked, HeadSpec):
        readout = AnswerLikelihood(head)
        if dialogue.template is None or (isinstance(asked, ImplicitSpec) and dialogue.is_known):
            return readout, Reading()  # as TRL's DPOTrainer: all that closes an answer counts
        try:
            _, closing = dialogue.shared_ids("a")
        except InputError:  # a template that takes no answer is enough for the first token's log-probability
            return readout, Reading()
        control: Any = dialogue.tokenizer.convert_tokens_to_ids(dialogue.control_tokens)
        ends = [token_id for token_id in closing if token_id in control]
        return readout, Reading("turn", ends[0]) if ends else Reading()
    if not head:
        raise InputError(
            f"{directory}: a language model without the head of a reward model: it can be asked as a judge (--judge "
            "yes-no), compared with a reference (--reference), read by a logit of its own (--head lm_head.weight "
            "--label 0), or scanned for the log-probabilities of its first token (`rmnb scan MODEL --logprobs`)"
        )
    readout = find_head(head, settings, directory, asked.head, asked.label)
    unknown = list_some(name for name in config.architectures or () if not hasattr(transformers, name))
    if readout.name == "linear" and unknown and "auto_map" in settings and not (asked.head or dialogue.is_known):
        raise InputError(
            f"{directory}: {unknown} is code of its own, which is not run here and may read this head in another way: "
            "give --head linear if it does as transformers' classifiers do"
        )
    if isinstance(readout, GatedHead):
        readout.opening = opening_ids(dialogue)
    reading = own_reading(readout.rule, padding, dialogue.trainer)
    if spec.base or spec.read == "last":  # our own were trained with a padding id that no conversation holds
        reading = Reading("last", None if spec.base else padding)
    return readout, reading


def answer_ids(dialogue: Dialogue, judge: Judge, own: Dialogue) -> dict[int, float]:
    """The ids of a judge's replies, as the template writes a turn of the assistant, and their weights.

    Parameters
    ----------
    dialogue, own
        In which the judge is shown conversations, and in which it replies: the model's own.
    judge
        Its replies.

    Raises
    ------
    InputError
        A reply is not one id, or not its own, or does not follow what is asked.
    """
    shown = replace(dialogue, template=judge.template.strip())
    try:
        judged, other = (shown.render("a", answer) for answer in ("b", "c"))
        [asked] = dialogue.conversations("a", ["b"], as_plain_text=False)
    except InputError as error:
        raise InputError(f"the judge's template, in the model's own: {error}", "judge") from error
    if judged == other:
        raise InputError("the judge's template leaves out the answer: write {{ messages[-1]['content'] }}", "judge")
    turns = own.conversations(judged, [*judge.answers, *PROBES], as_plain_text=False)
    start = len(common_prefix(turns))
    closing = len(common_prefix([ids[start:][::-1] for ids in turns]))
    weights = {}
    for (reply, weight), ids in zip(judge.answers.items(), turns, strict=False):
        said = ids[start : len(ids) - closing]
        if ids[: len(asked)] != asked or len(said) != 1 or said[0] in weights:
            tokens = dialogue.tokenizer.convert_ids_to_tokens(said)
            raise InputError(f"the judge's reply {reply!r} is not one token of its own, but {tokens}", reply)
        weights[said[0]] = weight
    return weights


def own_template(tokenizer: PreTrainedTokenizerBase, spec: ModelSpec, directory: Path) -> str | None:
    """The panel's template, or one called ``plain``; else the one an adapter of ours was trained with; else its own.

    Of several, a panel may name one (``template: rag``); transformers takes the one called ``default``.
    """
    if spec.template == "plain":
        if isinstance(spec.readout, JudgeSpec):
            raise InputError("a judge without a chat template is asked in lines: leave out --template plain", "plain")
        return PLAIN
    if spec.base and not spec.template and (trained := trained_template(directory)):
        return trained  # any other would give other rewards without a word
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
