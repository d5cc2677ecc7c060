"""Runs of the workflow that are disturbed, and the undisturbed scans that they must equal."""

import atexit
import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
from cluster import wait_for

from rmnb.panels import load_panel
from rmnb.scoring import store

ROOT = Path(__file__).parents[2]
BATCH = ("--batch-size", "512")


class Run:
    """The workflow's target ``scores`` for a panel, in a directory of its own, begun at once.

    Parameters
    ----------
    directory
        Where it runs.
    panel
        The panel's file.
    profile
        Of ``workflow/profiles``.
    more
        Further options of Snakemake.
    environment
        Of the process; the processor's rounding is what counts, so no GPU is seen.
    """

    def __init__(self, directory: Path, panel: Path, profile: str, *more: str, environment: dict[str, str]):
        shutil.copytree(ROOT / "workflow", directory / "workflow")
        self.panel, self.log = panel, directory / "snakemake.log"
        command = [sys.executable, "-m", "snakemake", "-s", "workflow/Snakefile"]
        command += ["--workflow-profile", f"workflow/profiles/{profile}", *more]
        command += ["--config", f"panel={panel}", f"options={' '.join(BATCH)}", "--", "scores"]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                command, cwd=directory, env=environment | {"CUDA_VISIBLE_DEVICES": ""}, stdout=log, stderr=log
            )
        atexit.register(self.process.kill)  # nothing if it has ended

    def shards(self, model: str) -> dict[Path, int]:
        """The shards of a model's prompts that are written now, and when each was."""
        files = (store.store_directory(load_panel(self.panel)) / model).glob("*.partial/?????????-*")
        found = {}
        for file in files:
            with contextlib.suppress(FileNotFoundError):
                found[file] = file.stat().st_mtime_ns
        return found

    def wait_for_shards(self, model: str, more_than: int) -> dict[Path, int]:
        """Wait until more than so many shards of a model are written."""
        wait_for(lambda: self.alive() and len(self.shards(model)) > more_than, f"shards of {model}", 300)
        return self.shards(model)

    def alive(self) -> bool:
        """Whether the workflow is still at work.

        Raises
        ------
        AssertionError
            It has ended, though it is waited for something that it does.
        """
        assert self.process.poll() is None, self.log.read_text()[-5000:]
        return True

    def end(self) -> str:
        """Wait for its end, which must be a success, and return what it said."""
        code, said = self.process.wait(600), self.log.read_text()
        assert code == 0, said[-5000:]
        return said


def kill_scan(model: str, panel: Path) -> int:
    """Kill a model's scan as the kernel does when memory runs out; returns how many processes that were."""
    killed = 0
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            if {"scan", model, str(panel)} <= set(words):
                process.kill()
                killed += 1
    return killed


def same_scores(panel: Path, other: Path) -> tuple[int, int]:
    """How many score files of a panel there are, and how many of them equal another panel's bit for bit."""
    sides = [load_panel(each) for each in (panel, other)]
    files = [
        [store.scores_path(side, model, prompt.key) for side in sides]
        for model in sides[0].model_names
        for prompt in sides[0].scanned_prompts
    ]
    same = [
        one["score"].to_numpy().tobytes() == two["score"].to_numpy().tobytes()
        and one["token_id"].equals(two["token_id"])
        for one, two in ([store.read_scan(file)[0] for file in pair] for pair in files)
    ]
    return len(files), sum(same)


def scan_undisturbed(panel: Path, threads: int) -> Path:
    """Scan all models with all prompts, one process a model, without any workflow; returns the panel."""
    members = load_panel(panel)
    code = "from rmnb.cli.main import main; main()"
    prompts = [word for prompt in members.scanned_prompts for word in ("--prompt", prompt.key)]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "CUDA_VISIBLE_DEVICES": ""}
    for model in members.model_names:
        words = [sys.executable, "-c", code, "scan", model, "--panel", str(panel), *prompts, *BATCH]
        subprocess.run(words, check=True, capture_output=True, env=environment)
    return panel
