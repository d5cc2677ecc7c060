"""What a scan will take, before it runs: positions, floating-point operations, memory.

How long that takes a machine is for `rmnb.scoring.pace` to say.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from rmnb.models.devices import DTYPES, MIXED
from rmnb.models.dialogue import Prompt
from rmnb.models.reward_model import RewardModel
from rmnb.scoring.memory import IDS_AT_ONCE, values_a_sequence
from rmnb.scoring.proof import why_plain
from rmnb.scoring.store import SHARD


@dataclass(frozen=True)
class Shape:
    """What the cost of a scan depends on, of one network.

    Attributes
    ----------
    products : dict of (int, int) to float
        Linear layers: inputs and outputs, and how many of that shape an id passes (of experts, those that are chosen).
    once : int
        Weights that see only what is read, once a token: what follows the last layer's attention.
    parameters, in_products : int
        All weights, and those of linear layers, every expert's counted.
    vocabulary : int
        Rows of the embedding.
    config
        Of the text model.
    """

    products: dict[tuple[int, int], float]
    once: int
    parameters: int
    in_products: int
    vocabulary: int
    config: Any

    @property
    def layers(self) -> int:
        return self.config.num_hidden_layers

    @property
    def weights_an_id(self) -> int:
        return int(sum(inner * outer * count for (inner, outer), count in self.products.items()))


def shape_of(network: PreTrainedModel) -> Shape:
    """The shape of a network, loaded or on torch's meta device."""
    config = network.config.get_text_config()
    chosen = getattr(config, "num_experts_per_tok", None) or 1
    products: Counter[tuple[int, int]] = Counter()
    in_products = 0
    for module in network.base_model.modules():
        for inner, outer, count, used in _products(module, chosen):
            products[inner, outer] += used
            in_products += inner * outer * count
    last = (getattr(network.base_model, "layers", None) or [None])[-1]
    behind = [getattr(getattr(last, "self_attn", None), "o_proj", None), getattr(last, "mlp", None)]
    modules = [module for part in behind if part is not None for module in part.modules()]
    once = sum(inner * outer * used for each in modules for inner, outer, _, used in _products(each, chosen))
    quantised = sum(p.numel() for p in network.parameters() if p.dtype == torch.uint8)  # 4 bits: two weights a byte
    total = sum(p.numel() for p in network.parameters()) + quantised
    rows = network.get_input_embeddings().weight.shape[0]  # type: ignore[union-attr]
    return Shape(dict(products), once, total, in_products, int(rows), config)


def _products(module: torch.nn.Module, chosen: int) -> list[tuple[int, int, int, int]]:
    """Inputs and outputs of the products that a module itself makes, how many it has, and how many one id passes."""
    if isinstance(module, torch.nn.Linear):
        return [(module.in_features, module.out_features, 1, 1)]
    if isinstance(module, Conv1D):
        return [(module.nx, module.nf, 1, 1)]
    experts = [p.shape for p in module.parameters(recurse=False) if p.ndim == 3]
    return [(inner, outer, count, min(chosen, count)) for count, outer, inner in experts]


@dataclass(frozen=True)
class Work:
    """One scan of a vocabulary under one prompt.

    Attributes
    ----------
    shape : Shape
    tokens : int
        Ids that are scored, each once.
    prefix : int
        Ids before the answer.
    ids : int
        Ids that each token feeds: itself, and the closing ids up to the one that is read.
    shared : bool
        Whether the prefix is run once for all; else with each token.
    """

    shape: Shape
    tokens: int
    prefix: int
    ids: int
    shared: bool = True

    @property
    def fed(self) -> int:
        """Positions that each token feeds."""
        return self.ids if self.shared else self.prefix + self.ids

    @property
    def positions(self) -> int:
        """Positions that go through the network."""
        return self.tokens * self.fed + (self.prefix if self.shared else 0)

    @property
    def operations(self) -> int:
        """Floating-point operations: two for each weight and position, attention, and the head."""
        shape, config = self.shape, self.shape.config
        saved = (self.fed - 1) * shape.once if self.shared else 0
        heads = config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // heads
        seen = self.fed * (self.prefix + self.ids) * self.tokens + (self.prefix**2 if self.shared else 0)
        attention = 4 * shape.layers * heads * size * seen
        head = 2 * self.tokens * config.hidden_size
        return 2 * (self.positions * shape.weights_an_id - self.tokens * saved) + attention + head

    @property
    def batch(self) -> int:
        """Tokens at once on a CPU, if memory does not set fewer."""
        return max(1, IDS_AT_ONCE["cpu"] // self.fed)

    @property
    def values(self) -> int:
        """Numbers that the layers' states hold, over all tokens."""
        return self.tokens * self.shape.layers * values_a_sequence(self.shape.config, self.prefix + self.ids, self.fed)

    def stored(self, dtype: str, exact: bool = False) -> int:
        """Bytes of the weights in a number format; `exact` if those of a mixed one are stored in bfloat16."""
        size = DTYPES[dtype].itemsize
        rounded = 2 * self.shape.in_products if dtype == MIXED and not exact else 0
        return size * self.shape.parameters + rounded

    def states(self, dtype: str, device: str = "cpu") -> int:
        """Bytes of one layer's states for one batch."""
        at_once = self.batch if device == "cpu" else min(SHARD, self.tokens)
        values = values_a_sequence(self.shape.config, self.prefix + self.ids, self.fed)
        return min(at_once, self.tokens) * values * DTYPES[dtype].itemsize


def work_of(rm: RewardModel, prompt: Prompt, tokens: int) -> Work:
    """The work of a scan that is about to begin."""
    prefix, closing = rm.dialogue.frame(prompt)
    _, at = rm.read_at(prompt)
    ids = max(1, len(closing) + 2 + at) if at is not None else 1 + len(closing)
    return Work(shape_of(rm.network), tokens, len(prefix), ids, shared=why_plain(rm) is None)
