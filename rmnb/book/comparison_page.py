"""The page of a comparison: limits, changes, and the words that moved most."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from rmnb.book.display import inline, table_html
from rmnb.book.standalone import write_sections
from rmnb.report import comparison, policy
from rmnb.report.record import Report, facts

CANNOT_SAY = (
    "The intervals are over words, with both models as they are: they say how a change would be on other words, and "
    "nothing of another training. Two seeds of one training often differ clearly, too.",
    "With this many numbers some change clearly by chance. A gate should name the few that matter before it is run.",
    "Models with different vocabularies are measured each on its own tokens.",
    "All numbers are about single tokens, words and short names as whole answers.",
)


def write(
    page: Path,
    reports: tuple[Report, Report],
    table: pd.DataFrame,
    moved: pd.DataFrame | None,
    outcomes: pd.DataFrame,
    would_say: Sequence[pd.DataFrame | None],
) -> None:
    """Write the page of a comparison.

    Parameters
    ----------
    page
        The file to write.
    reports
        A and B.
    table
        Of `rmnb.report.comparison.compare`.
    moved
        Of `rmnb.report.comparison.moved`; None where the scores of one of the models are missing.
    outcomes
        Of `rmnb.report.limits.check`; without rows, the page has no section on limits.
    would_say
        Of `rmnb.report.policy.read`, for A and B; None where no language model was named.

    Raises
    ------
    InputError
        The page cannot be written.
    """
    a, b = reports
    seeds = "" if table["seeds"].notna().any() else f"<p>{inline(comparison.SEEDS_UNKNOWN.capitalize())}.</p>"
    sections = {"": f"<p>A is {inline(a.name)}, B is {inline(b.name)}; a change is B minus A.</p>{seeds}"}
    if warning := not_alike(a, b):
        sections[""] += f"<p><strong>{inline(warning)}</strong></p>"
    if len(outcomes):
        kept = outcomes.assign(result=outcomes["broken"].map({True: "broken", False: "kept"}))
        sections["Limits"] = table_html(kept[["limit", "question", "other", "result", "value", "bound"]])
    sections["What changed"] = table_html(changes(table))
    if moved is not None:
        for question, rows in moved.groupby("question", sort=False):
            shown = rows[["word", "a", "b", "change"]].set_axis(["word", "A", "B", "change (sd)"], axis=1)
            sections[f"Words that moved most, asked for the {question}"] = table_html(shown, tokens=["word"], digits=2)
    for report, said in zip(reports, would_say, strict=True):
        if said is not None:
            lists = policy.side_by_side(said)
            title = f"What {said['language_model'].iloc[0]} would say if it were trained on {report.name}"
            sections[title] = table_html(lists, tokens=lists.columns[::2], digits=2)
    points = "".join(f"<li>{inline(point)}</li>" for point in CANNOT_SAY)
    sections["What this comparison cannot say"] = f"<ul>{points}</ul>"
    scored = pd.DataFrame({"A": facts(a.provenance), "B": facts(b.provenance)})
    sections["What was scored"] = table_html(scored.fillna("").rename_axis("").reset_index())
    write_sections(page, f"{a.name} and {b.name}", sections)


def not_alike(a: Report, b: Report) -> str:
    """A sentence that warns where the rewards of two models are read in different ways; else empty."""
    names = ", ".join(comparison.read_differently(a, b))
    return f"A and B are not read alike ({names} differ): any change may come from that." if names else ""


def changes(table: pd.DataFrame) -> pd.DataFrame:
    """The changes as a reader sees them: part, number, A, B, change, its interval over words, what seeds differ by."""
    heads = {
        "part": "",
        "label": "number",
        "a": "A",
        "b": "B",
        "change": "change",
        "low": "95 %, other words: from",
        "high": "to",
        "seeds": "two seeds differ by",
    }
    shown = table[list(heads)].rename(columns=heads)
    return shown.dropna(axis="columns", how="all")
