"""Files of rows: JSON lines, JSON, CSV, TSV and Parquet. What a row says: `rmnb.scoring.forms`."""

import contextlib
import csv
import gzip
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from rmnb.conversation import without_gaps
from rmnb.errors import InputError, first_line

Row = dict[str, Any]
SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")


def is_row_file(text: str) -> bool:
    """Whether rows are read from there: a file by its name, standard input, or a stream that the shell opened."""
    named = text.lower().removesuffix(".gz").endswith(SUFFIXES)
    is_stream = os.path.exists(text) and not os.path.isfile(text) and not os.path.isdir(text)
    return named or is_stream or text == "-" or text.startswith("/dev/")


def read_rows(path: Path) -> list[Row]:
    """The rows of a file: JSON lines, a JSON list, CSV, TSV (all of them gzipped, too) or Parquet; ``-``: JSON lines.

    Raises
    ------
    InputError
        The file cannot be read, holds no row, or has a row that is none; its number is named.
    """
    name = path.name.lower()
    try:
        if name.endswith(".parquet"):
            table = pq.read_table(path).to_pylist()
            rows = [{key: without_gaps(value) for key, value in row.items()} for row in table]
        elif name == "-":
            rows = _json_rows(sys.stdin.read())
        else:
            content = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
            text = content.decode("utf-8-sig")
            name = name.removesuffix(".gz")
            if name.endswith((".csv", ".tsv")):
                rows = _table(text, "," if name.endswith(".csv") else "\t")
            else:
                rows = _json_rows(text)
    except (OSError, EOFError, ValueError, csv.Error) as error:  # ValueError: what is no JSON, Parquet or Unicode
        reason = getattr(error, "strerror", None) or first_line(error)
        raise InputError(f"{path} cannot be read: {reason}", path) from error
    if not rows:
        raise InputError(f"{path} holds no rows", path)
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise InputError(f"{path}, row {number}: it has no keys, it is {json.dumps(row)[:60]}", path)
    return rows


def _json_rows(text: str) -> list[Row]:
    """The rows of a file that is one JSON value, or one value a line."""
    try:
        rows = read_json(text)
        return rows if isinstance(rows, list) else [rows]
    except json.JSONDecodeError:
        rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            if line.strip():
                rows.append(read_json(line))
        except json.JSONDecodeError as error:
            raise ValueError(f"line {number}: {error.msg}") from error
    return rows


def read_json(text: str) -> Any:
    """A JSON value; NaN, which is no JSON and which pandas and Python write for a gap, is None.

    Raises
    ------
    ValueError
        It is no JSON, or two keys of an object have the same name.
    """
    return json.loads(
        text, parse_constant=lambda name: None if name == "NaN" else float(name), object_pairs_hook=_object
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # else the last would count, without a word
        raise ValueError(f"two keys of an object have the same name: {str(found)[:60]}")
    return found


def _table(text: str, delimiter: str) -> list[Row]:
    csv.field_size_limit(sys.maxsize)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header = reader.fieldnames or ()
    if len(set(header)) < len(header):
        raise ValueError("two columns have the same name")
    rows = list(reader)
    for number, row in enumerate(rows, start=1):
        if None in row or None in row.values():
            raise ValueError(f"row {number} has more or fewer fields than the header, which has {len(header)}")
    return [{key: _messages(cell) for key, cell in row.items()} for row in rows]


def _messages(cell: Any) -> Any:
    """The messages, or the message, that a cell holds as JSON; any other text is itself."""
    with contextlib.suppress(TypeError, json.JSONDecodeError):
        value = read_json(cell)
        turns = value if isinstance(value, list) else [value]
        if turns and all(isinstance(turn, dict) and turn.keys() & {"content", "value"} for turn in turns):
            return value
    return cell
