"""What compiled layers gain in processor time, which others at work on the machine disturb less than they do the clock.

Run as ``OMP_NUM_THREADS=1 python benchmarks/compiled.py --out data/demo/noise/compiled.csv``. For each model, fp32 and
`bfloat16-mixed`, as they are and compiled, take turns on one batch of a scan; the rate of fp32 matrix products is
measured in every round. Medians over the rounds.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import torch

import rmnb
from rmnb.scoring.engine import PrefixScorer

BATCH = 512
WAYS = [(dtype, compile) for dtype in ("float32", "bfloat16-mixed") for compile in (None, "default")]


def seconds(work: Callable[[], object]) -> float:
    """Processor time of a piece of work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def peak(config, rows: int) -> float:
    """Floating-point operations of fp32 matrix products in a second of processor time: the best of three shapes."""
    rates = []
    for inner, outer in (
        (config.hidden_size, config.intermediate_size),
        (config.intermediate_size, config.hidden_size),
        (2048, 2048),
    ):
        left, right = torch.randn(rows, inner), torch.randn(outer, inner)
        times = [seconds(lambda left=left, right=right: torch.nn.functional.linear(left, right)) for _ in range(8)]
        rates.append(2 * rows * inner * outer / statistics.median(times))
    return max(rates)


def measure(model: str, rounds: int) -> list[dict]:
    """A row for each way."""
    prompt = rmnb.load_panel("demo").prompt("greatest").text
    models = {dtype: rmnb.load_reward_model(model, dtype=dtype, device="cpu") for dtype, _ in WAYS}
    rm = models["float32"]
    prefix, closing = rm.dialogue.frame(prompt)
    batch = [(i, *closing) for i in range(300, 300 + BATCH)]
    linear = sum(m.weight.numel() for m in rm.network.modules() if isinstance(m, torch.nn.Linear))
    work = BATCH * len(batch[0]) * 2 * linear
    scorers, first, times, peaks = {}, {}, {way: [] for way in WAYS}, []
    for dtype, compile in WAYS:
        scorers[dtype, compile] = PrefixScorer(models[dtype], prefix)
        scorers[dtype, compile].compile = compile
        first[dtype, compile] = seconds(lambda scorer=scorers[dtype, compile]: scorer(batch, BATCH))
    for _ in range(rounds):
        peaks.append(peak(rm.network.config.get_text_config(), BATCH * len(batch[0])))
        for way, scorer in scorers.items():
            times[way].append(seconds(lambda scorer=scorer: scorer(batch, BATCH)))
    rows = []
    for dtype, compile in WAYS:
        taken = np.array(times[dtype, compile])
        row = {"model": model, "format": dtype, "compiled": "yes" if compile else "no"}
        row["tokens a second"] = BATCH / np.median(taken)
        row["times fp32"] = np.median(np.array(times["float32", None]) / taken)
        row["share of fp32 peak"] = np.median(work / taken / peaks)
        rows.append(row | {"first batch, seconds": first[dtype, compile]})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["smollm2-values", "gemma3-values"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", help="CSV file for the table in the book")
    options = parser.parse_args()
    table = pd.DataFrame([row for model in options.models for row in measure(model, options.rounds)])
    print(table.to_string(index=False, float_format="%.2f"))
    if options.out:
        table.to_csv(options.out, index=False, float_format="%.3g")


if __name__ == "__main__":
    main()
