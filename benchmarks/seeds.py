"""How much do two seeds of one training differ, number by number, beside two recipes? Of both bases of the demo panel.

Run as ``python benchmarks/seeds.py --out data/demo/noise/seeds.csv``; ``--reports`` is where reports are kept. The
spread of seeds is always that of the other base: that of one's own would hold the change that it is to judge.
"""

import argparse
from pathlib import Path

import pandas as pd

from rmnb.panels import load_panel
from rmnb.report import comparison, record, scores

PAIRS = {"two seeds": ("mixed", "mixed-seed2"), "two recipes": ("values", "harmless")}
BASES = ("smollm2", "gemma3")


def report(name: str, directory: Path) -> record.Report:
    """The report of a demo model, built once."""
    if not (directory / name / "report.json").exists():
        (directory / name).mkdir(parents=True, exist_ok=True)
        record.write(record.build(scores.of_panel(load_panel("demo"), name)), directory / name)
    return record.read(directory / name)


def shares(directory: Path) -> pd.DataFrame:
    """One row a base and pair: how many numbers there are, and how many changes are beyond what."""
    rows = []
    for base in BASES:
        other = BASES[1 - BASES.index(base)]
        seeds = [report(f"{other}-{recipe}", directory) for recipe in PAIRS["two seeds"]]
        for what, (a, b) in PAIRS.items():
            models = report(f"{base}-{a}", directory), report(f"{base}-{b}", directory)
            table = comparison.compare(*models, [seeds])
            clear, beyond = comparison.clear(table), comparison.beyond_seeds(table)
            rows.append((base, what, len(table), clear.sum(), beyond.sum(), (clear & beyond).sum()))
    return pd.DataFrame(
        rows, columns=["base", "compared", "numbers", "clear over words", "beyond the other base's seeds", "both"]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--reports", type=Path, default=Path("reports"))
    options = parser.parse_args()
    shares(options.reports).to_csv(options.out, index=False)
