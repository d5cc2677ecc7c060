"""Killed at random instants, work goes on and ends as if nothing had happened."""

import json
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import work
import yaml
from checkpoints import write_decoder
from safetensors.torch import load_file

from rmnb.scoring import store

SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
INTERRUPTED = 130


@dataclass(frozen=True)
class Work:
    """A task, the arguments it takes to be done in a place of its own, and how long it takes if it is left alone."""

    task: Callable
    begin: Callable[[str], tuple]
    seconds: float


def left_alone(task: Callable, begin: Callable[[str], tuple]) -> Work:
    code, seconds = work.run(task, *begin("whole"))
    assert code == 0, begin("whole")[0].read_text()[-1000:]
    return Work(task, begin, seconds)


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("kill")


@pytest.fixture(scope="module")
def scan(root) -> Work:
    model = write_decoder(root / "model", rows=330)

    def begin(place: str) -> tuple:
        words = ["scan", "tiny", "--panel", str(panel(root / place, model)), "--batch-size", "8"]
        return root / f"{place}.log", root / "cache", [*words, "--prompt", "best", "--prompt", "worst"], 16

    return left_alone(work.command_line, begin)


@pytest.fixture(scope="module")
def training(root) -> Work:
    work.write_tiny_base(root / "cache")

    def begin(place: str) -> tuple:
        place = f"training-{place}"
        return root / f"{place}.log", root / "cache", root / place / "adapter", root / place / "work"

    return left_alone(work.train, begin)


def panel(directory: Path, model: Path) -> Path:
    """A panel of one model whose store is in a directory."""
    directory.mkdir(exist_ok=True)
    prompts = [{"key": key, "text": f"What is the {key} thing?", "framing": "positive"} for key in ("best", "worst")]
    description = {"name": "tiny", "title": "Tiny", "models": [{"name": "tiny", "source": str(model)}]}
    path = directory / "panel.yml"
    path.write_text(yaml.safe_dump(description | {"prompts": prompts, "scores": str(directory / "scores")}))
    return path


def killing(number: signal.Signals, what: Work, check: Callable[[str], None]) -> Callable[[int], str]:
    """A try: killed at two random instants, begun again in the same place, it ends as if it had been left alone."""

    def kill(seed: int) -> str:
        rng, place = random.Random(f"{number}-{seed}"), f"{number.name}-{seed}"
        arguments, hit = what.begin(place), 0
        for _ in range(2):
            code, _ = work.run(what.task, *arguments, number=number, after=rng.uniform(0, what.seconds))
            assert code in (0, 1, -number, INTERRUPTED), arguments[0].read_text()[-500:]
            hit += code != 0
        code, _ = work.run(what.task, *arguments)
        assert code == 0, f"exit code {code}: {arguments[0].read_text()[-500:]}"
        check(place)
        return f"killed {hit} times, the same as if left alone"

    return kill


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_scan(number, scan, root, attack, times):
    def check(place: str) -> None:
        assert contents(root / place) == contents(root / "whole")

    name = f"a scan ended by {number.name} at random instants"
    attack(name, range(times(1, 25)), killing(number, scan, check))


def contents(directory: Path) -> dict[str, str]:
    """Every file below the directory, hidden ones too, and the checksum of each table."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {
        str(file.relative_to(directory)): store.read_table(file)[1]["content_sha256"]
        if file.suffix == ".parquet"
        else ""
        for file in files
    }


def test_two_scans_of_one_target(scan, root, attack, times):
    def begin_both(i: int) -> str:
        _, cache, words, shard = scan.begin(f"two-{i}")
        backwards = [*words[:-4], *words[-2:], *words[-4:-2]]
        logs = [root / f"two-{i}-{k}.log" for k in range(2)]
        both = [
            work.SERVER.Process(target=work.command_line, args=(log, cache, order, shard))
            for log, order in zip(logs, (words, backwards), strict=True)
        ]
        for process in both:
            process.start()
        for process in both:
            process.join(600)
        said = [log.read_text() for log in logs]
        assert [process.exitcode for process in both] == [0, 0], said
        assert contents(root / f"two-{i}") == contents(root / "whole")
        assert sorted(text.count("already complete") for text in said) == [0, 2]  # done once, for both prompts
        waited = sum("another process is at work" in text for text in said)
        return "in which one waited and said so" if waited else "in which one came when all was done"

    attack("two scans of the same target begun at once", range(times(1, 10)), begin_both)


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_training_run(number, training, root, attack, times):
    one = root / "training-whole"

    def check(place: str) -> None:
        two = root / f"training-{place}"
        adapters = sorted(file.relative_to(one) for file in one.rglob("step-*/adapter_model.safetensors"))
        assert [file.parent.name for file in adapters] == ["step-0", "step-1", "step-2", "step-4", "step-6"]
        for adapter in [*adapters, Path("adapter", "adapter_model.safetensors")]:
            first, second = load_file(one / adapter), load_file(two / adapter)
            assert first.keys() == second.keys()
            assert all(torch.equal(first[name], second[name]) for name in first), adapter
        described = [
            json.loads((each / "adapter" / "provenance.json").read_text()) | {"time": ""} for each in (one, two)
        ]
        assert described[0] == described[1]
        assert not [file for file in two.rglob("*") if file.suffix == ".part" or file.name.startswith(".")]

    name = f"a training run ended by {number.name} at random instants"
    attack(name, range(times(1, 25)), killing(number, training, check))
