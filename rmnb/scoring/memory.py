"""Memory: how much of a batch fits, and keeping or giving back what a batch leaves behind."""

import contextlib
import ctypes
import functools
from typing import Any

import torch

from rmnb.models.devices import free_memory
from rmnb.models.reward_model import RewardModel
from rmnb.scoring.proof import why_plain

# Beyond this many ids at once a processor gains nothing: the activations leave its cache.
IDS_AT_ONCE = {"cpu": 1024, "cuda": 65536}
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


def default_batch_size(rm: RewardModel, prefix_length: int, length: int) -> int:
    """How many continuations of a length to run at once, from the memory that is free now."""
    device = rm.device
    config = rm.network.config.get_text_config()
    free = free_memory(rm.network)
    width = prefix_length + length
    length = width if why_plain(rm) else length
    per_sequence = 4 * values_a_sequence(config, width, length)
    by_memory = int(0.25 * free) // per_sequence
    return max(1, min(by_memory, IDS_AT_ONCE.get(device.type, 1024) // length))


def values_a_sequence(config: Any, width: int, length: int) -> int:
    """Numbers that one layer's states hold for a sequence, of which `length` of `width` ids are fed.

    Residual stream, projections and the MLP's inner states; scores and weights of attention.
    """
    inner = 12 * config.hidden_size + 4 * getattr(config, "intermediate_size", 4 * config.hidden_size)
    return length * (inner + 4 * config.num_attention_heads * width)


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


def release() -> None:
    """Give what a failed batch left behind back to the GPU."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "can't allocate memory" in str(error)
