"""Does a recipe give the same model again? Train a shipped model once more and compare the two models' scores.

Run as ``python benchmarks/retraining.py MODEL … --out FILE``. A training takes about a quarter of an hour on one core;
it is kept in ``--work``, and cut off it goes on from there. Both models score one random sample of the vocabulary under
the prompt for the greatest thing, fp32. A row a model: whether the weights are the same bit for bit, the largest
difference of two scores over the scores' standard deviation, and the largest over the score itself.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from storage import WEIGHTS, sampled_scores

from rmnb.files import atomic_path, cache_dir, data_dir, sha256
from rmnb.panels import Panel, load_panel
from rmnb.scoring.conversations import load_reward_model
from rmnb.training.recipes import load_recipe
from rmnb.training.runs import runs
from rmnb.training.train import fit


def compare(panel: Panel, name: str, work: Path, tokens: int, seed: int) -> dict:
    """One row."""
    spec = runs(panel)[name]
    again = work / name / "adapter"
    if not (again / "provenance.json").exists():
        fit(spec, load_recipe(str(spec.recipe)), again, work / name / "training")
    shipped = load_reward_model(spec, device="cpu")
    second = load_reward_model(spec.model_copy(update={"adapter": str(again.resolve())}), device="cpu")
    first, other = sampled_scores(panel, (shipped, second), tokens, seed)
    weights = [directory / WEIGHTS for directory in (data_dir() / str(spec.adapter), again)]
    difference = np.abs(first - other)
    return {
        "model": name,
        "same weights": "yes" if sha256(weights[0]) == sha256(weights[1]) else "no",
        "tokens": tokens,
        "largest difference over sd": difference.max() / first.std(ddof=1),
        "largest relative difference": (difference / np.abs(first)).max(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--work", type=Path, default=cache_dir() / "retraining")
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    panel = load_panel("demo")
    table = pd.DataFrame([compare(panel, name, options.work, options.tokens, options.seed) for name in options.models])
    print(table.to_string(index=False))
    if options.out:
        with atomic_path(options.out) as path:
            table.to_csv(path, index=False, float_format="%.2g")


if __name__ == "__main__":
    main()
