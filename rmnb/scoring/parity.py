"""Each checkpoint is compared once, when it is loaded: three short conversations by its own classifier and by ours.

The engine shares a prefix among continuations by an attention of its own, and feeds ids that it has put together. An
architecture that attends in a way nobody foresaw would give other rewards without a word. So the checkpoint's own
classifier (transformers' class for it, over the same weights in memory; for a head that transformers does not know,
the whole conversation with the model's own attention) says what is right. Where sharing differs, whole sequences are
scored instead, and one line says so. It takes one core about a second for a small model, less than 1 % of a scan.
"""

import contextlib
import copy
import functools
import logging
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification

import rmnb
from rmnb.errors import InputError, first_line
from rmnb.models import loading
from rmnb.models.attention import UnsupportedAttention
from rmnb.models.devices import own_attention
from rmnb.models.heads import LinearHead
from rmnb.models.reward_model import Parity, RewardModel
from rmnb.scoring import rows  # noqa: F401  (gives `RewardModel` its `score`)
from rmnb.scoring.engine import PrefixScorer, check_finite, check_readable

logger = logging.getLogger(__name__)
QUESTION = "What, in one word, is the greatest thing ever?"
RESPONSES = ("love", "war", "peace and quiet for everybody, everywhere and always")
# Largest difference between the engine and a plain pass that is rounding, in units of reward (or relative, above 1).
ROUNDING = {"float32": 1e-3, "bfloat16": 0.5, "bfloat16-mixed": 0.5, "float16": 0.1}


@functools.wraps(loading.load_reward_model)
def load_reward_model(*args: Any, **options: Any) -> RewardModel:
    return check_parity(loading.load_reward_model(*args, **options))


def check_parity(rm: RewardModel) -> RewardModel:
    """The model, with what three conversations have shown: whether it shares prefixes, and how close its rewards are.

    Raises
    ------
    InputError
        The model cannot be run at all.
    """
    with _in_one_line(f"{rm.name}: the model fails on a short conversation"):
        try:
            against, own = _own_rewards(rm)
        except InputError as error:  # scoring raises it again, if it concerns scoring
            against = f"nothing: {error}"
            own = None
        if not rm.shares_prefix:
            parity = _compare(rm, against, own)
            if not parity.exact:
                warning = "%s: its rewards differ from its own %s by %.2g: see `rmnb check`"
                logger.warning(warning, rm.name, against, parity.difference)
            return replace(rm, parity=parity)
    try:
        with _in_one_line("sharing the prefix fails"):
            parity = _compare(rm, against, own)
        if not parity.exact:
            raise InputError(f"sharing the prefix would change its rewards by {parity.difference:.2g}")
    except (InputError, UnsupportedAttention) as error:
        logger.warning("%s: scoring whole sequences, which is slower: %s", rm.name, error)
        return check_parity(replace(rm, plain_because=str(error)))
    return replace(rm, parity=parity)


def tolerance(dtype: str, rewards: np.ndarray) -> float:
    """The largest difference from these rewards that is rounding."""
    return ROUNDING[dtype] * max(1.0, float(np.abs(rewards).max()))


def _compare(rm: RewardModel, against: str, own: np.ndarray | None) -> Parity:
    """Without rewards to compare with, only whether the prefix can be shared."""
    if own is None:
        PrefixScorer(rm, [0, 0])
        return Parity(against)
    difference = float(np.abs(rm.score(QUESTION, RESPONSES) - own).max())
    return Parity(against, difference, difference <= tolerance(rm.spec.dtype, own))


@contextlib.contextmanager
def _in_one_line(what: str) -> Iterator[None]:
    """An InputError for whatever a network's own code raises; a mistake in this package's code stays what it is."""
    try:
        yield
    except (InputError, UnsupportedAttention):
        raise
    except Exception as error:  # an architecture that nobody has foreseen raises anything
        file = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
        package = Path(rmnb.__file__).parent
        if isinstance(error, (NameError, AttributeError, TypeError)) and package in file.parents:
            raise
        raise InputError(f"{what}: {first_line(error)}") from error


@torch.inference_mode()
def _own_rewards(rm: RewardModel) -> tuple[str, np.ndarray]:
    """What the rewards are compared with, and those: of the model's own classifier, if transformers has one.

    One conversation after the other, as the tokenizer reads it; nothing is padded.

    Raises
    ------
    InputError
        There is nothing to compare with.
    """
    if rm.options:
        raise InputError("quantised, spread over devices, compiled or loaded with options of another kind")
    conversations = rm.dialogue.ids_in_context(QUESTION, RESPONSES)
    check_readable(rm, conversations)
    if rm.head is not None and not isinstance(rm.head, LinearHead):
        return "attention in full", replace(rm, plain_because="to compare with").score(QUESTION, RESPONSES)
    if rm.dialogue.template is None:
        inputs = [dict(rm.tokenizer(QUESTION, text)) for text in RESPONSES]
    else:
        inputs = [{"input_ids": ids} for ids in conversations]
    if rm.head is None:  # a whole classifier, perhaps an encoder, which has no cache to switch off
        classifier = rm.network
        label = rm.spec.label or 0
        options = {}
        attention = contextlib.nullcontext()
    else:
        classifier = _classifier(rm)
        label = 0
        options = {"use_cache": False}
        attention = own_attention(rm.network)
    rewards = []
    with attention:
        for conversation in inputs:
            tensors = {name: torch.tensor([ids], device=rm.device) for name, ids in conversation.items()}
            rewards.append(classifier(**tensors, **options).logits[0, label].item())
    return type(classifier).__name__, check_finite(rm, (), conversations, np.array(rewards))


def _classifier(rm: RewardModel) -> Any:
    """transformers' classifier for the model's configuration, over the very tensors of the model."""
    config = copy.deepcopy(rm.network.config)
    config.num_labels = 1
    # Without a padding id one conversation alone is read at its last id.
    config.get_text_config().pad_token_id = rm.reading.padding if rm.reading.rule == "last but padding" else None
    with torch.device("meta"):
        classifier: Any = AutoModelForSequenceClassification.from_config(config)
    setattr(classifier, classifier.base_model_prefix, rm.network)
    del classifier.score
    classifier.score = lambda hidden: rm.head(hidden)[..., None]  # type: ignore[misc]
    return classifier.eval()
