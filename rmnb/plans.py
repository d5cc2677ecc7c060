"""Work in progress: a directory beside its output, and in it the plan that says what the work is."""

import contextlib
import hashlib
import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from rmnb.errors import InputError
from rmnb.files import atomic_path, cache_dir, new_path

logger = logging.getLogger(__name__)


def partial_directory(output: Path) -> Path:
    """Where the parts of an output are kept until it is whole."""
    return Path(output).with_name(Path(output).name + ".partial")


@contextlib.contextmanager
def alone(output: Path) -> Iterator[None]:
    """Work on an output while no other process does: the second waits, says so, and finds what the first has written.

    The lock lies in the cache. Where that cannot be written, a warning says that nothing keeps others away.
    """
    name = hashlib.sha256(str(Path(output).resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    lock = FileLock(cache_dir() / "locks" / name)
    try:
        Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        logger.warning("another process is at work on %s: waiting for it", output)
        lock.acquire()
    except OSError as error:
        logger.warning("no lock for %s, since the cache cannot be written (%s): set RMNB_CACHE", output, error)
    try:
        yield
    finally:
        lock.release()


def read_plan(directory: Path) -> dict[str, Any] | None:
    """The plan of the work in a directory, or None if none was begun there.

    Raises
    ------
    InputError
        It is damaged.
    """
    file = directory / "plan.json"
    try:
        plan = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{file} is damaged: delete {directory} and start again") from error
    if not isinstance(plan, dict):
        raise InputError(f"{file} is damaged: delete {directory} and start again")
    return plan


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
        The directory cannot be written, holds other work (the first difference is named), or its plan is damaged.
    """
    file = directory / "plan.json"
    plan = json.loads(json.dumps(plan))
    with new_path(file) as temporary:
        temporary.write_text(json.dumps(plan, indent=1), encoding="utf-8")
    earlier = read_plan(directory) or {}
    for key in plan:
        if earlier.get(key) != plan[key]:
            raise InputError(f"{directory} holds a {what} that differs in {key}: delete it, or choose another --out")


class Pieces:
    """What work in progress has done so far, piece by piece beside its output, so that it can be cut off and go on.

    A piece is a file, written whole or not at all, whose name carries its place and its checksum.

    Parameters
    ----------
    output, plan, what
        As `partial_directory` and `claim` take them.

    Raises
    ------
    InputError
        As `claim`; when read, a piece that is damaged.
    """

    def __init__(self, output: Path, plan: dict[str, Any], what: str):
        self.directory = partial_directory(output)
        claim(self.directory, plan, what)

    def __iter__(self) -> Iterator[bytes]:
        """All pieces, in order."""
        for file in sorted(self.directory.glob("?????????-*")):
            yield self._checked(file)

    def read(self, place: int) -> bytes | None:
        """One piece, or None if it has not been written."""
        return next((self._checked(file) for file in self.directory.glob(f"{place:09d}-*")), None)

    def write(self, place: int, content: bytes) -> None:
        """Keep a piece."""
        with atomic_path(self.directory / f"{place:09d}-{_short_sha256(content)}") as temporary:
            temporary.write_bytes(content)

    @staticmethod
    def discard(output: Path) -> None:
        """Delete the pieces of an output, once it is written whole."""
        shutil.rmtree(partial_directory(output), ignore_errors=True)

    def _checked(self, file: Path) -> bytes:
        content = file.read_bytes()
        if file.name.split("-")[1] != _short_sha256(content):
            raise InputError(f"damaged piece {file}: delete it and run the same command again")
        return content


def _short_sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
