"""What can stand on a side of a comparison: a model's scores, or the rows of a report whose scores are not at hand."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from rmnb.errors import InputError
from rmnb.models.origin import hashes_now
from rmnb.panels import ModelSpec, load_panel
from rmnb.report import card, numbers, scores
from rmnb.report.scores import ModelScores


@dataclass(frozen=True)
class Side:
    """One of two that are compared.

    Attributes
    ----------
    name : str
    scores : ModelScores or None
        None where only a report's rows are at hand.
    rows : DataFrame or None
        A report's rows of the results table; None where they have to be measured.
    noise : float or None
        Standard deviation of the scores' rounding errors, where a report holds it.
    provenance : dict
    """

    name: str
    scores: ModelScores | None
    rows: pd.DataFrame | None
    noise: float | None
    provenance: dict[str, Any]

    def measured(self) -> pd.DataFrame:
        """The report's rows, or those of the scores."""
        if self.rows is not None:
            return self.rows
        assert self.scores is not None
        return numbers.measure(self.scores)


def of_scores(found: ModelScores, noise: float | None = None) -> Side:
    """A side whose numbers are measured from scores."""
    return Side(found.name, found, None, noise, dict(found.provenance))


def of_demo(name: str) -> Side:
    """A model of the demo panel, by its shipped scores."""
    found = scores.shipped(name)
    if found is None:
        raise InputError(f"{name!r} has no shipped scores here: `rmnb compare` scores any model")
    return of_scores(found)


def is_report(text: str) -> bool:
    """Whether a command's argument is a report: its directory, or its ``report.json``."""
    path = Path(text)
    return path.suffix == ".json" or (path / "report.json").is_file() or any(path.glob("scores/*/*.exact.parquet"))


def read_report(path: Path) -> Side:
    """A report's scores, or, where they are not beside it, the rows of its ``report.json``.

    Raises
    ------
    InputError
        It is not there, damaged, or no report.
    """
    directory, file = (path.parent, path) if path.suffix == ".json" else (path, path / "report.json")
    rows, told = card.read(file) if path.suffix == ".json" or file.exists() else (None, {})
    noise = told.get("noise")
    if (directory / "scores").is_dir():
        return of_scores(scores.read(directory), noise)
    assert rows is not None
    rows = rows[rows["statistic"] != "reference_below"]
    return Side(str(told["model"]), None, rows, noise, dict(told["provenance"]))


def shipped(spec: ModelSpec) -> ModelScores | None:
    """The shipped scores of a model of the demo panel; None where it is another, or has other weights than were scored.

    To score these models again would take minutes and give the same.
    """
    demo = load_panel("demo")
    if spec.name not in demo.model_names or spec != demo.model(spec.name):
        return None
    found = scores.shipped(spec.name)
    scored = found and found.provenance["weights_sha256"]
    return found if scored == hashes_now(spec).get("weights_sha256", scored) else None
