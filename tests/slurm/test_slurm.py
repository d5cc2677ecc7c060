"""The profile for SLURM on a real cluster of one node: `make slurm-test`."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
import yaml
from checkpoints import write_decoder, write_panel
from cluster import MISSING, ask, cluster, missing, wait_for
from notebook_files import ROOT

import rmnb
from rmnb.scoring import store

CPUS = min(2, os.cpu_count() or 1)


@pytest.fixture
def environment():
    if absent := missing():
        pytest.exit(f"{MISSING} (there is no {', '.join(absent)})", returncode=2)
    with tempfile.TemporaryDirectory(prefix="rmnb-") as directory, cluster(Path(directory), CPUS) as variables:
        yield variables | {"CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture
def panel(tmp_path):
    """A panel of one model of five shards a prompt: slow enough to be killed, quick enough for a busy machine."""
    wide = {"hidden_size": 256, "intermediate_size": 1024}
    return write_panel(tmp_path, {"tiny": write_decoder(tmp_path / "model", rows=5 * 1024, shape=wide)})


def begin(directory: Path, environment: dict[str, str], panel: Path, *config: str) -> tuple[subprocess.Popen, Path]:
    """The workflow's scans of a panel on the cluster, and what it says."""
    shutil.copytree(ROOT / "workflow", directory / "workflow")
    log = directory / "snakemake.log"
    command = [sys.executable, "-m", "snakemake", "-s", "workflow/Snakefile"]
    command += ["--workflow-profile", "workflow/profiles/slurm", "--max-threads", str(CPUS)]
    command += ["--slurm-init-seconds-before-status-checks", "5", "--latency-wait", "10"]
    command += ["--config", f"panel={panel}", *config, "--", "scores"]
    run = subprocess.Popen(command, cwd=directory, env=environment, stdout=log.open("w"), stderr=subprocess.STDOUT)
    return run, log


def states(environment: dict[str, str]) -> list[str]:
    """How all jobs of the cluster are, in alphabetical order."""
    return sorted(ask(environment, "squeue", "--noheader", "--states=all", "--format=%T").split())


def test_jobs_of_several_prompts_scan_those_that_were_planned(environment, tmp_path):
    """Each job reads the workflow anew, while others have ended: two models, four prompts, two a job."""
    sources = {name: write_decoder(tmp_path / name, seed=seed) for seed, name in enumerate(("one", "two"))}
    panel = write_panel(tmp_path, sources)
    content = yaml.safe_load(panel.read_text())
    keys = ("best", "worst", "finest", "vilest")
    prompts = [{"key": key, "text": f"What is the {key} thing?", "framing": "positive"} for key in keys]
    panel.write_text(yaml.safe_dump({**content, "prompts": prompts}))
    run, log = begin(tmp_path, environment, panel, "prompts_per_job=2", "options=--dtype bfloat16")
    assert run.wait(600) == 0, log.read_text()[-5000:]
    assert states(environment) == ["COMPLETED"] * 4
    (configured,) = (tmp_path / "_build/panels").iterdir()
    for name in sources:
        rm = rmnb.load_reward_model(name, configured, device="cpu")
        for prompt in rmnb.load_panel(configured).scanned_prompts:
            undisturbed = rmnb.scan_vocabulary(rm, prompt)
            assert store.read_scores(configured, name, prompt.key)["score"].equals(undisturbed["score"])


def test_a_killed_job_is_submitted_again_goes_on_and_changes_nothing(environment, panel, tmp_path):
    run, log = begin(tmp_path, environment, panel)

    def shards() -> dict[Path, int]:
        assert run.poll() is None, log.read_text()[-5000:]
        return {file: file.stat().st_mtime_ns for file in tmp_path.glob("scores/**/*.partial/?????????-*")}

    wait_for(lambda: len(shards()) > 2, "shards", 300)
    written = shards()
    victims = psutil.process_iter(["cmdline"])  # None of a process that has ended or may not be seen
    (victim,) = (each for each in victims if {"scan", "tiny", str(panel)} <= set(each.info["cmdline"] or ()))
    victim.kill()  # as the kernel does when memory runs out
    wait_for(lambda: len(shards()) > len(written), "further shards", 300)
    now = shards()
    assert all(now[shard] == when for shard, when in written.items())
    assert run.wait(600) == 0, log.read_text()[-5000:]
    assert states(environment) == ["COMPLETED", "FAILED"]

    rm = rmnb.load_reward_model("tiny", panel, device="cpu")
    for prompt in rmnb.load_panel(panel).scanned_prompts:
        _, provenance = store.read_table(store.scores_path(rmnb.load_panel(panel), "tiny", prompt.key))
        undisturbed = rmnb.scan_vocabulary(rm, prompt, batch_size=provenance["batch_size"])
        assert store.read_scores(panel, "tiny", prompt.key)["score"].equals(undisturbed["score"])
