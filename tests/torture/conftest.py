"""Attacks: each is made many times over, and what became of the tries is a row of one table.

A plain run of the tests makes each attack a few times; ``pytest tests/torture --torture FILE`` makes all tries and
writes the table, with the machine and the time of each row beside it.
"""

import json
import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from rmnb.errors import first_line
from rmnb.files import atomic_path
from rmnb.plans import alone
from rmnb.scoring.store import versions

PARTS = {
    "test_kill": "kill",
    "test_disk": "disk and files",
    "test_memory": "memory",
    "test_numbers": "numbers",
    "test_panels": "input",
    "test_texts": "input",
    "test_supply_chain": "supply chain",
}
COLUMNS = ["part", "attack", "tries", "survived", "lost", "outcome"]


@pytest.fixture
def attack(request) -> Callable:
    """``attack(name, tries, attempt)``: call `attempt` with each of `tries`, which says what it came to or raises."""

    def made(name: str, tries: Iterable, attempt: Callable[..., str]) -> None:
        outcomes: Counter[str] = Counter()
        failures, begun = [], time.monotonic()
        for what in tries:
            try:
                outcomes[attempt(what)] += 1
            except (Exception, pytest.fail.Exception) as error:
                failures.append(f"{str(what)[:200]}: {type(error).__name__}: {first_line(error)}")
        survived = outcomes.total()
        row = {
            "part": PARTS[request.module.__name__],
            "attack": name,
            "tries": survived + len(failures),
            "survived": survived,
            "lost": len(failures),
            "outcome": "; ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common()),
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - begun, 1),
            "versions": versions(),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        }
        if file := request.config.getoption("--torture"):
            _keep(Path(file), row)
        assert not failures, f"{len(failures)} of {row['tries']} lost: " + " | ".join(failures[:3])
        assert survived, "nothing was tried"

    return made


@pytest.fixture
def times(request) -> Callable:
    """``times(few, many)``: how often to try, or on what scale, few in a plain run of the tests."""
    return lambda few, many: many if request.config.getoption("--torture") else few


def _keep(file: Path, row: dict) -> None:
    """Put a row into the table, in the place of an earlier one of the same attack."""
    record, parts = file.with_suffix(".json"), list(PARTS.values())
    with alone(file):
        rows = json.loads(record.read_text(encoding="utf-8"))["attacks"] if record.exists() else []
        rows = [row, *(other for other in rows if other["attack"] != row["attack"])]
        rows.sort(key=lambda each: (parts.index(each["part"]), each["attack"]))
        with atomic_path(file) as path:
            pd.DataFrame(rows)[COLUMNS].to_csv(path, index=False)
        with atomic_path(record) as path:
            path.write_text(json.dumps({"table": file.name, "attacks": rows}, indent=1) + "\n", encoding="utf-8")
