"""External data, pinned: every file by repository, commit, path and git blob id.

A file is looked for in the cache, then in the directory ``RMNB_DATA_MIRROR``, then downloaded. Whatever the way, its
content must have the pinned id. The pins are the table ``rmnb/data/lists/sources.tsv``; a file's name is
``source/path``, for example ``facct2025/data/corpora/1_1_all_alpha.txt``.
"""

import functools
import os
import time
import urllib.parse
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import pandas as pd
import requests
from filelock import FileLock
from tqdm import tqdm

from rmnb.errors import InputError
from rmnb.files import CLONE, cache_dir, data_dir, git_blob_id, sha256

RAW_URL = "https://raw.githubusercontent.com/{repository}/{commit}/{path}"
LARGE_URL = "https://media.githubusercontent.com/media/{repository}/{commit}/{path}"  # content behind a git LFS pointer
_ATTEMPTS = 5
_BACK_OFF = 0.5  # seconds, doubled with every attempt
_TIMEOUT = (10, 60)  # seconds to connect, seconds between two blocks
_offline: set[str] = set()  # hosts that could not be reached: later files fail at once, not after more waiting
_verified: set[tuple[str, int, int]] = set()


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

    def url(self, template: str) -> str:
        """The address in `template`'s layout, with the path quoted."""
        return template.format(repository=self.repository, commit=self.commit, path=urllib.parse.quote(self.path))


@functools.cache
def pins() -> dict[str, Pin]:
    """Every pinned file by name, in the order of the table."""
    with resources.files("rmnb.data").joinpath("lists/sources.tsv").open() as file:
        table = pd.read_csv(file, sep="\t", dtype=str, keep_default_na=False)
    found = [Pin(**{**row, "bytes": int(row["bytes"]) if row["bytes"] else None}) for row in table.to_dict("records")]
    return {pin.name: pin for pin in found}


def catalogue() -> pd.DataFrame:
    """The pins, one row a file: name, bytes (missing if not known), use, licence, repository, commit, blob_id."""
    table = pd.DataFrame([{"name": pin.name, **vars(pin)} for pin in pins().values()])
    return table.astype({"bytes": "Int64"}).drop(columns=["source", "path"])


def locate(name: str | Pin) -> Path:
    """Path of a pinned file whose content has been checked, downloaded if it is nowhere on this machine.

    Parameters
    ----------
    name : str or Pin
        ``source/path`` as in `catalogue`, or a pin.

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
    pin = _pin(name)
    return on_this_machine(pin) or _download(pin)


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


def on_this_machine(name: str | Pin) -> Path | None:
    """Like `locate`, but None where the file would have to be downloaded."""
    pin = _pin(name)
    for place in _places(pin):
        if place.is_file():
            if not _content_is(pin, place):
                raise InputError(f"{place} is not the pinned file (git blob id {pin.blob_id}): delete or replace it")
            return place
    return None


def pull(name: str | Pin) -> Path:
    """Like `locate`, but a damaged file in the cache is replaced by a new download."""
    pin = _pin(name)
    try:
        return locate(pin)
    except UnreachableError:
        raise
    except InputError:
        cached = _cached(pin)
        if not cached.is_file() or _content_is(pin, cached):
            raise
        cached.unlink()
        return locate(pin)


def verify(names: list[str] | None = None) -> pd.DataFrame:
    """Check the files that are on this machine; nothing is downloaded.

    Returns
    -------
    DataFrame
        name, status (``ok``, ``damaged`` or ``absent``) and path (empty when absent), one row a file.
    """
    rows = []
    for pin in [_pin(name) for name in names] if names else pins().values():
        places = [place for place in _places(pin) if place.is_file()]
        damaged = [place for place in places if not _content_is(pin, place)]
        status = "damaged" if damaged else "ok" if places else "absent"
        rows.append((pin.name, status, str((damaged or places or [""])[0])))
    return pd.DataFrame(rows, columns=["name", "status", "path"])


def _pin(name: str | Pin) -> Pin:
    if isinstance(name, Pin):
        return name
    if name not in pins():
        raise InputError(f"unknown data file {name!r}: `rmnb book data list` shows the names")
    return pins()[name]


def _cached(pin: Pin) -> Path:
    return cache_dir() / "data" / pin.stored_at


def _places(pin: Pin) -> list[Path]:
    mirror = os.environ.get("RMNB_DATA_MIRROR")
    return [_cached(pin), *([Path(mirror) / pin.stored_at] if mirror else [])]


def _content_is(pin: Pin, path: Path) -> bool:
    state = path.stat()
    key = (str(path), state.st_size, state.st_mtime_ns)
    if key in _verified:
        return True
    pointer = _lfs_pointer(path)
    good = git_blob_id(path) == pin.blob_id
    if not good and pointer.is_file() and git_blob_id(pointer) == pin.blob_id:
        good = sha256(path) == _pointed_sha256(pointer)
    if good:
        _verified.add(key)
    return good


def _lfs_pointer(path: Path) -> Path:
    return path.with_name(path.name + ".lfs")


def _pointed_sha256(path: Path) -> str | None:
    """The SHA-256 that a git LFS pointer names, None if the file is no pointer."""
    if path.stat().st_size > 1024 or not path.read_bytes().startswith(b"version https://git-lfs"):
        return None
    return path.read_text().split("sha256:")[1].split()[0]


def _download(pin: Pin) -> Path:
    target = _cached(pin)
    part = target.with_name(target.name + ".part")
    lock = cache_dir() / "data" / ".locks" / pin.blob_id
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock.parent.mkdir(exist_ok=True)
        with FileLock(lock):
            if not target.is_file():  # another process may have been faster
                pointer = _lfs_pointer(target)
                if not pointer.is_file():
                    _fetch(pin, RAW_URL, part)
                    _accept(pin, part, git_blob_id(part), pin.blob_id)
                    if _pointed_sha256(part):
                        part.replace(pointer)
                if pointer.is_file():
                    _fetch(pin, LARGE_URL, part)
                    _accept(pin, part, sha256(part), _pointed_sha256(pointer) or "")
                with open(part, "rb+") as file:
                    os.fsync(file.fileno())
                part.replace(target)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from error
    return target


def _accept(pin: Pin, part: Path, found: str, pinned: str) -> None:
    if found != pinned:
        part.unlink()  # nothing of it can be trusted, so nothing is resumed
        raise InputError(f"{pin.name}: the download has hash {found}, pinned is {pinned}; it was thrown away")


def _fetch(pin: Pin, template: str, part: Path) -> None:
    """Download into `part`, going on from what is there, with retries."""
    url = pin.url(template)
    host = urllib.parse.urlsplit(url).netloc
    reason, silent = "no network", 0
    for attempt in range(_ATTEMPTS):
        if host in _offline:
            break
        if attempt:
            time.sleep(_BACK_OFF * 2 ** (attempt - 1))
        try:
            status = _stream(pin, url, part)
        except (requests.exceptions.ChunkedEncodingError, requests.exceptions.ReadTimeout) as error:
            reason = f"the connection broke ({type(error).__name__})"
        except requests.exceptions.ConnectionError:
            reason, silent = "no network", silent + 1
            if silent == 2:
                _offline.add(host)
        except requests.exceptions.RequestException as error:
            reason = str(error)
            break
        else:
            if status in (200, 206):
                return
            reason = f"HTTP {status}"
            if status in (404, 410, 451):
                raise UnreachableError(f"{pin.name} has moved: {url} answers {reason}")
            if status < 500 and status not in (416, 429):
                break
    raise UnreachableError(
        f"cannot download {pin.name} from {host}: {reason}; connect, or set RMNB_DATA_MIRROR to a directory that has it"
    )


def _stream(pin: Pin, url: str, part: Path) -> int:
    """One request; returns the HTTP status, 200 and 206 once `part` holds all that the server promised."""
    have = part.stat().st_size if part.is_file() else 0
    headers = {"Accept-Encoding": "identity"}  # a compressed stream cannot be resumed
    if have:
        headers["Range"] = f"bytes={have}-"
    with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as reply:
        if reply.status_code == 416:  # the part is whole already, or longer than the file
            if reply.headers.get("Content-Range", "").endswith(f"/{have}"):
                return 200
            part.unlink()
        if reply.status_code not in (200, 206):
            return reply.status_code
        have = have if reply.status_code == 206 else 0
        length = reply.headers.get("Content-Length")
        total = int(length) + have if length else pin.bytes
        bar = tqdm(total=total, initial=have, unit="B", unit_scale=True, desc=pin.name, disable=None)
        with open(part, "ab" if have else "wb") as file, bar:
            for block in reply.iter_content(1 << 16):
                file.write(block)
                bar.update(len(block))
        return reply.status_code
