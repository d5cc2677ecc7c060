"""Scoring: everything that is ever scored goes through here.

One forward pass over the prefix, then batches of continuations that share it. A reward is read where the model's
`Reading` says; what follows that place is not fed, so that it is the last id of its sequence, and only that position
goes through the head.
"""

import contextlib
import copy
import logging
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from rmnb.errors import InputError
from rmnb.models.attention import SharedPrefix, UnsupportedAttention
from rmnb.models.devices import COMPILED, own_attention, upload
from rmnb.models.gated_heads import GatedHead, PromptHead
from rmnb.models.layers import compiled, last_layer_at
from rmnb.models.reward_model import RewardModel
from rmnb.scoring.memory import default_batch_size, is_out_of_memory, keep_freed_memory, release
from rmnb.scoring.proof import take_plain, why_plain

logger = logging.getLogger(__name__)
Ids = Sequence[int]
_FIRST_TRY = 64  # sequences, when the batch is found by trying


class NonFiniteReward(InputError):
    """A reward is NaN or infinite; `index` is the place of its continuation in what was asked for."""

    def __init__(self, index: int, reward: float, dtype: str = ""):
        self.index, self.reward, self.dtype = index, reward, dtype
        whole = dtype == "float32"
        self.advice = "even in float32, so its weights are damaged" if whole else "try --dtype float32"
        super().__init__(f"the reward of continuation {index} is {reward}: {self.advice}")


class PrefixScorer:
    """Score continuations of one prefix, which is run once.

    Parameters
    ----------
    rm
        The reward model.
    prefix_ids
        Ids before every continuation; may be empty only for a model that scores whole sequences.
    """

    def __init__(self, rm: RewardModel, prefix_ids: Ids):
        self.rm = rm
        self.prefix_ids = list(prefix_ids)
        self._most: int | None = None  # sequences that memory is known to hold, once it has run out
        self._context = rm.context
        self._check_length(len(self.prefix_ids))
        whole = why_plain(rm)  # proves the model the first time
        if rm.device.type == "cpu":
            keep_freed_memory()
        self.gated: PromptHead | None = None
        self.prefix = None if whole else self._run_prefix()
        asked = rm.placement.compile if rm.placement.compile in COMPILED else None
        #: How its batches are compiled, a key of `rmnb.models.devices.COMPILED`, or None.
        self.compile = None if rm.placement.by_layer and self.prefix is None else asked

    @torch.inference_mode()
    def _run_prefix(self) -> SharedPrefix | None:
        if not self.prefix_ids:
            return None
        prefix = SharedPrefix(len(self.prefix_ids))
        ids = torch.tensor([self.prefix_ids], device=self.rm.device)
        position = torch.arange(len(self.prefix_ids), device=self.rm.device)[None]
        try:
            # Never compiled code: it runs once, and CUDA graphs would overwrite the keys and values that are kept.
            output = self.rm.network.forward(
                input_ids=ids, position_ids=position, use_cache=False, shared_prefix=prefix
            )
        except UnsupportedAttention as error:
            return take_plain(self.rm, error)
        prefix.filling = False
        layers = self.rm.network.config.get_text_config().num_hidden_layers
        if len(prefix.layers) != layers:
            return take_plain(self.rm, UnsupportedAttention("some layers attend in a way of their own"))
        if isinstance(self.rm.head, GatedHead):
            self.gated = PromptHead(self.rm.head, self.prefix_ids, output.last_hidden_state[0].to(self.rm.device))
        return prefix

    def beginning(self, length: int) -> "PrefixScorer":
        """The same for the first `length` ids of the prefix; nothing is run, keys and values are not copied."""
        shorter = copy.copy(self)
        shorter.prefix_ids = self.prefix_ids[:length]
        if self.prefix is not None:
            shorter.prefix = SharedPrefix(length)
            shorter.prefix.filling = False
            shorter.prefix.layers = {
                layer: (keys[:, :length], values[:, :length]) for layer, (keys, values) in self.prefix.layers.items()
            }
        if self.gated is not None:
            shorter.gated = self.gated.beginning(shorter.prefix_ids)
        return shorter

    @property
    def attention(self) -> str:
        """``shared prefix`` or ``plain``, for provenance."""
        return "plain" if self.prefix is None else "shared prefix"

    @torch.inference_mode()
    def __call__(self, continuations: Sequence[Ids], batch_size: int | None = None) -> np.ndarray:
        """One reward for each continuation, float32 [continuations]; see `score_continuations`."""
        lengths = np.array([len(continuation) for continuation in continuations], dtype=int)
        if (lengths == 0).any():
            raise InputError(f"continuation {int(np.argmin(lengths))} is empty: there is no id to read the reward at")
        self._check_length(len(self.prefix_ids) + int(lengths.max(initial=0)))
        ends = np.array([self.rm.reading.end(self.prefix_ids, ids) for ids in continuations]) - len(self.prefix_ids)
        beyond = np.flatnonzero(ends > 0)  # the others are read before they begin
        # Rewards stay on their device until the last batch: a copy in between would make host and GPU wait in turn.
        batches, parts = [], []
        for batch in self._batches(ends[beyond], batch_size):
            batches.append(beyond[batch])
            parts += self._with_less_memory([continuations[i][: ends[i]] for i in beyond[batch]])
        for end in np.unique(ends[ends <= 0]):
            batches.append(np.flatnonzero(ends == end))
            parts.append(self._plain_rewards([[]], int(end) - 1).expand(len(batches[-1])))
        rewards = np.empty(len(continuations), dtype=np.float32)
        if batches:
            rewards[np.concatenate(batches)] = torch.cat(parts).cpu().numpy()
        bad = np.flatnonzero(~np.isfinite(rewards))
        if len(bad):
            raise NonFiniteReward(int(bad[0]), float(rewards[bad[0]]), self.rm.spec.dtype)
        return rewards

    def _check_length(self, length: int) -> None:
        if self._context is not None and length > self._context:
            raise InputError(
                f"prompt and response have {length} tokens, more than the {self._context} that {self.rm.name} is made "
                "for: shorten them"
            )

    def _batches(self, lengths: np.ndarray, batch_size: int | None) -> Iterator[np.ndarray]:
        """Indices batch by batch, longest first, so that memory runs out at once or never.

        A batch holds like lengths: padding adds at most a quarter. Without sharing, sequences are never padded.
        """
        slack = 1.25 if self.prefix is not None else 1.0
        order = np.argsort(-lengths, kind="stable")
        while len(order):
            longest = int(lengths[order[0]])
            size = batch_size or default_batch_size(self.rm, len(self.prefix_ids), longest)
            size = min(size, self._most or size)
            fits = int((lengths[order[:size]] * slack >= longest).sum())
            yield order[:fits]
            order = order[fits:]

    def _with_less_memory(self, batch: list[Ids]) -> list[torch.Tensor]:
        """Rewards of a batch, in smaller ones if memory runs out, half as large each time; later ones are no larger."""
        try:
            return [self._rewards(batch)]
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            if len(batch) == 1:
                raise InputError("not enough memory for a single sequence: use a smaller model or dtype") from error
        # Outside the handler, so that the failed batch's tensors are free.
        logger.warning("memory ran out with %d sequences at once: halving", len(batch))
        self._most = len(batch) // 2
        release()
        parts: list[torch.Tensor] = []
        start = 0
        while start < len(batch):
            stop = start + self._most  # which may shrink further on the way
            parts += self._with_less_memory(batch[start:stop])
            start = stop
        return parts

    @torch.inference_mode()
    def fitting_batch_size(self, length: int, most: int) -> int:
        """How many continuations of a length fit into memory at once, found by trying: doubled until memory runs out.

        Parameters
        ----------
        length
            Ids of the longest continuation.
        most
            The answer is no larger.

        Raises
        ------
        InputError
            Not even one fits.
        """
        size, fits = min(_FIRST_TRY, most), 0
        while size != fits:
            try:
                self._rewards([[0] * length] * size).cpu()
            except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
                if size == 1:
                    raise InputError("not enough memory for a single sequence: use a smaller model or dtype") from error
                most = size // 2  # known to be too much: no longer doubled into
            else:
                fits = size
            release()
            size = min(2 * fits, most) if fits else most
        return fits

    def _rewards(self, batch: list[Ids]) -> torch.Tensor:
        if self.prefix is None:
            return self._plain_rewards(batch)
        if self.gated is not None and not all(map(self.gated.holds_for, batch)):
            return torch.cat([self._plain_rewards([ids]) for ids in batch])
        rm = self.rm
        longest = max(len(ids) for ids in batch)
        # Padding follows what is read and is therefore never attended to: any id will do.
        ids = upload([[*ids, *[0] * (longest - len(ids))] for ids in batch], rm.device)
        last = upload([len(ids) - 1 for ids in batch], rm.device)
        position = self.prefix.length + torch.arange(longest, device=rm.device)[None]
        rows = torch.arange(len(batch), device=rm.device)
        with self._layers(rows, last):
            hidden = rm.network(
                input_ids=ids, position_ids=position, use_cache=False, shared_prefix=self.prefix
            ).last_hidden_state
        read = hidden[rows.to(hidden.device), last.to(hidden.device)]
        head = rm.head if self.gated is None else self.gated.linear
        return head(read.to(rm.device))  # type: ignore[misc]

    @contextlib.contextmanager
    def _layers(self, rows: torch.Tensor, last: torch.Tensor) -> Iterator[None]:
        """How the layers run for a batch."""
        if self.compile and not self.rm.placement.by_layer:
            yield  # a network that is compiled whole would be compiled again for each batch's hooks
            return
        with compiled(self.rm.network, self.compile), last_layer_at(self.rm.network, rows, last):
            yield

    def _plain_rewards(self, batch: list[Ids], at: int = -1) -> torch.Tensor:
        """Whole sequences of one length, without padding; read at an index."""
        rm = self.rm
        ids = upload([self.prefix_ids + list(ids) for ids in batch], rm.device)
        if rm.head is not None:
            with own_attention(rm.network):
                hidden = rm.network(input_ids=ids, use_cache=False).last_hidden_state.to(rm.device)
            if not isinstance(rm.head, GatedHead):
                return rm.head(hidden[:, at])  # type: ignore[operator]
            places = [rm.head.gate.place([*self.prefix_ids, *ids]) for ids in batch]
            heads = [rm.head.given(row[place]) for row, place in zip(hidden, places, strict=True)]
            return torch.cat([head(row[at][None]) for head, row in zip(heads, hidden, strict=True)])
        inputs = {"input_ids": ids}
        # Of a pair, the question is 0 and the answer 1; a conversation in a template is one text.
        if rm.dialogue.template is None and "token_type_ids" in rm.tokenizer.model_input_names:
            types = torch.ones_like(ids)
            types[:, : len(self.prefix_ids)] = 0
            inputs["token_type_ids"] = types
        return rm.network(**inputs).logits[:, rm.spec.label or 0].float()


def score_continuations(
    rm: RewardModel, prefix_ids: Ids, continuations: Sequence[Ids], batch_size: int | None = None
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
        A continuation is empty, or a reward is not finite (`NonFiniteReward`).
    """
    return PrefixScorer(rm, prefix_ids)(continuations, batch_size)
