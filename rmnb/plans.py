"""Work in progress: a directory beside its output, and in it the plan that says what the work is."""

import contextlib
import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from rmnb.errors import InputError
from rmnb.files import atomic_path, cache_dir

logger = logging.getLogger(__name__)
#: What is written down of some work and is no part of its plan: who, how, when and on which machine. It changes no more
#: than rounding, or is told by a hash that is compared.
NOT_COMPARED = {
    "model", "name", "source", "revision", "prompt_key", "batch_size", "attention", "compile", "device", "device_map",
    "versions", "time", "schema", "columns", "rows", "sequences", "content_sha256", "vocabulary", "vocabulary_sha256",
}  # fmt: skip


def partial_directory(output: Path) -> Path:
    """Where the parts of an output are kept until it is whole."""
    return Path(f"{output}.partial")


@contextlib.contextmanager
def exclusive(output: Path) -> Iterator[None]:
    """Work on an output while no other process does: the second waits, says so, and finds what the first has written.

    The lock lies in the cache. Where that cannot be written, a warning says that nothing keeps others away.
    """
    name = _short_sha256(str(Path(output).resolve()).encode("utf-8", "surrogateescape"))
    directory = cache_dir() / "locks"
    lock = FileLock(directory / name)
    try:
        directory.mkdir(parents=True, exist_ok=True)
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


def differences(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The keys in which two plans differ, whichever of them has the key; absent and None are the same."""
    earlier, now = (json.loads(json.dumps(plan)) for plan in (earlier, now))
    changed = []
    for key in {**earlier, **now}:
        before = earlier.get(key)
        after = now.get(key)
        if key in NOT_COMPARED or before == after:
            continue
        if key == "models" and before and after and len(before) == len(after):  # of a search: what of which differs
            changed += [name for models in zip(before, after, strict=True) for name in differences(*models)]
        else:
            changed.append(key)
    return changed


def refuse_other(place: Path, earlier: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise InputError where what is kept at a place was made by another plan; `about` is the first difference."""
    if changed := differences(earlier, now):
        names = ", ".join(key.removesuffix("_sha256") for key in changed)
        raise InputError(
            f"{place} holds other work: it differs in {names}: choose another --out, or delete it (--restart does)",
            changed[0],
        )


def open_or_refuse(directory: Path, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Write the plan of some work into its directory, or find there that the same was begun before.

    Of several processes that begin the same work at once, one writes the plan and the others find it there.

    Parameters
    ----------
    directory
        Of the work.
    plan
        What the work is, as JSON values. Keys of `NOT_COMPARED` are kept and not compared.

    Returns
    -------
    dict
        The plan as the work was begun.

    Raises
    ------
    InputError
        The directory cannot be written, holds other work, or its plan is damaged.
    """
    file = directory / "plan.json"
    with atomic_path(file, overwrite=False) as temporary:
        temporary.write_text(json.dumps(plan, indent=1), encoding="utf-8")
    try:
        begun = {**json.loads(file.read_bytes())}
    except (OSError, ValueError, TypeError):
        raise InputError(f"{file} is damaged: delete {directory} and start again", file) from None
    refuse_other(directory, begun, plan)
    return begun


class ResumableStore:
    """What work in progress has done so far, piece by piece beside its output, so that it can be cut off and go on.

    A piece is a file, written whole or not at all, whose name carries its place and its checksum.

    Parameters
    ----------
    output
        The file that the work will be. None: nothing is kept.
    plan
        As `open_or_refuse` takes it.

    Attributes
    ----------
    begun : dict
        The plan as the work was begun, with what is not compared: the batch size, say.

    Raises
    ------
    InputError
        As `open_or_refuse`; when read, a piece that is damaged.
    """

    def __init__(self, output: Path | None, plan: Mapping[str, Any]):
        self.is_kept = output is not None
        self.directory = Path() if output is None else partial_directory(output)
        self.begun = open_or_refuse(self.directory, plan) if self.is_kept else dict(plan)

    def __iter__(self) -> Iterator[bytes]:
        """All pieces, in order."""
        return map(self.read, sorted(self.places()))  # type: ignore[arg-type]

    def places(self) -> set[int]:
        """Where pieces have been written."""
        return {int(file.name.split("-")[0]) for file in self.directory.glob("?????????-*")}

    def read(self, place: int) -> bytes | None:
        """One piece, or None if it has not been written."""
        for file in self.directory.glob(f"{place:09d}-*"):
            content = file.read_bytes()
            if file.name.split("-")[1] != _short_sha256(content):
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


def _short_sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
