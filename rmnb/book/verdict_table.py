"""The verdicts as pages show them: a table with numbers and reasons, and a short one in Markdown for the first page."""

import html

import pandas as pd

from rmnb.book.display import inline, quoted_html
from rmnb.findings.quoting import plain

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
        bodies.append(f'<tbody><tr class="paper"><th colspan="4" scope="rowgroup">{inline(str(paper))}</th></tr></tbody>')
        for line in of.to_dict("records"):
            cells = "".join(
                f"<td>{badge(line[f'verdict_{source}'])}{_counts(line, source)}</td>" for source in _HEADS
            )
            link = f'<a href="{html.escape(line["chapter"])}.html">{inline(line["claim"])}</a>'
            why = "".join(
                f"<p><b>{inline(head)}.</b> {quoted_html(line[f'why_{source}'])}</p>" for source, head in _HEADS.items()
            )
            published = quoted_html(line["published"]) or "no number"
            bodies.append(
                f'<tbody id="{html.escape(line["key"])}"><tr><th scope="row">{link}</th><td>{published}</td>{cells}</tr>'
                f'<tr class="why"><td colspan="4">{why}</td></tr></tbody>'
            )
    table_html = f'<table class="verdicts"><thead><tr>{heads}</tr></thead>{"".join(bodies)}</table>'
    return f'<div class="table-scroll" tabindex="0">{table_html}</div>'


def _counts(line: dict, source: str) -> str:
    """How many models and how many specifications are on the claimed side."""
    known = {name: line.get(f"{name}_{source}") for name in ("agreeing", "n", "specifications", "same_sign", "clear")}
    said = []
    if pd.notna(known["agreeing"]) and known["n"] > 1:
        said.append(f"{known['agreeing']:.0f} of {known['n']:.0f} {line[f'unit_{source}']}")
    if pd.notna(known["specifications"]):
        said.append(
            f"{known['same_sign']:.0f} of {known['specifications']:.0f} specifications, {known['clear']:.0f} clear"
        )
    return "".join(f'<span class="count">{inline(text)}</span>' for text in said)


def short_markdown(table: pd.DataFrame, directory: str = "_executed") -> str:
    """Claims and verdicts alone, each claim a link to its chapter in `directory`, as a table of MyST Markdown."""
    lines = ["| | in the authors' data | in this panel | |", "|---|---|---|---|"]
    for line in table.to_dict("records"):
        cells = [
            f"[{plain(line['claim'])}]({directory}/{line['chapter']})",
            *(badge(line[f"verdict_{source}"]) for source in _HEADS),
            _number(line),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _number(line: dict) -> str:
    """The panel's number with its interval, else that of the authors' data."""
    for source in ("panel", "released"):
        if plain(line.get(f"number_{source}") or ""):
            return inline(plain(line[f"number_{source}"]))
    return ""
