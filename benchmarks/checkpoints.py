"""Which checkpoints load, and how exactly? One row a kind of checkpoint and architecture.

Run as ``python benchmarks/checkpoints.py``. Each kind is written by transformers, PEFT or TRL, tiny and with random
weights, and loaded by rmnb; its rewards are held against the trainer's own forward pass in fp32. Rows of other packages
stay as they are: they were written once by those packages themselves, which ask for other versions of what rmnb uses.
"""

import importlib.metadata
import json
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import torch

import rmnb
from rmnb.files import atomic_path, write_json
from rmnb.scoring.store import versions

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from trained import (  # noqa: E402
    ARCHITECTURES,
    CONVERSATIONS,
    WRITERS,
    Writer,
    difference,
)

OUT = ROOT / "data" / "checkpoints"
NAMES = {"transformers": "transformers", "peft": "PEFT", "trl": "TRL"}


def row(writer: Writer, architecture: str) -> dict:
    """Write a checkpoint, load it, compare."""
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as work:
        directory = Path(work) / "checkpoint"
        expected = writer.write(directory, architecture)
        gap = difference(rmnb.load_reward_model(directory, device="cpu", **writer.options), expected)
    return {
        "kind": writer.kind,
        "written by": f"{NAMES[writer.package]} {importlib.metadata.version(writer.package)}",
        "architecture": architecture,
        "largest difference": float(f"{gap:.1e}"),
        "conversations": len(CONVERSATIONS),
    }


def package_of(written_by: str) -> str:
    """A package's name without its version."""
    return written_by.rpartition(" ")[0]


def main() -> None:
    file, record = OUT / "table.csv", OUT / "provenance.json"
    others = pd.read_csv(file)
    others = others[~others["written by"].map(package_of).isin(NAMES.values())]
    rows = []
    for writer in WRITERS:
        for architecture in ARCHITECTURES:
            rows.append(row(writer, architecture))
            print(*rows[-1].values(), sep="\t", flush=True)
    table = pd.concat([pd.DataFrame(rows), others], ignore_index=True)
    by_kind = table.pivot_table(
        index=["written by", "kind"], columns="architecture", values="largest difference", sort=False
    )
    origin = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "versions": versions()}
    with atomic_path(file) as path:
        table.to_csv(path, index=False)
    with atomic_path(OUT / "by_kind.csv") as path:
        by_kind[list(ARCHITECTURES)].map("{:.0e}".format).to_csv(path)
    write_json(record, json.loads(record.read_text()) | dict.fromkeys(NAMES, origin))


if __name__ == "__main__":
    main()
