"""What was seen of a training while it ran: the shipped log of a demo recipe watched at the default, and its rows."""

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from rmnb.files import data_dir
from rmnb.findings.results import Results

VALUES = ("valence", "framing", "agency_less_communion")


def shipped(model: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The records of a training that ``benchmarks/watching.py`` watched, and how they came about.

    Parameters
    ----------
    model
        A demo model.

    Returns
    -------
    tuple of DataFrame and dict
        Of `course`; and what the provenance says: what `measure` takes, recipe, threads, versions.
    """
    directory = data_dir() / "demo" / "watching"
    about = json.loads((directory / f"{model}.json").read_text(encoding="utf-8"))
    return pd.read_csv(directory / f"{model}.csv"), about


def course(log_history: list[dict[str, Any]]) -> pd.DataFrame:
    """A trainer's own records as a table.

    Parameters
    ----------
    log_history
        ``trainer.state.log_history``.

    Returns
    -------
    DataFrame
        A row a step that was logged: step (int), loss, accuracy (of the training's pairs since the record before),
        valence, framing, agency_less_communion, seconds (what `rmnb.training.WatchValues` logged); NaN where a record
        has none.
    """
    table = pd.DataFrame(log_history).groupby("step", as_index=False).first()
    return table.rename(columns=lambda name: name.removeprefix("values/")).reindex(
        columns=["step", "loss", "accuracy", *VALUES, "seconds"]
    )


def points(log: pd.DataFrame, value: str) -> pd.DataFrame:
    """One of `VALUES` where it was logged, as `rmnb.book.figures.courses` draws it: step, value, no interval."""
    found = log[["step", value]].dropna().rename(columns={value: "value"})
    return found.assign(ci_low=float("nan"), ci_high=float("nan"))


def measure(log: pd.DataFrame, about: Mapping[str, Any], panel: str = "") -> pd.DataFrame:
    """Rows of the results table: what was logged first and last, and what share of the time it took.

    Parameters
    ----------
    log
        Of `course`.
    about
        model, steps, planned (steps; fewer were made where the training was cut off), measurements, share_of_time.
    """
    results = Results("watching", panel)
    watched = log.dropna(subset=list(VALUES))
    for place in (0, -1):
        row = watched.iloc[place]
        for value in VALUES:
            about_row = {"model": about["model"], "other": f"step {row['step']:.0f}"}
            results.add("panel", f"watched_{value}", float(row[value]), prompt="greatest", **about_row)
    cost, of = about["share_of_time"], f"{about['steps']} of {about['planned']} steps"
    results.add("panel", "watching_share", cost, model=about["model"], other=of, n=about["measurements"])
    return results.frame()
