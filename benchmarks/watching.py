"""What does it cost to watch a training? Train a demo model once more with `WatchValues` at its default.

Run as ``python benchmarks/watching.py smollm2-values --out data/demo/watching``. It takes about a quarter of an hour on
one core. The training is kept in ``--work``; cut off it goes on from there, and the share of time is that of the last
part. Written are the trainer's own records of losses and measurements, ``NAME.csv``, and how they came about,
``NAME.json``: of how many planned steps, and which share of the training's time all measurements took.
"""

import argparse
import json
import platform
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import torch

from rmnb.files import atomic_path, cache_dir
from rmnb.findings.watching import course
from rmnb.panels import load_panel
from rmnb.training import WatchValues, lora
from rmnb.training.recipes import load_recipe
from rmnb.training.runs import runs
from rmnb.training.train import fit


def records(work: Path) -> pd.DataFrame:
    """The trainer's records up to the last checkpoint in `work`, as `rmnb.findings.watching.course` has them."""
    checkpoint = lora.last_whole_checkpoint(work)
    assert checkpoint is not None
    state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    return course(state["log_history"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a demo model with a recipe")
    parser.add_argument("--pairs", type=float, default=1.0, help="share of the recipe's pairs")
    parser.add_argument("--work", type=Path, default=cache_dir() / "watching")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    spec = runs(load_panel("demo"))[options.model]
    recipe = load_recipe(str(spec.recipe)).model_copy(update={"share": options.pairs})
    work = options.work / options.model
    watch = WatchValues()
    began = time.monotonic()
    fit(spec, recipe, work / "adapter", work / "training", watch)
    table = records(work / "training")
    about = {
        "model": options.model,
        "recipe": recipe.name,
        "pairs": options.pairs,
        "steps": int(table["step"].max()),
        "planned": int(table["step"].max()),
        "measurements": int(table["seconds"].notna().sum()),
        "share_of_time": round(watch.taken, 4),
        "seconds": round(time.monotonic() - began),
        "seconds_measuring": round(table["seconds"].sum()),
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
        "versions": {name: version(name) for name in ("rmnb", "torch", "transformers", "trl", "peft")},
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    print(table.to_string(index=False))
    print(json.dumps(about, indent=1))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        with atomic_path(options.out / f"{options.model}.csv") as path:
            table.to_csv(path, index=False, float_format="%.4g")
        with atomic_path(options.out / f"{options.model}.json") as path:
            path.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
