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
from checkpoints import SHAPE, randomise, tokenizer
from cluster import MISSING, Cluster, missing, wait_for
from transformers import AutoModelForSequenceClassification, LlamaConfig

import rmnb
from rmnb.scoring import store

ROOT = Path(__file__).parents[2]
CPUS = min(2, os.cpu_count() or 1)
BATCH = ("--batch-size", "512")
KEYS = ("best", "worst")


@pytest.fixture
def cluster():
    if absent := missing():
        pytest.exit(f"{MISSING} (there is no {', '.join(absent)})", returncode=2)
    with tempfile.TemporaryDirectory(prefix="rmnb-") as directory, Cluster(Path(directory), CPUS) as running:
        yield running


def write_panel(directory: Path) -> Path:
    """A panel of one model of five shards a prompt: slow enough to be killed, quick enough for a busy machine."""
    wide = {"hidden_size": 256, "intermediate_size": 1024}
    model = AutoModelForSequenceClassification.from_config(LlamaConfig(**SHAPE | wide, vocab_size=5 * 1024))
    randomise(model, 0)
    model.save_pretrained(directory / "model")
    tokenizer().save_pretrained(directory / "model")
    prompts = [{"key": key, "text": f"What is the {key} thing?", "framing": "positive"} for key in KEYS]
    models = [{"name": "tiny", "source": "model"}]
    panel = {"name": "tiny", "title": "Tiny", "scores": "scores", "models": models, "prompts": prompts}
    (directory / "panel.yml").write_text(yaml.safe_dump(panel))
    return directory / "panel.yml"


def test_a_killed_job_is_submitted_again_goes_on_and_changes_nothing(cluster, tmp_path):
    shutil.copytree(ROOT / "workflow", tmp_path / "workflow")
    panel, log = write_panel(tmp_path), tmp_path / "snakemake.log"
    command = [sys.executable, "-m", "snakemake", "-s", "workflow/Snakefile"]
    command += ["--workflow-profile", "workflow/profiles/slurm", "--max-threads", str(CPUS)]
    command += ["--slurm-init-seconds-before-status-checks", "5", "--latency-wait", "10"]
    command += ["--config", f"panel={panel}", f"options={' '.join(BATCH)}", "--", "scores"]
    environment = cluster.environment | {"CUDA_VISIBLE_DEVICES": ""}
    run = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log.open("w"), stderr=subprocess.STDOUT)

    def shards() -> dict[Path, int]:
        assert run.poll() is None, log.read_text()[-5000:]
        return {file: file.stat().st_mtime_ns for file in tmp_path.glob("scores/**/*.partial/?????????-*")}

    wait_for(lambda: len(shards()) > 2, "shards", 300)
    written = shards()
    (victim,) = (each for each in psutil.process_iter() if {"scan", "tiny", str(panel)} <= set(_words(each)))
    victim.kill()  # as the kernel does when memory runs out
    wait_for(lambda: len(shards()) > len(written), "further shards", 300)
    now = shards()
    assert all(now[shard] == when for shard, when in written.items())
    assert run.wait(600) == 0, log.read_text()[-5000:]
    assert sorted(cluster.jobs().values()) == ["COMPLETED", "FAILED"]

    rm = rmnb.load_reward_model("tiny", panel, device="cpu")
    for prompt in rmnb.load_panel(panel).prompts:
        undisturbed = rmnb.scan_vocabulary(rm, prompt, batch_size=int(BATCH[1]))
        assert store.read_scores(panel, "tiny", prompt.key)["score"].equals(undisturbed["score"])


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
