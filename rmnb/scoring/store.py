"""The score store: scans as Parquet files that say where they come from, written whole or not at all.

A scan in progress is a directory of shards beside its output; each shard's name carries its checksum. A finished scan
is one Parquet file whose metadata hold its provenance and the checksum of its content.
"""

import functools
import hashlib
import json
import logging
import shutil
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from rmnb.errors import InputError
from rmnb.files import atomic_path, cache_dir, data_dir, shipped
from rmnb.models.origin import hashes_now
from rmnb.panels import Panel, load_panel
from rmnb.plans import alone, claim, partial_directory, read_plan

logger = logging.getLogger(__name__)
SHARD = 1024  # continuations between two writes
_KEY, _DIGEST = b"rmnb", b"rmnb_sha256"
SCHEMA = 1  # of score files: raise it when their columns or the meaning of their provenance change
_SCAN_COLUMNS = ["token_id", "token", "kind", "score"]
_WORDS = {
    "weights_sha256": "weights",
    "tokenizer_sha256": "tokenizer",
    "template_sha256": "chat template",
    "softcap": "soft-capping",
    "read": "the place that is read",
    "read_offset": "the place that is read",
    "tokens": "the number of tokens (--limit)",
}
_VOCABULARY_COLUMNS = ["token_id", "token", "kind"]
Provenance = dict[str, Any]


def versions() -> dict[str, str]:
    """Versions of the packages that a score depends on."""
    return {name: version(name) for name in ("rmnb", "torch", "transformers", "tokenizers")}


def write_table(path: Path, frame: pd.DataFrame, provenance: Provenance) -> Provenance:
    """Write a table atomically (Parquet, zstd) with its provenance, and return that, completed.

    Added are ``schema``, ``columns`` (their types), ``rows``, ``time`` (UTC) and ``content_sha256``. `read_table`
    verifies types and checksum, and a checksum of the provenance itself.
    """
    provenance = {
        **provenance,
        "schema": SCHEMA,
        "columns": _types(frame),
        "rows": len(frame),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "content_sha256": content_sha256(frame),
    }
    table = pa.Table.from_pandas(frame, preserve_index=False)
    described = json.dumps(provenance).encode()
    added = {_KEY: described, _DIGEST: hashlib.sha256(described).hexdigest().encode()}
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **added})
    # Consecutive ids as differences, rewards byte by byte: half the size of the plain layout.
    layout = {"i": "DELTA_BINARY_PACKED", "f": "BYTE_STREAM_SPLIT"}
    encoding = {name: layout[frame[name].dtype.kind] for name in map(str, frame) if frame[name].dtype.kind in layout}
    text = [name for name in map(str, frame) if name not in encoding]
    # Opened here, so that it is closed where the disk is full: the space of an open file is not free again.
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        pq.write_table(
            table,
            file,
            compression="zstd",
            compression_level=19,
            use_dictionary=text,  # pyright: ignore[reportArgumentType]
            column_encoding=encoding,
        )
    return provenance


def read_table(path: Path) -> tuple[pd.DataFrame, Provenance]:
    """A table written by `write_table` and its provenance.

    Raises
    ------
    InputError
        No such file, or one that is damaged, was not written by rmnb, or has another schema.
    """
    if not Path(path).exists():
        raise InputError(f"no such file: {path}")
    try:
        table = pq.read_table(path)
        described = table.schema.metadata[_KEY]
        provenance = json.loads(described)
        frame = table.to_pandas(ignore_metadata=True)
        schema, digest = provenance.get("schema", SCHEMA), provenance["content_sha256"]
        content, types = content_sha256(frame), _types(frame)
    except Exception as error:  # damage makes the libraries raise all kinds
        raise InputError(f"{path} is damaged, or not a score file of rmnb: delete it and scan again") from error
    if schema != SCHEMA:
        raise InputError(f"{path} has schema {schema}, this version of rmnb reads {SCHEMA}: scan again")
    written = table.schema.metadata.get(_DIGEST, b"").decode("ascii", "replace")  # the first files have none
    whole = written in ("", hashlib.sha256(described).hexdigest()) and provenance.get("columns", types) == types
    if content != digest or not whole:
        raise InputError(f"{path} is damaged: its content does not have the checksum it was written with")
    return frame, provenance


def _types(frame: pd.DataFrame) -> dict[str, str]:
    return {str(name): str(kind) if kind.kind in "iufb" else "text" for name, kind in frame.dtypes.items()}


def content_sha256(frame: pd.DataFrame) -> str:
    """SHA-256 over the values of a table, column by column: equal content, equal hash, whatever the file's bytes."""
    digest = hashlib.sha256()
    for name in frame.columns:
        values = frame[name]
        digest.update(f"{name}\0".encode())
        if values.dtype.kind in "iufb":
            digest.update(np.ascontiguousarray(values.to_numpy()).tobytes())
        else:
            text = "\0".join("" if value is None else str(value) for value in values)
            digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def read_scan(path: Path) -> tuple[pd.DataFrame, Provenance]:
    """A scan file: DataFrame token_id (int32), token, kind, score (float32), one row an id; and its provenance.

    Files of a panel's store leave token and kind to a vocabulary file that all scans of a tokenizer share.
    """
    frame, provenance = read_table(path)
    if "vocabulary" in provenance:
        words, described = read_table(Path(path).parent.parent / provenance["vocabulary"])
        if described["content_sha256"] != provenance["vocabulary_sha256"]:
            raise InputError(f"{path}: its vocabulary {provenance['vocabulary']} has changed since the scan")
        frame = frame.merge(words, on="token_id", how="left", validate="one_to_one")
    if missing := sorted(set(_SCAN_COLUMNS) - set(frame)):
        raise InputError(f"{path} is no scan: it lacks the column {missing[0]}")
    return frame[_SCAN_COLUMNS], provenance


def write_scan(path: Path, scan: pd.DataFrame, provenance: Provenance) -> Provenance:
    """Write a scan as one file that stands by itself."""
    return write_table(path, scan[_SCAN_COLUMNS], provenance)


def store_directory(panel: Panel) -> Path:
    """Where a panel's scores are: where the panel says, else in the cache."""
    return data_dir() / Path(panel.scores).expanduser() if panel.scores else cache_dir() / "scores" / panel.name


def scores_path(panel: Panel, model: str, prompt: str, protocol: str = "exact") -> Path:
    """The file of one model's scan with one prompt in the panel's store."""
    return store_directory(panel) / model / f"{prompt}.{protocol}.parquet"


def write_scores(panel: Panel, scan: pd.DataFrame, provenance: Provenance) -> Path:
    """Put a scan into the panel's store, its vocabulary in a file that all scans of the same tokenizer share.

    Models of one tokenizer whose embeddings are padded to different sizes have a vocabulary file each.
    """
    path = scores_path(panel, provenance["model"], provenance["prompt_key"], provenance["protocol"])
    words = scan[_VOCABULARY_COLUMNS]
    digest, tokenizer = content_sha256(words), provenance["tokenizer_sha256"]
    for name in (f"{tokenizer[:12]}", f"{tokenizer[:12]}-{digest[:12]}"):
        vocabulary = f"vocabularies/{name}.parquet"
        file = store_directory(panel) / vocabulary
        with alone(file):
            if not file.exists():
                write_table(file, words, {"tokenizer_sha256": tokenizer})
        if read_table(file)[1]["content_sha256"] == digest:
            break
    shared = {"vocabulary": vocabulary, "vocabulary_sha256": digest}
    write_table(path, scan[["token_id", "score"]], {**provenance, **shared})
    return path


def differences(provenance: Provenance, asked: Provenance) -> list[str]:
    """What differs between a scan and what is asked for now, in words.

    The first scans say less of themselves: what is absent in either is not compared.
    """
    capped = {"softcap": "soft-capping off" not in provenance.get("attention", "")}
    written = {"history": [], **capped, **provenance}
    changed = [_WORDS.get(key, key) for key, value in asked.items() if key in written and written[key] != value]
    return list(dict.fromkeys(changed))


def read_scores(panel: str | Path | Panel, model: str, prompt: str, protocol: str = "exact") -> pd.DataFrame:
    """One model's scan from the panel's store; see `read_scan` for the columns.

    Raises
    ------
    InputError
        The panel has no such model or prompt, it has not been scanned, or the file is damaged or stale: of another
        prompt or reading, or of weights, tokenizer or template that have changed since.
    """
    panel = panel if isinstance(panel, Panel) else load_panel(panel)
    spec, asked = panel.model(model), panel.prompt(prompt)
    path = scores_path(panel, spec.name, asked.key, protocol)
    if not path.exists():
        if spec.adapter:
            shipped(spec.adapter, f"no scores of {model}")  # without its weights it cannot be scanned either
        raise InputError(
            f"no scores of {model} for prompt {asked.key} ({protocol}): "
            f"run `rmnb scan {model} --panel {panel.called} --prompt {asked.key} --protocol {protocol}`"
        )
    scan, provenance = read_scan(path)
    expected = {
        "model": spec.name,
        "prompt": asked.text,
        "history": [turn.model_dump() for turn in asked.history],
        "protocol": protocol,
        "read": spec.read,
        "softcap": spec.softcap,
        **({"head": spec.head} if spec.head else {}),
        **({} if spec.label is None else {"label": spec.label}),
        **({"revision": spec.revision} if spec.revision and provenance.get("revision") else {}),
        **hashes_now(spec),
    }
    if changed := differences(provenance, expected):
        raise InputError(
            f"{path} is not what the panel asks for: it differs in {', '.join(changed)}: delete it and scan again"
        )
    if provenance.get("dtype", spec.dtype) != spec.dtype:
        _warn(f"{panel.name}: {spec.name} was scanned in {provenance['dtype']}, the panel says {spec.dtype}")
    return scan


@functools.cache
def _warn(message: str) -> None:
    """A warning that is not repeated for each of many files."""
    logger.warning(message)


class Shards:
    """The scores of a scan in progress, written piece by piece beside its output, so that it can be cut off and go on.

    Parameters
    ----------
    output
        The file that the scan will be.
    plan
        What the scan is (model, prompt, batch size …), as JSON values. A directory left by a scan with another plan is
        refused, the first difference named.
    total
        Number of scores.

    Raises
    ------
    InputError
        The directory cannot be written, holds another scan, or a shard is damaged.
    """

    def __init__(self, output: Path, plan: Provenance, total: int):
        self.directory = partial_directory(output)
        self.plan, self.total = plan, total
        claim(self.directory, plan, "scan")

    @staticmethod
    def planned(output: Path) -> Provenance | None:
        """The plan of a scan that was cut off, or None."""
        return read_plan(partial_directory(output))

    def ranges(self) -> list[range]:
        """The pieces of the scan, in order."""
        return [range(start, min(start + SHARD, self.total)) for start in range(0, self.total, SHARD)]

    def read(self, piece: range) -> np.ndarray | None:
        """The scores of a piece, float32, or None if it has not been written."""
        for file in self.directory.glob(f"{piece.start:09d}-*.f32"):
            content = file.read_bytes()
            if file.stem.split("-")[1] != _short_sha256(content) or len(content) != 4 * len(piece):
                raise InputError(f"damaged shard {file}: delete it and run the same command again")
            return np.frombuffer(content, dtype="<f4")
        return None

    def write(self, piece: range, scores: np.ndarray) -> None:
        """Keep the scores of a piece."""
        content = scores.astype("<f4").tobytes()
        with atomic_path(self.directory / f"{piece.start:09d}-{_short_sha256(content)}.f32") as temporary:
            temporary.write_bytes(content)

    @staticmethod
    def discard(output: Path) -> None:
        """Delete the shards of a scan, once it is written whole."""
        shutil.rmtree(partial_directory(output), ignore_errors=True)


def _short_sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
