"""What storage costs: shipped adapters are rounded to bfloat16; how far do scores move for it?

Run as ``python benchmarks/storage.py MODEL … [--out FILE]`` where the models were trained: the last checkpoint of the
training, in float32, is needed. Each model scores one random sample of the vocabulary with either adapter, greatest
prompt, fp32. A row a model: the size of either adapter, Kendall's tau-b between the two scorings, the largest
difference, the differences' standard deviation over that of the scores, and the largest distance of two tokens
that changed places, over the scores' standard deviation.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb.errors import InputError
from rmnb.files import atomic_path, data_dir
from rmnb.models.reward_model import RewardModel
from rmnb.panels import Panel, load_panel
from rmnb.scoring.conversations import load_reward_model
from rmnb.scoring.engine import score_continuations
from rmnb.stats import kendall_tau
from rmnb.training.runs import runs, work_directory

WEIGHTS = "adapter_model.safetensors"


def unrounded(panel: Panel, name: str) -> Path:
    """The last checkpoint of a training."""
    found = list(work_directory(panel, name).glob("checkpoint-*"))
    if not found:
        raise InputError(f"{name} was not trained here: run `rmnb train {name}` first")
    return max(found, key=lambda path: int(path.name.removeprefix("checkpoint-")))


def overturned(kept: np.ndarray, changed: np.ndarray) -> float:
    """The largest distance in `kept` of two entries whose order is another in `changed`; 0 if there are none."""
    order = np.argsort(kept)
    kept, changed = kept[order], changed[order]
    # Of each entry and those below it: the lowest one that ends up at least as high.
    lowest = [kept[np.argmax(changed[: place + 1] >= value)] for place, value in enumerate(changed)]
    return float((kept - lowest).max())


def sampled_scores(panel: Panel, models: tuple[RewardModel, ...], tokens: int, seed: int) -> list[np.ndarray]:
    """For each of some models that share a tokenizer the scores, float64, of one random sample, greatest prompt."""
    ids = np.sort(np.random.default_rng(seed).choice(models[0].vocabulary_size, tokens, replace=False))
    prefix, closing = models[0].dialogue.frame(panel.prompt("greatest").text)
    answers = [[int(i), *closing] for i in ids]
    return [score_continuations(rm, prefix, answers).astype(float) for rm in models]


def compare(panel: Panel, name: str, tokens: int, seed: int) -> dict:
    """One row."""
    spec = runs(panel)[name]
    shipped = load_reward_model(spec)
    whole = load_reward_model(spec.model_copy(update={"adapter": str(unrounded(panel, name))}))
    kept, changed = sampled_scores(panel, (whole, shipped), tokens, seed)
    spread = kept.std(ddof=1)
    return {
        "model": name,
        "MB": (data_dir() / str(spec.adapter) / WEIGHTS).stat().st_size / 1e6,
        "MB in float32": (unrounded(panel, name) / WEIGHTS).stat().st_size / 1e6,
        "tau with float32": kendall_tau(kept, changed),
        "largest difference": np.abs(changed - kept).max(),
        "noise over sd": (changed - kept).std(ddof=1) / spread,
        "overturned over sd": overturned(kept, changed) / spread,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--panel", default="demo")
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    panel = load_panel(args.panel)
    table = pd.DataFrame([compare(panel, name, args.tokens, args.seed) for name in args.models])
    print(table.to_string(index=False))
    if args.out:
        with atomic_path(args.out) as path:
            table.to_csv(path, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
