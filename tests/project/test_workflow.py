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

import pandas as pd
import psutil
import pytest
import yaml
from checkpoints import write_decoder, write_panel
from notebook_files import ROOT, code, write_notebook

from rmnb.data.text_lists import can_be_read
from rmnb.errors import InputError
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
    whole = [f"rmnb scan tiny-1.0 --panel {panel} --prompt=best --prompt=worst"]
    assert scans(plan) == whole
    order = [plan.index(f"rule {name}:") for name in ("scan_0_tiny_1_0_1", "audit", "html")]
    assert order[0] < min(order[1:])
    assert "rmnb book run notebooks/01_heterogeneity.ipynb" in plan and "--leave-out" in plan
    assert f"rmnb book lists tiny-1.0 words identity_pairs --panel {panel}" in plan  # of what it has questions for
    assert "rmnb search" not in plan
    for prompt, left in (("best", whole), ("worst", [])):  # the job is always the same
        path = store.scores_path(load_panel(panel), "tiny-1.0", prompt)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (0, 0))  # older than every file of the code
        assert scans(planned(clone, panel, "scores")) == left
    assert scans(planned(clone, panel, "scores", "restart=true", "--forceall")) == [f"{whole[0]} --restart"]


def test_a_job_of_a_cluster_is_the_same_job_when_the_workflow_is_read_again_there(panel, clone):
    """Each job of an executor reads the Snakefile anew, when jobs before it have written their files."""
    one_each = "prompts_per_job=1"
    jobs = sorted(scans(planned(clone, panel, "scores", one_each)))
    assert jobs == [f"rmnb scan tiny-1.0 --panel {panel} --prompt={key}" for key in ("best", "worst")]
    first = store.scores_path(load_panel(panel), "tiny-1.0", "best")
    first.parent.mkdir(parents=True)
    first.touch()
    job = "scan_0_tiny_1_0_2"
    remote = ("--target-jobs", f"{job}:", "--allowed-rules", job, "--force", "--cores", "1")
    assert scans(planned(clone, panel, "scores", one_each, *remote)) == [jobs[-1]]


OPTIONS = "options=--dtype bfloat16 --load device_map=auto"  # as the head of the Snakefile documents them
LOADING = re.compile(r"rmnb (?:scan|search|book lists) .*|rmnb book audit .*|python workflow/\w+\.py .*")


def test_loading_options_reach_every_command_that_loads_a_model(tmp_path, clone):
    bases = [{"name": "base", "source": "nowhere/base", "kind": "instruct", "wrapping": "chat", "family": "Tiny"}]
    panel = write_panel(tmp_path, {"tiny-1.0": "nowhere/tiny"}, family="Tiny")
    content = yaml.safe_load(panel.read_text()) | {"bases": bases}
    content["prompts"].append({"key": "greatest", "text": "What is greatest?", "framing": "positive"})
    panel.write_text(yaml.safe_dump(content))
    plan = planned(clone, panel, "book", OPTIONS)
    (made,) = (clone / "_build/panels").iterdir()
    commands = LOADING.findall(plan)
    kinds = {re.sub(r" workflow/|\.py| (?=scan|search|book|lists|audit)", " ", line).split()[1] for line in commands}
    assert kinds == {"scan", "search", "book", "judged", "policies", "carriers"}
    assert all(f"_build/panels/{made.name}" in line for line in commands)
    loaded, asked = load_panel(made), load_panel(panel)
    for spec in (*loaded.models, *loaded.bases):
        assert spec.dtype == "bfloat16" and spec.load == {"device_map": "auto"}
    assert store.scores_path(loaded, "tiny-1.0", "worst") == store.scores_path(asked, "tiny-1.0", "worst")
    assert loaded.prompts == asked.prompts
    assert plan.count("runtime=1440") == 7  # six searches and words in sentences: hours, a profile's default is one
    workflow = start(clone, panel, "scores", "options=--batch-size 8", "--dry-run")
    output, _ = workflow.communicate()
    assert workflow.returncode != 0 and "not options of loading: --batch-size 8" in output


@pytest.mark.slow
def test_what_is_scored_with_loading_options_is_read_with_them_and_refused_without(tmp_path, clone):
    sources = {name: write_decoder(tmp_path / name, seed=seed) for seed, name in enumerate(("one", "two"))}
    panel = write_panel(tmp_path, sources)
    workflow = start(clone, panel, "scores", OPTIONS, "prompts_per_job=1", "--cores", "1")
    output, _ = workflow.communicate()
    assert workflow.returncode == 0, output
    (made,) = (clone / "_build/panels").iterdir()
    for name in sources:  # which reads whose file it is
        assert len(store.read_scores(made, name, "best")) == len(store.read_scores(made, name, "worst"))
    assert store.read_table(store.scores_path(load_panel(made), "one", "best"))[1]["device_map"] == "auto"
    with pytest.raises(InputError, match="differs in dtype"):
        store.read_scores(panel, "one", "best")


def test_the_lines_that_the_workflow_gives_for_a_file_of_the_demo_panel_can_be_planned():
    lines = re.findall(r"# (snakemake .*data/.*)", (ROOT / "workflow/Snakefile").read_text())
    assert len(lines) == 3
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for line in lines:
        command = ["bash", "-c", line.replace("Snakefile ", "Snakefile --dry-run ")]
        subprocess.run(command, cwd=ROOT, env=os.environ | {"PATH": path}, check=True, capture_output=True)


def test_scores_computed_again_are_compared_and_the_shipped_ones_stay(tmp_path):
    shipped, again = tmp_path / "data/demo/scores", tmp_path / "again"
    frame = pd.DataFrame({"token_id": [0, 1, 2], "score": [0.0, 1.0, 2.0]})
    for directory in (shipped, again):
        (directory / "one").mkdir(parents=True)
        frame.to_parquet(directory / "one/best.exact.parquet")
    compare = [sys.executable, ROOT / "workflow/compare_scores", again]
    assert subprocess.call(compare, cwd=tmp_path) == 0
    frame.assign(score=[0.0, 1.0, 2.1]).to_parquet(again / "one/best.exact.parquet")
    assert subprocess.call(compare, cwd=tmp_path) == 1
    shutil.rmtree(again)
    assert subprocess.call(compare, cwd=tmp_path) == 1
    assert pd.read_parquet(shipped / "one/best.exact.parquet").equals(frame)


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
    asked = "--panel facct2025 --prompt=greatest --prompt=best --prompt=worst"
    names = load_panel("facct2025").model_names
    plan = planned(clone, "facct2025", "book")
    assert sorted(scans(plan)) == sorted(f"rmnb scan {name} {asked}" for name in names)
    lists = "words elo identity_pairs" if can_be_read("elo") else "words identity_pairs"
    for name in names:
        assert f"rmnb book lists {name} {lists} --panel facct2025" in plan
        assert plan.count(f"rmnb search {name} ") == 6 and f"judged.py facct2025 {name}" in plan
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
    wide = {"hidden_size": 256, "intermediate_size": 1024}  # a scan long enough to be killed in its middle
    panel = write_panel(tmp_path, {"one": write_decoder(tmp_path / "one", rows=3000, shape=wide)})
    worst = store.scores_path(load_panel(panel), "one", "worst")
    workflow = start(clone, panel, "scores", "--cores", "1")
    while not (shards := list(Path(f"{worst}.partial").glob("?????????-*"))):
        assert workflow.poll() is None, workflow.stdout.read()
        time.sleep(0.05)
    for process in psutil.Process(workflow.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "rmnb scan one" in " ".join(process.cmdline()):
                process.kill()
    output, _ = workflow.communicate()
    assert workflow.returncode != 0 and not worst.exists() and shards[0].exists(), output
    again = start(clone, panel, "scores", "--cores", "1")
    output, _ = again.communicate()
    assert again.returncode == 0 and worst.exists(), output


LISTED = """GPU 0: NVIDIA A100 (UUID: GPU-cut)
  MIG 3g.20gb     Device  0: (UUID: MIG-part)
GPU 1: NVIDIA A100 (UUID: GPU-whole)
"""


@pytest.fixture
def on_free_gpu(tmp_path):
    """A function: start a command through on_free_gpu on a machine whose driver lists GPUs like these."""
    driver = tmp_path / "bin" / "nvidia-smi"
    driver.parent.mkdir()

    def started(listed: str, *command: str, **variables: str) -> subprocess.Popen:
        if not driver.exists():  # others may be reading it
            driver.write_text('#!/bin/sh\nprintf %s "$GPUS"\n')
            driver.chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "SLURM_"))}
        environment |= {"PATH": f"{driver.parent}:{os.environ['PATH']}", "RMNB_LOCKS": str(tmp_path / "locks")}
        environment["GPUS"] = listed
        script = [str(ROOT / "workflow" / "on_free_gpu"), *command]
        return subprocess.Popen(script, env=environment | variables, stdout=subprocess.PIPE, text=True)

    return started


@pytest.mark.parametrize("chosen", [{}, {"CUDA_VISIBLE_DEVICES": "3,5"}], ids=["all", "those that are chosen"])
def test_jobs_on_one_machine_take_a_gpu_each_and_give_it_back_when_killed(chosen, on_free_gpu, tmp_path):
    log = tmp_path / "log"
    killed = on_free_gpu(LISTED, "sleep", "100", **chosen)
    while "sleep" not in psutil.Process(killed.pid).name():
        time.sleep(0.02)
    killed.kill()
    killed.wait()
    note = f'echo "+$CUDA_VISIBLE_DEVICES" >> {log}; sleep 0.5; echo "=$CUDA_VISIBLE_DEVICES" >> {log}'
    jobs = [on_free_gpu(LISTED, "bash", "-c", note, **chosen) for _ in range(5)]
    assert [job.wait() for job in jobs] == [0] * 5
    lines = log.read_text().split()
    gpus = {line[1:] for line in lines}
    assert gpus == ({"3", "5"} if chosen else {"MIG-part", "GPU-whole"})  # of a GPU that is cut up its parts alone
    for gpu in gpus:  # never two on one
        assert [line[0] for line in lines if line[1:] == gpu] == ["+", "="] * (lines.count(f"+{gpu}"))
    locks = [file for file in (tmp_path / "locks").rglob("*") if file.is_file()]
    assert all(file.stat().st_mode & 0o666 == 0o666 for file in locks)  # whoever made it, others can wait for it


def test_without_a_gpu_the_command_runs_as_it_is_and_jobs_of_a_scheduler_do_not_wait_for_others(on_free_gpu):
    shown = "echo ${CUDA_VISIBLE_DEVICES-none}"
    assert on_free_gpu("", "bash", "-c", shown).communicate()[0] == "none\n"
    assert on_free_gpu(LISTED, "bash", "-c", shown, CUDA_VISIBLE_DEVICES="").communicate()[0] == "\n"
    given = {"CUDA_VISIBLE_DEVICES": "0"}  # which a scheduler calls so in each job
    held = on_free_gpu(LISTED, "sleep", "100", SLURM_JOB_ID="7", **given)
    assert on_free_gpu(LISTED, "bash", "-c", shown, SLURM_JOB_ID="8", **given).communicate(timeout=20)[0] == "0\n"
    held.kill()


@pytest.mark.parametrize("profile", sorted(path.name for path in (ROOT / "workflow" / "profiles").iterdir()))
def test_a_profile_asks_for_processors_and_for_a_gpu_only_on_request(profile, panel, clone):
    description = clone / "workflow" / "profiles" / profile / "config.yaml"
    lines = description.read_text().splitlines(keepends=True)  # its executor is a plugin that is no dependency
    description.write_text("".join(x for x in lines if not x.startswith(("executor", "cluster-generic", "slurm-"))))
    options = ("--workflow-profile", str(description.parent), "--cores", "32")
    for config, gpus in [((), "gpu=0"), (("gpus_per_job=1",), "gpu=1")][profile != "slurm" :]:
        plan = planned(clone, panel, "scores", *config, *options)
        assert len(scans(plan)) == 1 and ("threads: " in plan) == (profile != "generic")  # which asks for one core
        assert gpus in plan or profile != "slurm"
