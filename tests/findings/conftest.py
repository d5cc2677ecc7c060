"""Planted tables for the tests of effects, and the chapters' own cells."""

import itertools

import nbformat
import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT
from planted_panels import planted_panel

from rmnb import stats
from rmnb.findings.tables import afinn
from rmnb.panels import load_panel
from rmnb.planted.rewards import spell, word_features


@pytest.fixture
def panel(tmp_path):
    """The demo panel with a store of its own."""
    return load_panel("demo").model_copy(update={"scores": str(tmp_path / "scores")})


@pytest.fixture
def planted_tables():
    """A function: effects, models and questions (key to framing) to tables over AFINN's words in four spellings."""

    def tables(effects, models, questions, seed=0, words=None):
        words = [word for word in (afinn().index if words is None else words) if word.isalpha()]
        features = word_features(spell(words))
        panel = planted_panel(features, effects, dict.fromkeys(models, "planted"), questions, seed)
        columns = ["token_id", "token", "kind", "word", *questions]
        return {model: table[columns] for model, table in panel.items()}

    return tables


@pytest.fixture
def run_cells():
    """A function: a chapter's number, what its cells begin with, names that they use → all names after them."""

    def run(chapter, *beginnings, **names):
        (path,) = (ROOT / "notebooks").glob(f"{chapter}_*.ipynb")
        names |= {"np": np, "pd": pd, "stats": stats, "itertools": itertools}
        sources = [cell.source for cell in nbformat.read(path, 4).cells if cell.source.startswith(beginnings)]
        assert len(sources) == len(beginnings)
        for source in sources:
            exec(compile(source, path.name, "exec"), names)
        return names

    return run
