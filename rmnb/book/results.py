"""What a chapter keeps: its numbers as one tidy file, and its verdicts for the page of all verdicts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rmnb.book.display import inline, show, table_html
from rmnb.book.notebook import results_directory
from rmnb.errors import InputError
from rmnb.files import atomic_path
from rmnb.findings.claims import Claim, Verdict, judge, load_claims
from rmnb.findings.rows import numbers
from rmnb.panels import Panel, load_panel
from rmnb.stats.estimate import Estimate

COLUMNS = ["quantity", "source", "model", "other", "question", "value", "low", "high", "n"]
SOURCES = {"panel": "this panel", "released": "the authors' models"}
_STORED = ["source", "model", "other", "value", "low", "high", "model group", "other group"]
AUTHORS = "facct2025"  # the panel that says which of the authors' models belong together


def save(chapter: str, /, **frames: Any) -> Path:
    """Write a chapter's numbers as ``<chapter>.csv`` into `results_directory`, one a row.

    Parameters
    ----------
    chapter
        The file's name.
    **frames
        The keyword names the quantity (before it stands in a frame's own column quantity, if it has one). Tidy frames
        have a column value, and model, other, question, source, low, high, n as they need; other columns, such as the
        choices of a specification curve, are written into other. Wide frames have models as their index, and questions
        (or what the columns' name says) as columns; a square of models gives pairs. A series has an index of models.
        Numbers, `Estimate` and mappings of these do as well. Frames of `rmnb.findings.released.load_released` keep
        their quantities and their source. Missing values are left out.

    Returns
    -------
    Path
        Of the file: quantity, source (``panel`` unless the frame says otherwise), model, other, question, value, low,
        high, n.

    Raises
    ------
    InputError
        A value is infinite, or two rows have one key.
    """
    parts = [_tidy(name, frame) for name, frame in frames.items()]
    table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    key = COLUMNS[:5]
    if np.isinf(table["value"]).any():
        raise InputError(f"{table.loc[np.isinf(table['value']), 'quantity'].iloc[0]} has an infinite value")
    if table.duplicated(key).any():
        row = table[table.duplicated(key)].iloc[0]
        raise InputError(f"two rows of {' '.join(row[key].astype(str))}: what tells them apart?")
    path = results_directory() / f"{chapter}.csv"
    with atomic_path(path) as temporary:
        table.to_csv(temporary, index=False)
    return path


def _tidy(name: str, frame: Any) -> pd.DataFrame:
    """One argument of `save` as rows with all its columns."""
    if isinstance(frame, Estimate):
        frame = pd.DataFrame([numbers(frame)], columns=["value", "low", "high", "n"])
    elif isinstance(frame, Mapping):
        parts = [_tidy(f"{name} {key}", part) for key, part in frame.items()]
        return pd.concat(parts, ignore_index=True)
    elif isinstance(frame, pd.Series):
        frame = frame.rename("value").rename_axis(frame.index.name or "model").reset_index()  # pyright: ignore[reportArgumentType]
    elif not isinstance(frame, pd.DataFrame):
        frame = pd.DataFrame({"value": [frame]})
    elif "value" not in frame:
        frame = _long(frame)
    if frame.empty:
        return pd.DataFrame(columns=COLUMNS)
    rows = frame.drop(columns=["headline"], errors="ignore").rename(columns={"ci_low": "low", "ci_high": "high"})
    if "source" not in rows:
        rows = rows.assign(source="panel", quantity=f"{name} " + rows["quantity"] if "quantity" in rows else name)
    extra = [column for column in rows if column not in COLUMNS]
    if extra:
        described = [*(["other"] if "other" in rows else []), *extra]
        rows = rows.assign(other=rows[described].astype(str).agg(", ".join, axis=1)).drop(columns=extra)
    rows = rows.reindex(columns=COLUMNS).dropna(subset="value")
    text = {column: rows[column].astype(object).fillna("").astype(str) for column in COLUMNS[:5]}
    numeric = {column: rows[column].astype(float) for column in COLUMNS[5:8]}
    return rows.assign(**text, **numeric, n=rows["n"].astype("Float64").round().astype("Int64"))


def _long(frame: pd.DataFrame) -> pd.DataFrame:
    """A wide frame as rows: its index are models, its columns questions unless they are named otherwise."""
    index = frame.index.name or "model"
    columns = frame.columns.name or "question"
    columns = "other" if columns == index else columns
    wide = frame.rename_axis(index=index, columns=None)  # pyright: ignore[reportArgumentType]
    wide.columns = [", ".join(map(str, name)) if isinstance(name, tuple) else name for name in wide.columns]
    return wide.reset_index().melt(id_vars=index, var_name=columns, value_name="value")  # pyright: ignore[reportArgumentType]


def verdict(
    key: str,
    panel: pd.DataFrame | None = None,
    authors: pd.DataFrame | None = None,
    models: str | Path | Panel = "demo",
):
    """Show the verdict on a claim, and keep what it is made of for the page of all verdicts.

    Parameters
    ----------
    key
        Of a claim in ``rmnb/data/lists/claims.yml``.
    panel, authors
        The same measure of the panel's models and of the authors': model, value, low, high, one row a model (a measure
        of pairs: also other). None where there is none; the page then says that the claim cannot be tested here.
    models
        The panel, which says what models belong together (of a claim about bases: which base each has).

    Returns
    -------
    IPython.display.HTML
    """
    claims = load_claims()
    if key not in claims:
        raise InputError(f"no claim {key!r}: choose one of {', '.join(claims)}")
    parts = []
    for source, values, named in (("panel", panel, models), ("released", authors, AUTHORS)):
        if values is not None:
            groups = _groups(claims[key], named)
            kept = values.reindex(columns=["model", "other", "value", "low", "high"])
            part = kept.assign(source=source)
            for column in ("model", "other"):
                part[f"{column} group"] = [groups.get(name, name) for name in kept[column]]
            parts.append(part)
    stored = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_STORED)
    with atomic_path(results_directory() / "verdicts" / f"{key}.csv") as temporary:
        stored[_STORED].to_csv(temporary, index=False)
    return show(verdict_html(claims[key], judged(claims[key], stored)))


def read_verdicts(directory: Path | None = None) -> dict[str, dict[str, Verdict]]:
    """What the chapters kept with `verdict`: claim to source (panel, released) to verdict, of all claims."""
    directory = (directory or results_directory()) / "verdicts"
    verdicts = {}
    for key, claim in load_claims().items():
        path = directory / f"{key}.csv"
        verdicts[key] = judged(claim, pd.read_csv(path) if path.exists() else pd.DataFrame(columns=_STORED))
    return verdicts


def judged(claim: Claim, stored: pd.DataFrame) -> dict[str, Verdict]:
    """A claim judged for each source by the values that a chapter kept."""
    verdicts = {}
    for source in ("panel", "released"):
        values = stored[stored["source"] == source]
        groups = dict(zip(values["model"], values["model group"], strict=True))
        groups |= dict(zip(values["other"], values["other group"], strict=True))
        verdicts[source] = judge(claim, values, groups)
    return verdicts


def verdict_html(claim: Claim, verdicts: Mapping[str, Verdict]) -> str:
    """A claim, what it measures, a row a source with its verdict, and the means of the groups where they are few."""
    rows, group_means = [], []
    for source, judgement in verdicts.items():
        row = {"": SOURCES[source], "verdict": judgement.verdict}
        if judgement.models and claim.kind != "bases":  # of two bases no mean is taken
            interval = f"{judgement.low:z.2f} to {judgement.high:z.2f}" if np.isfinite(judgement.low) else ""
            row |= {"mean": judgement.value, "95 % interval": interval, "groups": len(judgement.groups)}
            row |= {"models": judgement.models, "clearly so": judgement.agreeing, "clearly not": judgement.opposing}
        rows.append(row)
        means = [f"{name} {value:z.2f}" for name, value in judgement.groups.items() if np.isfinite(value)]
        if 0 < len(means) < 6:
            group_means.append(f"<p>Means, {SOURCES[source]}: {inline(', '.join(means))}</p>")
    table = table_html(pd.DataFrame(rows, dtype=object), digits=2)
    details = [claim.measure, f"question {claim.question}" if claim.question else "", claim.unit]
    measure = "; ".join(filter(None, details))
    printed = f"<p>Printed: {inline(claim.printed)}</p>" if claim.printed else ""
    return (
        f'<div class="admonition claim"><p class="admonition-title">{inline(claim.claim)}</p>'
        f"<p>{inline(measure)}</p>{table}{''.join(group_means)}{printed}</div>"
    )


def _groups(claim: Claim, models: str | Path | Panel) -> dict[str, str]:
    panel = load_panel(models)
    if claim.kind == "bases":
        return {model.name: model.family or model.name for model in panel.models}
    return panel.groups
