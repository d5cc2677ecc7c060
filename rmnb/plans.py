"""Work in progress: a directory beside its output, and in it the plan that says what the work is."""

import contextlib
import json
import os
import uuid
from pathlib import Path
from typing import Any

from rmnb.errors import InputError
from rmnb.files import atomic_path


def partial_directory(output: Path) -> Path:
    """Where the parts of an output are kept until it is whole."""
    return Path(output).with_name(Path(output).name + ".partial")


def claim(directory: Path, plan: dict[str, Any], what: str) -> None:
    """Write the plan of some work into its directory, or check that the work begun there has the same.

    Of several processes that begin the same work at once, one writes the plan and the others find it there.

    Parameters
    ----------
    directory
        Of `partial_directory`.
    plan
        What the work is, as JSON values.
    what
        Its name in messages, such as ``scan``.

    Raises
    ------
    InputError
        The directory cannot be written, or holds other work: the first difference is named.
    """
    file = directory / "plan.json"
    plan = json.loads(json.dumps(plan))
    if not file.exists():
        mine = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
        with atomic_path(mine) as temporary:
            temporary.write_text(json.dumps(plan, indent=1), encoding="utf-8")
        with contextlib.suppress(FileExistsError):
            os.link(mine, file)
        mine.unlink()
    earlier = json.loads(file.read_text(encoding="utf-8"))
    for key in plan:
        if earlier.get(key) != plan[key]:
            raise InputError(f"{directory} holds a {what} that differs in {key}: delete it, or choose another --out")
