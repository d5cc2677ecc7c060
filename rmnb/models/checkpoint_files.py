"""A checkpoint's directory: fetched from the hub, and what lies in it; one line for what is missing or damaged."""

import contextlib
import json
from pathlib import Path
from typing import Any

from rmnb.errors import InputError, few, first_line

ADAPTER = "adapter_model.safetensors"
VALUE_HEAD = "value_head.safetensors"
#: Neither pickles nor code: only what is read.
PATTERNS = ["*.json", "*.safetensors", "*.jinja", "*.model", "*.txt"]
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
_POINTER = b"version https://git-lfs.github.com/spec/"


def fetch(source: str, revision: str | None = None) -> Path:
    """The directory of a checkpoint: a local one as it is, or a hub id's snapshot, downloaded if it is not cached.

    Parameters
    ----------
    source
        A directory, or a hub id ``owner/name``.
    revision
        Branch, tag or commit. Default: the main branch.

    Raises
    ------
    InputError
        Gated or unknown model, unknown revision, no network, no space.
    """
    if Path(source).is_dir():
        return Path(source)
    from huggingface_hub import errors, snapshot_download

    sentences = {
        errors.RepositoryNotFoundError: "no such model on the hub (or a private one: set HF_TOKEN)",
        errors.GatedRepoError: "a gated model: accept its terms on the hub and set HF_TOKEN",
        errors.RevisionNotFoundError: f"the hub has no revision {revision!r} of it",
        errors.HFValidationError: "no such directory, and no hub id either (owner/name)",
        errors.LocalEntryNotFoundError: "no such directory, nor in the local hub cache, and the hub cannot be reached",
    }
    try:
        return Path(snapshot_download(source, revision=revision, allow_patterns=PATTERNS))
    except (OSError, errors.HFValidationError) as error:  # a full disk is of this kind too
        sentence = f"the download failed ({first_line(error)}); the same command goes on where it stopped"
        for kind, meaning in sentences.items():  # the last one holds: a gated model is a kind of unknown one
            if isinstance(error, kind):
                sentence = meaning
        raise InputError(f"{source}: {sentence}", source) from error


def is_adapter(directory: Path) -> bool:
    """Whether a directory holds a PEFT adapter and no weights of a whole model."""
    whole = {file.name for file in directory.glob("*.safetensors")} - {ADAPTER, VALUE_HEAD}
    return (directory / "adapter_config.json").exists() and not whole


def base_of(directory: Path, base: str | None = None) -> tuple[str, str | None]:
    """The base of an adapter, a hub id or a directory, and its revision: as given, or else as its configuration says.

    Raises
    ------
    InputError
        The configuration cannot be read or names none.
    """
    with readable(directory / "adapter_config.json"):
        config = json.loads((directory / "adapter_config.json").read_text(encoding="utf-8"))
        name = config.get("base_model_name_or_path")
        revision = config.get("revision")
    if base:
        return base, None
    if not name or not isinstance(name, str):
        raise InputError(f"{directory}: the adapter does not say what it was trained from: name it with --base")
    return name, revision


def files_of(directory: Path, *patterns: str) -> list[Path]:
    """The files of a directory whose names match one of the patterns, in order."""
    return sorted({file for pattern in patterns for file in directory.glob(pattern) if file.is_file()})


def refuse_pickles(directory: Path, name: str = "*.safetensors") -> None:
    """Raise InputError if a directory has no weights of that name; pickles, which can run code, are named."""
    if any(directory.glob(name)):
        return
    if pickles := files_of(directory, *_PICKLES):
        names = few(file.name for file in pickles)
        raise InputError(f"{directory}: only pickled weights ({names}), which can run code: convert to safetensors")
    raise InputError(f"{directory}: no {name} file")


def read_tokenizer(directory: Path) -> Any:
    """A checkpoint's tokenizer; InputError if its files are damaged or of a kind that transformers does not know."""
    from transformers import AutoTokenizer

    if not directory.is_dir():
        raise InputError(f"the tokenizer {directory}: no such directory", directory)
    with readable(directory):
        return AutoTokenizer.from_pretrained(directory, trust_remote_code=False)


def check_files(directory: Path, with_tokenizer: bool = True) -> None:
    """Raise InputError if a directory holds no whole checkpoint, before a library says so in its own way.

    A clone without git-lfs holds pointers; a download that was cut off, or an error page, is no safetensors file; and
    without any file of a tokenizer, transformers makes one up for some models.
    """
    from safetensors import safe_open

    if not (directory / "config.json").exists():
        inside = few(path.name for path in directory.iterdir()) or "nothing"
        raise InputError(f"{directory} is no checkpoint: no config.json, no adapter_config.json; it holds {inside}")
    refuse_pickles(directory)
    files = files_of(directory, *PATTERNS)
    for file in files:
        with open(file, "rb") as content:
            if content.read(len(_POINTER)) == _POINTER:
                raise InputError(f"{file} is a git-LFS pointer, not the file: run `git lfs pull` in {directory}", file)
        if file.suffix == ".safetensors":
            with readable(file):
                safe_open(file, framework="pt")
    if with_tokenizer and not files_of(directory, "tokenizer*", "vocab*", "*.model"):
        raise InputError(
            f"{directory}: no tokenizer: save it beside the weights, or name its directory with --tokenizer"
        )


@contextlib.contextmanager
def readable(path: Path):
    """One line for whatever a damaged or foreign file makes the libraries raise: some raise bare exceptions.

    `path` is that file, or its directory.
    """
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        if type(error).__name__ == "OutOfMemoryError":  # torch's; whoever looks at files alone does not load it
            raise
        kinds = {
            "SafetensorError": "damaged or cut short: ",
            "JSONDecodeError": "damaged JSON: ",
            "KeyError": "missing or unknown: ",
        }
        raise InputError(f"{path}: {kinds.get(type(error).__name__, '')}{first_line(error)}", path) from error
