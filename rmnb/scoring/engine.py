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
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from accelerate.utils.memory import clear_device_cache, should_reduce_batch_size

from rmnb.errors import InputError
from rmnb.models.attention import CHUNK, Prefix, Run, constant_up_to, forget_lengths, run_behind, run_prefix
from rmnb.models.devices import free_memory, own_attention, upload
from rmnb.models.dialogue import common_prefix
from rmnb.models.readouts import AnswerLikelihood, GatedHead, PromptHead

if TYPE_CHECKING:
    from rmnb.scoring.reward_model import RewardModel

logger = logging.getLogger(__name__)
Ids = Sequence[int]
# Beyond this many ids at once a processor gains nothing, and takes more memory.
IDS_AT_ONCE = {"cpu": 768, "cuda": 65536}
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


class PrefixScorer:
    """Score continuations of one prefix, which is run once.

    Parameters
    ----------
    rm
        The reward model.
    prefix_ids
        Ids before every continuation; may be empty only for a model that scores whole sequences.

    Raises
    ------
    InputError
        The prefix is longer than the model's context or holds ids that it cannot read.
    """

    def __init__(self, rm: "RewardModel", prefix_ids: Ids):
        self.rm = rm
        self.prefix_ids = list(prefix_ids)
        self.prefix: Prefix | None = None
        self.gated: PromptHead | None = None
        self.states = torch.empty(0)  # of the prefix
        self.reference = PrefixScorer(rm.reference, prefix_ids) if rm.reference else None
        self._most = sys.maxsize  # sequences that fit in memory, once it has run out
        check_readable(rm, [self.prefix_ids])
        keep_freed_memory()
        self._shareable = constant_up_to(rm.network.config)
        if rm.shares_prefix and 0 < len(self.prefix_ids) <= self._shareable:
            self.prefix, states = run_prefix(rm.network, torch.tensor([self.prefix_ids], device=rm.device))
            self.states = states.to(rm.device)
            if isinstance(rm.readout, GatedHead):
                self.gated = PromptHead(rm.readout, self.prefix_ids, self.states)

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
    def __call__(self, continuations: Sequence[Ids], batch_size: int | None = None, parent: Ids = ()) -> np.ndarray:
        """One reward for each continuation, float32 [continuations]; see `score_continuations`.

        What continuations begin with as `parent` does is run once a batch: a hint that changes no reward beyond
        rounding.
        """
        lengths = list(map(len, continuations))
        if 0 in lengths:
            raise InputError(f"continuation {lengths.index(0)} is empty: there is no id to read the reward at")
        check_readable(self.rm, continuations, len(self.prefix_ids))
        if self.prefix is not None and len(self.prefix_ids) + max(lengths, default=0) > self._shareable:
            whole = replace(self.rm, plain_because="rotary frequencies depend on the length")
            return PrefixScorer(whole, self.prefix_ids)(continuations, batch_size)
        ends = np.array([self.rm.reading.end(self.prefix_ids, ids) for ids in continuations]) - len(self.prefix_ids)
        rewards = np.empty((len(continuations), *self.rm.readout.shape), dtype=np.float32)
        for end in np.unique(ends[ends <= 0]):  # the id that is read lies in the prefix
            rewards[ends == end] = self._whole_rewards([[]], int(end) - 1).cpu().numpy()
        read = np.flatnonzero(ends > 0)
        sequences = {i: continuations[i][: ends[i]] for i in read.tolist()}
        shared = np.zeros(len(continuations), dtype=int)
        if self.prefix is not None and parent and not isinstance(self.rm.readout, AnswerLikelihood):
            shared[read] = [len(common_prefix([ids, [*parent, -1]])) for ids in sequences.values()]  # -1: no id
        lengths = ends - shared
        # Longest first, so that memory runs out at once or never.
        order = remaining = read[np.lexsort((shared[read], -lengths[read]))]
        # Rewards stay on their device until the last batch: a copy in between would make host and GPU wait in turn.
        scored = [torch.empty(0, device=self.rm.device)]
        # Not by accelerate's find_executable_batch_size: each call of it collects all garbage, which takes longer than
        # the batches of a search, and it does not see Python's MemoryError.
        while len(remaining):
            count = min(batch_size or self._fitting(lengths[remaining]), self._most)
            batch = remaining[:count]
            if self.prefix is None:  # whole sequences are never padded
                batch = batch[ends[batch] == ends[batch[0]]]
            try:
                scored.append(self._rewards([sequences[i] for i in batch.tolist()], parent, shared[batch].tolist()))
                remaining = remaining[len(batch) :]
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
        rewards[order] = torch.cat(scored).cpu().numpy()
        if self.reference is not None:
            rewards = self.rm.spec.beta * (rewards - self.reference(continuations, batch_size))
        return check_finite(self.rm, self.prefix_ids, continuations, rewards)

    def _fitting(self, lengths: np.ndarray) -> int:
        """How many sequences of these lengths, longest first, to run at once: all, or batches of as many ids each."""
        most = self.batch_size(int(lengths[0])) * lengths[0]
        batches = math.ceil(lengths.sum() / most)
        return max(1, int(np.searchsorted(lengths.cumsum(), lengths.sum() / batches, side="right")))

    def _rewards(self, batch: list[Ids], parent: Ids, shared: list[int]) -> torch.Tensor:
        """Of sequences that share so many ids with the parent, in one row behind these."""
        if self.prefix is None:
            return self._whole_rewards(batch)
        if self.gated is not None and not all(map(self.gated.holds_for, batch)):
            return torch.cat([self._whole_rewards([ids]) for ids in batch])
        rm = self.rm
        if isinstance(rm.readout, AnswerLikelihood):
            return self._likelihoods(batch, rm.readout)
        states, last = self._states(batch, parent, shared)
        readout = rm.readout if self.gated is None else self.gated.linear
        return readout(states[last])

    def _states(self, batch: list[Ids], parent: Ids, shared: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Last hidden states of a row of sequences, none empty, and the places of their last ids there."""
        device = self.rm.device
        before = len(self.prefix_ids)
        begun = max(shared)
        row = list(parent[:begun])
        runs = [Run(1, begun, before, extends=True)] if begun else []
        last = []
        members = zip(shared, batch, strict=True)
        for (own, size), group in itertools.groupby(members, lambda member: (member[0], len(member[1]))):
            length = size - own
            start = len(row)
            for _, ids in group:
                row += ids[own:]
            count = (len(row) - start) // length
            runs.append(Run(count, length, before + own))
            last.append(start - 1 + length * torch.arange(1, count + 1, device=device))
        assert self.prefix is not None
        states = run_behind(self.rm.network, self.prefix, runs, input_ids=upload([row], device))
        return states.to(device), torch.cat(last)

    def _likelihoods(self, batch: list[Ids], readout: AnswerLikelihood) -> torch.Tensor:
        """Σ log-probability of each answer's ids; the last is predicted and need not be fed."""
        device = self.rm.device
        before = len(self.prefix_ids)
        states = self.states
        if fed := [ids[:-1] for ids in batch if len(ids) > 1]:  # longest first, so that what is not fed comes last
            states = torch.cat([states, self._states(fed, (), [0] * len(fed))[0]])
        begins = [readout.begin([*self.prefix_ids, *ids]) for ids in batch]
        owners, places, targets = [], [], []
        start = before
        for owner, (begin, ids) in enumerate(zip(begins, batch, strict=True)):
            first = max(0, begin - before)
            own = [before - 1, *range(start, start + len(ids) - 1)]
            owners += [owner] * (len(ids) - first)
            places += own[first:]
            targets += ids[first:]
            start += len(ids) - 1
        sums = torch.zeros(len(batch), dtype=torch.float64, device=device)
        sums.index_add_(0, upload(owners, device), readout(states[upload(places, device)], upload(targets, device)))
        for begin in {begin for begin in begins if begin < before}:  # a part of the answer is in the prefix
            shared = torch.tensor(self.prefix_ids[begin:], device=device)
            sums[upload([begin == own for own in begins], device)] += readout(self.states[begin - 1 : -1], shared).sum()
        return sums

    def _whole_rewards(self, batch: list[Ids], at: int = -1) -> torch.Tensor:
        """Whole sequences of one length, without padding; read at an index."""
        rm = self.rm
        ids = upload([[*self.prefix_ids, *ids] for ids in batch], rm.device)
        forget_lengths(rm.network)
        if rm.pools_itself:
            return rm.readout(rm.network(input_ids=ids, **self.segments(ids)).logits)
        with own_attention(rm.network):
            hidden = rm.network(input_ids=ids, use_cache=False).last_hidden_state.to(rm.device)
        if isinstance(rm.readout, AnswerLikelihood):
            sums = []
            for states, whole in zip(hidden, ids[:, : ids.shape[1] + at + 1], strict=True):
                begin = rm.readout.begin(whole.tolist())
                sums.append(rm.readout(states[begin - 1 : len(whole) - 1], whole[begin:]).sum())
            return torch.stack(sums)
        if not isinstance(rm.readout, GatedHead):
            return rm.readout(hidden[:, at])
        weights = []
        for states, whole in zip(hidden, ids.tolist(), strict=True):
            prompt_end = rm.readout.place(whole)
            weights.append(rm.readout.weights_after(states[prompt_end]))
        return (hidden[:, at].float() * torch.stack(weights)).sum(-1)

    def segments(self, inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """Of a pair, the question is 0 and the answer 1 (int64 [sequences, ids]); a conversation is one text."""
        if self.rm.dialogue.template is not None or "token_type_ids" not in self.rm.tokenizer.model_input_names:
            return {}
        is_answer = torch.arange(inputs.shape[1], device=inputs.device) >= len(self.prefix_ids)
        return {"token_type_ids": is_answer.long().expand(inputs.shape[:2])}


def check_readable(rm: "RewardModel", sequences: Sequence[Ids], before: int = 0) -> None:
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


def check_finite(rm: "RewardModel", prefix_ids: Ids, continuations: Sequence[Ids], rewards: np.ndarray) -> np.ndarray:
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
    rm: "RewardModel", prefix_ids: Ids, continuations: Sequence[Ids], batch_size: int | None = None
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
        float32 [continuations], in the given order.

    Raises
    ------
    InputError
        A continuation is empty, or a reward is not finite.
    """
    return PrefixScorer(rm, prefix_ids)(continuations, batch_size)


def score_sequences(rm: "RewardModel", sequences: Sequence[Ids], start: Ids | None = None) -> np.ndarray:
    """Rewards of whole conversations; what they all begin with is run once.

    Parameters
    ----------
    rm
        The reward model.
    sequences
        Ids of each conversation.
    start
        Ids of the prompt: what is run once ends there at the latest. Of a pair, it tells question and answer apart.

    Returns
    -------
    np.ndarray
        float32 [sequences].
    """
    prefix = common_prefix(sequences if start is None else [*sequences, [*start, -1]])  # -1: no id
    return score_continuations(rm, prefix, [ids[len(prefix) :] for ids in sequences])


def values_a_sequence(config: Any, width: int, length: int) -> int:
    """Numbers that one layer's states hold for a sequence, of which `length` of `width` ids are fed.

    Residual stream, projections and the MLP's inner states; scores and weights of attention.
    """
    inner = 12 * config.hidden_size + 4 * getattr(config, "intermediate_size", 4 * config.hidden_size)
    return length * inner + 4 * config.num_attention_heads * width * min(length, CHUNK)


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
