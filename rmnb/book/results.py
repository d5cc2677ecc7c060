"""What a chapter keeps: its numbers as one tidy file, and its verdicts for the page of all verdicts."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb.book.display import inline, show, table_html
from rmnb.book.notebook import results_directory
from rmnb.errors import InputError
from rmnb.files import atomic_path
from rmnb.findings.claims import UNTESTED, Claim, Verdict, judge, load_claims
from rmnb.findings.released import COLUMNS
from rmnb.findings.rows import ENDS, interval_text
from rmnb.panels import Panel, load_panel

SOURCES = {"panel": "this panel", "released": "the authors' models"}
_NAMES = ["source", "model", "other", "model group", "other group"]
_STORED = [*_NAMES, *ENDS, "df"]
AUTHORS = "facct2025"  # the panel that says which of the authors' models belong together


def save(chapter: str, /, **frames: pd.DataFrame | pd.Series) -> Path:
    """Write a chapter's numbers as ``<chapter>.csv`` into `results_directory`, a row for each number.

    Parameters
    ----------
    chapter
        The file's name.
    **frames
        The keyword names the quantity; if a frame has a column quantity, the keyword and a blank are put before it.
        A frame has a row for each number: value, and any of model, other, question, low, high, n; further columns, such
        as the method of a search, are kept. A series has the values, its index the other columns: model, unless the
        index has names. Frames with a source, as of `rmnb.findings.released.load_released`, keep it and their
        quantities. Missing values are left out.

    Returns
    -------
    Path
        Of the file: quantity, source (``panel`` unless the frame says otherwise), model, other, question, value, low,
        high, n, further columns.

    Raises
    ------
    InputError
        A frame has no column value, a value is infinite, or two rows differ in nothing but their numbers.
    """
    parts = [pd.DataFrame(columns=COLUMNS)]
    for name, frame in frames.items():
        if isinstance(frame, pd.Series):
            frame = frame.rename("value").reset_index().rename(columns={"index": "model"})
        if "value" not in frame:
            raise InputError(f"{name} has no column value: save a row for each number")
        if "source" not in frame:
            quantity = f"{name} " + frame["quantity"] if "quantity" in frame else name
            frame = frame.assign(source="panel", quantity=quantity)
        parts.append(frame)
    table = pd.concat(parts, ignore_index=True).dropna(subset="value").astype({"value": float, "n": "Int64"})
    if len(infinite := table[np.isinf(table["value"])]):
        raise InputError(f"{infinite['quantity'].iloc[0]} has an infinite value")
    if len(repeated := table[table.duplicated(table.columns.difference([*ENDS, "n"]).tolist())]):
        raise InputError(f"two rows of {repeated['quantity'].iloc[0]}: add a column that distinguishes them")
    path = results_directory() / f"{chapter}.csv"
    with atomic_path(path) as temporary:
        table.to_csv(temporary, index=False)
    return path


def verdict(
    key: str,
    panel: pd.DataFrame | None = None,
    authors: pd.DataFrame | None = None,
    *,
    models: str | Path | Panel,
):
    """Show the verdict on a claim, and keep its values for the page of all verdicts.

    Parameters
    ----------
    key
        The name of a claim in ``rmnb/data/lists/claims.yml``.
    panel, authors
        The same measure of the panel's models and of the authors', as `rmnb.findings.claims.judge` takes it. None if
        there is none; the page then says that the claim cannot be tested here.
    models
        The panel, which says what models belong together (of a claim about bases: which base each has).

    Returns
    -------
    IPython.display.HTML

    Raises
    ------
    InputError
        The file cannot be written.
    """
    claim = load_claims()[key]
    parts = []
    if panel is not None:
        parts.append(_with_groups(panel, claim, models, source="panel"))
    if authors is not None:
        parts.append(_with_groups(authors, claim, AUTHORS, source="released"))
    stored = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_STORED)
    with atomic_path(results_directory() / "verdicts" / f"{key}.csv") as temporary:
        stored.to_csv(temporary, index=False)
    return show(verdict_html(claim, judged(claim, stored)))


def _with_groups(values: pd.DataFrame, claim: Claim, models: str | Path | Panel, source: str) -> pd.DataFrame:
    """The columns of `_STORED`; a model without a group is a group of its own."""
    panel = load_panel(models)
    groups = panel.base_families if claim.kind == "bases" else panel.groups
    stored = values.assign(source=source).reindex(columns=_STORED)
    for column in ("model", "other"):
        stored[f"{column} group"] = [groups.get(name, name) for name in stored[column]]
    return stored


def read_verdicts(
    directory: Path | None = None, merged: Mapping[str, str] | None = None
) -> dict[str, dict[str, Verdict]]:
    """What the chapters kept with `verdict`: claim to source (panel, released) to verdict, of all claims.

    Parameters
    ----------
    merged
        Groups that count as one: the name of each to the name that they share, such as ``{"fair": "statements", "warm":
        "statements"}``.
    """
    directory = (directory or results_directory()) / "verdicts"
    verdicts = {}
    for key, claim in load_claims().items():
        path = directory / f"{key}.csv"
        stored = pd.DataFrame(columns=_STORED)
        if path.exists():  # models may be called NA or 01
            stored = pd.read_csv(path, dtype=dict.fromkeys(_NAMES, str), keep_default_na=False, na_values=[""])
        verdicts[key] = judged(claim, stored, merged)
    return verdicts


def judged(claim: Claim, stored: pd.DataFrame, merged: Mapping[str, str] | None = None) -> dict[str, Verdict]:
    """A claim judged for each source by the values that a chapter kept; `merged` as of `read_verdicts`."""
    merged = merged or {}
    verdicts = {}
    for source in ("panel", "released"):
        values = stored[stored["source"] == source]
        groups = {}
        for side in ("model", "other"):
            for model, group in zip(values[side], values[f"{side} group"], strict=True):
                groups[model] = merged.get(group, group)
        verdicts[source] = judge(claim, values, groups)
    return verdicts


def badge(verdict: str, source: str = "") -> str:
    """A verdict as HTML, in words on its colour; `source` says whose models gave it."""
    words = f"{source}: {verdict}" if source else verdict
    return f'<span class="verdict {verdict.partition(" ")[0]}">{inline(words)}</span>'


def verdict_html(claim: Claim, verdicts: Mapping[str, Verdict]) -> str:
    """A claim with a badge for each source that can test it, in one line; its numbers are shown after a click."""
    badges, rows, groups = [], [], []
    for source, judgement in verdicts.items():
        if judgement.verdict == UNTESTED:
            continue
        badges.append(badge(judgement.verdict, SOURCES[source]))
        if np.isfinite(judgement.value):
            row = {"": SOURCES[source], "mean": judgement.value}
            row |= {"95 % interval": interval_text(judgement.low, judgement.high), "groups": len(judgement.groups)}
            row |= {"models": judgement.models, "clearly so": judgement.agreeing, "clearly not": judgement.opposing}
            rows.append(row)
        values = [f"{name} {value:z.2f}" for name, value in judgement.groups.items() if np.isfinite(value)]
        if 0 < len(values) < 6:
            groups.append(f"<p>Values, {SOURCES[source]}: {inline(', '.join(values))}</p>")
    table = table_html(pd.DataFrame(rows, dtype=object), digits=2) if rows else ""
    details = [claim.measure, f"question {claim.question}" if claim.question else "", claim.unit]
    measure = "; ".join(filter(None, details))
    printed = f"<p>Published: {inline(claim.printed)}</p>" if claim.printed else ""
    return (
        f'<details class="claim"><summary>{inline(claim.claim)} {" ".join(badges) or badge(UNTESTED)}</summary>'
        f"<p>{inline(measure)}</p>{table}{''.join(groups)}{printed}</details>"
    )


def leave_out(notebook: Path, output: Path, reason: str) -> None:
    """Write a page that has a chapter's title and says why the rest is not there; results of earlier runs go.

    Parameters
    ----------
    notebook, output
        As `rmnb.book.notebook.run_notebook` takes them.
    reason
        One line.
    """
    import nbformat

    results = output.parent / "results"
    (results / f"{notebook.stem[3:]}.csv").unlink(missing_ok=True)
    for key, claim in load_claims().items():
        if claim.chapter == notebook.stem:
            (results / "verdicts" / f"{key}.csv").unlink(missing_ok=True)
    page = nbformat.read(notebook, 4)
    title = page.cells[0].source.splitlines()[0]
    page.cells = [nbformat.v4.new_markdown_cell(f"{title}\n\n```{{admonition}} Left out\n{inline(reason)}\n```")]
    with atomic_path(output) as temporary:
        nbformat.write(page, temporary)
