"""What a model's files hold now, known without loading it: hashes, by which a score tells whether it is stale."""

import hashlib
import json
from pathlib import Path
from typing import Any

from rmnb.errors import InputError
from rmnb.files import cached_sha256, data_dir, joint_sha256
from rmnb.models.bases import BASES, base_sha256
from rmnb.models.checkpoint_files import is_adapter
from rmnb.panels import ModelSpec

_TOKENIZER = ("tokenizer*", "vocab*", "merges*", "*.model", "added_tokens*", "special_tokens_map*")
_NAMES = {"transformers_version", "peft_version", "_name_or_path", "name_or_path", "base_model_name_or_path"}


def weights_sha256(directory: Path) -> str:
    """The hash of a checkpoint's weights."""
    return joint_sha256([cached_sha256(file) for file in sorted(directory.glob("*.safetensors"))])


def tokenizer_sha256(directory: Path) -> str:
    """The hash of a checkpoint's whole tokenizer: all files that transformers would read for it."""
    files = sorted({file for pattern in _TOKENIZER for file in directory.glob(pattern) if file.is_file()})
    return joint_sha256([cached_sha256(file) for file in files])


def config_sha256(*files: Path) -> str:
    """The hash of configurations by their content: not by their layout, nor by fields that name files or versions.

    Raises
    ------
    InputError
        A file is no JSON.
    """
    try:
        contents = [_without_names(json.loads(file.read_text(encoding="utf-8"))) for file in files]
    except (OSError, ValueError) as error:
        raise InputError(f"{files[0].parent}: its configuration cannot be read", files[0].parent) from error
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


def _without_names(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_names(item) for key, item in value.items() if key not in _NAMES}
    return [_without_names(item) for item in value] if isinstance(value, list) else value


def template_sha256(template: str | None) -> str:
    """The hash of a chat template."""
    return hashlib.sha256((template or "").encode()).hexdigest()


def hashes_now(spec: ModelSpec) -> dict[str, str]:
    """Hashes of a model's weights, configuration, tokenizer and template, as far as its files are at hand.

    Nothing is downloaded: of a model on the hub only the template that a panel gives is known. Of a demo model's base
    the hash is a constant of this package; its adapter is read.
    """
    known: dict[str, str] = {}
    template = spec.template
    if spec.base and spec.adapter and (spec.base in BASES or Path(spec.base).is_dir()):
        adapter = data_dir() / spec.adapter
        if (weights := adapter / "adapter_model.safetensors").exists():
            known["weights_sha256"] = joint_sha256([base_sha256(spec.base), cached_sha256(weights)])
            known["config_sha256"] = config_sha256(adapter / "adapter_config.json")
    elif spec.source and (directory := Path(spec.source)).is_dir():
        # Of an adapter the base counts too: what it is takes more than a look.
        if any(directory.glob("*.safetensors")) and not is_adapter(directory):
            known["weights_sha256"] = weights_sha256(directory)
            known["config_sha256"] = config_sha256(directory / "config.json")
        if any(directory.glob("tokenizer*")):
            known["tokenizer_sha256"] = tokenizer_sha256(directory)
        template = _template(directory, spec.template)
    if template is not None:
        known["template_sha256"] = template_sha256(template)
    return known


def _template(directory: Path, asked: str | None) -> str | None:
    """The template that loading would take, or None if that takes more than a look: one of several, or none."""
    if any(directory.glob("additional_chat_templates/*")):
        return None
    try:
        if asked is None and (file := directory / "chat_template.jinja").exists():
            return file.read_text(encoding="utf-8")
        settings = json.loads((directory / "tokenizer_config.json").read_text(encoding="utf-8"))
        own = settings.get("chat_template")
    except (OSError, ValueError, AttributeError):
        return asked
    return asked or own if own is None or isinstance(own, str) else None
