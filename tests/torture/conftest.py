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
ROWS: list[dict] = []


@pytest.fixture
def attack(request) -> Callable:
    """``attack(name, tries, attempt)``: call `attempt` with each of `tries`, which says what it came to or raises."""

    def made(name: str, tries: Iterable, attempt: Callable[..., str]) -> None:
        outcomes: Counter[str] = Counter()
        lost, begun = [], time.monotonic()
        for what in tries:
            try:
                outcomes[attempt(what)] += 1
            except (Exception, pytest.fail.Exception) as error:
                lost.append(f"{str(what)[:200]}: {error!r:.500}")
        row = {"part": PARTS[request.module.__name__], "attack": name, "tries": outcomes.total() + len(lost)}
        row |= {"survived": outcomes.total(), "lost": len(lost)}
        row["outcome"] = "; ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common())
        ROWS.append(row | {"seconds": round(time.monotonic() - begun, 1)})
        assert outcomes and not lost, lost[:3]

    return made


@pytest.fixture
def times(request) -> Callable:
    """``times(few, many)``: how often to try, or on what scale, few in a plain run of the tests."""
    return lambda few, many: many if request.config.getoption("--torture") else few


def pytest_sessionfinish(session):
    if (file := session.config.getoption("--torture")) and ROWS:
        parts = list(PARTS.values())
        table = pd.DataFrame(sorted(ROWS, key=lambda row: (parts.index(row["part"]), row["attack"])))
        table.drop(columns="seconds").to_csv(file, index=False)
        machine = {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "versions": versions()}
        made = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "attacks": table.to_dict("records")}
        Path(file).with_suffix(".json").write_text(json.dumps({"table": Path(file).name, **machine, **made}, indent=1))
