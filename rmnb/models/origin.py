"""What a model's files hold now, known without loading it: hashes, by which a score tells whether it is stale."""

import hashlib
import json
from pathlib import Path

from rmnb.files import cached_sha256, data_dir, joint_sha256
from rmnb.models.bases import BASES, base_directory
from rmnb.models.checkpoint_files import (
    ADAPTER,
    base_of,
    cached,
    files_of,
    is_adapter,
    readable,
    tokenizer_directory,
    weight_files,
)
from rmnb.panels import ModelSpec

_TOKENIZER = ("tokenizer*", "vocab*", "merges*", "*.model", "added_tokens*", "special_tokens_map*")
_NAMES = {"transformers_version", "peft_version", "_name_or_path", "name_or_path", "base_model_name_or_path"}


def weights_sha256(directory: Path, variant: str | None = None) -> str:
    """The hash of a checkpoint's weights, or of a variant of them."""
    return joint_sha256([cached_sha256(file) for file in weight_files(directory, variant)])


def base_sha256(name: str) -> str:
    """The hash of a base's weights: of `BASES` a constant, of any other that of its files."""
    return BASES[name].tensors_sha256 if name in BASES else weights_sha256(base_directory(name))


def tokenizer_sha256(directory: Path) -> str:
    """The hash of a checkpoint's whole tokenizer: all files that transformers would read for it."""
    return joint_sha256([cached_sha256(file) for file in files_of(directory, *_TOKENIZER)])


def config_sha256(*files: Path) -> str:
    """The hash of configurations by their content: not by their layout, nor by fields that name files or versions.

    Raises
    ------
    InputError
        A file is no JSON.
    """
    with readable(files[0].parent):
        contents = [
            json.loads(
                file.read_bytes(), object_hook=lambda fields: {key: fields[key] for key in fields.keys() - _NAMES}
            )
            for file in files
        ]
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


def template_sha256(template: str | None) -> str:
    """The hash of a chat template."""
    return hashlib.sha256((template or "").encode()).hexdigest()


def hashes_of(
    directory: Path, base: str | Path | None = None, tokenizer: Path | None = None, variant: str | None = None
) -> dict[str, str]:
    """Hashes of a checkpoint's files as they are now.

    Parameters
    ----------
    directory
        Of a whole checkpoint, or of an adapter.
    base
        Of an adapter: a key of `rmnb.models.bases.BASES`, whose hash stands for its configuration too, or a directory.
    tokenizer
        The tokenizer's directory, if it is known.
    variant
        Of the weights, as ``from_pretrained`` takes it.

    Returns
    -------
    dict
        weights_sha256, config_sha256 and, if it is known, tokenizer_sha256.
    """
    packaged = base in BASES
    weights = [weights_sha256(directory, variant)]
    configs = [directory / "config.json"]
    if base is not None:
        weights = [base_sha256(str(base)), *weights]
        configs = [*([] if packaged else [Path(base) / "config.json"]), directory / "adapter_config.json"]
    hashes = {"weights_sha256": joint_sha256(weights), "config_sha256": config_sha256(*configs)}
    if tokenizer is not None:
        # The other files of a packaged one were written by the transformers that converted it.
        digest = cached_sha256(tokenizer / "tokenizer.json") if packaged else tokenizer_sha256(tokenizer)
        hashes["tokenizer_sha256"] = digest
    return hashes


def hashes_now(spec: ModelSpec) -> dict[str, str]:
    """Hashes of a model's weights, configuration, tokenizer and template, as far as its files are on this machine.

    Nothing is downloaded: of a model on the hub only the template that a panel gives is known.
    """
    hashes = {}
    template = spec.template
    if spec.base and spec.adapter:
        adapter = data_dir() / spec.adapter
        base = Path(spec.base)
        if (adapter / ADAPTER).exists() and (spec.base in BASES or base.is_dir()):
            hashes = hashes_of(adapter, spec.base, base if base.is_dir() else None)
    elif spec.source and (directory := Path(spec.source)).is_dir():
        if any(directory.glob("model.safetensors*")):
            hashes = hashes_of(directory)
        elif is_adapter(directory):  # the base counts too, if it is on this machine
            name, revision = base_of(directory, spec.base_model)
            if name not in BASES and (base := cached(name, revision)):
                hashes = hashes_of(directory, base)
        tokenizer_files = tokenizer_directory(directory, spec.tokenizer)
        if any(tokenizer_files.glob("tokenizer*")):
            hashes["tokenizer_sha256"] = tokenizer_sha256(tokenizer_files)
        jinja = tokenizer_files / "chat_template.jinja"
        if template is None and jinja.exists():  # a template in another file is part of the tokenizer's hash
            template = jinja.read_text(encoding="utf-8", errors="replace")
    if template is not None and "{" in template:  # else the name of one of several
        if spec.judge:
            template = spec.judge.asked_in(template)
        hashes["template_sha256"] = template_sha256(template)
    return hashes
