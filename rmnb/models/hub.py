"""Fetch a checkpoint from the Hugging Face hub, with one clear line for each way in which that can fail."""

from pathlib import Path

from safetensors import SafetensorError, safe_open

from rmnb.errors import InputError, first_line

_POINTER = b"version https://git-lfs.github.com/spec/"
# Neither pickles nor code: only what is read.
_PATTERNS = ["*.json", "*.safetensors", "*.jinja", "*.model", "*.txt"]


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
    if "/" not in source or source.startswith((".", "/", "~")):
        raise InputError(f"{source}: no such directory, and no hub id either (owner/name)")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        return Path(snapshot_download(source, revision=revision, allow_patterns=_PATTERNS))
    except GatedRepoError as error:
        raise InputError(f"{source} is gated: accept its terms on the hub and set HF_TOKEN") from error
    except RepositoryNotFoundError as error:
        raise InputError(f"{source}: no such model on the hub (or a private one: set HF_TOKEN)") from error
    except RevisionNotFoundError as error:
        raise InputError(f"{source}: the hub has no revision {revision!r} of it") from error
    except HFValidationError as error:
        raise InputError(f"{source} is no hub id: write owner/name, or the path of a checkpoint directory") from error
    except LocalEntryNotFoundError as error:
        raise InputError(f"{source}: not in the local hub cache, and the hub cannot be reached") from error
    except OSError as error:  # the hub's other answers are of this kind too, as is a full disk
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(
            f"{source}: the download failed ({reason}); the same command goes on where it stopped"
        ) from error


def check_files(directory: Path, with_tokenizer: bool = True) -> None:
    """Raise InputError if a checkpoint's files are not what their names say, before a library says so in its own way.

    A clone without git-lfs holds pointers; a download that was cut off, or an error page, is no safetensors file; and
    without any file of a tokenizer, transformers makes one up for some models.
    """
    files = sorted({file for pattern in _PATTERNS for file in directory.glob(pattern) if file.is_file()})
    for file in files:
        with open(file, "rb") as content:
            if content.read(len(_POINTER)) == _POINTER:
                raise InputError(f"{file} is a git-LFS pointer, not the file: run `git lfs pull` in {directory}")
        if file.suffix == ".safetensors":
            try:
                safe_open(file, framework="pt")
            except SafetensorError as error:
                raise InputError(f"{file} is damaged or cut short ({first_line(error)}): fetch it again") from error
    if with_tokenizer and not any(
        file.name.startswith(("tokenizer", "vocab")) or file.suffix == ".model" for file in files
    ):
        raise InputError(f"{directory}: no tokenizer: save it beside the weights")
