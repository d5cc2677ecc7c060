"""Numbers of the built book against the results that the chapters saved, and its prose against what its cells print."""

import html
import re
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from prose_numbers import in_words

from book import BOOK
from rmnb.book import read_verdicts
from rmnb.findings.claims import load_claims

EXECUTED = Path(__file__).parents[2] / "book" / "_executed"
RESULTS = EXECUTED / "results"
CHAPTERS = sorted(EXECUTED.glob("[01][0-9]_*.ipynb"))
_WORDS = [in_words(count) for count in range(2, 21)]
_NUMBER = re.compile(rf"(?<![\w.,-])-?\d[\d,]*(?:\.\d+)?(?![\w])|\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)
_CODE = re.compile(r"\{[\w:]+\}`[^`]*`|`[^`]*`|\$[^$\n]+\$|\(figures? [^)]*\)|\(table \d\)")


def number(written: str) -> tuple[float, int]:
    """The value and the decimals of a number in figures or of a small one in words."""
    if written.lower() in _WORDS:
        return 2.0 + _WORDS.index(written.lower()), 0
    digits = written.replace(",", "")
    return float(digits), len(digits.partition(".")[2])


def printed(cells) -> list[float]:
    """All numbers that the outputs of cells show as text."""
    texts = []
    for output in (output for cell in cells for output in cell.get("outputs", [])):
        data = output.get("data", {})
        texts.append(output.get("text") or data.get("text/html") or data.get("text/plain", ""))
    text = html.unescape(re.sub(r"<[^>]+>", " ", " ".join(texts))).replace("−", "-")
    return [number(match[0])[0] for match in _NUMBER.finditer(text)]


def not_printed(chapter: Path) -> list[str]:
    """Numbers of the paragraphs on the demo panel that no output rounds to, with the words around them."""
    cells = nbformat.read(chapter, 4).cells
    values = printed(cells)
    values += [100 * value for value in values]  # shares may be told in percent
    missing = []
    for cell in cells:
        paragraphs = cell.source.split("\n\n") if cell.cell_type == "markdown" else []
        for paragraph in paragraphs:
            if "**In the demo panel**" not in paragraph:
                continue
            text = _CODE.sub(" ", paragraph).replace("−", "-")
            for match in _NUMBER.finditer(text):
                value, decimals = number(match[0])
                if not any(abs(abs(value) - abs(other)) <= 0.5 * 10**-decimals + 1e-9 for other in values):
                    missing.append(text[max(0, match.start() - 20) : match.end() + 25].replace("\n", " "))
    return missing


def test_every_claim_of_a_chapter_stands_there_with_its_mean():
    verdicts = read_verdicts(RESULTS)
    for key, claim in load_claims().items():
        page = (BOOK / "book" / "_executed" / f"{claim.chapter}.html").read_text(encoding="utf-8")
        found = verdicts[key]["panel"]
        if claim.kind != "bases" and pd.notna(found.value):
            assert f"{found.value:z.2f}" in re.sub(r"<[^>]+>", " ", page), key


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_what_is_said_of_the_demo_panel_is_printed_on_the_page(chapter):
    assert not not_printed(chapter), "let its cell print it, or leave it out"
