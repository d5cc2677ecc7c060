"""Work in progress: a directory beside its output, and in it the plan that says what the work is.

What is known of some work is two dicts of JSON values. Its *plan* must be the same for work to go on; of one kind of
work all plans have the same keys. Its *notes* say who, how, when and on which machine: what changes no more than
rounding, or is told by a hash in the plan.
"""

import contextlib
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from rmnb.errors import InputError
from rmnb.files import atomic_path, cache_dir, write_json

logger = logging.getLogger(__name__)
#: Directories of work that this process has begun and not ended: interrupted, it goes on there.
in_progress: set[Path] = set()


def partial_directory(output: Path) -> Path:
    """Where the parts of an output are kept until it is whole."""
    return Path(f"{output}.partial")


@contextlib.contextmanager
def exclusive(output: Path | None) -> Iterator[None]:
    """Work on an output while no other process does: the second waits, says so, and finds what the first has written.

    The lock lies in the cache. Where that cannot be written or locked, a warning says that nothing keeps others away.
    Whoever holds it may take it once more. None: there is nothing to lock.
    """
    if output is None:
        yield
        return
    name = _short_sha256(os.fsencode(Path(output).resolve()))
    lock = FileLock(cache_dir() / "locks" / name, is_singleton=True)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        logger.warning("another process is at work on %s: waiting for it", output)
        lock.acquire()
    except (OSError, NotImplementedError) as error:
        logger.warning(
            "no lock for %s, since the cache cannot be written or locked (%s): set RMNB_CACHE", output, error
        )
    try:
        yield
    finally:
        lock.release()


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
            f"{place} holds other work: it differs in {names}: choose another --out, or delete it (or --restart)",
            changed[0],
        )


def open_or_refuse(directory: Path, plan: Mapping[str, Any], notes: Mapping[str, Any] = {}) -> dict[str, Any]:
    """Write the plan of some work into its directory, or find there that the same was begun before.

    Of several processes that begin the same work at once, one writes the plan and the others find it there.

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
    write_json(file, {**plan, **notes}, overwrite=False)
    begun = _read_plan(file)
    refuse_other(directory, begun, plan)
    in_progress.add(directory)
    return begun


def plan_of(output: Path) -> dict[str, Any] | None:
    """Plan and notes of unfinished work on an output, or None; InputError if they are damaged."""
    file = partial_directory(output) / "plan.json"
    return _read_plan(file) if file.exists() else None


def _read_plan(file: Path) -> dict[str, Any]:
    try:
        return {**json.loads(file.read_bytes())}
    except (OSError, ValueError, TypeError):
        raise InputError(f"{file} is damaged: delete {file.parent} and start again", file) from None


class ResumableStore:
    """What work in progress has done so far, piece by piece beside its output, so that it can be cut off and go on.

    A piece is a file, written whole or not at all, whose name carries its place and its checksum.

    Parameters
    ----------
    output
        The file that the work will be. None: nothing is kept.
    plan, notes
        As `open_or_refuse` takes them.
    restart
        Delete the pieces that are there.

    Attributes
    ----------
    begun : dict
        Plan and notes as the work was begun: with its batch size, say.

    Raises
    ------
    InputError
        As `open_or_refuse`; when read, a piece that is damaged.
    """

    def __init__(
        self,
        output: Path | None,
        plan: Mapping[str, Any],
        notes: Mapping[str, Any] = {},
        restart: bool = False,
    ):
        self.is_kept = output is not None
        self.begun = {**plan, **notes}
        if output:
            if restart:
                self.discard(output)
            self.directory = partial_directory(output)
            self.begun = open_or_refuse(self.directory, plan, notes)

    def __iter__(self) -> Iterator[bytes]:
        """All pieces, in order."""
        return map(self.read, sorted(self.places()))  # type: ignore[arg-type]

    def places(self) -> set[int]:
        """Where pieces have been written."""
        return {int(file.name[:9]) for file in self.directory.glob("?????????-*")}

    def read(self, place: int) -> bytes | None:
        """One piece, or None if it has not been written."""
        for file in self.directory.glob(f"{place:09d}-*"):
            content = file.read_bytes()
            if not file.name.endswith(_short_sha256(content)):
                raise InputError(f"damaged piece {file}: delete it and run the same command again", file)
            return content
        return None

    def write(self, place: int, content: bytes) -> None:
        """Keep a piece."""
        with atomic_path(self.directory / f"{place:09d}-{_short_sha256(content)}") as temporary:
            temporary.write_bytes(content)

    def rewards(self, place: int, score: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray:
        """The rewards of a piece, float32: as they were written, or scored now, from these arguments, and written."""
        if not self.is_kept:
            return score(*arguments)
        content = self.read(place)
        if content is None:
            content = score(*arguments).astype("<f4").tobytes()
            self.write(place, content)
        return np.frombuffer(content, dtype="<f4")

    @staticmethod
    def discard(output: Path) -> None:
        """Delete the pieces of an output, once it is written whole."""
        shutil.rmtree(partial_directory(output), ignore_errors=True)
        in_progress.discard(partial_directory(output))


def _short_sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
