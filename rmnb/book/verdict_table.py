"""The verdicts as pages show them: a table with numbers and reasons, and a short one in Markdown for the first page."""

import html
from typing import Any

import pandas as pd

from rmnb.book.display import inline, quoted_html
from rmnb.findings.quoting import plain

_SHORT = 130  # characters of a note that a card has room for
_HEADS = {"released": "In the authors' data", "panel": "In this panel"}


def badge(verdict: str) -> str:
    """HTML of a verdict: its words, and a mark that its kind gives it."""
    return f'<span class="verdict {verdict.replace(" ", "-")}">{inline(verdict)}</span>'


def verdicts_html(table: pd.DataFrame) -> str:
    """One row a claim, with its published numbers and both verdicts; below each row the reasons.

    Parameters
    ----------
    table
        As `rmnb.findings.verdicts.table` gives it; pages of chapters lie beside the page that shows it.
    """
    heads = "".join(f'<th scope="col">{inline(head)}</th>' for head in ("Claim", "As published", *_HEADS.values()))
    bodies = []
    for paper, of in table.groupby("paper", sort=False):
        bodies.append(
            f'<tbody><tr class="paper"><th colspan="4" scope="rowgroup">{inline(str(paper))}</th></tr></tbody>'
        )
        lines: list[Any] = of.to_dict("records")
        for line in lines:
            cells = "".join(
                f'<td data-head="{html.escape(head)}">{badge(line[f"verdict_{source}"])}{_counts(line, source)}</td>'
                for source, head in _HEADS.items()
            )
            link = f'<a href="{html.escape(line["chapter"])}.html">{inline(line["claim"])}</a>'
            why = "".join(
                f"<p><b>{inline(head)}.</b> {quoted_html(_told(line, source))}</p>" for source, head in _HEADS.items()
            )
            published = quoted_html(line["published"]) or "none printed"
            row = f'<tr><th scope="row">{link}</th><td data-head="As published">{published}</td>{cells}</tr>'
            below = f'<tr class="why"><td colspan="4">{why}</td></tr>'
            bodies.append(f'<tbody id="{html.escape(line["key"])}">{row}{below}</tbody>')
    table_html = f'<table class="verdicts"><thead><tr>{heads}</tr></thead>{"".join(bodies)}</table>'
    return f'<div class="table-scroll" tabindex="0">{table_html}</div>'


def _counts(line: dict[str, Any], source: str) -> str:
    """The number, and how many models and how many specifications are on the claimed side."""
    said = [quoted_html(line[f"number_{source}"])]
    if pd.notna(line.get(f"agreeing_{source}")) and line[f"n_{source}"] > 1:
        said.append(f"{line[f'agreeing_{source}']:.0f} of {line[f'n_{source}']:.0f} {line[f'unit_{source}']}")
    if pd.notna(line.get(f"specifications_{source}")):
        same, clear, of = (line[f"{name}_{source}"] for name in ("same_sign", "clear", "specifications"))
        said.append(f"{same:.0f} of {of:.0f} specifications, {clear:.0f} clear")
    return "".join(f'<span class="count">{text}</span>' for text in said if text)


def _told(line: dict[str, Any], source: str) -> str:
    return f"{line[f'why_{source}']} {line[f'note_{source}']}".strip()


def short_markdown(table: pd.DataFrame, directory: str = "_executed") -> str:
    """Claims, verdicts and their numbers as a table of MyST Markdown, each claim a link to its chapter.

    Parameters
    ----------
    table
        As `rmnb.findings.verdicts.table` gives it, or as its file holds it.
    """
    lines = ["```{table}", ":class: verdicts-short", "", f"| Claim | {' | '.join(_HEADS.values())} |", "|---|---|---|"]
    for line in table.astype(object).fillna("").to_dict("records"):
        cells = [f"{{doc}}`{line['claim']} <{directory}/{line['chapter']}>`"]
        for source in _HEADS:
            number = inline(plain(line[f"number_{source}"]))
            cells.append(f'{badge(line[f"verdict_{source}"])} <span class="count">{number}</span>')
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "```"]) + "\n"


def card(line: dict[str, Any]) -> str:
    """What a panel answers to a claim, a row of the table's file, as a card has room for."""
    note = str(line["note_panel"]) if pd.notna(line["note_panel"]) else ""
    return inline(f"{line['answer_panel']} {note if len(note) < _SHORT else ''}".strip())
