"""The workflow: what it would do, and that a killed worker costs no more than its own shard."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest
import yaml
from checkpoints import write_decoder

from rmnb.panels import load_panel
from rmnb.scoring import store

ROOT = Path(__file__).parents[2]


def write_panel(directory: Path, sources: dict[str, str], parameters: float | None = None) -> Path:
    """A panel with the prompts best, worst and elo_prefer, and a store of its own."""
    description = {
        "name": "tiny",
        "title": "Tiny panel",
        "scores": str(directory / "scores"),
        "models": [{"name": name, "source": source, "parameters": parameters} for name, source in sources.items()],
        "prompts": [
            {"key": key, "text": f"What is the {key} thing?", "framing": "positive", "scanned": key != "elo_prefer"}
            for key in ("best", "worst", "elo_prefer")
        ],
    }
    path = directory / "tiny.yml"
    path.write_text(yaml.safe_dump(description))
    return path


@pytest.fixture
def panel(tmp_path):
    """A panel of one model that does not exist."""
    return write_panel(tmp_path, {"tiny-1.0": "nowhere/tiny"})


@pytest.fixture
def clone(tmp_path):
    """A copy of what the workflow reads, with nothing built in it."""
    directory = tmp_path / "clone"
    built = shutil.ignore_patterns("_executed", "__pycache__")
    for name in ("workflow", "notebooks", "book", "rmnb"):
        shutil.copytree(ROOT / name, directory / name, ignore=built)
    for name in ("_config.yml", "_toc.yml", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, directory)
    return directory


def command(target: str, panel: str | Path, *more: str, config: str = "") -> list[str]:
    snakemake = [sys.executable, "-m", "snakemake", "-s", "workflow/Snakefile"]
    return [*snakemake, *more, "--config", f"panel={panel}", *filter(None, [config]), "--", target]


def planned(target: str, panel: str | Path, clone: Path, config: str = "", *more: str) -> str:
    done = subprocess.run(
        command(target, panel, "--dry-run", *more, config=config),
        cwd=clone,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout + done.stderr


def scans(plan: str) -> list[str]:
    """The commands of the plan that scan, in order."""
    return ["rmnb scan " + line.split(" rmnb scan ")[1] for line in plan.splitlines() if " rmnb scan " in line]


def put_scores(panel: Path, model: str, *prompts: str) -> None:
    for prompt in prompts:
        path = store.scores_path(load_panel(panel), model, prompt)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        os.utime(path, (0, 0))  # older than every file of the code


def test_scores_that_are_there_are_never_stale(panel, clone):
    put_scores(panel, "tiny-1.0", "best", "worst")
    assert not scans(planned("scores", panel, clone))
    again = scans(planned("scores", panel, clone, "", "--forcerun", "scan"))
    assert sorted(line.split("--prompt ")[1] for line in again) == ["best", "worst"]


def test_what_is_missing_is_scanned_by_one_job_before_anything_uses_it(panel, clone):
    plan = planned("book", panel, clone)
    assert scans(plan) == [f"rmnb scan tiny-1.0 --panel {panel} --prompt best --prompt worst"]
    order = [plan.index(f"rule {name}:") for name in ("scan_tiny_1_0_1", "audit", "html")]
    assert order[0] < min(order[1:])
    assert "rmnb book run notebooks/01_heterogeneity.ipynb" in plan
    put_scores(panel, "tiny-1.0", "best")
    assert scans(planned("scores", panel, clone)) == [f"rmnb scan tiny-1.0 --panel {panel} --prompt worst"]


def test_the_whole_graph_of_the_papers_models_can_be_planned(clone, tmp_path, monkeypatch):
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path / "cache"))
    names = load_panel("facct2025").model_names
    lines = scans(planned("book", "facct2025", clone))
    assert [line.split()[2] for line in lines] and {line.split()[2] for line in lines} == set(names)
    assert len(lines) == len(names)
    assert all(line.endswith("--prompt greatest --prompt best --prompt worst") for line in lines)


@pytest.mark.slow
def test_a_build_says_one_line_a_step_and_shows_what_failed(panel, clone):
    for name, code in (("whole", "print('seen in the log alone')"), ("broken", "love = 1 / 0")):
        cells = [nbformat.v4.new_code_cell("x = 1", metadata={"tags": ["parameters"]}), nbformat.v4.new_code_cell(code)]
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), clone / f"notebooks/{name}.ipynb")
    run = command("book/_executed/whole.ipynb", panel, "--cores", "1", "--quiet", "all")
    done = subprocess.run(run, cwd=clone, capture_output=True, text=True, check=False)
    assert re.fullmatch(r" +\d+:\d\d  whole\n", done.stdout)
    assert (clone / "_build/log/whole.log").exists()
    run[-1] = "book/_executed/broken.ipynb"
    done = subprocess.run(run, cwd=clone, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode != 0 and len(said.splitlines()) <= 30
    for part in ("broken FAILED", "_build/log/broken.log", "cell 2 failed", "love = 1 / 0", "ZeroDivisionError: "):
        assert part in said, said


@pytest.mark.slow
def test_a_killed_worker_repeats_only_its_own_shard(tmp_path, clone):
    names = ["one", "two"]
    panel = write_panel(tmp_path, {n: str(write_decoder(tmp_path / n, rows=3000, seed=i)) for i, n in enumerate(names)})
    # Small batches make a scan long enough to be killed in its middle.
    workers = ("--cores", "2", "--max-threads", "1", "--keep-going")
    run = command("scores", panel, *workers, config="options=--batch-size 8")
    workflow = subprocess.Popen(run, cwd=clone, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    victim = store.scores_path(load_panel(panel), "one", "best")
    _kill_once_a_shard_is_written(workflow, Path(f"{victim}.partial"), "scan one")
    output, _ = workflow.communicate()
    assert workflow.returncode != 0, output  # one job failed ...
    assert not victim.exists()
    times = {file: file.stat().st_mtime_ns for file in Path(f"{victim}.partial").glob("?????????-*")}
    assert times
    finished = [store.scores_path(load_panel(panel), "two", prompt) for prompt in ("best", "worst")]
    assert all(path.exists() for path in finished), output  # ... and the rest was completed
    before = [path.stat().st_mtime_ns for path in finished]

    again = subprocess.run(run, cwd=clone, capture_output=True, text=True, check=False)
    text = again.stdout + again.stderr
    assert again.returncode == 0, text
    assert "scan one" in text and "scan two" not in text
    assert [path.stat().st_mtime_ns for path in finished] == before
    _same_as_in_one_process(panel, names, tmp_path)


def _kill_once_a_shard_is_written(workflow, directory: Path, words: str) -> None:
    while not list(directory.glob("?????????-*")):
        assert workflow.poll() is None, workflow.stdout.read()
        time.sleep(0.05)
    for process in psutil.Process(workflow.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if f"rmnb {words}" in " ".join(process.cmdline()):
                process.kill()


def _same_as_in_one_process(panel: Path, names: list[str], tmp_path: Path) -> None:
    alone = yaml.safe_load(panel.read_text()) | {"scores": str(tmp_path / "alone")}
    path = tmp_path / "alone.yml"
    path.write_text(yaml.safe_dump(alone))
    code = "from rmnb.cli.main import main; main()"
    for name in names:
        words = ["scan", name, "--panel", str(path), "--prompt", "best", "--prompt", "worst", "--batch-size", "8"]
        subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True)
        for prompt in ("best", "worst"):
            files = [store.scores_path(load_panel(each), name, prompt) for each in (panel, path)]
            one, two = (store.read_scan(file)[1]["content_sha256"] for file in files)
            assert one == two


def test_jobs_on_one_machine_take_a_gpu_each(tmp_path):
    script = ROOT / "workflow" / "on_free_gpu"
    environment = os.environ | {"RMNB_GPUS": "2", "TMPDIR": str(tmp_path)}
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    note = (
        f'echo "+$CUDA_VISIBLE_DEVICES" >> {tmp_path}/log; sleep 0.5; echo "-$CUDA_VISIBLE_DEVICES" >> {tmp_path}/log'
    )
    jobs = [subprocess.Popen([str(script), "bash", "-c", note], env=environment) for _ in range(5)]
    assert [job.wait() for job in jobs] == [0] * 5
    held: set[str] = set()
    for line in (tmp_path / "log").read_text().split():
        if line[0] == "+":
            assert line[1:] in "01" and line[1:] not in held  # never two on one
            held.add(line[1:])
        else:
            held.remove(line[1:])
    assert not held


def test_a_gpu_is_free_again_when_its_job_was_killed(tmp_path):
    script = ROOT / "workflow" / "on_free_gpu"
    environment = os.environ | {"RMNB_GPUS": "1", "TMPDIR": str(tmp_path)}
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    job = subprocess.Popen([str(script), "sleep", "100"], env=environment)
    while "sleep" not in psutil.Process(job.pid).name():
        time.sleep(0.02)
    job.kill()
    job.wait()
    shown = subprocess.run([str(script), "printenv", "CUDA_VISIBLE_DEVICES"], env=environment, capture_output=True)
    assert shown.stdout == b"0\n"


def test_without_a_gpu_or_under_a_scheduler_the_command_runs_as_it_is(tmp_path):
    script = ROOT / "workflow" / "on_free_gpu"
    for extra in ({"RMNB_GPUS": "0"}, {"RMNB_GPUS": "2", "SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "5"}):
        environment = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"} | extra
        shown = subprocess.run([str(script), "printenv", "CUDA_VISIBLE_DEVICES"], env=environment, capture_output=True)
        assert shown.stdout.decode().strip() == extra.get("CUDA_VISIBLE_DEVICES", "")


def without_plugins(profile: str, clone: Path) -> tuple[str, str]:
    """The options that name a profile whose executor, a plugin that is no dependency, is taken out."""
    description = clone / "workflow" / "profiles" / profile / "config.yaml"
    settings = yaml.safe_load(description.read_text())
    for key in [key for key in settings if key == "executor" or key.startswith(("cluster-generic", "slurm-"))]:
        del settings[key]
    description.write_text(yaml.safe_dump(settings))
    return "--workflow-profile", f"workflow/profiles/{profile}"


@pytest.mark.parametrize("profile", sorted(path.name for path in (ROOT / "workflow" / "profiles").iterdir()))
def test_every_profile_is_one_that_the_workflow_can_read(profile, panel, clone):
    assert len(scans(planned("scores", panel, clone, "", *without_plugins(profile, clone)))) == 1


def test_a_cluster_is_asked_for_processors_and_for_a_gpu_only_on_request(panel, clone):
    options = (*without_plugins("slurm", clone), "--cores", "32")
    for config, gpus in (("", "gpu=0"), ("gpus_per_job=1", "gpu=1")):
        plan = planned("scores", panel, clone, config, *options)
        assert "threads: 8" in plan and gpus in plan, plan
    two_workers = planned("scores", panel, clone, "", "--cores", "2", "--max-threads", "1")
    assert "threads:" not in two_workers, two_workers  # a core each
