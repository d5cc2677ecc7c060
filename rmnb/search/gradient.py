"""The gradient of a reward with respect to the one-hot vectors of a response's tokens.

Only the response and the closing ids are run: the prefix's keys and values are those that scoring has already, frozen.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from rmnb.errors import InputError
from rmnb.models.attention import SharedPrefix
from rmnb.models.devices import own_attention
from rmnb.models.gated_heads import GatedHead
from rmnb.models.reward_model import RewardModel
from rmnb.scoring.engine import PrefixScorer


class RewardGradient:
    """Gradients of the reward of responses to one prompt.

    Parameters
    ----------
    scorer
        What scores the same responses.
    closing
        Ids after the response.
    """

    def __init__(self, scorer: PrefixScorer, closing: Sequence[int]):
        self.rm, self.prefix_ids, self.closing = scorer.rm, scorer.prefix_ids, list(closing)
        self.head: Any = scorer.rm.head if scorer.gated is None else scorer.gated.linear
        if isinstance(self.head, GatedHead):
            raise InputError(f"{self.rm.name}: its gated head has no gradient while whole sequences are scored")
        self.prefix = None if scorer.prefix is None else _outside_inference(scorer.prefix)

    def __call__(self, ids: Sequence[int]) -> Float[np.ndarray, "length vocabulary"]:
        """How fast the reward rises as each token is blended into each position: d reward / d one-hot.

        Parameters
        ----------
        ids
            The response, without closing ids.
        """
        embedding = self.rm.network.get_input_embeddings()
        before = [] if self.prefix is not None else self.prefix_ids
        at = slice(len(before), len(before) + len(ids))
        read = self.rm.reading.kept(self.prefix_ids, [*ids, *self.closing])
        whole = torch.tensor([[*before, *read]], device=self.rm.device)
        with torch.enable_grad():
            vectors = embedding(whole).detach().clone().requires_grad_()
            reward = self._reward(vectors)
            (slope,) = torch.autograd.grad(reward, vectors)
        by_token = _by_token(embedding, slope[0, at])
        return np.pad(by_token, ((0, len(ids) - len(by_token)), (0, 0)))  # nothing depends on what is not read

    def _reward(self, vectors: Float[Tensor, "1 length hidden"]) -> Tensor:
        rm = self.rm
        if self.prefix is not None:
            assert self.head is not None
            position = self.prefix.length + torch.arange(vectors.shape[1], device=rm.device)[None]
            hidden = rm.network(
                inputs_embeds=vectors, position_ids=position, use_cache=False, shared_prefix=self.prefix
            ).last_hidden_state
            return self.head(hidden[:, -1].to(rm.device))[0]
        if self.head is not None:
            with own_attention(rm.network):
                hidden = rm.network(inputs_embeds=vectors, use_cache=False).last_hidden_state
            return self.head(hidden[:, -1].to(rm.device))[0]
        return rm.network(inputs_embeds=vectors, **_segments(rm, vectors, len(self.prefix_ids))).logits[0, 0]


def _outside_inference(prefix: SharedPrefix) -> SharedPrefix:
    """A copy that autograd may keep: what inference mode computes cannot be saved for a backward pass."""
    copy = SharedPrefix(prefix.length)
    copy.layers = {layer: (keys.clone(), values.clone()) for layer, (keys, values) in prefix.layers.items()}
    copy.filling = False
    return copy


def _by_token(
    embedding: torch.nn.Module, slope: Float[Tensor, "length hidden"]
) -> Float[np.ndarray, "length vocabulary"]:
    """From a gradient on embedding vectors to one on one-hot vectors.

    A vector is the one-hot times the table, times a factor for models that scale their embeddings (Gemma: the root of
    the hidden size).
    """
    weight = embedding.weight
    assert isinstance(weight, Tensor)
    scale = float(getattr(embedding, "embed_scale", 1.0))
    slopes = (slope @ weight.T) * scale
    return (slopes.float() if weight.dtype.itemsize < 4 else slopes).cpu().numpy()


def _segments(rm: RewardModel, vectors: Tensor, question: int) -> dict[str, Tensor]:
    """Segment ids for encoders that have them: question 0, answer 1."""
    if "token_type_ids" not in rm.tokenizer.model_input_names:
        return {}
    types = torch.ones(vectors.shape[:2], dtype=torch.long, device=vectors.device)
    types[:, :question] = 0
    return {"token_type_ids": types}
