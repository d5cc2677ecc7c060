"""Checkpoints made to run code, files that are not what they say, and work that writes where it has no business."""

import itertools
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checkpoints import write_decoder
from packaging.requirements import Requirement

import rmnb
from rmnb.errors import InputError

PROMPT = "What, in one word, is the greatest thing ever?"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def honest(tmp_path_factory) -> Path:
    return write_decoder(tmp_path_factory.mktemp("honest"))


class Payload:
    """A pickle that, loaded, makes a file: the canary."""

    def __init__(self, canary: Path):
        self.canary = canary

    def __reduce__(self):
        return os.system, (f"touch '{self.canary}'",)


def change(file: Path, **values) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def with_code(directory: Path, canary: Path) -> None:
    """Python beside the weights that touches the canary on import, and defines what a configuration may ask for."""
    code = f"open({str(canary)!r}, 'w').close()\nfrom transformers import LlamaConfig as Config, LlamaModel as Model\n"
    (directory / "evil.py").write_text(code + "from transformers import PreTrainedTokenizerFast as Tokenizer\n")


CODE = {
    "AutoConfig": "evil.Config",
    "AutoModel": "evil.Model",
    "AutoModelForSequenceClassification": "evil.Model",
    "AutoTokenizer": ["evil.Tokenizer", "evil.Tokenizer"],
}
REMOTE = {
    "auto_map in the configuration": lambda d: change(d / "config.json", auto_map=CODE),
    "auto_map and an architecture of its own": lambda d: change(d / "config.json", auto_map=CODE, model_type="evil"),
    "auto_map in the tokenizer": lambda d: change(
        d / "tokenizer_config.json", auto_map={"AutoTokenizer": CODE["AutoTokenizer"]}, tokenizer_class="Tokenizer"
    ),
    "auto_map into another repository": lambda d: change(
        d / "config.json", auto_map={key: f"{d}--evil.Config" for key in CODE}, model_type="evil"
    ),
}


def is_read(directory: Path, honest: Path) -> bool:
    """Whether a checkpoint is read, to the honest one's reward; else it is refused in one line."""
    try:
        reward = rmnb.load_reward_model(directory).score(PROMPT, ["love"])
    except InputError as error:
        assert "\n" not in str(error)
        return False
    assert reward == rmnb.load_reward_model(honest).score(PROMPT, ["love"])
    return True


@pytest.mark.parametrize("what", REMOTE)
def test_code_beside_the_weights_never_runs(what, honest, tmp_path, attack):
    directory, canary = tmp_path / "model", tmp_path / "canary"
    shutil.copytree(honest, directory)
    with_code(directory, canary)
    exec(compile((directory / "evil.py").read_text(), "evil", "exec"), {})
    assert canary.exists()  # the trap works
    canary.unlink()

    def load(what: str) -> str:
        REMOTE[what](directory)
        read = is_read(directory, honest)
        assert not canary.exists()
        return "read natively, the code ignored" if read else "refused in one line"

    attack(f"a checkpoint with {what}", [what], load)


def test_pickles_never_run(honest, tmp_path, attack):
    canary = tmp_path / "canary"
    payload = pickle.dumps(Payload(canary))
    pickle.loads(payload)
    assert canary.exists()  # the trap works
    canary.unlink()
    weights, index = "model.safetensors", "model.safetensors.index.json"
    named = json.dumps({"metadata": {}, "weight_map": {"model.embed_tokens.weight": "pytorch_model.bin"}}).encode()
    files = {
        "alone": {weights: None, "pytorch_model.bin": payload},
        "beside the weights": {"pytorch_model.bin": payload, "training_args.bin": payload, "optimizer.pt": payload},
        "under the name of the weights": {weights: payload},
        "named by an index": {weights: None, index: named, "pytorch_model.bin": payload},
        "named by an index, and a file of weights": {
            weights: None, "other.safetensors": b"", index: named, "pytorch_model.bin": payload
        },
        "as a tokenizer": {"tokenizer.json": payload, "tokenizer.model": payload},
        "as a configuration": {"config.json": payload},
    }  # fmt: skip

    def load(what: str) -> str:
        directory = tmp_path / what
        shutil.copytree(honest, directory)
        for name, content in files[what].items():
            (directory / name).unlink(missing_ok=True)
            if content is not None:
                (directory / name).write_bytes(content)
        assert is_read(directory, honest) == (what == "beside the weights")
        assert not canary.exists()
        return "left unread" if what == "beside the weights" else "refused in one line"

    attack("a checkpoint with a pickle", files, load)


def test_files_of_a_checkpoint_that_are_damaged(honest, tmp_path, attack, times):
    directory = tmp_path / "model"
    shutil.copytree(honest, directory)

    def cut(given: tuple[str, int]) -> str:
        name, tenth = given
        good = (honest / name).read_bytes()
        (directory / name).write_bytes(good[: len(good) * tenth // 10])
        assert not is_read(directory, honest)
        (directory / name).write_bytes(good)
        return "refused in one line"

    names = ["model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"]
    tenths = itertools.product(names, times((0, 3, 9), range(10)))
    attack("a file of a checkpoint cut at a tenth of its length", tenths, cut)
    assert is_read(directory, honest)


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
def test_nothing_is_written_outside_cache_and_output(honest, tmp_path, attack):
    box = tmp_path / "box"
    for name in ("home", "cwd", "out", "tmp"):
        (box / name).mkdir(parents=True)
    removed = ("RMNB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HF_HUB_CACHE", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
    environment = {key: value for key, value in os.environ.items() if key not in removed} | {
        "HOME": str(box / "home"),
        "TMPDIR": str(box / "tmp"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    log, out = tmp_path / "written", box / "out" / "scan.parquet"
    words = ["scan", str(honest), "--prompt", PROMPT, "--out", str(out), "--first", "300"]

    def scan(words: list[str]) -> str:
        command = [sys.executable, "-c", WATCH, str(log), *words]
        subprocess.run(command, cwd=box / "cwd", env=environment, check=True, capture_output=True)
        allowed = [box / "home" / ".cache", box / "out", box / "tmp"]
        paths = {Path(line) for line in log.read_text().splitlines()}
        assert out in paths or any(out.name in path.name for path in paths)
        outside = [path for path in paths if not any(place in (path, *path.parents) for place in allowed)]
        assert not outside, outside[:5]
        left = [file for file in box.rglob("*") if file.is_file()]
        assert not [file for file in left if box / "home" / ".cache" / "rmnb" not in file.parents and file != out], left
        return f"{len(paths)} paths, all in the cache, the output's directory and the system's temporary one"

    attack("a scan in a home of its own, every file that it opens to write watched", [words], scan)


def test_what_make_installs_is_pinned_by_hash(attack):
    pins = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            pins[requirement.name.lower().replace("_", "-").replace(".", "-")] = str(requirement.specifier)
    text = (ROOT / "requirements.txt").read_text().replace("\\\n", " ")
    hashed = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            requirement, *hashes = line.split(" --hash=")
            parsed = Requirement(requirement)
            hashed[parsed.name.lower().replace("_", "-").replace(".", "-")] = str(parsed.specifier)
            assert hashes and all(value.strip().startswith("sha256:") and len(value.strip()) == 71 for value in hashes)

    def pinned(name: str) -> str:
        if name == "torch":  # a build for each kind of machine, on indexes of its own
            assert name not in hashed
            return "by version alone (torch)"
        assert hashed[name] == pins[name]
        return "by version and hash"

    attack("what make installs is pinned", pins, pinned)
    assert set(hashed) < set(pins)
    make = (ROOT / "Makefile").read_text()
    installs = [line for line in make.splitlines() if "$(BIN)/pip install" in line]
    assert any("--require-hashes -r requirements.txt" in line for line in installs)
    assert all("--require-hashes" in line or "-c constraints.txt" in line for line in installs)
