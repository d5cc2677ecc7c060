"""The score store: scores as Parquet files that say where they come from, written whole or not at all.

Work in progress is kept by `rmnb.plans.kept` beside its output. A finished scan is one Parquet file whose metadata
hold its provenance, its plan among it, and the checksum of its content.
"""

import functools
import hashlib
import json
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from rmnb.errors import InputError
from rmnb.files import atomic_path, cache_dir, data_dir, exclusive, shipped
from rmnb.models.origin import hashes_now, template_sha256
from rmnb.panels import ModelSpec, Panel, PromptSpec, find_spec, load_panel
from rmnb.panels.specs import READOUT_KEYS, ImplicitSpec
from rmnb.plans import differences

SHARD = 1024  # continuations between two writes
_KEY = b"rmnb"
_DIGEST = b"rmnb_sha256"
SCHEMA = 1  # of score files: raise it when their columns or the meaning of their provenance change
_NAMED = ("quantization_config", "device_map", "compile")  # options that have keys of their own
_VOCABULARY_COLUMNS = ["token_id", "token", "kind"]
Provenance = dict[str, Any]


def versions() -> dict[str, str]:
    """Versions of the packages that a score depends on."""
    return {name: version(name) for name in ("rmnb", "torch", "transformers", "tokenizers")}


def describe_model(rm) -> Provenance:
    """What a plan says of a reward model, as JSON values: they must be equal for work to go on (`rmnb.plans`)."""
    return {
        **rm.hashes,
        "template_sha256": template_sha256(rm.dialogue.template),
        "head": rm.readout.name,
        "trainer": None if rm.dialogue.trainer == "trl" else rm.dialogue.trainer,
        "reference": rm.reference.hashes if rm.reference else None,
        **_describe_spec(rm.spec),
        "quantise": rm.options.get("quantization_config"),
        "options": {name: str(value) for name, value in rm.options.items() if name not in _NAMED} or None,
    }


def _describe_spec(spec: ModelSpec) -> Provenance:
    """What a plan says of how a model is read: all keys of the readout but those that say themselves elsewhere."""
    elsewhere = {"kind", "head", "reference", "wrapping"}
    read = spec.readout.model_dump(mode="json", exclude=elsewhere)
    given = spec.model_dump(mode="json", include={"read", "softcap", "dtype"})
    return {**{key: None for key in READOUT_KEYS if key not in elsewhere}, **read, **given}


def note_model(rm) -> Provenance:
    """What is noted of a reward model beside its plan: its name, where it came from, what it ran on."""
    return {
        "model": rm.name,
        "source": rm.spec.source or f"{rm.spec.base} + {rm.spec.adapter}",
        "revision": rm.spec.revision,
        "reference_source": getattr(rm.spec.readout, "reference", None),
        "device": rm.device.type,
        "device_map": rm.options.get("device_map"),
        "compile": rm.options.get("compile"),
        "versions": versions(),
    }


def write_table(path: Path, frame: pd.DataFrame, provenance: Provenance) -> None:
    """Write a table atomically (Parquet, zstd) with its provenance.

    Added to that are ``schema``, ``columns`` (their types), ``rows``, ``time`` (UTC) and ``content_sha256``.
    `read_table` verifies types and checksum, and a checksum of the provenance itself.
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
    table = table.replace_schema_metadata({_KEY: described, _DIGEST: hashlib.sha256(described).hexdigest()})
    # Numbers byte by byte: half the size of the plain layout.
    options: dict[str, Any] = {"use_dictionary": False, "use_byte_stream_split": list(frame.select_dtypes("number"))}
    # Opened here, so that it is closed where the disk is full: the space of an open file is not free again.
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        pq.write_table(table, file, compression="zstd", compression_level=19, **options)


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
        metadata = table.schema.metadata
        frame = table.to_pandas(ignore_metadata=True)
        provenance = json.loads(metadata[_KEY])
        types = _types(frame)
        digest = hashlib.sha256(metadata[_KEY]).hexdigest().encode()
        # The first files have neither the types of their columns nor a digest of their provenance.
        is_whole = (
            content_sha256(frame) == provenance["content_sha256"]
            and types == provenance.get("columns", types)
            and digest == metadata.get(_DIGEST, digest)
        )
    except Exception as error:  # damage makes the libraries raise all kinds
        raise InputError(
            f"{path} is damaged, or not a score file of rmnb: choose another name, or delete it"
        ) from error
    if (schema := provenance.get("schema", SCHEMA)) != SCHEMA:
        raise InputError(f"{path} has schema {schema}, this version of rmnb reads {SCHEMA}: scan again")
    if not is_whole:
        raise InputError(f"{path} is damaged: its content does not have the checksum it was written with")
    return frame, provenance


def _types(frame: pd.DataFrame) -> dict[str, str]:
    return {str(name): str(kind) if kind.kind in "iufb" else "text" for name, kind in frame.dtypes.items()}


def content_sha256(frame: pd.DataFrame) -> str:
    """SHA-256 over the values of a table, column by column: equal content, equal hash, whatever the file's bytes."""
    digest = hashlib.sha256()
    for name, values in frame.items():
        digest.update(f"{name}\0".encode())
        if values.dtype.kind in "iufb":
            digest.update(values.to_numpy().tobytes())
        else:
            texts = ("" if value is None else str(value) for value in values.tolist())
            digest.update("\0".join(texts).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def read_scan(path: Path) -> tuple[pd.DataFrame, Provenance]:
    """A scan file: DataFrame token_id (int32), token, kind, score (float32), one row an id; and its provenance.

    Of several outputs there are columns score_NAME. Files of a panel's store leave token and kind to a vocabulary file
    that all scans of a tokenizer share.
    """
    frame, provenance = read_table(path)
    if "vocabulary" in provenance:
        words = _read_vocabulary(Path(path).parent.parent / provenance["vocabulary"], provenance["vocabulary_sha256"])
        frame = frame.merge(words, on="token_id", how="left")
    scores = [name for name in frame if str(name).startswith("score")]
    if missing := sorted({*_VOCABULARY_COLUMNS, *(scores or ["score"])} - set(frame)):
        raise InputError(f"{path} is no scan: it lacks the column {missing[0]}")
    return frame[[*_VOCABULARY_COLUMNS, *scores]], provenance


@functools.lru_cache(maxsize=4)
def _read_vocabulary(path: Path, digest: str) -> pd.DataFrame:
    words, provenance = read_table(path)
    if provenance["content_sha256"] != digest:
        raise InputError(f"{path}: this vocabulary has changed since the scans that refer to it")
    return words


def store_directory(panel: Panel) -> Path:
    """Where a panel's scores are: where the panel says, else in the cache."""
    return data_dir() / Path(panel.scores).expanduser() if panel.scores else cache_dir() / "scores" / panel.name


def panel_directory(panel: Panel, kind: str) -> Path:
    """Where a panel keeps what is computed beside its scores: ``sequences``, ``pairs``, ``logprobs``, ``trajectories``.

    Beside the directory that the panel gives its scores; of a panel that gives none, in the directory of its name.
    """
    scores = store_directory(panel)
    return (scores.parent if panel.scores else scores) / kind


def refuse_other_weights(path: Path, recorded: str | None, now: str | None) -> None:
    """Raise InputError where both hashes are known and differ: what lies at a path was computed with other weights."""
    if recorded and now and recorded != now:
        raise InputError(f"{path} was computed with other weights than the panel's model has: delete it", path)


def scores_path(panel: Panel, model: str, prompt: str, protocol: str = "exact") -> Path:
    """The file of one model's scan with one prompt in the panel's store."""
    return store_directory(panel) / model / f"{prompt}.{protocol}.parquet"


def write_scores(path: Path, scan: pd.DataFrame, provenance: Provenance) -> None:
    """Put a scan into a panel's store, its vocabulary in a file that all scans of the same tokens share."""
    words = scan[_VOCABULARY_COLUMNS]
    digest = content_sha256(words)
    tokenizer = provenance["tokenizer_sha256"]
    shared = {"vocabulary": f"vocabularies/{tokenizer[:12]}-{digest[:12]}.parquet", "vocabulary_sha256": digest}
    file = path.parent.parent / shared["vocabulary"]
    with exclusive(file):
        if not file.exists():
            write_table(file, words, {"tokenizer_sha256": tokenizer})
    write_table(path, scan.drop(columns=["token", "kind"]), {**provenance, **shared})


def read_scores(panel: str | Path | Panel, model: str, prompt: str, protocol: str = "exact") -> pd.DataFrame:
    """One model's scan from the panel's store; see `read_scan` for the columns.

    Raises
    ------
    InputError
        The panel has no such model or prompt, it has not been scanned, or the file is damaged or stale: of another
        prompt or reading, or of weights, tokenizer or template that have changed since.
    """
    panel = load_panel(panel)
    spec = panel.model(model)
    question = panel.prompt(prompt)
    path = scores_path(panel, spec.name, question.key, protocol)
    if not path.exists():
        if spec.adapter:
            shipped(spec.adapter, f"no scores of {model}")  # without its weights it cannot be scanned either
        raise InputError(
            f"no scores of {model} for prompt {question.key} ({protocol}): "
            f"run `rmnb scan {model} --panel {panel.called} --prompt {question.key} --protocol {protocol}`"
        )
    scan, provenance = read_scan(path)
    if "score" not in scan:
        raise InputError(f"{path} has several outputs, and one is needed: name it (`label` in the panel)", path)
    refuse_stale(path, provenance, panel, spec, question, protocol=protocol)
    return scan


def refuse_stale(
    path: Path, provenance: Provenance, panel: Panel, spec: ModelSpec, question: PromptSpec, **asked: str | None
) -> None:
    """Raise InputError, naming what differs, unless scores are of a panel's model as it is now, and of what was asked.

    Parameters
    ----------
    path
        Of the scores, for the line.
    provenance
        What was written with the scores.
    asked
        Further keys of a provenance, such as ``protocol`` and ``answer``, and what they must be.
    """
    of_question = {"model": spec.name, "prompt": question.text, "history": question.earlier}
    expected = {**of_question, **asked, **_describe_spec(spec), **hashes_now(spec)}
    if head := getattr(spec.readout, "head", None):  # else the one that the files have
        expected["head"] = head
    if isinstance(spec.readout, ImplicitSpec):
        known = hashes_now(find_spec(spec.readout.reference, panel))
        known.pop("template_sha256", None)  # it is asked in the model's
        expected["reference"] = {**(provenance["reference"] or {}), **known}
    if provenance.get("revision"):  # else scanned before the panel named one
        expected["revision"] = spec.revision
    if changed := differences(provenance, expected):
        names = ", ".join(key.removesuffix("_sha256") for key in changed)
        raise InputError(f"{path} is not what the panel asks for: it differs in {names}: scan with --restart", path)
