"""What the workflow would do: in a fresh clone the shipped scores are used, not computed again."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rmnb import store
from rmnb.panel import load_panel

ROOT = Path(__file__).parents[1]


@pytest.fixture
def panel(tmp_path):
    """A panel of one model, with the path of its score file."""
    description = {
        "name": "tiny",
        "title": "Tiny panel",
        "scores": str(tmp_path / "scores"),
        "models": [{"name": "tiny", "source": "nowhere/tiny"}],
        "prompts": [{"key": "greatest", "text": "What is the greatest thing?", "framing": "positive"}],
    }
    path = tmp_path / "tiny.yml"
    path.write_text(yaml.safe_dump(description))
    return path, store.scores_path(load_panel(path), "tiny", "greatest")


@pytest.fixture
def clone(tmp_path):
    """A copy of what the workflow reads, with nothing built in it."""
    directory = tmp_path / "clone"
    built = shutil.ignore_patterns("_executed", "__pycache__")
    for name in ("workflow", "notebooks", "book", "rmnb"):
        shutil.copytree(ROOT / name, directory / name, ignore=built)
    for name in ("_config.yml", "_toc.yml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, directory)
    return directory


def planned(target: str, panel: Path, clone: Path) -> str:
    command = [sys.executable, "-m", "snakemake", "-s", "workflow/Snakefile", "--dry-run"]
    command += ["--config", f"panel={panel}", "--", target]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout + done.stderr


def test_scores_that_are_there_are_never_stale(panel, clone):
    path, scores = panel
    scores.parent.mkdir(parents=True)
    scores.write_bytes(b"")
    os.utime(scores, (0, 0))  # older than every file of the code
    assert "rule scan" not in planned("scores", path, clone)


def test_scores_that_are_missing_are_scanned_before_anything_uses_them(panel, clone):
    path, _ = panel
    plan = planned("book", path, clone)
    order = [plan.index(f"rule {name}:") for name in ("scan", "audit", "html")]
    assert order[0] < min(order[1:]) and "rmnb scan tiny" in plan
    assert "rmnb run notebooks/01_heterogeneity.ipynb" in plan
