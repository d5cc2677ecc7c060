"""Seconds of one step of greedy coordinate gradient, three ways: same model, prompt, parent, width and length.

A step is the gradient at the parent, drawing candidates that survive as text, and scoring them.

(a) rebuilt: every candidate a whole conversation from its first token on, in batches, and the gradient through it, as
    `nanogcg` does with its prefix cache off (its own code does not run on current transformers);
(b) expanded: the prefix's keys and values computed once and expanded into each batch (transformers' cache, SDPA);
(c) shared: this package; prefix keys and values shared by all, and of the parent whatever a candidate begins with.

Run as ``python benchmarks/search.py``. As in ``benchmarks/scan.py`` each way runs in a process of its own and the ways
take turns; figures are the best of the rounds, so that another load on the machine disturbs them least.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from scan import as_classifier
from transformers import DynamicCache

import rmnb
from rmnb.models.reward_model import RewardModel
from rmnb.scoring.engine import PrefixScorer
from rmnb.search.config import SearchConfig
from rmnb.search.methods import neighbours
from rmnb.search.rewards import RewardObjective
from rmnb.search.state import Ids, SearchState

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
                rewards.append(self.rm.head(self.hidden(input_ids=rows)))
        return torch.cat(rewards).numpy().astype(np.float64)

    def gradient(self, ids):
        embedding = self.trunk.embed_tokens
        row = self.rows([ids])
        vectors = embedding(row).detach().requires_grad_()
        (slope,) = torch.autograd.grad(self.rm.head(self.hidden(inputs_embeds=vectors))[0], vectors)
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


def measure(model: str, way: str, width: int, length: int, steps: int) -> dict:
    """One way in this process: seconds a step, rewards of some fixed candidates, memory beside the weights."""
    rm = rmnb.load_reward_model(model, device="cpu")
    config = SearchConfig(length=length, width=width)
    target = objective(way, rm, rmnb.load_panel("demo").prompt("greatest").text)
    state = SearchState(target, config)
    parent = state.random(1)[0]
    sequences = neighbours(state, parent, 1, config.topk)
    target.measure(sequences[:64], parent)  # warms up
    fixed = [(*parent[:i], int(state.allowed[31 * i]), *parent[i + 1 :]) for i in range(length)]
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        sequences = neighbours(state, parent, 1, config.topk)
        target.measure(sequences, parent)
        seconds.append(time.perf_counter() - start)
    return {
        "seconds": min(seconds),
        "candidates": len(sequences),
        "rewards": target.measure(fixed, parent).tolist(),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        - sum(p.numel() * p.element_size() for p in rm.network.parameters()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["smollm2-values", "gemma3-values"])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--length", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3, help="in each round; the fastest counts")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measure(options.models[0], options.way, options.width, options.length, options.steps)))
        return
    print(f"{torch.get_num_threads()} threads, {options.width} candidates of {options.length} tokens")
    for model in options.models:
        rounds = [{way: in_own_process(model, way, options) for way in WAYS} for _ in range(options.rounds)]
        fastest = {way: min(turn[way]["seconds"] for turn in rounds) for way in WAYS}
        exact = np.array(rounds[0]["rebuilt"]["rewards"])
        print(f"\n{model}")
        heads = ("seconds a step", "(c) is x times", "difference to (a)", "memory - weights")
        print(f"{'way':<10}" + "".join(f"{head:>18}" for head in heads))
        for way in WAYS:
            same = np.abs(np.array(rounds[0][way]["rewards"]) - exact).max()
            memory = max(turn[way]["memory"] for turn in rounds) / 1e9
            ratio = fastest[way] / fastest["shared"]
            print(f"{way:<10}{fastest[way]:>18.2f}{ratio:>18.2f}{same:>18.1e}{memory:>15.2f} GB")


def in_own_process(model: str, way: str, options: argparse.Namespace) -> dict:
    """`measure` in a process of its own."""
    command = [sys.executable, str(Path(__file__)), "--models", model, "--way", way]
    command += ["--width", str(options.width), "--length", str(options.length), "--steps", str(options.steps)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
