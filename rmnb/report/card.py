"""What a report leaves for programs and for model cards: ``report.json`` and ``report.md``."""

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from rmnb.errors import InputError
from rmnb.files import atomic_path
from rmnb.findings.quoting import plain
from rmnb.findings.results import COLUMNS, KEY
from rmnb.report.reference import NUMBERS, headline
from rmnb.report.scores import ModelScores
from rmnb.scoring.store import Provenance

SCHEMA = 1


def write(
    directory: Path, scores: ModelScores, rows: pd.DataFrame, sentences: Sequence[str], noise: float, about: str
) -> None:
    """Write ``report.json`` (rows, noise floor, provenance) and ``report.md`` (a section for a model card).

    Parameters
    ----------
    directory
        Of the report.
    rows
        Of `rmnb.report.numbers.measure`, with the column floor.
    sentences
        Of `rmnb.report.in_short.sentences`.
    noise
        Standard deviation of rounding errors, in units of reward.
    about
        What the report cannot say, in a sentence or two.
    """
    told = [plain(sentence) for sentence in sentences]
    found = json.loads(rows.to_json(orient="records"))
    content = {"schema": SCHEMA, "model": scores.name, "quick": scores.quick, "in_short": told, "noise": noise}
    content |= {"rows": found, "provenance": scores.provenance}
    with atomic_path(Path(directory) / "report.json") as part:
        part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    with atomic_path(Path(directory) / "report.md") as part:
        part.write_text(_markdown(scores, rows, told, about), encoding="utf-8")


def read(path: Path) -> tuple[pd.DataFrame, Provenance]:
    """The rows of a ``report.json``, and the rest of its content.

    Raises
    ------
    InputError
        No such file, or one that is no report.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        rows = pd.DataFrame(content.pop("rows")).astype(dict.fromkeys(KEY, "str"))
        return rows[[*COLUMNS, *(["floor"] if "floor" in rows else [])]], content
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is no report: give a report.json that `rmnb report` wrote") from error


def _markdown(scores: ModelScores, rows: pd.DataFrame, told: Sequence[str], about: str) -> str:
    of = "a sample of its vocabulary" if scores.quick else "its whole vocabulary"
    lines = ["## What this reward model values, one token at a time", ""]
    lines += [f"Measured by [rmnb](https://github.com/OWNER/rmnb) on {of}, in {scores.provenance['dtype']}.", ""]
    lines += [f"- {sentence}" for sentence in told]
    lines += ["", "| what | value | 95 % interval |", "|---|---|---|"]
    for part in NUMBERS:
        for row in headline(rows, part).to_dict("records"):
            ends = "" if pd.isna(row["ci_low"]) else f"{row['ci_low']:.2f} to {row['ci_high']:.2f}"
            lines.append(f"| {part}: {row['label']} | {row['value']:.2f} | {ends} |")
    return "\n".join([*lines, "", about, ""])
