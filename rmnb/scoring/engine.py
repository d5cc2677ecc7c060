"""Scoring: everything that is ever scored goes through here.

One forward pass over the prefix, then batches of continuations that share it. A reward is read where the model's
`Reading` says; what follows that place is not fed, so that it is the last id of its sequence, and only that position
goes through the head.
"""

import contextlib
import ctypes
import functools
import itertools
import logging
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size

from rmnb.errors import InputError
from rmnb.models.attention import CHUNK, Prefix, Run, constant_up_to, forget_lengths, run_behind, run_prefix
from rmnb.models.devices import free_memory, own_attention, upload
from rmnb.models.dialogue import common_prefix
from rmnb.models.loading import Checkpoint, language_model
from rmnb.models.readouts import Span

logger = logging.getLogger(__name__)
Ids = Sequence[int]
# Beyond this many ids at once a processor gains nothing, and takes more memory.
IDS_AT_ONCE = {"cpu": 768, "cuda": 65536}
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


def _tell_nobody(count: int) -> None:
    """For those who show no progress."""


class PrefixScorer:
    """Score continuations of one prefix, which is run once.

    Parameters
    ----------
    rm
        The reward model.
    prefix_ids
        Ids before every continuation; may be empty only for a model that scores whole sequences.

    Attributes
    ----------
    prefix : Prefix or None
        Keys and values of the prefix; None if whole sequences are scored.
    states : Float[Tensor, "prefix hidden"]
        Last hidden states of the prefix.

    Raises
    ------
    InputError
        The prefix is longer than the model's context or holds ids that it cannot read.
    """

    def __init__(self, rm: Checkpoint, prefix_ids: Ids):
        self.rm = rm
        self.prefix_ids = list(prefix_ids)
        self.prefix: Prefix | None = None
        self.states = torch.empty(0)
        self.reference = PrefixScorer(rm.reference, prefix_ids) if rm.reference else None
        self._most = sys.maxsize  # sequences that fit in memory, once it has run out
        check_readable(rm, [self.prefix_ids])
        keep_freed_memory()
        self._shareable = constant_up_to(rm.network.config)
        if rm.shares_prefix and 0 < len(self.prefix_ids) <= self._shareable:
            self.prefix, states = run_prefix(rm.network, torch.tensor([self.prefix_ids], device=rm.device))
            self.states = states.to(rm.device)

    @property
    def attention(self) -> str:
        """``shared prefix`` or ``plain``, for provenance."""
        return "plain" if self.prefix is None else "shared prefix"

    def batch_size(self, length: int) -> int:
        """How many continuations of a length to run at once, from the memory that is free now."""
        width = len(self.prefix_ids) + length
        fed = width if self.prefix is None else length
        config = self.rm.network.config.get_text_config()
        bytes_a_sequence = 4 * values_a_sequence(config, width, fed)  # as if in fp32
        by_memory = int(0.25 * free_memory(self.rm.network)) // bytes_a_sequence
        by_speed = IDS_AT_ONCE.get(self.rm.device.type, IDS_AT_ONCE["cpu"]) // fed
        return max(1, min(by_memory, by_speed))

    @torch.inference_mode()
    def __call__(
        self,
        continuations: Sequence[Ids],
        batch_size: int | None = None,
        parent: Ids = (),
        starts: Sequence[int] | None = None,
        advance: Callable[[int], Any] = _tell_nobody,
    ) -> np.ndarray:
        """What is read of each continuation, float32 [continuations]; see `score_continuations`.

        What continuations begin with as `parent` does is run once a batch: a hint that changes no reward beyond
        rounding. `starts` says where in prefix and continuation an answer begins; by default, behind the prefix.
        `advance` is told of each batch how many it had, when it is done.
        """
        rm = self.rm
        before = len(self.prefix_ids)
        starts = [before] * len(continuations) if starts is None else starts
        lengths = list(map(len, continuations))
        if 0 in lengths:
            raise InputError(f"continuation {lengths.index(0)} is empty: there is no id to read the reward at")
        check_readable(rm, continuations, before)
        conversations = [rm.reading.truncated([*self.prefix_ids, *ids]) for ids in continuations]
        present = np.zeros(len(conversations), dtype=int)  # ids of each that need not be run again for it
        fed = np.array(list(map(len, conversations)))
        if self.prefix is not None and before + max(lengths, default=0) <= self._shareable:
            with_parent = [
                len(common_prefix([[*ids[before:], -1], [*parent, -1]])) for ids in conversations
            ]  # -1: no id
            present = np.minimum(fed, before) + with_parent
            fed = np.maximum(fed - present - rm.readout.unfed, 1)
        # Longest first, so that memory runs out at once or never.
        order = remaining = np.lexsort((present, -fed))
        # Rewards stay on their device until the last batch: a copy in between would make host and GPU wait in turn.
        scored = [torch.empty(0, len(rm.outputs), device=rm.device)]
        # Not by accelerate's find_executable_batch_size: each call of it collects all garbage, which takes longer than
        # the batches of a search, and it does not see Python's MemoryError.
        while len(remaining):
            count = min(batch_size or self._fitting(fed[remaining]), self._most)
            batch = remaining[:count]
            if not present[batch[0]]:  # whole sequences are never padded
                batch = batch[fed[batch] == fed[batch[0]]]
            try:
                chosen = [conversations[i] for i in batch]
                answers = [starts[i] for i in batch]
                scored.append(self.rewards(chosen, answers, parent, present[batch].tolist()))
                remaining = remaining[len(batch) :]
                if self.reference is None:  # else it is done when the reference has scored it, too
                    advance(len(batch))
                continue
            except (RuntimeError, MemoryError) as error:
                if not isinstance(error, MemoryError) and not should_reduce_batch_size(error):
                    raise
                if len(batch) == 1:
                    raise InputError("not enough memory for a single sequence: use a smaller model or dtype") from error
            # Outside the handler, so that the failed batch's tensors are free.
            logger.warning("memory ran out with %d sequences at once: halving", len(batch))
            self._most = len(batch) // 2
            clear_device_cache()
        rewards = np.empty((len(conversations), len(rm.outputs)), dtype=np.float32)
        rewards[order] = torch.cat(scored).cpu().numpy()
        rewards = rewards[:, 0] if len(rm.outputs) == 1 else rewards
        if self.reference is not None:
            rewards = rm.beta * (rewards - self.reference(continuations, batch_size, (), starts, advance))
        return check_finite(rm, self.prefix_ids, continuations, rewards)

    def _fitting(self, lengths: np.ndarray) -> int:
        """How many sequences of these lengths, longest first, to run at once: all, or batches of as many ids each."""
        most = self.batch_size(int(lengths[0])) * lengths[0]
        batches = math.ceil(lengths.sum() / most)
        return max(1, int(np.searchsorted(lengths.cumsum(), lengths.sum() / batches, side="right")))

    def rewards(self, batch: list[list[int]], starts: Sequence[int], parent: Ids, present: list[int]) -> torch.Tensor:
        """Of conversations, each behind so many ids of prefix and parent, in one row; or whole ones of one length."""
        rm = self.rm
        if 0 in present:
            return self.whole_rewards(batch, starts)
        row = list(parent[: max(0, max(present) - len(self.prefix_ids))])
        runs = [Run(1, len(row), len(self.prefix_ids), extends=True)] if row else []
        spans = []
        members = [
            (behind, ids[behind : len(ids) - rm.readout.unfed]) for behind, ids in zip(present, batch, strict=True)
        ]
        for (behind, length), group in itertools.groupby(members, lambda member: (member[0], len(member[1]))):
            earlier = len(spans)
            for _, ids in group:
                spans.append(Span(behind, len(self.prefix_ids) + len(row)))
                row += ids
            if length:
                runs.append(Run(len(spans) - earlier, length, behind))
        states = self.states
        if row:
            assert self.prefix is not None
            added = run_behind(rm.network, self.prefix, runs, input_ids=upload([row], rm.device))
            states = torch.cat([states, added.to(rm.device)])
        return rm.readout.rewards(states, batch, spans, starts)

    def whole_rewards(self, batch: list[list[int]], starts: Sequence[int]) -> torch.Tensor:
        """Of whole conversations of one length, without padding."""
        rm = self.rm
        ids = upload(batch, rm.device)
        if rm.pools_itself:
            forget_lengths(rm.network)
            return rm.readout(rm.network(input_ids=ids, **self._segments(batch, starts)).logits)
        if not rm.readout.isolated:
            readout: Any = rm.readout
            logits = whole_logits(rm, ids)
            return torch.stack(list(map(readout.rewards_from_logits, logits, batch, starts)))
        states = whole_states(rm, ids).flatten(0, 1)
        spans = [Span(0, start) for start in range(0, len(states), len(batch[0]))]
        return rm.readout.rewards(states, batch, spans, starts)

    def _segments(self, batch: list[list[int]], starts: Sequence[int]) -> dict[str, torch.Tensor]:
        """Of a pair, the question is 0 and the answer 1 (int64 [sequences, ids]); a conversation is one text."""
        if self.rm.dialogue.template is not None or "token_type_ids" not in self.rm.tokenizer.model_input_names:
            return {}
        is_answer = torch.arange(len(batch[0])) >= torch.tensor(starts)[:, None]
        return {"token_type_ids": is_answer.long().to(self.rm.device)}


def whole_states(rm: Checkpoint, ids: torch.Tensor) -> torch.Tensor:
    """Last hidden states of whole conversations of one length by the network's own attention.

    Parameters
    ----------
    rm
        The model.
    ids
        Of the conversations (int64 [conversations, ids]).

    Returns
    -------
    Float[Tensor, "conversations ids hidden"]
    """
    forget_lengths(rm.network)
    with own_attention(rm.network):
        return rm.network(input_ids=ids, use_cache=False).last_hidden_state.to(rm.device)


def whole_logits(rm: Checkpoint, ids: torch.Tensor) -> torch.Tensor:
    """Logits of a language model over whole conversations of one length, by its own class or by its head alone.

    Parameters
    ----------
    rm, ids
        As of `whole_states`.

    Returns
    -------
    Float[Tensor, "conversations ids vocabulary"]
    """
    readout: Any = rm.readout
    if readout.isolated:
        return torch.stack(list(map(readout.logits, whole_states(rm, ids))))
    forget_lengths(rm.network)
    with own_attention(rm.network):
        return language_model(rm)(input_ids=ids, use_cache=False).logits.to(rm.device)


def check_readable(rm: Checkpoint, sequences: Sequence[Ids], before: int = 0) -> None:
    """Raise InputError for sequences that the model cannot read behind so many ids: too long, or of unknown ids."""
    longest = before + max(map(len, sequences), default=0)
    context = rm.context
    if context is not None and longest > context:
        raise InputError(
            f"prompt and response have {longest} tokens, more than the {context} that {rm.name} is made for"
        )
    highest = max(itertools.chain.from_iterable(sequences), default=0)
    rows = rm.vocabulary_size
    if highest >= rows:
        raise InputError(f"{rm.name} reads {rows:,} ids, and its tokenizer gives {highest:,}: they do not go together")


def check_finite(rm: Checkpoint, prefix_ids: Ids, continuations: Sequence[Ids], rewards: np.ndarray) -> np.ndarray:
    """The rewards themselves; InputError names the last ids of the first that is not finite."""
    is_finite = np.isfinite(rewards).reshape(len(rewards), -1).all(1)
    if not is_finite.all():
        place = int(is_finite.argmin())
        ids = [*prefix_ids, *continuations[place]][-8:]  # enough to name the conversation
        ending = f"{rm.tokenizer.decode(ids)!r} (ids {ids})"
        advice = "even in float32: its weights are damaged" if rm.spec.dtype == "float32" else "try --dtype float32"
        raise InputError(f"the reward of the conversation that ends with {ending} is {rewards[place]}: {advice}")
    return rewards


def score_continuations(
    rm: Checkpoint, prefix_ids: Ids, continuations: Sequence[Ids], batch_size: int | None = None
) -> np.ndarray:
    """Rewards of many id sequences that follow one prefix.

    Equal, within rounding, to the plain forward pass over each whole sequence alone, read where the model reads it.

    Parameters
    ----------
    rm
        The reward model.
    prefix_ids
        Ids that come before each continuation.
    continuations
        Ids of each continuation, closing ids included; lengths may differ, none may be empty.
    batch_size
        Continuations at once. Default: by length and free memory. Halved when memory runs out.

    Returns
    -------
    np.ndarray
        float32 [continuations], in the given order; [continuations, outputs] of a readout with several.

    Raises
    ------
    InputError
        A continuation is empty, or a reward is not finite.

    Examples
    --------
    >>> from rmnb import load_reward_model
    >>> rm = load_reward_model("checkpoint")
    >>> prefix, closing = rm.dialogue.frame_ids("What is good?")
    >>> score_continuations(rm, prefix, [[7, *closing], [8, *closing]]).shape
    (2,)
    """
    return PrefixScorer(rm, prefix_ids)(continuations, batch_size)


def score_sequences(
    rm: Checkpoint,
    sequences: Sequence[Ids],
    starts: Sequence[int] | None = None,
    advance: Callable[[int], Any] = _tell_nobody,
) -> np.ndarray:
    """Rewards of whole conversations; what they all begin with is run once.

    Parameters
    ----------
    rm
        The reward model.
    sequences
        Ids of each conversation.
    starts
        Where the answer of each begins. Default: behind what is run once.
    advance
        Told of each batch how many it had, when it is done.

    Returns
    -------
    np.ndarray
        As `score_continuations`.
    """
    prefix = common_prefix(sequences)
    return PrefixScorer(rm, prefix)([ids[len(prefix) :] for ids in sequences], starts=starts, advance=advance)


def values_a_sequence(config: Any, width: int, length: int) -> int:
    """Numbers that one layer's states hold for a sequence, of which `length` of `width` ids are fed.

    Residual stream, projections and the MLP's inner states; scores and weights of attention.
    """
    inner = 12 * config.hidden_size + 4 * getattr(config, "intermediate_size", 4 * config.hidden_size)
    heads = getattr(config, "num_attention_heads", 0)  # a state space has none
    return length * inner + 4 * heads * width * min(length, CHUNK)


@functools.cache
def keep_freed_memory() -> None:
    """Let this process keep what it frees, where the C library is glibc.

    By default glibc gives large blocks back to the system at once. Every layer's activations are such blocks: each
    batch would fault its memory in again, page by page, which costs 5 to 8 % of a scan's time.
    """
    with contextlib.suppress(OSError, AttributeError):  # another system or C library
        mallopt = ctypes.CDLL("libc.so.6").mallopt
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        mallopt(_M_TRIM_THRESHOLD, 1 << 30)
