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


def kill_again_and_again(tries, number: signal.Signals, kills: int, what: Work, check: Callable[[str], None]) -> None:
    """Kill a task at random instants, begin it again in the same place until it ends, and check what is there then."""
    rng, hit = random.Random(int(number)), 0
    for place in (f"{number.name}-{i}" for i in range(10 * kills)):
        arguments, here, code = what.begin(place), 0, None
        while code != 0:
            kill = hit + here < kills
            instant = rng.uniform(0, what.seconds)
            code, _ = work.run(what.task, *arguments, number=number if kill else None, after=instant)
            if code != 0 and not (kill and code in (-number, INTERRUPTED, 1)):
                break
            here += code != 0
        with tries.attempt(f"{place}, {here} kills", count=here):
            assert code == 0, f"exit code {code}: {arguments[0].read_text()[-500:]}"
            check(place)
        hit += here
        if hit >= kills:
            return


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_scan(number, scan, root, attack, times):
    def check(place: str) -> None:
        assert contents(root / place) == contents(root / "whole")

    with attack(f"a scan ended by {number.name} at random instants") as tries:
        kill_again_and_again(tries, number, times(1, 50), scan, check)
        tries.note = "files bit-identical to those of a scan left alone, none left over"


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
    with attack("two scans of the same target begun at once") as tries:
        for i in range(times(1, 10)):
            with tries.attempt(i):
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
                tries.came_to("in which one waited and said so" if waited else "in which one came when all was done")


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

    with attack(f"a training run ended by {number.name} at random instants") as tries:
        kill_again_and_again(tries, number, times(1, 50), training, check)
        tries.note = "adapters of all steps equal to those of a run left alone"
