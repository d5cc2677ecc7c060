"""A checkpoint's directory: fetched from the hub, and the one reader of its files, which are those of transformers.

One line says what is missing or damaged. Nothing here runs a checkpoint's own code, and no pickle is opened.
"""

import contextlib
import json
from pathlib import Path
from typing import Any

from rmnb.errors import InputError, first_line, list_some

ADAPTER = "adapter_model.safetensors"
VALUE_HEAD = "value_head.safetensors"
#: For `from_pretrained`: neither code nor pickles nor adapters that lie beside the weights, and tensors of another
#: shape are reported, not refused.
LOADING = {
    "trust_remote_code": False,
    "use_safetensors": True,
    "ignore_mismatched_sizes": True,
    "output_loading_info": True,
    "adapter_kwargs": {"subfolder": ".none"},
}
#: Neither pickles nor code: only what is read.
PATTERNS = ["*.json", "*.safetensors", "*.jinja", "*.model", "*.txt", "README.md"]
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
_POINTER = b"version https://git-lfs.github.com/spec/"


def fetch(source: str, revision: str | None = None, download: bool = True) -> Path | None:
    """The directory of a hub id's snapshot, downloaded if it is not cached.

    Parameters
    ----------
    source
        A hub id ``owner/name``.
    revision
        Branch, tag or commit. Default: the main branch.
    download
        If not, None where no configuration is on this machine.

    Raises
    ------
    InputError
        Gated or unknown model, unknown revision, no network, no space.
    """
    from huggingface_hub import errors, snapshot_download, try_to_load_from_cache

    if not download:
        with contextlib.suppress(errors.HFValidationError):
            file = try_to_load_from_cache(source, "config.json", revision=revision)
            return Path(file).parent if isinstance(file, str) else None
        return None
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
    return (directory / "adapter_config.json").exists() and not any(directory.glob("model*.safetensors*"))


def base_of(directory: Path, base: str | None) -> tuple[str, str | None]:
    """The base of an adapter, a hub id or a directory, and its revision: as given, or else as its configuration says.

    Raises
    ------
    InputError
        The configuration cannot be read or names none.
    """
    with readable(directory / "adapter_config.json"):
        config = json.loads((directory / "adapter_config.json").read_bytes())
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


def weight_files(directory: Path, variant: str | None = None) -> list[Path]:
    """The files that hold the weights: those that transformers and PEFT read, and no other that may lie there.

    Parameters
    ----------
    directory
        Of a whole checkpoint or an adapter.
    variant
        As ``from_pretrained`` takes it: ``fp16`` for ``model.fp16.safetensors``.

    Returns
    -------
    list of Path
        The adapter; or the single file, or else those that the index lists; and a value head in a file of its own.

    Raises
    ------
    InputError
        There is none; pickles, which can run code, are named. Or the index is damaged, or names a file that is not
        there.
    """
    infix = f".{variant}" if variant else ""
    name = ADAPTER if is_adapter(directory) else f"model{infix}.safetensors"
    files = [directory / name]
    index = directory / f"model.safetensors.index{infix}.json"
    if not files[0].exists() and index.exists():
        with readable(index):
            names = set(json.loads(index.read_bytes())["weight_map"].values())
        files = [directory / Path(name).name for name in sorted(names)]
    if missing := [file.name for file in files if not file.exists()]:
        if pickles := files_of(directory, *_PICKLES):
            names = list_some(file.name for file in pickles)
            raise InputError(f"{directory}: only pickled weights ({names}), which can run code: convert to safetensors")
        raise InputError(f"{directory}: no file named {list_some(missing)}")
    return files + files_of(directory, VALUE_HEAD)


def read_tensors(directory: Path, names: set[str], variant: str | None = None) -> dict[str, Any]:
    """The named tensors of a checkpoint's weights, and all of a value head in a file of its own.

    LLaMA-Factory writes that beside a language model or an adapter.

    Raises
    ------
    InputError
        A file is damaged, or the value head pickled.
    """
    from safetensors import safe_open

    tensors = {}
    for path in weight_files(directory, variant):
        with readable(path), safe_open(path, framework="pt") as file:
            stored = set(file.keys())
            chosen = stored if path.name == VALUE_HEAD else stored & names
            tensors.update({name: file.get_tensor(name) for name in sorted(chosen)})
    if (directory / "value_head.bin").exists() and not (directory / VALUE_HEAD).exists():
        raise InputError(f"{directory}: value_head.bin is pickled, which can run code: convert it to {VALUE_HEAD}")
    return tensors


def read_tokenizer(directory: Path) -> Any:
    """A checkpoint's tokenizer; InputError if its files are damaged or of a kind that transformers does not know."""
    from transformers import AutoTokenizer

    if not directory.is_dir():
        raise InputError(f"the tokenizer {directory}: no such directory", directory)
    with readable(directory):
        return AutoTokenizer.from_pretrained(directory, trust_remote_code=False)


def read_config(directory: Path, softcap: bool = True) -> Any:
    """A checkpoint's configuration; without attention soft-capping if that is to be left out.

    Raises
    ------
    InputError
        The configuration cannot be read, or has no soft-capping that could be left out.
    """
    from transformers import AutoConfig

    with readable(directory):
        config = AutoConfig.from_pretrained(directory, trust_remote_code=False)
    text = config.get_text_config()
    if not softcap:
        if getattr(text, "attn_logit_softcapping", None) is None:
            raise InputError(f"{directory}: its attention has no soft-capping that could be switched off", "softcap")
        text.attn_logit_softcapping = None
    return config


def check_files(directory: Path, with_tokenizer: bool = True, variant: str | None = None) -> None:
    """Raise InputError if a directory holds no whole checkpoint, before a library says so in its own way.

    A clone without git-lfs holds pointers; a download that was cut off, or an error page, is no safetensors file; and
    without any file of a tokenizer, transformers makes one up for some models.
    """
    from safetensors import safe_open

    if not (directory / "config.json").exists():
        inside = list_some(path.name for path in directory.iterdir()) or "nothing"
        raise InputError(f"{directory} is no checkpoint: no config.json, no adapter_config.json; it holds {inside}")
    weights = weight_files(directory, variant)
    for file in files_of(directory, *PATTERNS):
        with open(file, "rb") as content:
            if content.read(len(_POINTER)) == _POINTER:
                raise InputError(f"{file} is a git-LFS pointer, not the file: run `git lfs pull` in {directory}", file)
    for file in weights:
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
