"""Numbers of the built book against the results that the chapters saved."""

import re
from pathlib import Path

import pandas as pd
import pytest

from book import BOOK
from rmnb.book import read_verdicts
from rmnb.findings.claims import load_claims

RESULTS = Path(__file__).parents[2] / "book" / "_executed" / "results"
CHAPTERS = sorted((BOOK / "book" / "_executed").glob("0[1-9]_*.html"))


def text_of(page: Path) -> str:
    """The words of a page, without its markup."""
    plain = re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8"))
    return re.sub(r"\s+", " ", plain)


def test_every_claim_of_a_chapter_stands_there_with_its_mean():
    verdicts = read_verdicts(RESULTS)
    for key, claim in load_claims().items():
        words = text_of(BOOK / "book" / "_executed" / f"{claim.chapter}.html")
        found = verdicts[key]["panel"]
        if claim.kind != "bases" and pd.notna(found.value):
            assert f"{found.value:z.2f}" in words, key


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
def test_a_chapter_keeps_its_numbers(page):
    table = pd.read_csv(RESULTS / f"{page.stem[3:]}.csv")
    assert {"quantity", "source", "model", "value"} <= set(table) and table["value"].notna().all()
