"""Planted tables for the tests of effects."""

import pytest

from rmnb.findings.tables import afinn
from rmnb.planted.rewards import planted_panel, spell, word_features


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
