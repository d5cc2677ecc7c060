"""Ways that take turns, each in a process of its own, so that a noisy machine disturbs all of them alike."""

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable

import pandas as pd

from rmnb.scoring.reward_model import RewardModel

MODELS = ["smollm2-values", "gemma3-values"]


def memory_beside_weights(rm: RewardModel) -> float:
    """The most memory that this process has held so far, in GB, less the model's weights."""
    unit = 1 if sys.platform == "darwin" else 1024
    weights = sum(p.numel() * p.element_size() for p in rm.network.parameters())
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit - weights) / 1e9


def compare(
    parser: argparse.ArgumentParser, ways: tuple[str, ...], measure: Callable[[argparse.Namespace], dict], by: str
) -> None:
    """Measure every way of every model in some rounds, and print medians beside those of the last way.

    Parameters
    ----------
    parser
        With the options that `measure` reads; those for models, rounds and the way itself are added.
    ways
        Their names.
    measure
        From options (model, way) to numbers by name.
    by
        The number whose ratio to the last way's is printed.
    """
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--way", choices=ways, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measure(options)))
        return
    for model in options.models:
        rows = []
        for turn in range(options.rounds):
            for way in ways:
                command = [sys.executable, *sys.argv, "--models", model, "--way", way]
                ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                rows.append({"round": turn, "way": way} | json.loads(ended.stdout.splitlines()[-1]))
        table = pd.DataFrame(rows)
        last = table[table["way"] == ways[-1]].set_index("round")[by]
        table["ratio"] = table[by] / table["round"].map(last)
        print(f"\n{model}\n{table.groupby('way', sort=False).median().drop(columns='round').to_string()}", flush=True)
