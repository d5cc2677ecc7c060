"""Attention of many short sequences over one shared prefix, all in one row.

The prefix is run once, as a continuation of the empty prefix; each layer's keys and values are kept as they are, one
copy whatever the batch. Sequences lie one behind the other in a single row, so that the linear layers see no padding
and one large product, whatever the lengths; only attention knows where each begins. Registered with transformers'
AttentionInterface, so that the model's own code calls it after its own rotary embedding, norms and projections; and
with its AttentionMaskInterface, so that the model's own code says which keys each of its layers sees: windows and
chunks included, whether or not its layers know of them.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface

from rmnb.errors import InputError

NAME = "rmnb_shared_prefix"
CHUNK = 512  # ids whose scores are computed at once: memory grows with a conversation's length, not with its square
_KINDS = {"full_attention", "sliding_attention", "chunked_attention"}


class Run(NamedTuple):
    """Sequences of one length that follow each other in a row, each behind the same ids.

    Parameters
    ----------
    sequences, length
        How many, and ids of each.
    shared
        How many ids each of them is behind.
    extends
        Whether the next runs may be behind its ids, too: a part of a prefix, or what sequences begin with.
    """

    sequences: int
    length: int
    shared: int
    extends: bool = False


@dataclass(frozen=True)
class Prefix:
    """Keys and values of one prefix by layer, each Float[Tensor, "kv_heads length head"], and the row behind them.

    They grow while the prefix itself is run. Scores are computed for `chunk` ids at once. This is no dict, because
    accelerate copies every mapping that it passes to a layer.
    """

    layers: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    chunk: int = CHUNK
    runs: Sequence[Run] = ()
    grows: bool = False


def keep_rule(*, mask_function: Callable, **_) -> Any:
    """Called by transformers in place of what makes a mask.

    Parameters
    ----------
    mask_function
        transformers' rule by which a query sees a key, both by their positions.

    Returns
    -------
    callable
        Of `first`, `end` and a device: Bool[Tensor, "length seen"], true where a position from `first` to `end` does
        not see one before `end`.
    """
    masks = {}  # the same for all layers

    def hidden(first: int, end: int, device: torch.device) -> Tensor:
        key = first, end, device
        if key not in masks:
            place = torch.arange(end, device=device)
            zero = torch.zeros((), dtype=torch.long, device=device)
            masks[key] = ~mask_function(zero, zero, place[first:, None], place[None])
        return masks[key]

    return hidden


def constant_up_to(config) -> int:
    """How long a conversation may be for rotary frequencies that do not depend on its length."""
    config = config.get_text_config()
    parameters = getattr(config, "rope_parameters", None) or {}
    by_layer = [value for value in parameters.values() if isinstance(value, dict)] or [parameters]
    if not any(str(each.get("rope_type")).startswith(("dynamic", "longrope")) for each in by_layer):
        return sys.maxsize
    original = [each.get("original_max_position_embeddings") for each in by_layer]
    return min([*filter(None, original), config.max_position_embeddings]) - 1


def forget_lengths(network) -> None:
    """Let dynamic rotary embeddings read the next conversation as their first: they remember the longest one."""
    for module in network.modules():
        for name in [name for name in vars(module) if name.endswith("max_seq_len_cached")]:
            setattr(module, name, 0)


def why_unsupported(trunk) -> str | None:
    """Why `attend` cannot serve this network, or None if it can."""
    config = trunk.config.get_text_config()
    if not trunk._can_set_attn_implementation():
        return "its attention cannot be replaced"
    if getattr(config, "use_bidirectional_attention", False) or not getattr(config, "is_causal", True):
        return "its attention is bidirectional"
    unknown = set(getattr(config, "layer_types", None) or ()) - _KINDS
    if unknown:
        return f"it has layers of kind {', '.join(sorted(unknown))}"
    return None


@torch.inference_mode()
def run_prefix(
    network, ids: Int[Tensor, "1 length"], chunk: int = CHUNK
) -> tuple[Prefix, Float[Tensor, "length hidden"]]:
    """The keys and values of a prefix, and its last hidden states.

    Raises
    ------
    InputError
        A layer does not attend through `attend`, or attends more than once.
    """
    length = ids.shape[1]
    prefix = Prefix(chunk=chunk)
    states = []
    for part in ids.split(chunk, 1):
        before = sum(map(len, states))
        runs = [Run(1, part.shape[1], before, extends=True)]
        # Never compiled code: it runs once, and CUDA graphs would overwrite the keys and values that are kept.
        states.append(run_behind(network.forward, replace(prefix, grows=True), runs, input_ids=part))
    lengths = [keys.shape[1] for keys, _ in prefix.layers.values()]
    if lengths != [length] * network.config.get_text_config().num_hidden_layers:
        raise InputError("some layers attend in a way of their own")
    return prefix, torch.cat(states)


def run_behind(network: Callable, prefix: Prefix, runs: Sequence[Run], **inputs: Tensor) -> Float[Tensor, "ids hidden"]:
    """The last hidden states of a row of sequences behind a prefix.

    Parameters
    ----------
    network
        The trunk, which attends by `attend`.
    prefix
        Of `run_prefix`.
    runs
        The sequences of the row, in order.
    inputs
        ``input_ids`` (int64 [1, ids]) or ``inputs_embeds`` of the row.
    """
    [row] = inputs.values()
    positions = [(run.shared + torch.arange(run.length, device=row.device)).repeat(run.sequences) for run in runs]
    output = network(
        **inputs,
        position_ids=torch.cat(positions)[None],
        # It hides nothing. Without one transformers looks for packed conversations: a GPU's host would wait for it.
        attention_mask=torch.ones(row.shape[:2], dtype=torch.long, device=row.device),
        use_cache=False,
        shared_prefix=replace(prefix, runs=runs),
    )
    return output.last_hidden_state[0]


def attend(
    module,
    query: Float[Tensor, "1 heads ids head"],
    key: Float[Tensor, "1 kv_heads ids head"],
    value: Float[Tensor, "1 kv_heads ids head"],
    attention_mask: Callable[[int, int, torch.device], Tensor],
    scaling: float,
    softcap: float | None = None,
    shared_prefix: Prefix | None = None,
    **kwargs,
) -> tuple[Float[Tensor, "1 ids heads head"], None]:
    """Causal attention of each sequence of a row over what it is behind, and over itself.

    Called by the model's layers, with `shared_prefix` passed through from the call of the model.

    Raises
    ------
    InputError
        The model did not pass `shared_prefix` on, masks by itself, or uses attention sinks.
    """
    if shared_prefix is None or not callable(attention_mask) or kwargs.get("s_aux") is not None:
        raise InputError("the model's layers do not pass on what shared-prefix attention needs")
    nothing = key[0, :, :0], value[0, :, :0]
    keys, values = shared_prefix.layers.get(module.layer_idx, nothing)
    if torch.is_grad_enabled():  # autograd keeps nothing that inference mode has computed
        keys = keys.clone()
        values = values.clone()
    chunk = shared_prefix.chunk
    sizes = [run.sequences * run.length for run in shared_prefix.runs]
    parts = [states[0].split(sizes, 1) for states in (query, key, value)]
    results = []
    for run, own_query, own_key, own_value in zip(shared_prefix.runs, *parts, strict=True):
        before = run.shared
        shape = (run.sequences, run.length)
        queries = own_query.unflatten(0, (len(own_key), -1)).unflatten(2, shape)
        within_keys = own_key.unflatten(1, shape)
        within_values = own_value.unflatten(1, shape)
        attended = []
        for first in range(0, run.length, chunk):
            some = queries[..., first : first + chunk, :]
            end = first + some.shape[-2]
            # One large product a key-value head over what is shared, of which there is one copy; small ones within.
            over_shared = torch.einsum("kgnid,kjd->kgnij", some, keys[:, :before])
            within = torch.einsum("kgnid,knjd->kgnij", some, within_keys[:, :, :end])
            scores = torch.cat([over_shared, within], -1) * scaling
            if softcap is not None:
                scores = torch.tanh(scores / softcap) * softcap
            scores.masked_fill_(attention_mask(before + first, before + end, scores.device), -torch.inf)
            weights = scores.softmax(-1, dtype=torch.float32).to(query.dtype)
            old, new = weights.split([before, end], -1)
            result = torch.einsum("kgnij,kjd->kgnid", old, values[:, :before])
            attended.append(result + torch.einsum("kgnij,knjd->kgnid", new, within_values[:, :, :end]))
        results.append(torch.cat(attended, -2).flatten(2, 3))
        if run.extends:
            keys = torch.cat([keys, own_key], 1)
            values = torch.cat([values, own_value], 1)
    if shared_prefix.grows:
        shared_prefix.layers[module.layer_idx] = keys, values
    return torch.cat(results, 2).flatten(0, 1).transpose(0, 1).contiguous()[None], None


AttentionMaskInterface.register(NAME, keep_rule)
AttentionInterface.register(NAME, attend)
