"""Scoring: everything that is ever scored goes through here.

One forward pass over the prefix, then batches of continuations that share it. A reward is read at an explicit index,
the last id of its sequence, never by looking for padding; only that position goes through the head.
"""

import contextlib
import ctypes
import functools
import logging
from collections.abc import Iterator, Sequence

import numpy as np
import psutil
import torch

from rmnb.attention import SharedPrefix, UnsupportedAttention
from rmnb.dialogue import Prompt, check_protocol
from rmnb.errors import InputError
from rmnb.models import RewardModel

logger = logging.getLogger(__name__)
Ids = Sequence[int]
# Beyond this many ids at once a processor gains nothing: the activations leave its cache.
_IDS_AT_ONCE = {"cpu": 1024, "cuda": 65536}
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


class NonFiniteReward(InputError):
    """A reward is NaN or infinite; `index` is the place of its continuation in what was asked for."""

    def __init__(self, index: int, reward: float):
        super().__init__(f"the reward of continuation {index} is {reward}: try dtype float32")
        self.index, self.reward = index, reward


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
        if rm.device.type == "cpu":
            _keep_freed_memory()
        self.prefix = None if rm.plain_because else self._run_prefix()

    @torch.inference_mode()
    def _run_prefix(self) -> SharedPrefix | None:
        if not self.prefix_ids:
            return None
        prefix = SharedPrefix(len(self.prefix_ids))
        ids = torch.tensor([self.prefix_ids], device=self.rm.device)
        position = torch.arange(len(self.prefix_ids), device=self.rm.device)[None]
        try:
            self.rm.network(input_ids=ids, position_ids=position, use_cache=False, shared_prefix=prefix)
        except UnsupportedAttention as error:
            logger.warning("scoring whole sequences, which is slower: %s", error)
            return None
        prefix.filling = False
        layers = self.rm.network.config.get_text_config().num_hidden_layers
        if len(prefix.layers) != layers:
            logger.warning("scoring whole sequences, which is slower: some layers attend in a way of their own")
            return None
        return prefix

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
        rewards = np.empty(len(continuations), dtype=np.float32)
        for batch in self._batches(lengths, batch_size):
            rewards[batch] = self._with_less_memory([continuations[i] for i in batch])
        bad = np.flatnonzero(~np.isfinite(rewards))
        if len(bad):
            raise NonFiniteReward(int(bad[0]), float(rewards[bad[0]]))
        return rewards

    def _batches(self, lengths: np.ndarray, batch_size: int | None) -> Iterator[np.ndarray]:
        """Indices batch by batch, longest first, so that memory runs out at once or never.

        A batch holds like lengths: padding adds at most a quarter. Without sharing, sequences are never padded.
        """
        slack = 1.25 if self.prefix is not None else 1.0
        order = np.argsort(-lengths, kind="stable")
        while len(order):
            longest = int(lengths[order[0]])
            size = batch_size or default_batch_size(self.rm, len(self.prefix_ids), longest)
            fits = int((lengths[order[:size]] * slack >= longest).sum())
            yield order[:fits]
            order = order[fits:]

    def _with_less_memory(self, batch: list[Ids]) -> np.ndarray:
        """Rewards of a batch, in two halves if memory runs out."""
        try:
            return self._rewards(batch).cpu().numpy()
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not _out_of_memory(error):
                raise
            if len(batch) == 1:
                raise InputError("not enough memory for a single sequence: use a smaller model or dtype") from error
        # Outside the handler, so that the failed batch's tensors are free.
        logger.warning("memory ran out with %d sequences at once: halving", len(batch))
        half = len(batch) // 2
        return np.concatenate([self._with_less_memory(batch[:half]), self._with_less_memory(batch[half:])])

    def _rewards(self, batch: list[Ids]) -> torch.Tensor:
        if self.prefix is None:
            return self._plain_rewards(batch)
        rm = self.rm
        longest = max(len(ids) for ids in batch)
        # Padding follows what is read and is therefore never attended to: any id will do.
        ids = torch.tensor([[*ids, *[0] * (longest - len(ids))] for ids in batch], device=rm.device)
        last = torch.tensor([len(ids) - 1 for ids in batch], device=rm.device)
        position = self.prefix.length + torch.arange(longest, device=rm.device)[None]
        rows = torch.arange(len(batch), device=rm.device)
        with _last_mlp_at(rm.network, rows, last):
            hidden = rm.network(
                input_ids=ids, position_ids=position, use_cache=False, shared_prefix=self.prefix
            ).last_hidden_state
        return rm.head(hidden[rows, last])  # type: ignore[misc]

    def _plain_rewards(self, batch: list[Ids]) -> torch.Tensor:
        """Whole sequences of one length, without padding."""
        rm = self.rm
        ids = torch.tensor([self.prefix_ids + list(ids) for ids in batch], device=rm.device)
        if rm.head is not None:
            with _own_attention(rm.network):
                return rm.head(rm.network(input_ids=ids, use_cache=False).last_hidden_state[:, -1])
        inputs = {"input_ids": ids}
        if "token_type_ids" in rm.tokenizer.model_input_names:  # question 0, answer 1
            types = torch.ones_like(ids)
            types[:, : len(self.prefix_ids)] = 0
            inputs["token_type_ids"] = types
        return rm.network(**inputs).logits[:, 0].float()


def score_continuations(
    rm: RewardModel, prefix_ids: Ids, continuations: Sequence[Ids], batch_size: int | None = None
) -> np.ndarray:
    """Rewards of many id sequences that follow one prefix.

    Equal, within rounding, to the plain forward pass over each whole sequence alone, read at its last id.

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


def score_responses(rm: RewardModel, prompt: Prompt, responses: Sequence[str], protocol: str = "exact") -> np.ndarray:
    """Rewards of texts as responses to a prompt, float32 [responses]; behind `RewardModel.score`."""
    if not responses:
        raise InputError("no response given: name at least one")
    if check_protocol(protocol) == "published":
        return score_sequences(rm, rm.dialogue.published_ids(prompt, responses))
    prefix, closing = rm.dialogue.frame(prompt)
    encoded = [rm.dialogue.response_ids(response) for response in responses]
    if [] in encoded:
        raise InputError(f"response {encoded.index([]) + 1} is empty: there is nothing to score")
    return score_continuations(rm, prefix, [ids + closing for ids in encoded])


def score_sequences(rm: RewardModel, sequences: Sequence[Ids]) -> np.ndarray:
    """Rewards of whole conversations; what they all begin with is run once, identical ones are scored once.

    Returns
    -------
    np.ndarray
        float32 [sequences].
    """
    prefix = common_prefix(sequences)
    endings = [tuple(ids[len(prefix) :]) for ids in sequences]
    place = {ending: index for index, ending in enumerate(dict.fromkeys(endings))}
    return score_continuations(rm, prefix, list(place))[[place[ending] for ending in endings]]


def common_prefix(sequences: Sequence[Ids]) -> list[int]:
    """The ids that all sequences begin with, at least one id of each left over."""
    first, last = min(map(list, sequences)), max(map(list, sequences))
    longest = min(len(ids) for ids in sequences) - 1
    shared = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), longest)
    return first[: min(shared, longest)]


def default_batch_size(rm: RewardModel, prefix_length: int, length: int) -> int:
    """How many continuations of a length to run at once, from the memory that is free now."""
    device = rm.device
    config = rm.network.config.get_text_config()
    free = psutil.virtual_memory().available
    if device.type == "cuda":
        free = torch.cuda.mem_get_info(device)[0]
    # Of one layer: residual stream, projections and the MLP's inner states; fp32 scores and weights of attention.
    inner = 12 * config.hidden_size + 4 * getattr(config, "intermediate_size", 4 * config.hidden_size)
    width = prefix_length + length
    per_sequence = 4 * length * (inner + 4 * config.num_attention_heads * width)
    if rm.plain_because:
        per_sequence = 4 * width * (inner + 4 * config.num_attention_heads * width)
        length = width
    by_memory = int(0.25 * free) // per_sequence
    return max(1, min(by_memory, _IDS_AT_ONCE.get(device.type, 1024) // length))


@functools.cache
def _keep_freed_memory() -> None:
    """Let this process keep what it frees, where the C library is glibc.

    By default glibc gives large blocks back to the system at once. Every layer's activations are such blocks: each
    batch would fault its memory in again, page by page, which costs 5 to 8 % of a scan's time.
    """
    with contextlib.suppress(OSError, AttributeError):  # another system or C library
        mallopt = ctypes.CDLL("libc.so.6").mallopt
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        mallopt(_M_TRIM_THRESHOLD, 1 << 30)


def _out_of_memory(error: BaseException) -> bool:
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "can't allocate memory" in str(error)


@contextlib.contextmanager
def _last_mlp_at(network, rows: torch.Tensor, last: torch.Tensor):
    """For a while, let the last layer's MLP see only the positions that are read.

    Its output, one position a row, is added to the residual stream by broadcasting: right where the reward is read, and
    nobody looks elsewhere.
    """
    mlp = getattr(network.layers[-1], "mlp", None) if hasattr(network, "layers") else None
    if mlp is None:
        yield
        return
    hook = mlp.register_forward_pre_hook(lambda _, inputs: (inputs[0][rows, last][:, None], *inputs[1:]))
    try:
        yield
    finally:
        hook.remove()


@contextlib.contextmanager
def _own_attention(network):
    """The network's own eager attention for a while, in place of the shared-prefix one."""
    before = network.config._attn_implementation
    network.set_attn_implementation("eager")
    try:
        yield
    finally:
        network.set_attn_implementation(before)
