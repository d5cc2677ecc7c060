"""One step of greedy coordinate gradient, three ways in turns in one process: same model, prompt, parent, candidates.

A step is the gradient at the parent, drawing candidates that survive as text, and scoring them.

whole: every candidate a whole conversation from its first token on, in batches (a few of them, the time scaled);
expanded: nanoGCG's design, the prefix's keys and values computed once and expanded into each batch (transformers'
    cache, SDPA);
shared: this package; prefix keys and values shared by all, and of the parent whatever a candidate begins with.

Run as ``python benchmarks/search.py``. Seconds are the processor's time of all threads, medians over the rounds, so
that other processes disturb little. Share of the peak: the operations of the ids that must be run, candidates from
their first changed token on and the gradient's row forward and back, at the rate of products measured between steps.
"""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
import typer
from scan import MODELS, BehindPrefix, as_classifier

import rmnb
from rmnb.models.dialogue import common_prefix
from rmnb.scoring.engine import PrefixScorer
from rmnb.scoring.reward_model import RewardModel
from rmnb.searching.config import Ids, SearchConfig
from rmnb.searching.methods import SearchState, neighbours
from rmnb.searching.rewards import RewardObjective

BATCH = 64  # whole conversations at once; larger batches were slower
WHOLE = 32  # of them are scored, and count for all
CASES = ((64, 8), (256, 4), (256, 8), (256, 20), (512, 8))  # width and length


class Whole(RewardObjective):
    """Nothing is kept from one candidate to the next."""

    def __init__(self, rm: RewardModel, prompt: str):
        super().__init__([rm], [prompt])
        self.rm = rm
        self.trunk = as_classifier(rm).model.requires_grad_(False)
        self.prefix, self.closing = rm.dialogue.frame_ids(prompt)
        self.batch = BATCH

    def hidden(self, **inputs: Any) -> torch.Tensor:
        return self.trunk(**inputs, use_cache=False).last_hidden_state[:, -1]

    def rows(self, sequences: Sequence[Ids]) -> torch.Tensor:
        return torch.tensor([[*self.prefix, *ids, *self.closing] for ids in sequences])

    def measure(self, sequences, parent=None):
        rewards = []
        with torch.inference_mode():
            for start in range(0, len(sequences), self.batch):
                rows = self.rows(sequences[start : start + self.batch])
                rewards.append(self.rm.readout(self.hidden(input_ids=rows))[:, 0])
        return torch.cat(rewards).numpy().astype(np.float64)

    def gradient(self, ids):
        embedding = self.trunk.embed_tokens
        row = self.rows([ids])
        vectors = embedding(row).detach().requires_grad_()
        (slope,) = torch.autograd.grad(self.rm.readout(self.hidden(inputs_embeds=vectors))[0, 0], vectors)
        at = row.shape[1] - len(self.closing) - len(ids)
        scale = float(getattr(embedding, "embed_scale", 1.0))
        return (slope[0, at : at + len(ids)] @ embedding.weight.T * scale).double().numpy()


class Expanded(Whole):
    """The prefix's cache is copied into every batch."""

    def __init__(self, rm: RewardModel, prompt: str):
        super().__init__(rm, prompt)
        self.hidden = BehindPrefix(self.trunk, self.prefix)
        self.batch = PrefixScorer(rm, self.prefix).batch_size(8 + len(self.closing))
        self.prefix = []


def peak(network: torch.nn.Module, ids: int = 768) -> float:
    """Operations a second of processor time, of the products of the last layer's MLP with so many ids."""
    linear = [module for module in network.modules() if isinstance(module, torch.nn.Linear)][-1]
    inputs = torch.randn(ids, linear.in_features)
    seconds = []
    with torch.inference_mode():
        for _ in range(32):
            start = time.process_time()
            linear(inputs)
            seconds.append(time.process_time() - start)
    return 2 * ids * linear.weight.numel() / min(seconds)


def step(state: SearchState, parent: Ids, few: int | None) -> tuple[list[Ids], float]:
    """The candidates of one step and its seconds of processor time; of only a few scored, as if of all."""
    start = time.process_time()
    candidates = neighbours(state, parent, 1, state.config.topk)
    drawn = time.process_time()
    scored = candidates[:few]
    state.objective.measure(scored, parent)
    return candidates, drawn - start + (time.process_time() - drawn) * len(candidates) / len(scored)


def compare(rm: RewardModel, width: int, length: int, rounds: int) -> pd.DataFrame:
    """A row a way: seconds a step, that to the last way's, share of the peak, difference from whole conversations."""
    prompt = rmnb.load_panel("demo").prompt("greatest").text
    config = SearchConfig(length=length, width=width)
    whole = Whole(rm, prompt)
    ways = {"whole": whole, "expanded": Expanded(rm, prompt), "shared": RewardObjective([rm], [prompt])}
    states = {way: SearchState(objective, config) for way, objective in ways.items()}
    parent = states["shared"].random(1)[0]
    read = length + len(whole.closing)
    products = sum(module.weight.numel() for module in rm.network.modules() if isinstance(module, torch.nn.Linear))
    rows = []
    for turn in range(rounds + 1):  # the first warms up
        for way, state in states.items():
            candidates, seconds = step(state, parent, WHOLE if way == "whole" else None)
            fed = 2 * read + sum(read - len(common_prefix([ids, [*parent, -1]])) for ids in candidates)
            share = 2 * products * fed / seconds / peak(rm.network)
            few = candidates[:4]
            difference = np.abs(state.objective.measure(few, parent) - whole.measure(few)).max()
            row = {"turn": turn, "way": way, "seconds": seconds, "share of peak": share, "difference": difference}
            rows.append(row)
    table = pd.DataFrame(rows).query("turn > 0")
    shared = table[table["way"] == "shared"].set_index("turn")["seconds"]
    table["ratio"] = table["seconds"] / table["turn"].map(shared)
    return table.drop(columns="turn").groupby("way", sort=False).median()


def main(models: list[str] = MODELS, rounds: int = 3) -> None:
    """Print a table for each model and case."""
    for model in models:
        loaded = rmnb.load_reward_model(model, device="cpu")
        for width, length in CASES:
            table = compare(loaded, width, length, rounds)
            print(f"\n{model}, {width} candidates of {length} tokens\n{table.round(5).to_string()}", flush=True)


if __name__ == "__main__":
    typer.run(main)
