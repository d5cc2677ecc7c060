"""Work in progress: a directory beside its output, and in it the plan that says what the work is.

What is known of some work is two dicts of JSON values. Its *plan* must be the same for work to go on; of one kind of
work all plans have the same keys. Its *notes* say who, how, when and on which machine: what changes no more than
rounding, or is told by a hash in the plan.
"""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rmnb.errors import InputError
from rmnb.files import atomic_path, exclusive, write_json

#: Directories of work that this process has begun and not ended: interrupted, it goes on there.
in_progress: set[Path] = set()


def partial_directory(output: Path) -> Path:
    """Where the parts of an output are kept until it is whole."""
    return Path(f"{output}.partial")


def differences(earlier: Mapping[str, Any], plan: Mapping[str, Any]) -> list[str]:
    """The keys of a plan in which what is known of earlier work differs; absent and None are the same."""
    earlier, plan = json.loads(json.dumps([earlier, plan]))
    changed = []
    for key, now in plan.items():
        before = earlier.get(key)
        if key == "models" and before and len(before) == len(now):  # of a search: what of which differs
            changed += [name for models in zip(before, now, strict=True) for name in differences(*models)]
        elif before != now:
            changed.append(key)
    return changed


def refuse_other(place: Path, earlier: Mapping[str, Any], plan: Mapping[str, Any]) -> None:
    """Raise InputError where what is kept at a place was made by another plan; `about` is the first difference."""
    if changed := differences(earlier, plan):
        names = ", ".join(key.removesuffix("_sha256") for key in changed)
        raise InputError(
            f"{place} holds other work: it differs in {names}: choose another --out, or delete it, or take --restart "
            "where a command has it",
            changed[0],
        )


def open_or_refuse(directory: Path, plan: Mapping[str, Any], notes: Mapping[str, Any] = {}) -> dict[str, Any]:
    """Write the plan of some work into its directory, or find there that the same was begun before.

    Parameters
    ----------
    directory
        Of the work.
    plan, notes
        What the work is, and what else is worth knowing of it, as JSON values.

    Returns
    -------
    dict
        Plan and notes as the work was begun.

    Raises
    ------
    InputError
        The directory cannot be written, holds other work, or its plan is damaged.
    """
    file = directory / "plan.json"
    with exclusive(file):  # taken even if the plan is there: then a lock that a killed process left goes, too
        if not file.exists():
            write_json(file, {**plan, **notes})
    begun = _read_plan(file)
    refuse_other(directory, begun, plan)
    in_progress.add(directory)
    return begun


def _read_plan(file: Path) -> dict[str, Any]:
    try:
        return {**json.loads(file.read_bytes())}
    except (OSError, ValueError, TypeError):
        raise InputError(f"{file} is damaged: delete {file.parent} and start again", file) from None


@contextlib.contextmanager
def kept(
    output: Path | None,
    plan: Mapping[str, Any],
    read: Callable[[Path], tuple[Any, dict[str, Any]]],
    restart: bool = False,
    keep_pieces: bool = False,
) -> Iterator["Work"]:
    """Do some work while no other process does it, kept piece by piece, so that it can be cut off and go on.

    Who does the work writes the output before the context ends; then the pieces are deleted, unless an error ends it.

    Parameters
    ----------
    output
        The file that the work will be. None: nothing is kept.
    plan
        What the work is, as JSON values.
    read
        Reads a finished output, and what is known of it.
    restart
        Delete the pieces that are there, and leave a finished output unread until it is replaced.
    keep_pieces
        Do not delete them in the end.

    Raises
    ------
    InputError
        As `open_or_refuse` and `read`; the finished output was made by another plan.
    """
    work = Work(output, plan)
    if output is None:
        yield work
        return
    with exclusive(output):
        if restart:
            discard(output)
        elif output.exists():
            work.finished, work.provenance = read(output)
            refuse_other(output, work.provenance, plan)
        yield work
        if not keep_pieces:
            discard(output)


def discard(output: Path) -> None:
    """Delete the pieces of an output."""
    shutil.rmtree(partial_directory(output), ignore_errors=True)
    in_progress.discard(partial_directory(output))


class Work:
    """Work as `kept` gives it.

    A piece is a file beside the output, written whole or not at all, whose name carries its place and its checksum.

    Attributes
    ----------
    finished
        What lies at the output; None if nothing does.
    provenance : dict
        What is known of it, or, once it is begun, plan and notes as the work was begun: with its batch size, say.

    Raises
    ------
    InputError
        When read, a piece is damaged.
    """

    def __init__(self, output: Path | None = None, plan: Mapping[str, Any] = {}):
        self.directory = None if output is None else partial_directory(output)
        self.finished: Any = None
        self.provenance: dict[str, Any] = dict(plan)
        self._plan = plan

    def begin(self, notes: Mapping[str, Any]) -> None:
        """Begin, or go on with what was begun before. Notes are JSON values, too."""
        self.provenance = {**self._plan, **notes}
        if self.directory is not None:
            self.provenance = open_or_refuse(self.directory, self._plan, notes)

    def pieces(self) -> dict[int, Path]:
        """The pieces that have been written, by their place and in order."""
        files = self.directory.glob("?????????-*") if self.directory else ()
        return {int(file.name[:9]): file for file in sorted(files)}

    def read(self, place: int) -> bytes | None:
        """One piece, or None if it has not been written."""
        file = self.pieces().get(place)
        if file is None:
            return None
        content = file.read_bytes()
        if not file.name.endswith(_short_sha256(content)):
            raise InputError(f"damaged piece {file}: delete it and run the same command again", file)
        return content

    def write(self, place: int, content: bytes) -> None:
        """Keep a piece."""
        if self.directory is not None:
            with atomic_path(self.directory / f"{place:09d}-{_short_sha256(content)}") as temporary:
                temporary.write_bytes(content)

    def rewards(self, place: int, score: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray:
        """The rewards of a piece, float32: as they were written, or scored now, from these arguments, and written."""
        if self.directory is None:
            return score(*arguments)
        content = self.read(place)
        if content is None:
            content = score(*arguments).astype("<f4").tobytes()
            self.write(place, content)
        return np.frombuffer(content, dtype="<f4")


def _short_sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
