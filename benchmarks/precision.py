"""Is `bfloat16-mixed` worth having? Its speed against fp32, its agreement with fp32, and what each rounding costs.

Run as ``python benchmarks/precision.py``. For each model, with one prompt:

1. agreement on a random sample of the vocabulary (Kendall's tau-b; largest and median difference; the differences'
   standard deviation over that of the scores) of fp32 with
   - weights, activations or products: only these rounded to bfloat16;
   - bfloat16 products: all three rounded, everything between them in fp32;
   - bfloat16-mixed: the deviations from a batch's mean rounded instead (`rmnb.models.precision`), which is what rmnb
   offers;
2. the same for weights that bfloat16 holds exactly (``--exact-weights``), as real reward models ship them;
3. with ``--whole``, of bfloat16-mixed on the whole vocabulary, with the shipped scan in fp32;
4. tokens a second. The ways take turns in many short rounds, so that a noisy machine disturbs all of them alike: the
   ratio to fp32 of the fastest rounds, the median of the ratios within rounds, and that of processor time.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from torch.nn import functional

import rmnb
from rmnb.models.precision import use_mixed_precision
from rmnb.models.reward_model import RewardModel
from rmnb.scoring.engine import PrefixScorer
from rmnb.scoring.store import read_scores
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
    batch, score = PrefixScorer(rm, prefix).batch_size(1 + len(closing)), PrefixScorer(rm, prefix)
    return lambda ids: score([[int(i), *closing] for i in ids], batch)


def agreement(model: str, prompt: str, tokens: int, exact_weights: bool) -> list[dict]:
    """Print, and return, how far each rounding moves the scores of a random sample."""
    rows = []
    rng = np.random.default_rng(0)
    ids, reference = np.empty(0), np.empty(0)
    for way in ("float32", *ROUNDINGS, "bfloat16-mixed"):
        rm = load(model, way, exact_weights)
        if way == "float32":
            ids = np.sort(rng.choice(rm.vocabulary_size, tokens, replace=False))
            reference = scorer(rm, prompt)(ids)
            print(
                f"\n{model}, {tokens} tokens{', weights exact in bfloat16' * exact_weights}, sd {reference.std():.3f}"
            )
            print(f"{'rounded':<20}{'tau':>10}{'largest':>10}{'median':>10}{'noise/sd':>10}")
            continue
        found = compared(scores := scorer(rm, prompt)(ids), reference)
        tau, largest, noise = found.values()
        median = np.median(abs(scores - reference))
        print(f"{way:<20}{tau:>10.4f}{largest:>10.4f}{median:>10.4f}{noise:>10.4f}", flush=True)
        row = {"model": model, "rounded": way, "weights exact": "yes" if exact_weights else "no", "tokens": tokens}
        rows.append(row | found)
    return rows


def whole(model: str) -> dict:
    """The row of a whole vocabulary in bfloat16-mixed against the shipped scan."""
    panel = rmnb.load_panel("demo")
    rm = rmnb.load_reward_model(model, dtype="bfloat16-mixed", device="cpu")
    scan = rmnb.scan_vocabulary(rm, panel.prompt("greatest"))
    reference = read_scores(panel, model, "greatest")["score"].to_numpy()
    row = {"model": model, "rounded": "bfloat16-mixed", "weights exact": "no", "tokens": len(scan)}
    row |= compared(scan["score"].to_numpy(), reference)
    print(row, flush=True)
    return row


def compared(scores: np.ndarray, reference: np.ndarray) -> dict[str, float]:
    """How far scores are from those in fp32."""
    change = scores - reference
    return {
        "tau with fp32": kendall_tau(scores, reference),
        "largest difference": abs(change).max(),
        "noise over sd": change.std() / reference.std(),
    }


def speed(model: str, prompt: str, tokens: int, rounds: int) -> dict[str, float]:
    """Print tokens a second of each way that is meant to be fast; return how many times fp32, median of the rounds."""
    models = {way: load(model, way, False) for way in ("float32", "bfloat16 products", "bfloat16-mixed")}
    ways = {way: scorer(rm, prompt) for way, rm in models.items()}
    ids = np.arange(tokens)
    wall, processor = {way: [] for way in ways}, {way: [] for way in ways}
    for turn in range(rounds + 1):
        for way, score in ways.items():
            before = time.perf_counter(), time.process_time()
            score(ids)
            if turn:  # the first warms up
                wall[way].append(time.perf_counter() - before[0])
                processor[way].append(time.process_time() - before[1])
    print(f"\n{model}, {rounds} rounds of {tokens} tokens, {torch.get_num_threads()} threads; times fp32:")
    print(f"{'way':<26}{'tokens/s':>10}{'fastest':>10}{'median':>10}{'processor':>10}")
    found = {}
    for way in ways:
        ratios = [
            [base / own for base, own in zip(times["float32"], times[way], strict=True)] for times in (wall, processor)
        ]
        best = min(wall[way])
        print(
            f"{way:<26}{tokens / best:>10.0f}{min(wall['float32']) / best:>10.2f}"
            f"{statistics.median(ratios[0]):>10.2f}{statistics.median(ratios[1]):>10.2f}"
        )
        found[way] = statistics.median(ratios[0])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["smollm2-values", "gemma3-values"])
    parser.add_argument("--tokens", type=int, default=4096, help="sample for the agreement; 0 leaves it out")
    parser.add_argument("--exact-weights", action="store_true", help="also with weights rounded to bfloat16 first")
    parser.add_argument("--whole", action="store_true", help="also whole vocabularies, bfloat16-mixed alone")
    parser.add_argument("--rounds", type=int, default=12, help="of 1024 tokens for the speed; 0 leaves it out")
    parser.add_argument("--out", help="CSV file for the table in the book: agreement, and speed where it was measured")
    options = parser.parse_args()
    rows = []
    prompt = rmnb.load_panel("demo").prompt("greatest").text
    for model in options.models:
        exact = (False, True) if options.exact_weights else (False,)
        found = []
        for which in exact if options.tokens else ():
            found += agreement(model, prompt, options.tokens, which)
        if options.whole:
            found.append(whole(model))
        times = speed(model, prompt, 1024, options.rounds) if options.rounds else {}
        for row in found:
            timed = times if row["weights exact"] == "no" else {}
            rows.append(row | {"times fp32": timed.get(row["rounded"], np.nan)})
    if options.out:
        pd.DataFrame(rows).to_csv(options.out, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
