"""Frequency slopes are what was planted, and the regressions that the chapter shows are those that it reports."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from rmnb import stats
from rmnb.data import lexicons
from rmnb.findings import frequency
from rmnb.findings.tables import standardise
from rmnb.planted.rewards import PlantedEffects, planted_panel
from rmnb.planted.words import common_words

ASKED = {"good": "positive", "bad": "negative"}


@pytest.fixture(scope="module")
def features():
    """4,000 words in up to four spellings, ids in no order."""
    shuffled = common_words().sample(frac=1, random_state=1)
    return shuffled.assign(token_id=np.arange(len(shuffled), dtype=np.int32)).reset_index(drop=True)


def rewards(features, **effects):
    """A planted table in standard deviations, and the unit that it was divided by."""
    effects = {"valence_positive": 0.4, "valence_negative": 0.25, "word_sd": 0.5, **effects}
    table = planted_panel(features, PlantedEffects(**effects), ["a"], ASKED)["a"]
    return standardise(table, list(ASKED)), table["good"].std(ddof=0)


def test_the_regressions_shown_in_the_chapter_are_the_effects(features, run_cells):
    table = rewards(features, log_frequency=0.1, length=-0.1)[0].drop(columns=["log_frequency", "valence"])
    names = {"rewards": {"a": table}, "good": "good", "models": SimpleNamespace(model_names=["a"])}
    shown = run_cells("04", "counted = ", lexicons=lexicons, **names)["slope"]
    assert frequency.published_slope(table, "good")["slope as published"].value == pytest.approx(shown.value)
    words = frequency.word_tokens(table)
    effects = frequency.ladder(words, "good")
    for step, predictors in run_cells("04", "words = ", frequency=frequency, model="a", **names)["ladder"].items():
        shown = stats.ols(f"good ~ {predictors}", words[words["rated"]], clusters="word")["log_frequency"]
        found = effects[step]
        assert (found.value, found.ci_high) == pytest.approx((shown.value, shown.ci_high), abs=1e-9)


@pytest.mark.parametrize("which", ["rated", "unrated"])
def test_the_planted_slope_is_found_with_everything_held_constant(features, which):
    table, unit = rewards(features, log_frequency=0.1, length=-0.1)
    found = frequency.slope(frequency.word_tokens(table), "good", which=which)["slope over log frequency"]
    assert abs(found.value - 0.1 / unit) < 3.5 * found.standard_error
    assert found.standard_error < 0.12 / unit


def test_what_turns_with_the_question_is_separated_from_what_does_not(features):
    table, _ = rewards(features, log_frequency=0.1, word_sd=0.3, noise_sd=0.1)
    words = frequency.word_tokens(table)
    liked = frequency.by_question(words, "good", "bad", which="unrated")
    assert liked["common"].ci_low > 0 and abs(liked["turned"].value) < 0.2 * liked["common"].value
    meant = frequency.by_question(words.assign(bad=-words["bad"]), "good", "bad", which="unrated")
    assert meant["turned"].ci_low > 0 and abs(meant["common"].value) < 0.2 * meant["turned"].value


def test_within_a_word_only_the_token_counts(features):
    words = frequency.word_tokens(rewards(features, log_frequency=0.3)[0])
    nothing = frequency.within_word(words, "good")["slope over log id"]
    assert abs(nothing.value) < 3.5 * nothing.standard_error
    liked = words.assign(good=words["good"] - 0.2 * words["log_id"])
    assert frequency.within_word(liked, "good")["slope over log id"].value == pytest.approx(nothing.value - 0.2)


def test_only_words_count_as_words():
    begin, inside = "word_start", "word_continuation"
    tokens = {" the": begin, "the": inside, " The": begin, "THE": inside, "##the": inside, "ing": inside}
    tokens |= {" 12": "number", " na\u00efve": begin, "\u202ethe": inside, " the-": "code", " qzxv": begin}
    table = pd.DataFrame({"token_id": range(len(tokens)), "token": list(tokens), "kind": list(tokens.values())})
    table["word"] = table["token"].str.removeprefix("##").str.strip().str.casefold()
    found = frequency.word_tokens(table)
    assert found.index.tolist() == [0, 1, 2, 3, 4] and found["spelling"].nunique() == 4
