"""The package without its repository: what somebody has who installs the wheel to look at a model of their own."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from checkpoints import write_decoder
from notebook_files import ROOT

import rmnb

SOURCES = ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "rmnb", "notebooks")
QUESTION = "What, in one word, is the greatest thing ever?"
# Command lines one after the other in one process, as the console script runs them: torch is imported once.
COMMANDS = """
import contextlib, io, json, sys
from rmnb.cli.main import main
for line in json.loads(sys.argv[1]):
    out, err, code, sys.argv = io.StringIO(), io.StringIO(), 0, ["rmnb", *line]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A copy of what the wheel is built from: building writes beside its sources."""
    directory = tmp_path_factory.mktemp("sources")
    subprocess.run(["cp", "-a", *(ROOT / name for name in SOURCES), directory], check=True)
    return directory


@pytest.fixture(scope="module")
def unpacked(sources, tmp_path_factory):
    """The directory that the wheel is unpacked into."""
    made = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", made, sources]
    subprocess.run(build, check=True, capture_output=True, text=True)
    [wheel] = made.glob("rmnb-*.whl")
    zipfile.ZipFile(wheel).extractall(made / "site")
    return made / "site"


@pytest.fixture(scope="module")
def elsewhere(unpacked, tmp_path_factory):
    """Run Python with the unpacked package, in an empty directory, with an empty cache and without a network."""
    cwd, cache = tmp_path_factory.mktemp("cwd"), tmp_path_factory.mktemp("cache")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RMNB_")}
    nowhere = {"HTTPS_PROXY": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "1"}
    environment |= {"PYTHONPATH": str(unpacked), "RMNB_CACHE": str(cache), **nowhere}

    def run(code: str, *arguments: str) -> list[str]:
        command = [sys.executable, "-c", code, *arguments]
        done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    run.cwd, run.cache = cwd, cache
    return run


def test_the_wheel_holds_every_file_of_the_package(sources, unpacked, elsewhere):
    meant = {path.relative_to(sources) for path in (sources / "rmnb").rglob("*.*") if path.suffix != ".pyc"}
    held = {path.relative_to(unpacked) for path in (unpacked / "rmnb").rglob("*") if path.is_file()}
    assert meant == held
    for path in held:  # a notebook that is a link among the sources is a file here
        assert (unpacked / path).read_bytes() == (sources / path).read_bytes()
    package, data = elsewhere("import rmnb, rmnb.files as f; print(rmnb.__file__, f.data_dir(), sep='\\n')")
    assert Path(package).parent == unpacked / "rmnb" != Path(rmnb.__file__).parent
    assert Path(data).is_relative_to(elsewhere.cache)


def test_anyones_model_is_looked_at_and_a_demo_model_says_how_to_get_it(elsewhere, tmp_path):
    model = str(write_decoder(tmp_path))
    lines = [
        ["check", model],
        ["score", model, "love", "war", "--prompt", "greatest", "--json"],
        ["trace", model, "--prompt", "greatest", "love and peace"],
        ["scan", model, "--prompt", "greatest", "--first", "50", "--out", "scan.parquet"],
        ["report", model, "--quick", "--out", "report"],
        ["compare", "report", "report/report.json", "--out", "compare", "--fail-if", "framing_kendall > 1.5"],
        ["book", "models"],
        ["score", "smollm2-values", "love"],
    ]
    answers = [json.loads(line) for line in elsewhere(COMMANDS, json.dumps(lines))]
    assert [code for code, _, _ in answers] == [0, 0, 0, 0, 0, 0, 0, 2], answers
    _, scored, _, scanned, _, compared, _, (_, out, err) = answers
    rewards = [row["reward"] for row in json.loads(scored[1])["rows"]]
    expected = rmnb.load_reward_model(model, device="cpu").score(QUESTION, ["love", "war"])
    assert rewards == pytest.approx(expected.tolist(), abs=1e-4)
    assert scanned[1].startswith("50 tokens") and "kept    framing_kendall > 1.5" in compared[1]
    assert not out and err.count("\n") == 1 and "clone it and set RMNB_DATA" in err
    assert sorted(path.name for path in elsewhere.cwd.iterdir()) == ["compare", "report", "scan.parquet"]
    report = json.loads((elsewhere.cwd / "report" / "report.json").read_text(encoding="utf-8"))
    measured = {row["name"] for row in report["numbers"]}
    assert "framing_kendall" in measured and "foundation_rank" not in measured  # its words belong to others
    assert not (elsewhere.cache / "panels").exists()
