"""Is `bfloat16-mixed` worth having? Its speed against fp32, its agreement with fp32, and what each rounding costs.

Run as ``python benchmarks/precision.py --out data/demo/noise/rounding.csv``. For each model, with one prompt:

1. agreement on a random sample of the vocabulary of fp32 with
   - weights, activations or products: only these rounded to bfloat16;
   - bfloat16 products: all three rounded, everything between them in fp32;
   - bfloat16-mixed: the deviations from a batch's mean rounded instead (`rmnb.models.precision`), which is what rmnb
     offers;
2. the same for weights that bfloat16 holds exactly, as real reward models ship them;
3. the speed of those that are meant to be fast. The ways take turns in many short rounds, so that a noisy machine
   disturbs all of them alike: the median of the ratios to fp32.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from torch.nn import functional

import rmnb
from rmnb.models.precision import use_mixed_precision
from rmnb.scoring.engine import PrefixScorer
from rmnb.scoring.reward_model import RewardModel
from rmnb.stats import kendall_tau


def rounded(tensor: torch.Tensor) -> torch.Tensor:
    """To the nearest bfloat16, as fp32."""
    return tensor.bfloat16().float()


ROUNDINGS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "weights": lambda x, w: functional.linear(x, rounded(w)),
    "activations": lambda x, w: functional.linear(rounded(x), w),
    "products": lambda x, w: rounded(functional.linear(x, w)),
    "bfloat16 products": lambda x, w: functional.linear(x.bfloat16(), w.bfloat16()).float(),
}


class Rounding(torch.nn.Linear):
    """A linear layer without bias that rounds in one of the `ROUNDINGS`."""

    def __init__(self, linear: torch.nn.Linear, name: str):
        torch.nn.Module.__init__(self)
        self.weight, self.rounding = linear.weight, ROUNDINGS[name]

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self.rounding(input, self.weight)


def load(model: str, way: str, exact_weights: bool) -> RewardModel:
    """The model with its linear layers computed in one way."""
    rm = rmnb.load_reward_model(model, dtype="float32", device="cpu")
    linear = {name: module for name, module in rm.network.named_modules() if isinstance(module, torch.nn.Linear)}
    if exact_weights:
        for module in linear.values():
            module.weight.data = rounded(module.weight.data)
    if way == "bfloat16-mixed":
        use_mixed_precision(rm.network)
    elif way != "float32":
        for name, module in linear.items():
            assert module.bias is None
            parent, _, child = name.rpartition(".")
            setattr(rm.network.get_submodule(parent), child, Rounding(module, way))
    return rm


def scorer(rm: RewardModel, prompt: str) -> Callable[[np.ndarray], np.ndarray]:
    """From ids to rewards, with the batch size of a scan."""
    prefix, closing = rm.dialogue.frame(prompt)
    score = PrefixScorer(rm, prefix)
    batch = score.batch_size(1 + len(closing))
    return lambda ids: score([[int(i), *closing] for i in ids], batch)


def agreement(model: str, prompt: str, tokens: int, exact_weights: bool) -> list[dict]:
    """How far each rounding moves the scores of a random sample."""
    rm = load(model, "float32", exact_weights)
    ids = np.sort(np.random.default_rng(0).choice(rm.vocabulary_size, tokens, replace=False))
    reference = scorer(rm, prompt)(ids)
    rows = []
    for way in (*ROUNDINGS, "bfloat16-mixed"):
        scores = scorer(load(model, way, exact_weights), prompt)(ids)
        row = {"model": model, "rounded": way, "weights exact": "yes" if exact_weights else "no", "tokens": tokens}
        row["tau with fp32"] = kendall_tau(scores, reference)
        row["largest difference"] = abs(scores - reference).max()
        rows.append(row | {"noise over sd": (scores - reference).std() / reference.std()})
    return rows


def speed(model: str, prompt: str, rounds: int) -> dict[str, float]:
    """How many times as fast as fp32 each way is that is meant to be fast, median of the rounds."""
    ways = {way: scorer(load(model, way, False), prompt) for way in ("float32", "bfloat16 products", "bfloat16-mixed")}
    ids = np.arange(1024)
    seconds = pd.DataFrame(index=range(rounds + 1), columns=list(ways), dtype=float)
    for turn in seconds.index:
        for way, score in ways.items():
            start = time.perf_counter()
            score(ids)
            seconds.loc[turn, way] = time.perf_counter() - start
    return seconds.drop(index=0).rdiv(seconds["float32"], axis=0).median().to_dict()  # the first warms up


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["smollm2-values", "gemma3-values"])
    parser.add_argument("--tokens", type=int, default=4096, help="sample for the agreement")
    parser.add_argument("--rounds", type=int, default=12, help="of 1024 tokens, for the speed")
    parser.add_argument("--out", help="CSV file")
    options = parser.parse_args()
    prompt = rmnb.load_panel("demo").prompt("greatest").text
    rows = []
    for model in options.models:
        faster = speed(model, prompt, options.rounds)
        for exact in (False, True):
            for row in agreement(model, prompt, options.tokens, exact):
                rows.append(row | {"times fp32": np.nan if exact else faster.get(row["rounded"], np.nan)})
    table = pd.DataFrame(rows)
    print(table.to_string(index=False, float_format="{:.4g}".format))
    if options.out:
        table.to_csv(options.out, index=False, float_format="%.4g")
