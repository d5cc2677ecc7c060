"""What the forms of panels and prompts share: no unknown key, names that do for files, one clear line for a mistake."""

import re
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from rmnb.errors import InputError
from rmnb.yaml_files import read_yaml

PANELS = Path(__file__).parent
Kind = TypeVar("Kind", bound=BaseModel)


def _file_name(name: str) -> str:
    if not name.strip() or name.startswith(".") or re.search(r"[/\\\x00-\x1f\x7f]", name) or len(name.encode()) > 150:
        raise ValueError("must do as the name of a file: not empty, no slash, no leading dot, at most 150 bytes")
    return name


FileName = Annotated[str, AfterValidator(_file_name)]  # scores are kept under it


class Strict(BaseModel):
    """A form: no key that it does not know, nothing changed later."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


def read(kind: type[Kind], name: str | Path, directory: Path, what: str) -> Kind:
    """The checked form in a file: one of `directory` by name, or any by path.

    Raises
    ------
    InputError
        No such file, not YAML, or a key that is missing, unknown or of the wrong kind.
    """
    path = directory / f"{name}.yml" if not str(name).endswith((".yml", ".yaml")) else Path(name)
    if not path.exists():
        known = ", ".join(sorted(file.stem for file in directory.glob("*.yml")))
        raise InputError(f"unknown {what} {str(name)!r}: choose one of {known}, or give the path of a .yml file")
    try:
        return kind.model_validate(read_yaml(path))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or f"the {what}"
        raise InputError(f"{path}: {key}: {first['msg']}") from error
