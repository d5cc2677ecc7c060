"""One shape of tables: what is shared, what a rated word is, each model measured."""

import pandas as pd
import pytest

from rmnb.errors import InputError
from rmnb.findings import tables
from rmnb.panels import load_panel

TOKENS = pd.DataFrame({"token": [" love", "Love", "ing", "", " bad", " bad"], "token_id": range(6)})
TOKENS["word"] = TOKENS["token"].str.strip().str.lower()
TOKENS["kind"] = ["word_start", "word_continuation", "word_continuation", "unused", "word_start", "word_start"]
TOKENS["best"], TOKENS["worst"] = [1.0, 3.0, 9.0, 9.0, -1.0, -2.0], [0.0, 0.0, 9.0, 9.0, 2.0, 4.0]


def test_every_spelling_of_a_rated_word_is_rated_and_nothing_else():
    rated = tables.rated_tokens(TOKENS, pd.Series({"love": 3, "bad": -3}))
    assert rated["token_id"].tolist() == [0, 1, 4, 5] and rated["valence"].tolist() == [3, 3, -3, -3]


def test_a_panels_scores_are_shared_by_string_or_word_in_its_order(monkeypatch):
    panel = load_panel("demo")
    first, *others = panel.model_names
    other = pd.DataFrame({"token": [" bad", " love", "LOVE", "爱", "only"], "kind": "word_start"})
    other = other.assign(token_id=range(5), best=[5.0, 4.0, 2.0, 1.0, 0.0])

    def read(panel, model, question, protocol):
        return (other if model == first else TOKENS).rename(columns={question: "score"})

    monkeypatch.setattr(tables, "read_scores", read)
    by_string = tables.load_scores(panel, "best")
    assert list(by_string) == [first, *others] and by_string.to_dict("index") == {
        " love": {first: 4.0} | dict.fromkeys(others, 1.0)
    }
    by_word = tables.load_scores(panel, "best", how="word")
    assert by_word[[first, others[0]]].to_dict("split")["data"] == [[5.0, -1.5], [3.0, 2.0]]
    with pytest.raises(InputError, match="choose token or word"):
        tables.load_scores(panel, "best", how="fuzzy")
    with pytest.raises(InputError, match="no question"):
        tables.load_tables(panel, [])
