"""How much do two seeds of one training differ, number by number, beside two recipes? Of both bases of the demo panel.

Run as ``python benchmarks/seeds.py --out data/demo/noise/seeds.csv``. The spread of seeds is that of the other base.
As in every gate it is averaged with a prior from all five pairs of the panel, also the pair that is judged.
"""

import functools
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from rmnb.panels import load_panel
from rmnb.report import comparison, record, scores

PAIRS = {"two seeds": ("mixed", "mixed-seed2"), "two recipes": ("values", "harmless")}
BASES = ("smollm2", "gemma3")


@functools.cache
def report(name: str) -> record.Report:
    """The report of a demo model, from the scores and by the code that are here now."""
    return record.build(scores.of_panel(load_panel("demo"), name))


def shares() -> pd.DataFrame:
    """One row a base and pair: how many numbers there are, and how many changes are beyond what."""
    rows = []
    for base in BASES:
        other = BASES[1 - BASES.index(base)]
        seeds = [report(f"{other}-{recipe}") for recipe in PAIRS["two seeds"]]
        for what, (a, b) in PAIRS.items():
            models = report(f"{base}-{a}"), report(f"{base}-{b}")
            table = comparison.compare(*models, [seeds])
            clear, beyond = comparison.clear(table), comparison.beyond_seeds(table)
            rows.append((base, what, len(table), clear.sum(), beyond.sum(), (clear & beyond).sum()))
    return pd.DataFrame(
        rows, columns=["base", "compared", "numbers", "clear over words", "beyond the other base's seeds", "both"]
    )


def main(out: Annotated[Path, typer.Option()]) -> None:
    """Write the table."""
    shares().to_csv(out, index=False)


if __name__ == "__main__":
    typer.run(main)
