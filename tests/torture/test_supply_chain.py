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
from checkpoints import write_decoder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import rmnb
from rmnb.errors import InputError

PROMPT = "What, in one word, is the greatest thing ever?"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Path:
    return write_decoder(tmp_path_factory.mktemp("honest"))


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
            (model / name).unlink(missing_ok=True)
            if content is not None:
                (model / name).write_bytes(content)
        try:
            assert rmnb.load_reward_model(model).score(PROMPT, ["love"]) == expected
            outcome = "read as if the rest were not there"
        except InputError as error:
            assert "\n" not in str(error)
            outcome = "refused in one line"
        assert not canary.exists()
        return outcome

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
        attack(f"a checkpoint with {what}", [{"evil.py": code.encode(), name: changed.encode()}], read)


class Payload:
    """A pickle that, loaded, makes a file."""

    def __init__(self, canary: Path):
        self.canary = canary

    def __reduce__(self):
        return self.canary.touch, ()


def test_pickles_never_run(read, canary, attack):
    payload = pickle.dumps(Payload(canary))
    pickle.loads(payload)
    assert canary.exists()  # the trap works
    weights, index, pickled = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
    named = json.dumps({"metadata": {}, "weight_map": {"model.embed_tokens.weight": pickled}}).encode()
    beside = {pickled: payload, "training_args.bin": payload, "optimizer.pt": payload}
    files = [
        beside,
        {weights: None, pickled: payload},
        {weights: payload},
        {weights: None, index: named, pickled: payload},
        {weights: None, index: named, pickled: payload, "other.safetensors": b""},
        {"tokenizer.json": payload, "tokenizer.model": payload},
        {"config.json": payload},
    ]

    def load(files: dict) -> str:
        outcome = read(files)
        assert (outcome == "refused in one line") == (files != beside)
        return outcome

    attack("a checkpoint with a pickle", files, load)


def test_files_of_a_checkpoint_that_are_damaged(directory, read, attack, times):
    def cut(given: tuple[str, int]) -> str:
        name, tenth = given
        good = (directory / name).read_bytes()
        outcome = read({name: good[: len(good) * tenth // 10]})
        assert outcome == "refused in one line"
        return outcome

    names = ["model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"]
    tenths = itertools.product(names, times((0, 3, 9), range(10)))
    attack("a file of a checkpoint cut at a tenth of its length", tenths, cut)


WATCH = """
import os, sys
written = open(sys.argv.pop(1), "w")
def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and arguments[0] != os.devnull:
        path, mode, flags = arguments
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            print(os.path.abspath(path), file=written, flush=True)
    elif event in ("os.mkdir", "os.rename", "os.symlink", "os.link", "os.remove", "os.rmdir"):
        for path in arguments[:2]:
            if isinstance(path, str) and not (event in ("os.remove", "os.rmdir") and arguments[1] != -1):
                print(os.path.abspath(path), file=written, flush=True)
sys.addaudithook(watch)
from rmnb.cli.main import main
main()
"""


@pytest.mark.slow
def test_nothing_is_written_outside_cache_and_output(directory, tmp_path, attack):
    home, cwd, out, tmp = (tmp_path / name for name in ("home", "cwd", "out", "tmp"))
    for place in (home, cwd, out, tmp):
        place.mkdir()
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {"HOME": str(home), "TMPDIR": str(tmp), "PYTHONPATH": path, "PATH": os.environ["PATH"]}
    log, scores = tmp_path / "written", out / "scan.parquet"

    def scan(words: list[str]) -> str:
        command = [sys.executable, "-B", "-c", WATCH, str(log), *words]
        subprocess.run(command, cwd=cwd, env=environment, check=True, capture_output=True)
        paths = {Path(line) for line in log.read_text().splitlines()}
        assert any(scores.name in path.name for path in paths)
        outside = [path for path in paths if not any(map(path.is_relative_to, (home / ".cache", out, tmp)))]
        assert not outside, outside[:5]
        left = [file for place in (home, cwd, out, tmp) for file in place.rglob("*") if file.is_file()]
        assert all(file == scores or file.is_relative_to(home / ".cache" / "rmnb") for file in left), left
        return f"{len(paths)} paths, all in the cache, the output's directory and the system's temporary one"

    words = ["scan", str(directory), "--prompt", PROMPT, "--out", str(scores), "--first", "300"]
    attack("a scan in a home of its own, every file that it opens to write watched", [words], scan)


def test_what_make_installs_is_pinned_by_hash(attack):
    def pins(file: str) -> dict[str, list[str]]:
        """Of each package the requirement, then its hashes."""
        lines = (ROOT / file).read_text().replace("\\\n", " ").splitlines()
        pinned = [line.split(" --hash=") for line in lines if line.strip() and not line.startswith("#")]
        return {canonicalize_name(Requirement(one).name): [one.strip(), *hashes] for one, *hashes in pinned}

    constraints, hashed = pins("constraints.txt"), pins("requirements.txt")

    def pinned(name: str) -> str:
        if name == "torch":  # a build for each kind of machine, on indexes of its own
            assert name not in hashed
            return "by version alone (torch)"
        requirement, *hashes = hashed[name]
        assert Requirement(requirement).specifier == Requirement(constraints[name][0]).specifier
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}\s*", value) for value in hashes)
        return "by version and hash"

    attack("what make installs is pinned", constraints, pinned)
    assert set(hashed) < set(constraints)
    installs = [line for line in (ROOT / "Makefile").read_text().splitlines() if "$(BIN)/pip install" in line]
    assert any("--require-hashes -r requirements.txt" in line for line in installs)
    assert all("--require-hashes" in line or "-c constraints.txt" in line for line in installs)
