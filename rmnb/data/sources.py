"""External data, pinned: every file by repository, commit, path and git blob id.

A file is looked for in the cache, then in the directory ``RMNB_DATA_MIRROR``, then downloaded. Whatever the way, its
content must have the pinned id. The pins are the table ``rmnb/data/lists/sources.tsv``; a file's name is
``source/path``, for example ``facct2025/data/corpora/1_1_all_alpha.txt``.
"""

import functools
import hashlib
import logging
import os
import urllib.parse
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from rmnb.errors import InputError, UnreachableError, first_line
from rmnb.files import CLONE, cache_dir, data_dir, exclusive, sync

LISTS = Path(__file__).with_name("lists")  # that this project wrote
RAW_URL = "https://raw.githubusercontent.com/"  # before owner/repository/commit/path
LARGE_URL = "https://media.githubusercontent.com/media/"  # for files in git LFS, whose size no pin says
_offline: set[str] = set()  # servers that could not be reached: later files fail at once, not after more waiting


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
    table = [Pin(**{**row, "bytes": int(row["bytes"] or 0) or None}) for row in rows]
    return {pin.name: pin for pin in table}


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
    """Whether a file has the pinned content, or that to which a pinned pointer of git LFS points."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n"
    return pin.blob_id in (_git_blob_id(content), _git_blob_id(pointer.encode()))


def _download(pin: Pin) -> Path:
    target = cache_dir() / "data" / pin.stored_at
    part = target.with_name(f"{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with exclusive(target):
            if not target.is_file():  # another process may have been faster
                _fetch(pin, part)
                sync(part)
                part.replace(target)
    except OSError as error:
        raise InputError(f"cannot write {target}: {first_line(error)}") from error
    return target


def _fetch(pin: Pin, part: Path) -> None:
    """Download into `part`, going on from what is there, also where the connection breaks, and check the content."""
    from huggingface_hub.errors import HfHubHTTPError, HTTPError  # pyright: ignore[reportPrivateImportUsage]
    from huggingface_hub.file_download import http_get

    logging.getLogger(http_get.__module__).setLevel(logging.ERROR)  # that it tries again is not worth two lines
    server = LARGE_URL if pin.bytes is None else RAW_URL
    try:
        if server in _offline:
            raise HTTPError("no network")
        with open(part, "ab") as file:
            if not _is_pinned(pin, part):
                path = urllib.parse.quote(pin.stored_at.as_posix())
                http_get(server + path, file, resume_size=file.tell(), displayed_filename=pin.name)
    except (HTTPError, ConnectionError) as error:  # ConnectionError: HF_HUB_OFFLINE is set
        if isinstance(error, HfHubHTTPError):
            part.unlink()  # the server does not go on from what is there
        else:
            _offline.add(server)
        raise UnreachableError(
            f"cannot download {pin.name} from {server}: {first_line(error)}; "
            "connect, or set RMNB_DATA_MIRROR to a directory that has it"
        ) from error
    if not _is_pinned(pin, part):
        part.unlink()  # nothing of it can be trusted, so nothing is resumed
        raise InputError(
            f"{pin.name}: the download is not the pinned file and was deleted: try again, or set RMNB_DATA_MIRROR"
        )


def _git_blob_id(content: bytes) -> str:
    """The id that git gives to a file's content: SHA-1 of ``"blob <size>\\0"`` and the content, hexadecimal."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
