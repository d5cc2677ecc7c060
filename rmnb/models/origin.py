"""Where a model's files are, and what they hold now: hashes, by which a score tells whether it is stale."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rmnb.errors import InputError
from rmnb.files import cached_sha256, data_dir, joint_sha256, shipped
from rmnb.models.bases import BASES, base_directory, base_tokenizer
from rmnb.models.checkpoint_files import (
    ADAPTER,
    base_of,
    files_of,
    is_adapter,
    read_tokenizer,
    readable,
    weight_files,
)
from rmnb.panels import ModelSpec

# All files that transformers would read for a tokenizer.
_TOKENIZER = ("tokenizer*", "vocab*", "merges*", "*.model", "added_tokens*", "special_tokens_map*")
_NAMES = {"transformers_version", "peft_version", "_name_or_path", "name_or_path", "base_model_name_or_path"}


def weights_sha256(directory: Path, variant: str | None = None) -> str:
    """The hash of a checkpoint's weights, or of a variant of them."""
    return joint_sha256([cached_sha256(file) for file in weight_files(directory, variant)])


def base_sha256(name: str) -> str:
    """The hash of a base's weights: of `BASES` a constant, of any other that of its files."""
    return BASES[name].tensors_sha256 if name in BASES else weights_sha256(base_directory(name))


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


@dataclass(frozen=True)
class ModelFiles:
    """Where a model's files are.

    Attributes
    ----------
    spec : ModelSpec
        With `base` and `adapter` where its directory holds an adapter that `rmnb book train` made.
    source : str
        What the network is called: a whole checkpoint, or an adapter's base.
    directory, network : Path or None
        Of the checkpoint or adapter, and of the network: the same, or the base's. None: not on this machine.
    """

    spec: ModelSpec
    source: str
    directory: Any
    network: Any

    @property
    def tokenizer(self) -> Path:
        """The tokenizer's directory: as the spec says, else the model's own; of an adapter without one, its base's."""
        if self.spec.tokenizer is not None:
            return Path(self.spec.tokenizer)
        return self.directory if self.network is None or any(self.directory.glob("tokenizer*")) else self.network

    def read_tokenizer(self) -> Any:
        """The tokenizer; of one of `BASES` faster than transformers reads it."""
        is_of_base = self.source in BASES and self.tokenizer == self.network
        return base_tokenizer(self.source) if is_of_base else read_tokenizer(self.tokenizer)


def checkpoint_directory(spec: ModelSpec, download: bool = True) -> Path | None:
    """The directory of a whole checkpoint or an adapter, see `find_files`."""
    if spec.adapter:  # relative to the project's data
        return shipped(Path(spec.adapter) / ADAPTER, spec.name).parent
    return base_directory(str(spec.source), spec.revision, download)


def find_files(spec: ModelSpec, download: bool = True) -> ModelFiles:
    """Where a model's files are; without `download` as far as they are on this machine.

    Raises
    ------
    InputError
        No such directory or adapter, or they cannot be had; an adapter that does not say what it was trained from.
    """
    directory = checkpoint_directory(spec, download)
    if directory is None or not is_adapter(directory):
        return ModelFiles(spec, str(spec.source), directory, directory)
    name, revision = base_of(directory, spec.base or spec.base_model)
    if spec.source and trained_template(directory) is not None:
        spec = spec.model_copy(update={"source": None, "base": name, "adapter": spec.source})
        revision = None
    try:
        network = base_directory(name, revision, download)
    except InputError as error:
        raise InputError(f"{directory}: its base: {error}: name another place with --base", error.about) from error
    return ModelFiles(spec, name, directory, network)


def trained_template(directory: Path) -> str | None:
    """The template that `rmnb book train` made an adapter with; None where it is of another origin."""
    file = directory / "provenance.json"
    if not file.exists():
        return None
    with readable(file):
        record = json.loads(file.read_bytes())
    return record["template"] if {"template", "recipe"} <= {*record} else None


def hashes_of(files: ModelFiles, variant: str | None = None) -> dict[str, str]:
    """Hashes of a model's files as they are now.

    Parameters
    ----------
    files
        Of one of `rmnb.models.bases.BASES`, the base's hash stands for its configuration too.
    variant
        Of the weights, as ``from_pretrained`` takes it.

    Returns
    -------
    dict
        weights_sha256, config_sha256 and tokenizer_sha256, each if it is known.
    """
    packaged = files.spec.base in BASES
    hashes = {}
    if (packaged or files.network) and any(files.directory.glob("*model*.safetensors*")):
        parts = [files.directory] if packaged else dict.fromkeys([files.network, files.directory])
        weights = [weights_sha256(part, variant) for part in parts]
        if packaged:
            weights.insert(0, base_sha256(files.source))
        configs = [part / ("adapter_config.json" if is_adapter(part) else "config.json") for part in parts]
        hashes = {"weights_sha256": joint_sha256(weights), "config_sha256": config_sha256(*configs)}
    # The other files of a packaged tokenizer were written by the transformers that converted it.
    patterns = ["tokenizer.json"] if packaged else _TOKENIZER
    if tokenizer := files_of(files.tokenizer, *patterns):
        hashes["tokenizer_sha256"] = joint_sha256([cached_sha256(file) for file in tokenizer])
    return hashes


def hashes_now(spec: ModelSpec) -> dict[str, str]:
    """Hashes of a model's weights, configuration, tokenizer and template, as far as its files are on this machine.

    Nothing is downloaded: of a model on the hub only the template that a panel gives is known.
    """
    hashes = {}
    template = spec.template
    if (data_dir() / spec.adapter / ADAPTER).exists() if spec.adapter else Path(str(spec.source)).is_dir():
        files = find_files(spec, download=False)
        hashes = hashes_of(files)
        jinja = files.tokenizer / "chat_template.jinja"
        if spec.source and template is None and jinja.exists():  # in another file it is part of the tokenizer's hash
            template = jinja.read_text(encoding="utf-8", errors="replace")
    if template is not None and "{" in template:  # else the name of one of several
        hashes["template_sha256"] = template_sha256(spec.readout.asked_in(template))
    return hashes
