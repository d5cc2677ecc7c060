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

from rmnb.errors import InputError
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
    """``attack(name, tries, attempt)``: call `attempt` with each of `tries`, which says what it came to or raises.

    With `refused`, an InputError in one line that holds this text is an outcome, too.
    """

    def attack(name: str, tries: Iterable, attempt: Callable, refused: str | None = None) -> None:
        outcomes, lost, begun = Counter(), [], time.monotonic()
        for what in tries:
            try:
                outcome = attempt(what)
                assert isinstance(outcome, str), "not refused"
                outcomes[outcome] += 1
            except (Exception, pytest.fail.Exception) as error:
                line = str(error) if isinstance(error, InputError) else "\n"
                if refused is not None and refused in line and "\n" not in line and len(line) < 1000:
                    outcomes["refused in one line"] += 1
                else:
                    lost.append(f"{str(what)[:200]}: {error!r:.500}")
        survived = outcomes.total()
        counted = [f"{count:,} {outcome}" if survived > 1 else outcome for outcome, count in outcomes.most_common()]
        row = {"part": PARTS[request.module.__name__], "attack": name, "tries": survived + len(lost)}
        row |= {"survived": survived, "lost": len(lost), "outcome": "; ".join(counted)}
        ROWS.append(row | {"seconds": round(time.monotonic() - begun, 1)})
        assert outcomes and not lost, lost[:3]

    return attack


@pytest.fixture
def times(request) -> Callable:
    """``times(few, many)``: how often to try, or on what scale, few in a plain run of the tests."""
    return lambda few, many: many if request.config.getoption("--torture") else few


def pytest_sessionfinish(session):
    if (file := session.config.getoption("--torture")) and ROWS:
        ROWS.sort(key=lambda row: (list(PARTS.values()).index(row["part"]), row["attack"]))
        pd.DataFrame(ROWS).drop(columns="seconds").to_csv(file, index=False)
        record = {"table": Path(file).name, "machine": f"{platform.machine()}, {os.cpu_count()} cores"}
        record |= {"versions": versions(), "time": datetime.now(UTC).isoformat(timespec="seconds"), "attacks": ROWS}
        Path(file).with_suffix(".json").write_text(json.dumps(record, indent=1))
