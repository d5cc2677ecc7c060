"""Sentences of the built book against its results table: each quoted number is that row's, in that format."""

import html
import re
from pathlib import Path

import pytest

from book import BOOK
from rmnb.findings.quoting import FIELDS, written
from rmnb.findings.results import KEY, read_results

RESULTS = Path(__file__).parents[2] / "book" / "_executed" / "results"
QUOTED = re.compile(r'<data class="quoted" value="([^"]*)">(.*?)</data>', re.DOTALL)
CHAPTERS = sorted((BOOK / "book" / "_executed").glob("0[1-9]_*.html"))


@pytest.fixture(scope="module")
def rows():
    """Of each key its row."""
    return read_results(RESULTS).set_index(list(KEY))


def wrong(page: Path, rows) -> list[str]:
    """The quoted numbers of a page that are not what the results table says."""
    found = []
    for value, text in QUOTED.findall(page.read_text(encoding="utf-8")):
        *key, field, form = html.unescape(value).split("|")
        said = html.unescape(text)
        if tuple(key) not in rows.index or field not in FIELDS:
            found.append(f"{said}: no such row: {key} {field}")
        elif said != written(float(rows.loc[tuple(key), field]), form):
            found.append(f"{said} is said of {key} {field}, which is {rows.loc[tuple(key), field]}")
    return found


def test_every_quoted_number_is_a_row_of_the_results(rows):
    found = [f"{page.stem}: {each}" for page in BOOK.rglob("*.html") for each in wrong(page, rows)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
def test_a_chapter_opens_with_what_was_found(page):
    text = page.read_text(encoding="utf-8").partition('<article class="bd-article')[2]
    box = re.search(r'<div class="admonition in-short">.*?</div>', text, re.DOTALL)
    assert box and 3 <= box[0].count("<li>") <= 5
    assert len(QUOTED.findall(box[0])) >= 3
    assert text.index(box[0]) < text.index("<h2")


def test_a_number_that_is_not_the_rows_is_found(rows, tmp_path):
    key, row = rows.index[0], rows.iloc[0]
    page = tmp_path / "page.html"
    marked = '<data class="quoted" value="{}|value|{{:.3f}}">{}</data>'
    page.write_text(marked.format("|".join(key), f"{row['value'] + 1:.3f}"), encoding="utf-8")
    assert len(wrong(page, rows)) == 1
    page.write_text(marked.format("|".join(key), f"{row['value']:.3f}".replace("-", "−")), encoding="utf-8")
    assert not wrong(page, rows)
