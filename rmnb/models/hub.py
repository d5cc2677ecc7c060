"""Fetch a checkpoint from the Hugging Face hub, with one clear line for each way in which that can fail."""

from pathlib import Path

from rmnb.errors import InputError, first_line

#: Neither pickles nor code: only what is read.
PATTERNS = ["*.json", "*.safetensors", "*.jinja", "*.model", "*.txt"]


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
        raise InputError(f"{source}: no such directory, and no hub id either (owner/name)", source)
    from huggingface_hub import errors, snapshot_download

    sentences = {
        errors.GatedRepoError: "a gated model: accept its terms on the hub and set HF_TOKEN",
        errors.RepositoryNotFoundError: "no such model on the hub (or a private one: set HF_TOKEN)",
        errors.RevisionNotFoundError: f"the hub has no revision {revision!r} of it",
        errors.HFValidationError: "no hub id: write owner/name, or the path of a checkpoint directory",
        errors.LocalEntryNotFoundError: "not in the local hub cache, and the hub cannot be reached",
    }
    try:
        return Path(snapshot_download(source, revision=revision, allow_patterns=PATTERNS))
    except (OSError, errors.HFValidationError) as error:  # a full disk is of this kind too
        told = f"the download failed ({first_line(error)}); the same command goes on where it stopped"
        sentence = next((known for kind, known in sentences.items() if isinstance(error, kind)), told)
        raise InputError(f"{source}: {sentence}", source) from error
