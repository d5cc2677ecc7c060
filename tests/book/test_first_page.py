"""The first page says of words what its own word box says: a rank in a model's whole vocabulary."""

import functools
import re
import shlex

import nbformat
import pandas as pd
import pytest
from notebook_files import ROOT

from rmnb.book import explorer
from rmnb.findings.tables import load_scores, load_tables
from rmnb.panels import load_panel
from rmnb.scoring import store

PAGE = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
DEMO = load_panel("demo")
RANKS = []  # what each printed rank is of: model, question, the word as `other`
for role in re.findall(r"`first rank ([^`]*)`", PAGE):
    RANKS.append(dict(pair.split("=") for pair in shlex.split(role)))
#: What the page says in words: model, question, word, and the worst rank with which it would be true.
CLAIMS = [
    ("smollm2-helpful", "worst", "hatred", 1),
    ("smollm2-helpful", "greatest", "hatred", 20),
    ("gemma3-harmless", "greatest", "therapeutics", 1),
    ("gemma3-harmless", "worst", "therapeutics", 1),
    ("smollm2-mixed", "greatest", "Joy", 1),
    ("gemma3-mixed-seed2", "greatest", "Accuracy", 1),
]


@functools.cache
def shared() -> set[str]:
    """The tokens that the box can find: those of all vocabularies."""
    return set(load_scores(DEMO, "greatest").index)


def rank_in_box(model: str, question: str, word: str) -> int:
    """The rank that the box shows for a typed word, by the rule of book/static/wordbox.js."""
    capital = word[0].upper() + word[1:]
    token = next(form for form in (f" {word}", word, f" {capital}", capital) if form in shared())
    scan = store.read_scores(DEMO, model, question)
    ranked = explorer.ranked(model, question, scan["score"].to_numpy())
    (place,) = (scan["token"] == token).to_numpy().nonzero()[0]
    return int(ranked.rank[place])


@pytest.mark.parametrize(("model", "question", "word", "rank"), CLAIMS)
def test_what_the_first_page_says_of_a_word_is_what_its_box_shows(model, question, word, rank):
    assert f"*{model}*" in PAGE and f"*{word}*".casefold() in PAGE.casefold()
    assert rank_in_box(model, question, word) <= rank


@pytest.mark.slow
def test_the_ranks_that_the_first_page_prints_are_those_of_its_box():
    notebook = nbformat.read(ROOT / "notebooks" / "first.ipynb", 4)
    (cell,) = (cell.source for cell in notebook.cells if cell.source.startswith("ranks = {}"))
    named = {role["model"] for role in RANKS}
    tables = load_tables(DEMO, ["greatest", "worst"])
    names = {"pd": pd, "scans": {name: tables[name] for name in named}}
    exec(cell, names)
    assert len(RANKS) >= 4
    for role in RANKS:
        model, question, word = role["model"], role["question"], role["other"]
        assert names["ranks"].loc[(model, word), question] == rank_in_box(model, question, word)
