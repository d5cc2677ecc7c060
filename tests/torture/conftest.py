"""Attacks: each is made many times over, and what became of the tries is a row of one table.

A plain run of the tests makes each attack a few times; ``pytest tests/torture --torture FILE`` makes all tries and
writes the table, with the machine and the time of each row beside it.
"""

import contextlib
import json
import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator
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
_RECORDED: list[dict] = []


class Tries:
    """The tries of one attack: how many, how many were lost and why, and what the others came to."""

    def __init__(self) -> None:
        self.made = self.lost = 0
        self.failures: list[str] = []
        self.outcomes: Counter[str] = Counter()
        self.note = ""

    @contextlib.contextmanager
    def attempt(self, what: object = "", count: int = 1) -> Iterator[None]:
        """One try (or several that are judged together): lost if anything is raised inside."""
        self.made += count
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:
            self.lost += count
            self.failures.append(f"{what}: {type(error).__name__}: {first_line(error)}")

    def came_to(self, outcome: str) -> None:
        """Count what a try ended with."""
        self.outcomes[outcome] += 1


@pytest.fixture
def attack(request) -> Callable:
    """``with attack("name") as tries``: count, record, and fail if any try was lost."""

    @contextlib.contextmanager
    def made(name: str) -> Iterator[Tries]:
        tries, wall, processor = Tries(), time.monotonic(), time.process_time()
        load = os.getloadavg()[0]
        yield tries
        counted = [f"{count:,} {outcome}" for outcome, count in tries.outcomes.most_common()]
        row = {
            "part": PARTS[request.module.__name__],
            "attack": name,
            "tries": tries.made,
            "survived": tries.made - tries.lost,
            "lost": tries.lost,
            "outcome": "; ".join([*counted, *([tries.note] if tries.note else [])]),
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - wall, 1),
            "processor_seconds_without_children": round(time.process_time() - processor, 1),
            "load_average_before": round(load, 2),
        }
        _RECORDED.append(row)
        if file := request.config.getoption("--torture"):
            _keep(Path(file), row)
        assert tries.made, "nothing was tried"
        assert not tries.failures, f"{tries.lost} of {tries.made} lost: " + " | ".join(tries.failures[:3])

    return made


@pytest.fixture
def times(request) -> Callable:
    """``times(few, many)``: how often to try, or on what scale, few in a plain run of the tests."""
    return lambda few, many: many if request.config.getoption("--torture") else few


def _keep(file: Path, row: dict) -> None:
    """Put a row into the table, in the place of an earlier one of the same attack."""
    cores = os.cpu_count() or 1
    row |= {
        "versions": versions(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": cores,
        "niceness": os.nice(0),
        # Others at work while this ran: no figure of time can be read off it, all others can.
        "machine_was_shared": row["load_average_before"] > cores / 2,
    }
    record, parts = file.with_suffix(".json"), list(PARTS.values())
    with alone(file):
        rows = json.loads(record.read_text(encoding="utf-8"))["attacks"] if record.exists() else []
        rows = [row, *(other for other in rows if other["attack"] != row["attack"])]
        rows.sort(key=lambda each: (parts.index(each["part"]), each["attack"]))
        with atomic_path(file) as path:
            pd.DataFrame(rows)[COLUMNS].to_csv(path, index=False)
        with atomic_path(record) as path:
            path.write_text(json.dumps({"table": file.name, "attacks": rows}, indent=1) + "\n", encoding="utf-8")


def pytest_terminal_summary(terminalreporter, config):
    if config.getoption("--torture") and _RECORDED:
        table = pd.DataFrame(_RECORDED)[[*COLUMNS, "seconds"]]
        terminalreporter.write_line("\n" + table.to_string(index=False, max_colwidth=70))
