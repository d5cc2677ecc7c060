"""External data, pinned: every file by repository, commit, path and git blob id.

A file is looked for in the cache, then in the directory ``RMNB_DATA_MIRROR``, then downloaded. Whatever the way, its
content must have the pinned id. The pins are the table ``rmnb/data/lists/sources.tsv``; a file's name is
``source/path``, for example ``facct2025/data/corpora/1_1_all_alpha.txt``.
"""

import functools
import os
import time
import urllib.parse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import requests
from tqdm import tqdm

from rmnb.errors import InputError, first_line
from rmnb.files import CLONE, cache_dir, data_dir, git_blob_id, sha256, sync
from rmnb.plans import alone

LISTS = Path(__file__).with_name("lists")  # that this project wrote
RAW_URL = "https://raw.githubusercontent.com/{repository}/{commit}/{path}"
LARGE_URL = "https://media.githubusercontent.com/media/{repository}/{commit}/{path}"  # content behind a git LFS pointer
_ATTEMPTS, _PAUSE = 5, 0.5  # after the k-th attempt it waits k pauses, in seconds
_BUSY = (429, 500, 502, 503, 504)
_TIMEOUT = (10, 60)  # seconds to connect, seconds between two blocks
_offline: set[str] = set()  # hosts that could not be reached: later files fail at once, not after more waiting


class UnreachableError(InputError):
    """The file is in neither the cache nor the mirror, and cannot be downloaded."""


@dataclass(frozen=True)
class Pin:
    """One external file: where it comes from, what its content must be, and what it may be used for."""

    source: str
    path: str
    bytes: int | None
    blob_id: str
    use: str
    licence: str
    repository: str
    commit: str

    @property
    def name(self) -> str:
        """``source/path``, the name that `locate` takes."""
        return f"{self.source}/{self.path}"

    @property
    def stored_at(self) -> Path:
        """Relative path ``owner/repository/commit/path`` in the cache and in a mirror."""
        return Path(self.repository, self.commit, self.path)


@functools.cache
def pins() -> dict[str, Pin]:
    """Every pinned file by name, in the order of the table."""
    rows = own_list("sources.tsv").to_dict("records")
    found = [Pin(**{**row, "bytes": int(row["bytes"] or 0) or None}) for row in rows]
    return {pin.name: pin for pin in found}


def own_list(name: str) -> pd.DataFrame:
    """A table among the lists that this project wrote, all of it text."""
    return pd.read_csv(LISTS / name, sep="\t", dtype=str, keep_default_na=False)


def locate(name: str) -> Path:
    """Path of a pinned file whose content has been checked, downloaded if it is nowhere on this machine.

    Parameters
    ----------
    name
        ``source/path``, a key of `pins`.

    Returns
    -------
    Path
        In the cache or in the mirror: read it, never change it.

    Raises
    ------
    UnreachableError
        Not on this machine, and there is no network or the file has moved (an `InputError`).
    InputError
        The name is unknown, or the content is not what is pinned.
    """
    return on_this_machine(name) or _download(pins()[name])


def stand_in(name: str) -> Path:
    """What the project ships in place of a file that has been found to be out of reach.

    Raises
    ------
    UnreachableError
        That is not here either: an installation without the repository.
    """
    path = data_dir() / "released" / name
    if not path.exists():
        raise UnreachableError(f"neither the authors' file can be reached nor what stands in for it, {name}: {CLONE}")
    return path


def on_this_machine(name: str) -> Path | None:
    """Like `locate`, but None where the file would have to be downloaded."""
    if name not in pins():
        raise InputError(f"unknown data file {name!r}: `rmnb book data list` shows the names")
    pin = pins()[name]
    for directory in (cache_dir() / "data", os.environ.get("RMNB_DATA_MIRROR")):
        if directory and (place := Path(directory, pin.stored_at)).is_file():
            if not _is_pinned(pin, place):
                raise InputError(f"{place} is not the pinned file of that name: delete or replace it", place)
            return place
    return None


def verify(names: Iterable[str]) -> pd.DataFrame:
    """Check the files that are on this machine; nothing is downloaded.

    Returns
    -------
    DataFrame
        name, status (``ok``, ``damaged`` or ``absent``) and path (empty when absent), one row a file.
    """
    rows = []
    for name in names:
        try:
            place = on_this_machine(name)
            rows.append((name, "ok" if place else "absent", str(place or "")))
        except InputError as error:
            rows.append((name, "damaged", error.about))
    return pd.DataFrame(rows, columns=["name", "status", "path"])


def _is_pinned(pin: Pin, path: Path) -> bool:
    if git_blob_id(path) == pin.blob_id:
        return True
    pointer = _lfs_pointer(path)
    return pointer.is_file() and git_blob_id(pointer) == pin.blob_id and sha256(path) == _pointed_sha256(pointer)


def _lfs_pointer(path: Path) -> Path:
    return path.with_name(path.name + ".lfs")


def _pointed_sha256(path: Path) -> str:
    """The SHA-256 that a git LFS pointer names, empty if the file is no pointer."""
    if path.stat().st_size > 1024 or not path.read_bytes().startswith(b"version https://git-lfs"):
        return ""
    return path.read_text().split("sha256:")[1].split()[0]


def _download(pin: Pin) -> Path:
    target = cache_dir() / "data" / pin.stored_at
    part, pointer = target.with_name(target.name + ".part"), _lfs_pointer(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with alone(target):
            if target.is_file():  # another process was faster
                return target
            if not pointer.is_file():
                _fetch(pin, RAW_URL, part, git_blob_id, pin.blob_id)
                if _pointed_sha256(part):
                    part.replace(pointer)
            if pointer.is_file():
                _fetch(pin, LARGE_URL, part, sha256, _pointed_sha256(pointer))
            sync(part)
            part.replace(target)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from error
    return target


def _fetch(pin: Pin, template: str, part: Path, hash_of: Callable[[Path], str], pinned: str) -> None:
    """Download into `part`, going on from what is there, also where the connection breaks, and check the content."""
    url = template.format(repository=pin.repository, commit=pin.commit, path=urllib.parse.quote(pin.path))
    host, reason = urllib.parse.urlsplit(url).netloc, "no network"
    for attempt in range(0 if host in _offline else _ATTEMPTS):
        time.sleep(_PAUSE * attempt)
        try:
            _stream(url, part, pin)
        except requests.ConnectionError:
            if attempt > 0:
                _offline.add(host)
                break
        except requests.RequestException as error:
            reason = first_line(error)
            if error.response is not None and error.response.status_code not in _BUSY:
                break
        else:
            if (found := hash_of(part)) == pinned:
                return
            part.unlink()  # nothing of it can be trusted, so nothing is resumed
            raise InputError(f"{pin.name}: the download has hash {found}, pinned is {pinned}; it was thrown away")
    raise UnreachableError(
        f"cannot download {pin.name} from {host}: {reason}; connect, or set RMNB_DATA_MIRROR to a directory that has it"
    )


def _stream(url: str, part: Path, pin: Pin) -> None:
    """One request, the reply added to `part`."""
    have = part.stat().st_size if part.is_file() else 0
    headers = {"Accept-Encoding": "identity", "Range": f"bytes={have}-"}  # a compressed stream cannot be resumed
    with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as reply:
        if reply.status_code == 416:  # nothing is left to fetch: whether this is the file, its hash tells
            return
        reply.raise_for_status()
        have = have if reply.status_code == 206 else 0
        bar = tqdm(total=pin.bytes, initial=have, unit="B", unit_scale=True, desc=pin.name, disable=None)
        with open(part, "ab" if have else "wb") as file, bar:
            for block in reply.iter_content(1 << 16):
                bar.update(file.write(block))
