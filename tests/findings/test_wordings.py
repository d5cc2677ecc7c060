"""A change of wording is told from one of meaning, in scores of a panel as in released ones."""

import numpy as np
import pandas as pd
import pytest

from rmnb import stats
from rmnb.data import released_files
from rmnb.findings import wordings
from rmnb.panels import load_prompts

FRAMINGS = {prompt.key: prompt.framing for prompt in load_prompts("iclr2026")}


def table(seed, words=300):
    """Rewards that follow the question; another scope moves them more than another style or adjective."""
    rng = np.random.default_rng(seed)
    meaning, noise = np.random.default_rng(0).normal(size=words), {"ever": 0.1, "world": 0.3, "time": 0.3}
    return pd.DataFrame(
        {
            prompt: (1 if framing == "positive" else -1) * meaning
            + noise[prompt.split("_")[1]] * rng.normal(size=words)
            for prompt, framing in FRAMINGS.items()
        }
    )


def test_wordings_are_sorted_by_the_one_thing_that_changes():
    counts = wordings.changes(table(5), FRAMINGS)["change"].value_counts().to_dict()
    # 6 adjectives x 3 scopes x 3 styles: 9 x 3 + 9 x 3 pairs of adjectives within a framing, 9 x 9 across.
    assert counts == {"framing": 81, "adjective": 54, "scope": 54, "style": 54}


def test_the_median_of_each_change_and_of_two_seeds_are_rows():
    tables = {"one": table(5), "two": table(6)}
    found = wordings.measure(tables, FRAMINGS, [("one", "two"), ("one", "absent")], panel="mine")
    median = found.query("model == 'one'").set_index(["statistic", "other"])["value"]
    assert median["wording_spearman", "framing"] < -0.8 and median["wording_spearman", "style"] > 0.8
    expected = np.median([stats.spearman(tables["one"][key], tables["two"][key]) for key in FRAMINGS])
    assert median["seed_spearman", "two"] == pytest.approx(expected)
    assert found["other"].ne("absent").all()


def test_the_released_nouns_keep_their_order_when_only_the_wording_changes(mirror):
    authors = {"R-Gem-2B": released_files.dictionary_scores("big_two")["R-Gem-2B"]}
    median = wordings.measure(authors, FRAMINGS, source="released", protocol="published").set_index("other")["value"]
    assert median["style"] > median["framing"] + 0.5
