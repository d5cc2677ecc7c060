"""Attention of many short continuations over one shared prefix.

The prefix is run once, as a continuation of the empty prefix; each layer's keys and values are kept as they are, one
copy whatever the batch. Registered with transformers' AttentionInterface, so that the model's own code calls it after
its own rotary embedding, norms and projections; and with its AttentionMaskInterface, so that the model's own code says
which keys each of its layers sees: windows and chunks included, whether or not its layers know of them.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface

NAME = "rmnb_shared_prefix"
CHUNK = 512  # ids whose scores are computed at once: memory grows with a conversation's length, not with its square
_KINDS = {"full_attention", "sliding_attention", "chunked_attention"}


class UnsupportedAttention(Exception):
    """The architecture attends in a way that `attend` does not compute."""


@dataclass
class Prefix:
    """Keys and values of one prefix by layer, each Float[Tensor, "kv_heads length head"].

    They grow while the prefix itself is run; afterwards the first `end` of them are read. Scores are computed for
    `chunk` ids at once. This is no dict, because accelerate copies every mapping that it passes to a layer.
    """

    layers: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    end: int | None = None
    chunk: int = CHUNK


@dataclass(frozen=True)
class Visible:
    """What stands in a mask's place: transformers' rule by which a query sees a key, both by their positions."""

    rule: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
    masks: dict[tuple[int, int, torch.device], Bool[Tensor, "length seen"]] = field(default_factory=dict)

    def hidden(self, first: int, end: int, device: torch.device) -> Bool[Tensor, "length seen"]:
        """True where a position from `first` to `end` does not see one before `end`; the same for all layers."""
        key = first, end, device
        if key not in self.masks:
            place = torch.arange(end, device=device)
            zero = torch.zeros((), dtype=torch.long, device=device)
            self.masks[key] = ~self.rule(zero, zero, place[first:, None], place[None])
        return self.masks[key]


def keep_rule(*, mask_function: Callable, **_) -> Any:
    """Called by transformers in place of what makes a mask; rows are padded on the right, where no query looks."""
    return Visible(mask_function)


def constant_up_to(config) -> int:
    """How long a conversation may be for rotary frequencies that do not depend on its length."""
    config = config.get_text_config()
    parameters = getattr(config, "rope_parameters", None) or {}
    by_layer = [value for value in parameters.values() if isinstance(value, dict)] or [parameters]
    kinds = {str(each.get("rope_type")) for each in by_layer}
    if "longrope" not in kinds and not any("dynamic" in kind for kind in kinds):
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


def inputs_after(prefix: Prefix, start: int, rows: int, length: int, device: torch.device) -> dict[str, Any]:
    """How a network is called for so many ids in each row that follow `start` ids of a prefix.

    The mask hides nothing. Without one, transformers looks for packed conversations: a GPU's host would wait for it.
    """
    return {
        "position_ids": start + torch.arange(length, device=device)[None],
        "attention_mask": torch.ones(rows, length, dtype=torch.long, device=device),
        "use_cache": False,
        "shared_prefix": prefix,
    }


@torch.inference_mode()
def run_prefix(
    network, ids: Int[Tensor, "1 length"], chunk: int = CHUNK
) -> tuple[Prefix, Float[Tensor, "length hidden"]]:
    """The keys and values of a prefix, and its last hidden states.

    Raises
    ------
    UnsupportedAttention
        A layer does not attend through `attend`, or attends more than once.
    """
    length = ids.shape[1]
    prefix = Prefix(chunk=chunk)
    states = []
    for start, part in zip(range(0, length, chunk), ids.split(chunk, 1), strict=True):
        # Never compiled code: it runs once, and CUDA graphs would overwrite the keys and values that are kept.
        output = network.forward(input_ids=part, **inputs_after(prefix, start, *part.shape, ids.device))
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
    attention_mask: Visible,
    scaling: float,
    softcap: float | None = None,
    shared_prefix: Prefix | None = None,
    **kwargs,
) -> tuple[Float[Tensor, "batch length heads head"], None]:
    """Causal attention of each row over the shared prefix and itself; rows may be padded on the right.

    Called by the model's layers, with `shared_prefix` passed through from the call of the model.

    Raises
    ------
    UnsupportedAttention
        The model did not pass `shared_prefix` on, masks by itself, or uses attention sinks.
    """
    if shared_prefix is None or not isinstance(attention_mask, Visible) or kwargs.get("s_aux") is not None:
        raise UnsupportedAttention("the model's layers do not pass on what shared-prefix attention needs")
    keys, values = shared_prefix.layers.get(module.layer_idx) or (key[0, :, :0], value[0, :, :0])
    if shared_prefix.end is None:
        shared_prefix.layers[module.layer_idx] = torch.cat([keys, key[0]], 1), torch.cat([values, value[0]], 1)
    keys = keys[:, : shared_prefix.end]
    values = values[:, : shared_prefix.end]
    if torch.is_grad_enabled():  # autograd keeps nothing that inference mode has computed
        keys = keys.clone()
        values = values.clone()
    before = keys.shape[1]
    query = query.unflatten(1, (key.shape[1], -1))
    results = []
    chunk = shared_prefix.chunk
    for first in range(0, query.shape[-2], chunk):
        queries = query[..., first : first + chunk, :]
        end = first + queries.shape[-2]
        # One large product a key-value head over the prefix, of all rows with its one copy; a small one within a row.
        over_prefix = torch.einsum("bkgid,kjd->bkgij", queries, keys)
        within = torch.einsum("bkgid,bkjd->bkgij", queries, key[:, :, :end])
        scores = torch.cat([over_prefix, within], -1) * scaling
        if softcap is not None:
            scores = torch.tanh(scores / softcap) * softcap
        scores.masked_fill_(attention_mask.hidden(before + first, before + end, scores.device), -torch.inf)
        weights = scores.softmax(-1, dtype=torch.float32).to(query.dtype)
        old, new = weights.split([before, end], -1)
        result = torch.einsum("bkgij,kjd->bkgid", old, values)
        results.append(result + torch.einsum("bkgij,bkjd->bkgid", new, value[:, :, :end]))
    result = results[0] if len(results) == 1 else torch.cat(results, -2)
    return result.flatten(1, 2).transpose(1, 2).contiguous(), None


AttentionMaskInterface.register(NAME, keep_rule)
AttentionInterface.register(NAME, attend)
