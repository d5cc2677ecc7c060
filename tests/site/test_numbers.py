"""Numbers of the built book against the results that the chapters saved."""

import re
from pathlib import Path

import pandas as pd

from book import BOOK
from rmnb.book import read_verdicts
from rmnb.findings.claims import load_claims

RESULTS = Path(__file__).parents[2] / "book" / "_executed" / "results"


def test_every_claim_of_a_chapter_stands_there_with_its_mean():
    verdicts = read_verdicts(RESULTS)
    for key, claim in load_claims().items():
        page = (BOOK / "book" / "_executed" / f"{claim.chapter}.html").read_text(encoding="utf-8")
        found = verdicts[key]["panel"]
        if claim.kind != "bases" and pd.notna(found.value):
            assert f"{found.value:z.2f}" in re.sub(r"<[^>]+>", " ", page), key
