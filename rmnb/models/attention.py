"""Attention of many short continuations over one shared prefix.

The prefix is run once; each layer's keys and values are kept as they are, one copy whatever the batch. A continuation's
queries meet them in one large matrix product a key-value head, its own few keys in a small one, and a softmax over both
gives the result of attention over the whole sequence. Registered with transformers' AttentionInterface, so that the
model's own code calls it after its own rotary embedding, norms and projections.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import AttentionInterface

NAME = "rmnb_shared_prefix"
QUERIES = 512  # of a prefix that attend at once: scores of a long one grow with its length, not with its square
_KINDS = {"full_attention", "sliding_attention"}


class UnsupportedAttention(Exception):
    """The architecture attends in a way that `shared_prefix_attention` does not compute."""


class SharedPrefix:
    """Keys and values of one prefix by layer: filled during the prefix's own pass, then only read.

    Attributes
    ----------
    length : int
        Number of ids.
    layers : dict of int to (keys, values)
        Each Float[Tensor, "kv_heads length head"].
    filling : bool
        True during the prefix's own pass.
    """

    def __init__(self, length: int):
        self.length = length
        self.layers: dict[int, tuple[Tensor, Tensor]] = {}
        self.filling = True


def why_unsupported(trunk) -> str | None:
    """Why `shared_prefix_attention` cannot serve this network, or None if it can."""
    config = trunk.config.get_text_config()
    if not trunk._can_set_attn_implementation():
        return "its attention cannot be replaced"
    if getattr(config, "use_bidirectional_attention", False) or not getattr(config, "is_causal", True):
        return "its attention is bidirectional"
    unknown = set(getattr(config, "layer_types", None) or ()) - _KINDS
    if unknown:
        return f"it has layers of kind {', '.join(sorted(unknown))}"
    if getattr(config, "attention_chunk_size", None):
        return "it attends in chunks"
    return None


def shared_prefix_attention(
    module,
    query: Float[Tensor, "batch heads length head"],
    key: Float[Tensor, "batch kv_heads length head"],
    value: Float[Tensor, "batch kv_heads length head"],
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    softcap: float | None = None,
    shared_prefix: SharedPrefix | tuple[Tensor, Tensor] | None = None,
    **kwargs,
) -> tuple[Float[Tensor, "batch length heads head"], None]:
    """Causal attention of each row over the shared prefix and itself; rows may be padded on the right.

    Called by the model's layers, with `shared_prefix` passed through from the call of the model. In the prefix's own
    pass it attends causally and keeps keys and values. A compiled layer is given only its own keys and values. No mask
    is needed: what follows a position is never visible to it, so padding on the right changes nothing at the positions
    that are read.

    Raises
    ------
    UnsupportedAttention
        The model did not pass `shared_prefix` on, masks by itself, uses attention sinks, or attends twice in a layer.
    """
    if shared_prefix is None or attention_mask is not None or kwargs.get("s_aux") is not None:
        raise UnsupportedAttention("the model's layers do not pass on what shared-prefix attention needs")
    batch, heads, length, size = query.shape
    kv_heads = key.shape[1]
    query = query.reshape(batch, kv_heads, heads // kv_heads, length, size)
    scale = float(size**-0.5 if scaling is None else scaling)
    if isinstance(shared_prefix, SharedPrefix) and shared_prefix.filling:
        if module.layer_idx in shared_prefix.layers:
            raise UnsupportedAttention("its layers attend more than once")
        shared_prefix.layers[module.layer_idx] = (key[0].clone(), value[0].clone())
        parts = []
        for start in range(0, length, QUERIES):
            seen = min(start + QUERIES, length)  # keys up to the part's last query; later ones are hidden from it
            own = _own_scores(query[:, :, :, start:seen], key[:, :, :seen], scale, softcap, sliding_window)
            weights = own.softmax(-1, dtype=_at_least_float32(query)).to(query.dtype)
            parts.append(torch.einsum("bkgij,bkjd->bigkd", weights, value[:, :, :seen]))
        return _merge(torch.cat(parts, dim=1)), None
    own = _own_scores(query, key, scale, softcap, sliding_window)
    whole = isinstance(shared_prefix, SharedPrefix)
    keys, values = shared_prefix.layers[module.layer_idx] if whole else shared_prefix
    # One product a key-value head: all rows, grouped heads and positions of the batch against the one copy of the keys.
    rows = query.transpose(0, 1).reshape(kv_heads, -1, size)
    over_prefix = _cap((rows @ keys.transpose(1, 2)) * scale, softcap)
    over_prefix = over_prefix.view(kv_heads, batch, -1, length, keys.shape[1])
    if sliding_window is not None:
        over_prefix = _hide_far(over_prefix, keys.shape[1], sliding_window)
    scores = torch.cat([over_prefix, own.transpose(0, 1)], dim=-1)
    weights = scores.softmax(-1, dtype=_at_least_float32(query)).to(query.dtype)
    result = weights[..., : keys.shape[1]].reshape(kv_heads, -1, keys.shape[1]) @ values
    result = result.view(kv_heads, batch, -1, length, values.shape[2])
    own_part = torch.einsum("kbgij,bkjd->kbgid", weights[..., keys.shape[1] :], value)
    return _merge((result + own_part).permute(1, 3, 2, 0, 4)), None


def _at_least_float32(tensor: Tensor) -> torch.dtype:
    return torch.promote_types(tensor.dtype, torch.float32)


def _own_scores(query: Tensor, key: Tensor, scaling: float, softcap: float | None, window: int | None) -> Tensor:
    """Scores within each row, [batch, kv_heads, group, queries, keys], later (and too distant) positions hidden.

    The queries are those of the last keys.
    """
    scores = _cap(torch.einsum("bkgid,bkjd->bkgij", query, key) * scaling, softcap)
    position = torch.arange(key.shape[2], device=key.device)
    distance = position[-query.shape[3] :, None] - position[None, :]
    hidden = distance < 0 if window is None else (distance < 0) | (distance >= window)
    return scores.masked_fill(hidden, -torch.inf)


def _hide_far(scores: Tensor, prefix: int, window: int) -> Tensor:
    """Hide prefix positions that a sliding window leaves behind; scores are [..., length, prefix]."""
    at = prefix + torch.arange(scores.shape[-2], device=scores.device)
    distance = at[:, None] - torch.arange(prefix, device=scores.device)[None, :]
    return scores.masked_fill(distance >= window, -torch.inf)


def _cap(scores: Tensor, softcap: float | None) -> Tensor:
    return scores if softcap is None else torch.tanh(scores / softcap) * softcap


def _merge(result: Tensor) -> Tensor:
    """[batch, length, group, kv_heads, head] to [batch, length, heads, head], a head's groups side by side."""
    batch, length, group, kv_heads, size = result.shape
    return result.transpose(2, 3).reshape(batch, length, kv_heads * group, size).contiguous()


AttentionInterface.register(NAME, shared_prefix_attention)
