"""A finished report: ``report.json``, from which models are compared without a single reward."""

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from pydantic import TypeAdapter

from rmnb.errors import InputError
from rmnb.files import atomic_path, write_json
from rmnb.findings.rows import interval_text
from rmnb.panels.specs import FileName
from rmnb.report import numbers, replicates
from rmnb.report.scores import ModelScores
from rmnb.scoring.store import Provenance

SCHEMA = 4
#: What is said of a model that was scored: keys of its provenance, and what they are called.
_FACTS = {
    "model": "model",
    "source": "source",
    "revision": "revision",
    "dtype": "dtype",
    "head": "head",
    "label": "label",
    "judge": "judge",
    "reference_source": "reference",
    "beta": "beta",
    "read_token": "read at",
    "attention": "attention",
    "tokens": "tokens",
    "weights_sha256": "SHA-256 of weights",
}


@dataclass(frozen=True)
class Report:
    """One model's numbers.

    Attributes
    ----------
    name : str
    quick : bool
        Of a sample of the vocabulary, and shorter lists.
    numbers : DataFrame
        Of `rmnb.report.numbers.measure`.
    left_out : DataFrame
        Of `rmnb.report.replicates.left_out`, in the order of `numbers`.
    provenance : dict
        Of the first scan.
    """

    name: str
    quick: bool
    numbers: pd.DataFrame
    left_out: pd.DataFrame
    provenance: Provenance


def facts(provenance: Provenance) -> dict[str, str]:
    """What is known of a model that was scored, by what it is called: where it is from and how its reward is read."""
    known = {label: provenance[key] for key, label in _FACTS.items() if provenance.get(key)}
    if judge := known.get("judge"):
        replies = ", ".join(f"{reply} {weight:+g}" for reply, weight in judge["answers"].items())
        known["judge"] = f"{replies} ({'probabilities' if judge['expected'] else 'logits'}): {judge['template']}"
    return {label: " ".join(str(fact).split()) for label, fact in known.items()}


def build(scores: ModelScores, workers: int = 1, progress: bool = False) -> Report:
    """Measure a model; see `rmnb.report.replicates.left_out` for `workers` and `progress`."""
    estimates = numbers.estimates(scores)
    measured = numbers.tabulate(estimates)
    left_out = replicates.left_out(scores, measured, estimates, workers, progress)
    return Report(scores.name, scores.quick, measured, left_out, scores.provenance)


def write(report: Report, directory: Path) -> Path:
    """Write a report into a directory.

    ``report.json`` has model, quick, numbers (each with its replicates) and provenance, ``report.md`` what was scored
    and a table for a model card. Returns the path of the former.
    """
    table = report.numbers.assign(left_out=report.left_out.to_numpy().tolist())  # pyright: ignore[reportArgumentType]
    rows = json.loads(table.to_json(orient="records", double_precision=15))
    content = {
        "schema": SCHEMA,
        "model": report.name,
        "quick": report.quick,
        "numbers": rows,
        "provenance": report.provenance,
    }
    path = Path(directory) / "report.json"
    write_json(path, content, ensure_ascii=False)
    lines = [f"- {label}: {fact}" for label, fact in facts(report.provenance).items()]
    lines += ["", "| number | value | 95 % interval |", "|---|---|---|"]
    for row in report.numbers.to_dict("records"):
        interval = interval_text(row["low"], row["high"])
        lines.append(f"| {row['part']}: {row['label']} | {row['value']:z.2f} | {interval} |")
    with atomic_path(Path(directory) / "report.md") as part:
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(path: Path | str) -> Report:
    """The report in a directory, or in a ``report.json``.

    Raises
    ------
    InputError
        It does not exist, is not a report, or was written by another version.
    """
    path = Path(path)
    file = path / "report.json" if path.is_dir() else path
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["schema"] != SCHEMA:
            raise InputError(f"{file} was written by another version: run the same `rmnb report` again")
        table = pd.DataFrame(content["numbers"])
        left_out = pd.DataFrame(table.pop("left_out").tolist(), dtype=float)
        left_out.index = pd.MultiIndex.from_frame(table[numbers.KEY])
        table = table.astype(dict.fromkeys(["value", "low", "high", "error"], float))
        name = TypeAdapter(FileName).validate_python(content["model"])  # directories are called after it
        return Report(name, content["quick"], table, left_out, content["provenance"])
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{file} is no report: give what `rmnb report` wrote") from error


def is_report(text: str) -> bool:
    """Whether a command's argument is a report: its directory, or its ``report.json``."""
    path = Path(text)
    return path.suffix == ".json" or (path / "report.json").is_file()
