"""The workflow: what it would do, and that a killed worker costs no more than its own shard."""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from checkpoints import write_decoder, write_panel
from notebook_files import ROOT, code, write_notebook

from rmnb.data.text_lists import can_be_read
from rmnb.panels import load_panel
from rmnb.scoring import store


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


def start(clone: Path, panel: str | Path, target: str, *options: str) -> subprocess.Popen:
    """Snakemake on a panel, whatever it says on one stream; options begin with values of the configuration."""
    command = [sys.executable, "-m", "snakemake", "-s", "workflow/Snakefile"]
    command += ["--config", f"panel={panel}", *options, "--", target]
    return subprocess.Popen(command, cwd=clone, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def planned(clone: Path, panel: str | Path, target: str, *options: str) -> str:
    workflow = start(clone, panel, target, *options, "--dry-run")
    output, _ = workflow.communicate()
    assert workflow.returncode == 0, output
    return output


def scans(plan: str) -> list[str]:
    """The commands of the plan that scan, in order."""
    return re.findall(r" (rmnb scan .*)", plan)


def test_what_is_missing_is_scanned_by_one_job_before_anything_uses_it_and_scores_are_never_stale(panel, clone):
    plan = planned(clone, panel, "book")
    assert scans(plan) == [f"rmnb scan tiny-1.0 --panel {panel} --prompt best --prompt worst"]
    order = [plan.index(f"rule {name}:") for name in ("scan_0_tiny_1_0_1", "audit", "html")]
    assert order[0] < min(order[1:])
    assert "rmnb book run notebooks/01_heterogeneity.ipynb" in plan and "--leave-out" in plan
    assert f"rmnb book lists tiny-1.0 words identity_pairs --panel {panel}" in plan  # of what it has questions for
    assert "rmnb search" not in plan
    for prompt, left in (("best", [f"rmnb scan tiny-1.0 --panel {panel} --prompt worst"]), ("worst", [])):
        path = store.scores_path(load_panel(panel), "tiny-1.0", prompt)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (0, 0))  # older than every file of the code
        assert scans(planned(clone, panel, "scores")) == left
    again = scans(planned(clone, panel, "scores", "--forcerun", "scan"))
    assert sorted(line.split("--prompt ")[1] for line in again) == ["best", "worst"]


def test_models_whose_names_differ_in_a_sign_alone_or_have_a_blank_are_scanned_each(tmp_path, clone):
    names = ["a.b", "a-b", "a b"]
    panel = write_panel(tmp_path, dict.fromkeys(names, "nowhere/tiny"))
    panel.write_text(panel.read_text().replace("key: best", "key: greatest"))  # which searches are for
    plan = planned(clone, panel, "book")
    assert sorted(shlex.split(line)[2] for line in scans(plan)) == sorted(names)
    for command in ("rmnb book lists", "rmnb search"):
        assert f"{command} 'a b' " in plan


def test_the_whole_graph_of_the_papers_models_can_be_planned(clone, tmp_path, monkeypatch):
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path / "cache"))
    asked = "--panel facct2025 --prompt greatest --prompt best --prompt worst"
    names = load_panel("facct2025").model_names
    plan = planned(clone, "facct2025", "book")
    assert sorted(scans(plan)) == sorted(f"rmnb scan {name} {asked}" for name in names)
    lists = "words elo identity_pairs" if can_be_read("elo") else "words identity_pairs"
    for name in names:
        assert f"rmnb book lists {name} {lists} --panel facct2025" in plan
        assert plan.count(f"rmnb search {name} ") == 8 and f"judged.py facct2025 {name}" in plan
    shipped = planned(clone, "demo", "book")
    assert "rmnb search" not in shipped and "rmnb book lists" not in shipped


@pytest.mark.slow
def test_a_build_says_one_line_a_step_and_shows_what_failed(panel, clone):
    for name, source in (("whole", "print('seen in the log alone')"), ("broken", "love = 1 / 0")):
        write_notebook(clone / f"notebooks/{name}.ipynb", code("x = 1", "parameters"), code(source))
    options = ("--cores", "1", "--quiet", "all")
    output, _ = start(clone, panel, "book/_executed/whole.ipynb", *options).communicate()
    assert re.fullmatch(r"Using workflow specific profile .*\n +\d+:\d\d  whole\n", output), output
    assert (clone / "_build/log/whole.log").exists()
    workflow = start(clone, panel, "book/_executed/broken.ipynb", *options)
    output, _ = workflow.communicate()
    assert workflow.returncode != 0 and len(output.splitlines()) <= 30 and "ZeroDivisionError: " in output, output
    # Sphinx writes its pages even where a warning makes it fail.
    assert subprocess.call([ROOT / "workflow/step", clone / "log", "pages", "false"]) == 1


@pytest.mark.slow
def test_what_a_killed_worker_had_done_stays_and_the_next_run_ends_it(tmp_path, clone):
    panel = write_panel(tmp_path, {"one": write_decoder(tmp_path / "one", rows=3000)})
    worst = store.scores_path(load_panel(panel), "one", "worst")
    # Small batches make a scan long enough to be killed in its middle.
    options = ("options=--batch-size 8", "--cores", "1")
    workflow = start(clone, panel, "scores", *options)
    while not (shards := list(Path(f"{worst}.partial").glob("?????????-*"))):
        assert workflow.poll() is None, workflow.stdout.read()
        time.sleep(0.05)
    for process in psutil.Process(workflow.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "rmnb scan one" in " ".join(process.cmdline()):
                process.kill()
    output, _ = workflow.communicate()
    assert workflow.returncode != 0 and not worst.exists() and shards[0].exists(), output
    again = start(clone, panel, "scores", *options)
    output, _ = again.communicate()
    assert again.returncode == 0 and worst.exists(), output


def test_jobs_on_one_machine_take_a_gpu_each_and_give_it_back_when_killed(tmp_path):
    script, log = ROOT / "workflow" / "on_free_gpu", tmp_path / "log"
    environment = os.environ | {"RMNB_GPUS": "2", "TMPDIR": str(tmp_path)}
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    killed = subprocess.Popen([str(script), "sleep", "100"], env=environment)
    while "sleep" not in psutil.Process(killed.pid).name():
        time.sleep(0.02)
    killed.kill()
    killed.wait()
    note = f'echo "+$CUDA_VISIBLE_DEVICES" >> {log}; sleep 0.5; echo "-$CUDA_VISIBLE_DEVICES" >> {log}'
    jobs = [subprocess.Popen([str(script), "bash", "-c", note], env=environment) for _ in range(5)]
    assert [job.wait() for job in jobs] == [0] * 5
    lines = log.read_text().split()
    assert {line[1:] for line in lines} == {"0", "1"}
    for gpu in "01":  # never two on one
        assert [line[0] for line in lines if line[1:] == gpu] == ["+", "-"] * (lines.count(f"+{gpu}"))


def test_without_a_gpu_or_under_a_scheduler_the_command_runs_as_it_is(tmp_path):
    script = ROOT / "workflow" / "on_free_gpu"
    chosen = {"RMNB_GPUS": "2", "SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "5"}
    none_wanted = {"RMNB_GPUS": "2", "CUDA_VISIBLE_DEVICES": ""}
    for extra in ({"RMNB_GPUS": "0"}, chosen, none_wanted):
        shown = subprocess.check_output(["env", *(f"{k}={v}" for k, v in extra.items()), script, "env"], text=True)
        assert f"CUDA_VISIBLE_DEVICES={extra.get('CUDA_VISIBLE_DEVICES', '')}\n" in shown


@pytest.mark.parametrize("profile", sorted(path.name for path in (ROOT / "workflow" / "profiles").iterdir()))
def test_a_profile_asks_for_processors_and_for_a_gpu_only_on_request(profile, panel, clone):
    description = clone / "workflow" / "profiles" / profile / "config.yaml"
    lines = description.read_text().splitlines(keepends=True)  # its executor is a plugin that is no dependency
    description.write_text("".join(x for x in lines if not x.startswith(("executor", "cluster-generic", "slurm-"))))
    options = ("--workflow-profile", str(description.parent), "--cores", "32")
    for config, gpus in ((), "gpu=0"), (("gpus_per_job=1",), "gpu=1"):
        plan = planned(clone, panel, "scores", *config, *options)
        assert len(scans(plan)) == 1 and ("threads: " in plan) == (profile != "generic")  # which asks for one core
        assert gpus in plan or profile != "slurm"
