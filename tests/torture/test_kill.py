"""Killed at random instants, work goes on and ends as if nothing had happened."""

import functools
import json
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import work
from checkpoints import write_decoder, write_panel

from rmnb.files import sha256
from rmnb.scoring import store

SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
INTERRUPTED = 130


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """Where the work is done, with a model to do it on."""
    return write_decoder(tmp_path_factory.mktemp("kill") / "model", rows=330).parent


def a_scan(place: Path, prompts: tuple[str, ...] = ("best", "worst")) -> tuple:
    """The scan of a panel of one model whose store is in a place, under these prompts in turn."""
    place.mkdir(exist_ok=True)
    panel = write_panel(place, {"tiny": place.with_name("model")})
    words = ["scan", "tiny", "--panel", str(panel), "--batch-size", "8"]
    for prompt in prompts:
        words += ["--prompt", prompt]
    return work.command_line, place, words


def a_training_run(place: Path) -> tuple:
    return work.train, place, place.with_name("model")


def contents(place: Path) -> dict[str, object]:
    """Every file below a place, hidden ones too, and what tables, adapters and their provenance hold.

    Checkpoints of a training run are left out: the last one may or may not have been deleted.
    """
    read = {
        ".parquet": lambda file: store.read_table(file)[1]["content_sha256"],
        ".safetensors": sha256,
        ".json": lambda file: json.loads(file.read_text()) | {"time": ""},
    }
    files = [file for file in place.rglob("*") if file.is_file() and "checkpoint-" not in str(file)]
    return {str(file.relative_to(place)): read.get(file.suffix, lambda file: "")(file) for file in files}


@functools.cache
def left_alone(begin: Callable[[Path], tuple], root: Path) -> tuple[float, dict[str, object]]:
    """The processor time that some work takes if nobody disturbs it, in seconds, and the files that it leaves."""
    task = begin(root / f"{begin.__name__}-whole")
    code, seconds = work.run(*task)
    assert code == 0, work.log(task[1]).read_text()[-1000:]
    return seconds, contents(task[1])


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("begin", [a_scan, pytest.param(a_training_run, marks=pytest.mark.slow)])
def test_work_that_is_killed_twice_ends_as_if_left_alone(begin, number, root, attack, times):
    longest, expected = left_alone(begin, root)
    assert sum(name.endswith(("exact.parquet", "adapter_model.safetensors")) for name in expected) in (2, 6)

    def kill(seed: int) -> str:
        rng, hit = random.Random(f"{number}-{seed}"), 0
        task = begin(root / f"{begin.__name__}-{number.name}-{seed}")
        for _ in range(2):
            code, _ = work.run(*task, number=number, after=rng.uniform(0, longest))
            assert code in (0, 1, -number, INTERRUPTED), work.log(task[1]).read_text()[-500:]
            hit += code != 0
        code, _ = work.run(*task)
        assert code == 0, f"exit code {code}: {work.log(task[1]).read_text()[-500:]}"
        assert contents(task[1]) == expected
        return f"killed {hit} times, the same as if left alone"

    name = f"{begin.__name__.replace('_', ' ')} ended by {number.name} at random instants"
    attack(name, range(times(1, 25)), kill)


def test_two_scans_of_one_target(root, attack, times):
    def begin_both(i: int) -> str:
        place = root / f"two-{i}"
        both = [a_scan(place, order) for order in (("best", "worst"), ("worst", "best"))]
        processes = [work.start(*task) for task in both]
        for process in processes:
            process.join(600)
        log = work.log(place).read_text()
        assert [process.exitcode for process in processes] == [0, 0], log
        assert contents(place) == left_alone(a_scan, root)[1]
        assert log.count("already complete") == 2  # each prompt is scanned once
        waited = "another process is at work" in log
        return "in which one waited and said so" if waited else "in which one came when all was done"

    attack("two scans of the same target begun at once", range(times(1, 10)), begin_both)
