"""What lies in a checkpoint's directory: an adapter, pickles, pointers; and one line for damaged files."""

import contextlib
import json
from pathlib import Path

from rmnb.errors import InputError, few, first_line
from rmnb.models.hub import PATTERNS

ADAPTER, VALUE_HEAD = "adapter_model.safetensors", "value_head.safetensors"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
_POINTER = b"version https://git-lfs.github.com/spec/"


def is_adapter(directory: Path) -> bool:
    """Whether a directory holds a PEFT adapter and no weights of a whole model."""
    whole = {file.name for file in directory.glob("*.safetensors")} - {ADAPTER, VALUE_HEAD}
    return (directory / "adapter_config.json").exists() and not whole


def base_of(directory: Path, base: str | None = None) -> tuple[str, str | None]:
    """The base of an adapter, a hub id or a directory, and its revision: the one given, else its configuration's.

    Raises
    ------
    InputError
        The configuration cannot be read or names none.
    """
    with readable(directory / "adapter_config.json"):
        config = json.loads((directory / "adapter_config.json").read_text(encoding="utf-8"))
        named, revision = config.get("base_model_name_or_path"), config.get("revision")
    if base:
        return base, None
    if not named or not isinstance(named, str):
        raise InputError(f"{directory}: the adapter does not say what it was trained from: name it with --base")
    return named, revision


def refuse_pickles(directory: Path, name: str = "*.safetensors") -> None:
    """Raise InputError if a directory has no weights of that name; pickles, which can run code, are named."""
    if any(directory.glob(name)):
        return
    pickles = [file.name for pattern in _PICKLES for file in directory.glob(pattern)]
    if pickles:
        raise InputError(
            f"{directory}: only pickled weights ({few(pickles)}), which can run code: convert to safetensors"
        )
    raise InputError(f"{directory}: no {name} file")


def check_files(directory: Path, with_tokenizer: bool = True) -> None:
    """Raise InputError if a directory holds no whole checkpoint, before a library says so in its own way.

    A clone without git-lfs holds pointers; a download that was cut off, or an error page, is no safetensors file; and
    without any file of a tokenizer, transformers makes one up for some models.
    """
    from safetensors import safe_open

    if not (directory / "config.json").exists():
        inside = few(path.name for path in directory.glob("checkpoint-*"))
        hint = f"; inside are {inside}" if inside else ""
        raise InputError(f"{directory} is no checkpoint: it has no config.json, and no adapter_config.json{hint}")
    refuse_pickles(directory)
    files = sorted({file for pattern in PATTERNS for file in directory.glob(pattern) if file.is_file()})
    for file in files:
        with open(file, "rb") as content:
            if content.read(len(_POINTER)) == _POINTER:
                raise InputError(f"{file} is a git-LFS pointer, not the file: run `git lfs pull` in {directory}", file)
        if file.suffix == ".safetensors":
            with readable(file):
                safe_open(file, framework="pt")
    names = [file.name for file in files if file.name.startswith(("tokenizer", "vocab")) or file.suffix == ".model"]
    if with_tokenizer and not names:
        raise InputError(f"{directory}: no tokenizer: save it beside the weights")


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
