"""The cache directory, atomic writes and content hashes."""

import contextlib
import errno
import functools
import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from rmnb.errors import InputError

logger = logging.getLogger(__name__)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: How to get what is not in the package.
CLONE = "it comes with the project's repository; clone it and set RMNB_DATA to its folder data"
_LARGE = 1 << 28  # bytes: reading them takes a good part of a second


def cache_dir() -> Path:
    """The directory for converted weights and downloads: ``RMNB_CACHE``, or ``~/.cache/rmnb``."""
    return Path(os.environ.get("RMNB_CACHE") or Path.home() / ".cache/rmnb")


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success sync it to disk and rename it, on failure remove it.

    A reader sees the old file or the whole new one, never a part, even if the process is killed. What a killed process
    left behind is taken over by the next one that writes the same file; of several at once, each waits for the others.

    Raises
    ------
    InputError
        The directory cannot be made or written to, or the disk is full.
    """
    temporary = path.with_name(f".{path.name}.part")
    is_begun = False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with exclusive(path):
            try:
                temporary.write_bytes(b"")
                is_begun = True
                yield temporary
                sync(temporary)
                temporary.replace(path)
                sync(path.parent)
            finally:
                temporary.unlink(missing_ok=True)
    except OSError as error:
        if is_begun and error.errno not in _FULL:
            raise
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def write_json(path: Path, content: Any, **options: Any) -> None:
    """Write a JSON file whole, as `atomic_path` does; options are those of `json.dumps`."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, **options) + "\n", encoding="utf-8")


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Work on a file or directory while no other process does: the second waits, says so, and finds it as it then is.

    The lock is a file beside it, which is gone in the end. Whoever holds it may take it once more. Where no file can be
    written, there is nothing to keep others from; where one can be written but not locked, a warning says so.
    """
    lock = FileLock(path.with_name(f".{path.name}.lock"), is_singleton=True)
    is_new = not path.parent.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        logger.warning("another process is at work on %s: waiting for it", path)
        lock.acquire()
    except (OSError, NotImplementedError) as error:
        if Path(lock.lock_file).exists():
            logger.warning("nothing keeps other processes away from %s: no lock (%s)", path, error)
    try:
        yield
    finally:
        if lock.lock_counter == 1:
            Path(lock.lock_file).unlink(missing_ok=True)  # while it is held: who waits for it makes another
        lock.release()
        if is_new:
            with contextlib.suppress(OSError):  # something is in it
                path.parent.rmdir()


def sync(path: Path) -> None:
    """Wait until what was written of a file or directory is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cached_sha256(path: Path) -> str:
    """As `sha256`, computed once for a file that stays as it is: in a process, or, if it is large, on a machine."""
    now = os.stat(path)
    return _sha256_of(path.resolve(), (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns))


@functools.lru_cache
def _sha256_of(path: Path, state: tuple[int, ...]) -> str:
    if state[1] < _LARGE:
        return sha256(path)
    note = cache_dir() / "hashes" / hashlib.sha256(os.fsencode(f"{path}{state}")).hexdigest()
    with contextlib.suppress(OSError):
        return note.read_text(encoding="ascii")
    digest = sha256(path)
    with contextlib.suppress(InputError), atomic_path(note) as temporary:
        temporary.write_text(digest, encoding="ascii")
    return digest


def joint_sha256(hashes: list[str]) -> str:
    """One hash for several files: of one file its own, else that of their hashes in order."""
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def data_dir() -> Path:
    """The directory of what the project ships (adapters, scores): ``RMNB_DATA``, or ``data`` beside the package.

    An installation without the repository has none: then what is computed for a panel goes into the cache.
    """
    if chosen := os.environ.get("RMNB_DATA"):
        return Path(chosen)
    shipped = Path(__file__).parent.parent / "data"
    return shipped if (shipped / "demo").is_dir() else cache_dir() / "panels"


def shipped(path: str | Path, what: str) -> Path:
    """A file or directory that comes with the project's repository, given relative to its data; or one's own, absolute.

    Raises
    ------
    InputError
        It is not there; the line begins with `what` and says how to get it.
    """
    place = data_dir() / path
    if not place.exists():
        advice = "" if Path(path).is_absolute() else f": {CLONE}"
        raise InputError(f"{what}: nothing at {place}{advice}")
    return place


def check_writable(path: Path) -> None:
    """Raise InputError now if `path` could not be written later. Nothing is made."""
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a directory")
    above = next(parent for parent in path.absolute().parents if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=above):
            pass
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
