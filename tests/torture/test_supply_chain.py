"""Checkpoints made to run code, files that are not what they say, and work that writes where it has no business."""

import itertools
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from notebook_files import ROOT

import rmnb

PROMPT = "What, in one word, is the greatest thing ever?"


class Payload:
    """A pickle that, loaded, makes a file."""

    def __init__(self, canary: Path):
        self.canary = canary

    def __reduce__(self):
        return self.canary.touch, ()


@pytest.fixture
def canary(tmp_path) -> Path:
    """A file that is made by whatever code runs."""
    return tmp_path / "canary"


@pytest.fixture
def read(directory, rm, tmp_path, canary):
    """``read(files)``: read the honest checkpoint with these files in place of its own, to its reward or not at all."""
    model, expected = tmp_path / "model", rm.score(PROMPT, ["love"])

    def read(files: dict[str, bytes | None]) -> str:
        canary.unlink(missing_ok=True)
        shutil.rmtree(model, ignore_errors=True)
        shutil.copytree(directory, model)
        for name, content in files.items():
            (model / name).write_bytes(content or b"")
            if content is None:
                (model / name).unlink()
        try:
            assert rmnb.load_reward_model(model).score(PROMPT, ["love"]) == expected
        finally:
            assert not canary.exists()
        return "read as if the rest were not there"

    return read


def test_code_beside_the_weights_never_runs(directory, read, canary, tmp_path, attack):
    code = f"open({str(canary)!r}, 'w').close()\nfrom transformers import LlamaConfig as Config, LlamaModel as Model\n"
    code += "from transformers import PreTrainedTokenizerFast as Tokenizer\n"
    exec(code, {})
    assert canary.exists()  # the trap works
    own = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model", "AutoModelForSequenceClassification": "evil.Model"}
    words = {"AutoTokenizer": ["evil.Tokenizer", "evil.Tokenizer"]}
    elsewhere = {key: f"{tmp_path / 'model'}--evil.Config" for key in own}
    remote = {
        "auto_map in the configuration": ("config.json", {"auto_map": own | words}),
        "auto_map and an architecture of its own": ("config.json", {"auto_map": own | words, "model_type": "evil"}),
        "auto_map in the tokenizer": ("tokenizer_config.json", {"auto_map": words, "tokenizer_class": "Tokenizer"}),
        "auto_map into another repository": ("config.json", {"auto_map": elsewhere, "model_type": "evil"}),
    }
    for what, (name, changes) in remote.items():
        changed = json.dumps(json.loads((directory / name).read_text()) | changes)
        attack(f"a checkpoint with {what}", [{"evil.py": code.encode(), name: changed.encode()}], read, refused="")


def test_pickles_never_run(read, canary, attack):
    payload = pickle.dumps(Payload(canary))
    pickle.loads(payload)
    assert canary.exists()  # the trap works
    weights, pickled = "model.safetensors", "pytorch_model.bin"
    named = json.dumps({"metadata": {}, "weight_map": {"model.embed_tokens.weight": pickled}}).encode()
    instead = {weights: None, pickled: payload}
    indexed = instead | {"model.safetensors.index.json": named}
    beside = {pickled: payload, "training_args.bin": payload, "optimizer.pt": payload}
    files = [beside, instead, {weights: payload}, indexed, indexed | {"other.safetensors": b""}]
    files += [{"tokenizer.json": payload, "tokenizer.model": payload}, {"config.json": payload}]

    def load(files: dict) -> str:
        outcome = read(files)
        assert files == beside
        return outcome

    attack("a checkpoint with a pickle", files, load, refused="")


def test_files_of_a_checkpoint_that_are_damaged(directory, read, attack, times):
    def cut(given: tuple[str, int]) -> None:
        name, tenth = given
        good = (directory / name).read_bytes()
        assert not read({name: good[: len(good) * tenth // 10]})

    names = ["model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"]
    tenths = itertools.product(names, times((0, 3, 9), range(10)))
    attack("a file of a checkpoint cut at a tenth of its length", tenths, cut, refused="")


WATCH = """
import os, sys
written = open(sys.argv.pop(1), "w")
def watch(event, arguments):
    paths = ()
    if event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        paths = arguments[:1]
    if event in ("os.mkdir", "os.rename", "os.symlink", "os.link"):
        paths = arguments[:2]
    for path in paths:
        if isinstance(path, str) and path != os.devnull:
            print(os.path.abspath(path), file=written, flush=True)
sys.addaudithook(watch)
from rmnb.cli.main import main
main()
"""


@pytest.mark.slow
def test_nothing_is_written_outside_cache_and_output(directory, tmp_path, attack):
    home, cwd, out, tmp = places = [tmp_path / name for name in ("home", "cwd", "out", "tmp")]
    for place in places:
        place.mkdir()
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {"HOME": home, "TMPDIR": tmp, "PYTHONPATH": path, "PATH": os.environ["PATH"]}
    log, scores = tmp_path / "written", out / "scan.parquet"
    words = ["scan", directory, "--prompt", PROMPT, "--out", scores, "--first", "300"]

    def scan(command: list) -> str:
        subprocess.run(command, cwd=cwd, env=environment, check=True, capture_output=True)
        paths = {Path(line) for line in log.read_text().splitlines()}
        assert any(scores.name in path.name for path in paths)
        assert not [path for path in paths if not any(map(path.is_relative_to, (home / ".cache", out, tmp)))]
        assert [file for place in (cwd, out, tmp) for file in place.rglob("*") if file.is_file()] == [scores]
        return f"{len(paths)} paths, all in the cache, the output's directory and the system's temporary one"

    watched = [sys.executable, "-B", "-c", WATCH, log, *words]
    attack("a scan in a home of its own, every file that it opens to write watched", [watched], scan)


def test_what_make_installs_is_pinned_by_hash(attack):
    def pins(file: str) -> dict[str, str]:
        """By requirement its hashes."""
        text = (ROOT / file).read_text().replace("\\\n", " ").replace("_", "-").lower()
        return dict(re.findall(r"^([^#\s]\S*)(.*)", text, re.MULTILINE))

    hashed = pins("requirements.txt")

    def pinned(requirement: str) -> str:
        if requirement.startswith("torch=="):  # a build for each kind of machine, on indexes of its own
            assert requirement not in hashed
            return "by version alone (torch)"
        assert re.fullmatch(r"(\s+--hash=sha256:[0-9a-f]{64})+", hashed.pop(requirement))
        return "by version and hash"

    attack("what make installs is pinned", pins("constraints.txt"), pinned)
    assert not hashed
    installs = [line for line in (ROOT / "Makefile").read_text().splitlines() if "$(BIN)/pip install" in line]
    assert any("--require-hashes -r requirements.txt" in line for line in installs)
    assert all("--require-hashes" in line or "-c constraints.txt" in line for line in installs)
