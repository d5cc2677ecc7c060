"""Seconds of one step of greedy coordinate gradient, three ways: same model, prompt, parent, width and length.

A step is the gradient at the parent, drawing candidates that survive as text, and scoring them.

(a) rebuilt: every candidate a whole conversation from its first token on, in batches, and the gradient through it, as
    `nanogcg` does with its prefix cache off (its own code does not run on current transformers);
(b) expanded: the prefix's keys and values computed once and expanded into each batch (transformers' cache, SDPA);
(c) shared: this package; prefix keys and values shared by all, and of the parent whatever a candidate begins with.

Run as ``python benchmarks/search.py``. The fastest step of a round counts, and the median of the rounds is printed.
"""

import argparse
import time
from collections.abc import Sequence

import numpy as np
import torch
from scan import as_classifier
from transformers import DynamicCache
from turns import compare, memory_beside_weights

import rmnb
from rmnb.scoring.engine import PrefixScorer
from rmnb.scoring.reward_model import RewardModel
from rmnb.search.config import Ids, SearchConfig
from rmnb.search.rewards import RewardObjective
from rmnb.search.run import SearchState, neighbours

WHOLE_BATCH = 64  # whole conversations at once; larger batches were slower
WAYS = ("rebuilt", "expanded", "shared")


class Rebuilt(RewardObjective):
    """(a): nothing is kept from one candidate to the next."""

    def __init__(self, rm: RewardModel, prompt: str):
        super().__init__([rm], [prompt])
        self.rm, self.trunk = rm, as_classifier(rm).model.requires_grad_(False)
        self.prefix, self.closing = rm.dialogue.frame(prompt)
        self.batch = WHOLE_BATCH

    def hidden(self, **inputs: torch.Tensor) -> torch.Tensor:
        return self.trunk(**inputs, use_cache=False).last_hidden_state[:, -1]

    def rows(self, sequences: Sequence[Ids]) -> torch.Tensor:
        return torch.tensor([[*self.prefix, *ids, *self.closing] for ids in sequences])

    def measure(self, sequences, parent=None):
        rewards = []
        with torch.inference_mode():
            for start in range(0, len(sequences), self.batch):
                rows = self.rows(sequences[start : start + self.batch])
                rewards.append(self.rm.readout(self.hidden(input_ids=rows)))
        return torch.cat(rewards).numpy().astype(np.float64)

    def gradient(self, ids):
        embedding = self.trunk.embed_tokens
        row = self.rows([ids])
        vectors = embedding(row).detach().requires_grad_()
        (slope,) = torch.autograd.grad(self.rm.readout(self.hidden(inputs_embeds=vectors))[0], vectors)
        at = row.shape[1] - len(self.closing) - len(ids)
        scale = float(getattr(embedding, "embed_scale", 1.0))
        return (slope[0, at : at + len(ids)] @ embedding.weight.T * scale).double().numpy()


class Expanded(Rebuilt):
    """(b): the prefix's cache is copied into every batch."""

    def __init__(self, rm: RewardModel, prompt: str):
        super().__init__(rm, prompt)
        self.cache = DynamicCache(config=self.trunk.config)
        with torch.no_grad():
            self.trunk(input_ids=torch.tensor([self.prefix]), past_key_values=self.cache, use_cache=True)
        self.batch = PrefixScorer(rm, self.prefix).batch_size(8 + len(self.closing))
        self.length, self.prefix = len(self.prefix), []

    def hidden(self, **inputs: torch.Tensor) -> torch.Tensor:
        batch, length = next(iter(inputs.values())).shape[:2]
        cache = DynamicCache(config=self.trunk.config)
        for index, layer in enumerate(self.cache.layers):
            cache.update(layer.keys.expand(batch, -1, -1, -1), layer.values.expand(batch, -1, -1, -1), index)
        position = self.length + torch.arange(length)[None]
        return self.trunk(**inputs, past_key_values=cache, position_ids=position, use_cache=True).last_hidden_state[
            :, -1
        ]


def objective(way: str, rm: RewardModel, prompt: str) -> RewardObjective:
    """What a way measures with."""
    if way == "shared":
        return RewardObjective([rm], [prompt])
    return (Rebuilt if way == "rebuilt" else Expanded)(rm, prompt)


def measure(options: argparse.Namespace) -> dict[str, float]:
    """One way in this process: seconds a step, difference of some fixed candidates from rebuilding them, memory."""
    rm = rmnb.load_reward_model(options.models[0], device="cpu")
    config = SearchConfig(length=options.length, width=options.width)
    prompt = rmnb.load_panel("demo").prompt("greatest").text
    target = objective(options.way, rm, prompt)
    state = SearchState(target, config)
    parent = state.random(1)[0]
    sequences = neighbours(state, parent, 1, config.topk)
    target.measure(sequences[:64], parent)  # warms up
    seconds = []
    for _ in range(options.steps):
        start = time.perf_counter()
        sequences = neighbours(state, parent, 1, config.topk)
        target.measure(sequences, parent)
        seconds.append(time.perf_counter() - start)
    memory = memory_beside_weights(rm)
    difference = target.measure(sequences[:8], parent) - Rebuilt(rm, prompt).measure(sequences[:8])
    return {"seconds": min(seconds), "difference": float(np.abs(difference).max()), "GB": memory}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--length", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3, help="in each round; the fastest counts")
    compare(parser, WAYS, measure, "seconds")
