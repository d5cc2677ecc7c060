"""How far `rmnb plan` is from what scans take on this machine's CPU.

Run as ``python benchmarks/plan.py --out data/gpu/plan.csv``. Each model in each number format: the estimate, a scan of
some tokens, the estimate again, in turns; the ratio is the median of the rounds. With ``--processor-time`` one thread's
processor time is taken in place of the clock's, so that other programs on the machine do not count. Rows of an H100
are what ``benchmarks/gpu.py papers`` measured there beside what is said of it from its data sheet.
"""

import argparse
import json
import platform
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import torch
import transformers

import rmnb
from rmnb.files import atomic_path
from rmnb.models.outline import outline
from rmnb.panels import load_panel
from rmnb.scoring import pace
from rmnb.scoring.estimate import Work, shape_of
from rmnb.scoring.pace import Machine, ScanEstimate, estimate

GPU = Path(__file__).parents[1] / "data" / "gpu" / "papers.csv"


def here(name: str, dtype: str, tokens: int, rounds: int, compile: str | None) -> dict:
    """One row: a model of the demo panel in a number format."""
    rm = rmnb.load_reward_model(name, dtype=dtype, device="cpu", compile=compile)
    prompt = load_panel("demo").prompt("greatest")
    rmnb.scan_vocabulary(rm, prompt, limit=tokens // 4)  # warms up, and compiles
    before, took = [], []
    for _ in range(rounds):
        before.append(estimate(rm, prompt.text, tokens).seconds)
        start = pace.clock()
        rmnb.scan_vocabulary(rm, prompt, limit=tokens)
        took.append(pace.clock() - start)
        before[-1] = (before[-1] + estimate(rm, prompt.text, tokens).seconds) / 2
    ratios = [said / seconds for said, seconds in zip(before, took, strict=True)]
    threads = torch.get_num_threads()
    where = f"CPU, {threads} thread{'s' * (threads > 1)}" + (", compiled" if compile != "none" else "")
    return row(
        name, dtype, where, tokens, statistics.median(before), statistics.median(took), statistics.median(ratios)
    )


def there() -> list[dict]:
    """A row for each of the papers' architectures."""
    measured = pd.read_csv(GPU).set_index("architecture")["seconds"]
    members, machine = load_panel("facct2025"), Machine("h100")
    alike = {f"{str(spec.family).split()[0]} {spec.parameters:g}B": spec for spec in members.models}
    rows = []
    for name, took in measured.items():
        found = outline(alike[str(name)])
        assert found is not None
        shape = shape_of(found.network)
        work = Work(shape, shape.vocabulary, *found.frame(members.prompt("greatest").text))
        said = ScanEstimate(work, "bfloat16", machine).seconds
        rows.append(row(str(name), "bfloat16", "H100", work.tokens, said, took, said / took))
    return rows


def row(model: str, dtype: str, where: str, tokens: int, said: float, took: float, ratio: float) -> dict:
    return {
        "model": model,
        "number format": dtype,
        "on": where,
        "tokens": tokens,
        "estimated, seconds": round(said, 1),
        "measured, seconds": round(took, 1),
        "estimated over measured": round(ratio, 2),
    }


def write(out: Path, rows: list[dict], processor_time: bool) -> None:
    """The table, and beside it what it was measured with."""
    about = {
        "processor": next((name for name in _processors() if name), platform.machine()),
        "clock": "processor time" if processor_time else "wall clock",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "time": datetime.now(UTC).date().isoformat(),
    }
    with atomic_path(out.with_suffix(".json")) as path:
        path.write_text(json.dumps(about, indent=1) + "\n")
    with atomic_path(out) as path:
        pd.DataFrame(rows).to_csv(path, index=False)


def _processors() -> list[str]:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["smollm2-values", "gemma3-values"])
    parser.add_argument("--formats", nargs="+", default=["float32", "bfloat16-mixed"])
    parser.add_argument("--compile", nargs="+", default=["none", "default"])
    parser.add_argument("--tokens", type=int, default=3072)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--processor-time", action="store_true")
    options = parser.parse_args()
    if options.processor_time:
        torch.set_num_threads(1)
        pace.clock = time.process_time
    rows = []
    for compile in options.compile:
        for name in options.models:
            for dtype in options.formats:
                rows.append(here(name, dtype, options.tokens, options.rounds, compile))
                print(rows[-1], flush=True)
    write(options.out, rows + there(), options.processor_time)


if __name__ == "__main__":
    main()
