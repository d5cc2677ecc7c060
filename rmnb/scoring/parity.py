"""Each checkpoint is compared when it is loaded, whatever the options: is a shared prefix exact for it?

The engine shares a prefix among continuations by an attention of its own, and feeds ids that it has put together. An
architecture that attends in a way nobody foresaw would give other rewards without a word. So two things are measured.

On the network as it is loaded, three short conversations by the engine and by the checkpoint's own classifier
(transformers' class for it, over the same weights in memory; for a head that transformers does not know, the whole
conversation with the model's own attention). They may differ by 1e-4 of the standard deviation of 32 fixed one-token
answers, or by three times what rounding does. Rounding is measured, too: the embeddings of a whole pass are moved by
one unit in their last place. (Batches of another size are no measure of it: on a processor they round alike.)

On a cut of it in fp32, with one layer of each kind and short windows, conversations that are longer than a window and
than the parts in which a prefix is run.

Where sharing differs, whole sequences are scored instead, and one line says so. It takes one core about a second for a
small model, less than 1 % of a scan.
"""

import contextlib
import copy
import functools
import json
import logging
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.utils.hooks import RemovableHandle
from transformers import AutoModel, AutoModelForSequenceClassification, PreTrainedConfig

import rmnb
from rmnb.errors import InputError, first_line
from rmnb.models import attention
from rmnb.models.devices import own_attention
from rmnb.models.loading import language_model
from rmnb.models.reading import Reading
from rmnb.models.readouts import ClassifierOutputs, LanguageHead, LinearHead
from rmnb.scoring.engine import PrefixScorer, check_finite, check_readable, score_continuations, score_sequences
from rmnb.scoring.reward_model import Parity, RewardModel

logger = logging.getLogger(__name__)
QUESTION = "What, in one word, is the greatest thing ever?"
RESPONSES = ("love", "war", "peace and quiet for everybody, everywhere and always")
ANSWERS = 32  # single tokens, evenly spaced over the vocabulary
TOLERANCE = 1e-4  # of the spread of rewards
_ROUNDINGS = 3
# A cut: ids of its vocabulary, how much of a prefix is run at once, and the most of what its configuration says.
_IDS, _CHUNK = 128, 32
_MOST = {"sliding_window": 24, "attention_chunk_size": 24, "intermediate_size": 64}


def check_parity(rm: RewardModel) -> RewardModel:
    """The model, with what was measured: whether it shares prefixes, and how close its rewards are.

    Raises
    ------
    InputError
        The model cannot be run at all, or its rewards here are not its own.
    """
    fails = "the model fails on a short conversation"
    with _in_one_line(f"{rm.name}: {fails}"):
        measured = _measure(rm)
    while True:
        try:
            with _in_one_line("sharing the prefix fails" if rm.shares_prefix else fails):
                return replace(rm, parity=measured.compare(rm))
        except InputError as error:
            reason = str(error)
        if rm.shares_prefix:
            logger.warning("%s: scoring whole sequences, which is slower: %s", rm.name, reason)
            rm = replace(rm, why_not_shared=reason)
        elif isinstance(rm.readout, LanguageHead) and rm.readout.isolated:
            logger.warning("%s: scoring by its whole %s, head included: %s", rm.name, measured.against, reason)
            rm = replace(rm, readout=_by_its_class(rm.readout))
        else:
            raise InputError(f"{rm.name}: {reason}: it cannot be scored here")


@dataclass(frozen=True)
class _Measured:
    """What rewards are compared with: conversations, where answers begin, rewards, and how these are rounded.

    No rewards: these conversations cannot be scored, which scoring says again.
    """

    against: str
    conversations: list[list[int]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    own: np.ndarray | None = None
    rounding: float = 0.0

    def compare(self, rm: RewardModel) -> Parity:
        """How close a model's rewards are.

        They may differ by so little of the standard deviation of fixed answers' rewards (of whole sequences, of these
        rewards), or by what rounding does.

        Raises
        ------
        InputError
            They differ by more.
        """
        what = f"its rewards differ from its own {self.against}"
        unit = 0.0
        if rm.shares_prefix:
            what = "sharing the prefix would change its rewards"
            difference = difference_of_cut(rm.network.config.get_text_config())
            if difference > TOLERANCE:
                raise InputError(
                    f"sharing the prefix would change its hidden states by {difference:.2g} of their spread"
                )
            unit = spread(rm)
        if self.own is None:
            return Parity(self.against)
        if not rm.shares_prefix:
            unit = float(self.own.std(0).min())
        tolerance = max(TOLERANCE * unit, _ROUNDINGS * self.rounding)
        rewards = score_sequences(rm, self.conversations, self.starts)
        difference = float(np.abs(rewards.reshape(self.own.shape) - self.own).max())
        if difference > tolerance:
            raise InputError(f"{what} by {difference:.2g}")
        return Parity(self.against, difference, tolerance)


def spread(rm: RewardModel) -> float:
    """The standard deviation of the rewards of fixed one-token answers; of several outputs the least."""
    prefix, closing = rm.dialogue.shared_ids(QUESTION)
    highest = min(rm.vocabulary_size, len(rm.tokenizer)) - 1
    ids = np.linspace(0, highest, ANSWERS).astype(int).tolist()
    return float(score_continuations(rm, prefix, [[i, *closing] for i in ids]).std(0).min())


def difference_of_cut(config: PreTrainedConfig) -> float:
    """How far a shared prefix moves the last hidden states of a cut of a configuration, in their standard deviations.

    Its weights are random, so that it is as cheap for a model of any size. Models of one shape share it.
    """
    return _difference_of_cut(type(config), json.dumps(config.to_dict(), default=str))


@functools.lru_cache(maxsize=64)
def _difference_of_cut(kind: type, settings: str) -> float:
    config = json.loads(settings)
    suffixes = ("layer_types", "no_rope_layers")
    by_layer = {name: values for name, values in config.items() if values and name.endswith(suffixes)}
    kinds = pd.DataFrame({"any": 0, **by_layer}, index=range(config["num_hidden_layers"])).drop_duplicates()
    config |= kinds.drop(columns="any").to_dict("list")
    config |= {"num_hidden_layers": len(kinds), "vocab_size": _IDS}
    config |= dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"))
    config.pop("quantization_config", None)
    for name, value in config.items():
        for ending, most in _MOST.items():
            if isinstance(value, int) and name.endswith(ending):
                config[name] = min(value, most)
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        torch.manual_seed(0)
        network = AutoModel.from_config(kind.from_dict(config), dtype=torch.float32, attn_implementation="eager").eval()
        ids = torch.randint(_IDS, (3, 4 * _CHUNK))
        before = 2 * _CHUNK + 1  # so that a part of the prefix is longer than another
        ids[:, :before] = ids[0, :before]
        whole = network(input_ids=ids, use_cache=False).last_hidden_state[:, before:]
        network.set_attn_implementation(attention.NAME)
        prefix, _ = attention.run_prefix(network, ids[:1, :before], chunk=_CHUNK)
        rest = ids[:, before:]
        runs = [attention.Run(*rest.shape, shared=before)]
        states = attention.run_behind(network, prefix, runs, input_ids=rest.reshape(1, -1))
        return ((states - whole.flatten(0, 1)).abs().max() / whole.std()).item()


@contextlib.contextmanager
def _in_one_line(what: str) -> Iterator[None]:
    """An InputError for whatever a network's own code raises; a mistake in this package's code stays what it is."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # an architecture that nobody has foreseen raises anything
        file = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
        package = Path(rmnb.__file__).parent
        if isinstance(error, (NameError, AttributeError, TypeError)) and package in file.parents:
            raise
        raise InputError(f"{what}: {first_line(error)}") from error


@torch.inference_mode()
def _measure(rm: RewardModel) -> _Measured:
    """The rewards of the model's own class if transformers has one, one conversation after the other, not padded.

    Of a language model those of texts, which need no template.
    """
    start = 1
    try:
        if isinstance(rm.readout, LanguageHead):
            texts = [f"{QUESTION} {text}" for text in RESPONSES]
            conversations = rm.tokenizer(texts, split_special_tokens=True)["input_ids"]
        else:
            rm.dialogue.shared_ids(QUESTION)  # which some templates do not have
            conversations = rm.dialogue.conversations(QUESTION, RESPONSES)
            start = rm.answer_start(QUESTION)
        check_readable(rm, conversations)
        against, whole = _whole(rm)
        measured = conversations, [start] * len(conversations)
        own = _own_rewards(rm, whole, *measured)
    except InputError as error:
        return _Measured(f"nothing: {error}")
    with _moved_embeddings(rm):
        return _Measured(against, *measured, own, float(np.abs(_own_rewards(rm, whole, *measured) - own).max()))


def _own_rewards(rm: RewardModel, whole: RewardModel, conversations: list[list[int]], starts: list[int]) -> np.ndarray:
    """float32 [conversations, outputs]; of pairs as the tokenizer gives them, segments included."""
    if not rm.pools_itself or rm.dialogue.template is not None:
        attention_here = contextlib.nullcontext() if rm.pools_itself else own_attention(rm.network)
        with attention_here:
            alone = [
                PrefixScorer(whole, ())([ids], 1, starts=[start])
                for ids, start in zip(conversations, starts, strict=True)
            ]
        rewards = np.concatenate(alone)
    else:
        pairs = [rm.tokenizer(QUESTION, text, return_tensors="pt").to(rm.device) for text in RESPONSES]
        rewards = torch.cat([rm.readout(rm.network(**pair).logits) for pair in pairs]).cpu().numpy()
        check_finite(rm, (), conversations, rewards)
    return rewards.reshape(len(conversations), -1)


def _whole(rm: Any) -> tuple[str, Any]:
    """What a model is compared with, and a model that scores by it."""
    network, readout, reading, reference = rm.network, rm.readout, rm.reading, rm.reference
    against = "attention in full"
    if isinstance(readout, LanguageHead):
        against = type(language_model(rm)).__name__
        readout = _by_its_class(readout)
        reference = reference and _whole(reference)[1]
    elif isinstance(readout, LinearHead):
        network = _classifier(rm)
        readout = ClassifierOutputs()
        reading = Reading("own")
        readout.outputs = rm.readout.outputs
    if reading.rule == "own":
        against = type(network).__name__
    whole = replace(rm, network=network, readout=readout, reading=reading, reference=reference, why_not_shared=against)
    return against, whole


def _by_its_class(readout: LanguageHead) -> LanguageHead:
    """A language model's readout that runs the whole of it, head included."""
    whole = copy.copy(readout)
    whole.isolated = False
    return whole


def _moved_embeddings(rm: RewardModel) -> RemovableHandle:
    """While it is open, every number of an embedding is moved by one unit in its last place, up or down."""
    eps = torch.finfo(rm.network.dtype).eps
    generator = torch.Generator().manual_seed(0)

    def move(_, __, vectors: torch.Tensor) -> torch.Tensor:
        signs = 2 * torch.randint(2, vectors.shape, generator=generator) - 1
        return vectors * (1 + eps * signs).to(vectors)

    embedding: Any = rm.network.get_input_embeddings()
    return embedding.register_forward_hook(move)


def _classifier(rm: RewardModel) -> Any:
    """transformers' classifier for the model's configuration, over the very tensors of the model."""
    config = copy.deepcopy(rm.network.config)
    config.num_labels = len(rm.outputs)
    # Without a padding id one conversation alone is read at its last id.
    config.get_text_config().pad_token_id = rm.reading.padding if rm.reading.rule == "last but padding" else None
    with torch.device("meta"):
        classifier: Any = AutoModelForSequenceClassification.from_config(config)
    setattr(classifier, classifier.base_model_prefix, rm.network)
    rm.network.config.get_text_config().use_cache = False  # one of recurrent layers alone has no length
    del classifier.score
    classifier.score = lambda hidden: rm.readout(hidden.to(rm.device))  # type: ignore[misc]
    return classifier.eval()
