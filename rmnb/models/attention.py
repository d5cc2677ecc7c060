"""Attention of many short continuations over one shared prefix.

The prefix is run once, as a continuation of the empty prefix; each layer's keys and values are kept as they are, one
copy whatever the batch. Registered with transformers' AttentionInterface, so that the model's own code calls it after
its own rotary embedding, norms and projections.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import AttentionInterface

NAME = "rmnb_shared_prefix"
CHUNK = 512  # ids of a prefix that are run at once: scores of a long one grow with its length, not with its square
_KINDS = {"full_attention", "sliding_attention"}


class UnsupportedAttention(Exception):
    """The architecture attends in a way that `attend` does not compute."""


@dataclass
class Prefix:
    """Keys and values of one prefix by layer, each Float[Tensor, "kv_heads length head"].

    They grow while the prefix itself is run; afterwards the first `end` of them are read. This is no dict, because
    accelerate copies every mapping that it passes to a layer.
    """

    layers: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    end: int | None = None


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
def run_prefix(network, ids: Int[Tensor, "1 length"]) -> tuple[Prefix, Float[Tensor, "length hidden"]]:
    """The keys and values of a prefix, and its last hidden states.

    Raises
    ------
    UnsupportedAttention
        A layer does not attend through `attend`, or attends more than once.
    """
    length = ids.shape[1]
    prefix = Prefix()
    states = []
    positions = torch.arange(length, device=ids.device)[None]
    for chunk, position in zip(ids.split(CHUNK, 1), positions.split(CHUNK, 1), strict=True):
        # Never compiled code: it runs once, and CUDA graphs would overwrite the keys and values that are kept.
        output = network.forward(input_ids=chunk, position_ids=position, use_cache=False, shared_prefix=prefix)
        states.append(output.last_hidden_state[0])
    prefix.end = length
    lengths = [keys.shape[1] for keys, _ in prefix.layers.values()]
    if lengths != [length] * network.config.get_text_config().num_hidden_layers:
        raise UnsupportedAttention("some layers attend in a way of their own")
    return prefix, torch.cat(states)


def attend(
    module,
    query: Float[Tensor, "batch heads length head"],
    key: Float[Tensor, "batch kv_heads length head"],
    value: Float[Tensor, "batch kv_heads length head"],
    attention_mask: Tensor | None,
    scaling: float,
    sliding_window: int | None = None,
    softcap: float | None = None,
    shared_prefix: Prefix | None = None,
    **kwargs,
) -> tuple[Float[Tensor, "batch length heads head"], None]:
    """Causal attention of each row over the shared prefix and itself; rows may be padded on the right.

    Called by the model's layers, with `shared_prefix` passed through from the call of the model. No mask is needed:
    what follows a position is never visible to it, so padding changes nothing at the positions that are read.

    Raises
    ------
    UnsupportedAttention
        The model did not pass `shared_prefix` on, masks by itself, or uses attention sinks.
    """
    if shared_prefix is None or attention_mask is not None or kwargs.get("s_aux") is not None:
        raise UnsupportedAttention("the model's layers do not pass on what shared-prefix attention needs")
    keys, values = shared_prefix.layers.get(module.layer_idx) or (key[0, :, :0], value[0, :, :0])
    if shared_prefix.end is None:
        shared_prefix.layers[module.layer_idx] = torch.cat([keys, key[0]], 1), torch.cat([values, value[0]], 1)
    keys = keys[:, : shared_prefix.end]
    values = values[:, : shared_prefix.end]
    if torch.is_grad_enabled():  # autograd keeps nothing that inference mode has computed
        keys = keys.clone()
        values = values.clone()
    length = query.shape[-2]
    query = query.unflatten(1, (key.shape[1], -1))
    # One large product a key-value head over the prefix, of all rows with its one copy; a small one within each row.
    over_prefix = torch.einsum("bkgid,kjd->bkgij", query, keys)
    within = torch.einsum("bkgid,bkjd->bkgij", query, key)
    scores = torch.cat([over_prefix, within], -1) * scaling
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    place = torch.arange(keys.shape[1] + length, device=query.device)
    distance = place[-length:, None] - place
    hidden = (distance < 0) | (distance >= (sliding_window or len(place)))
    scores.masked_fill_(hidden, -torch.inf)
    weights = scores.softmax(-1, dtype=torch.float32).to(query.dtype)
    old, new = weights.split([keys.shape[1], length], -1)
    result = torch.einsum("bkgij,kjd->bkgid", old, values) + torch.einsum("bkgij,bkjd->bkgid", new, value)
    return result.flatten(1, 2).transpose(1, 2).contiguous(), None


AttentionInterface.register(NAME, attend)
