"""The box on frequency says what planted models do: a slope, one the other way, one that turns, none, one model."""

import numpy as np
import pandas as pd
import pytest

from rmnb.findings import frequency, frequency_curve, reading_question, results, word_tokens
from rmnb.findings.in_short import frequency as in_short
from rmnb.findings.quoting import plain
from rmnb.truth.planted import PlantedEffects, planted_scan
from rmnb.truth.simulation_words import common_words

ASKS = {"greatest": "positive", "worst": "negative"}


@pytest.fixture(scope="module")
def features():
    shuffled = common_words().sample(frac=1, random_state=1)
    return shuffled.assign(token_id=np.arange(len(shuffled), dtype=np.int32)).reset_index(drop=True)


def rows_of(features, slopes: dict[str, tuple[float, float]]) -> pd.DataFrame:
    """The chapter's rows of models with these slopes over log frequency under the good and under the bad question."""
    tables = {}
    for place, (model, pair) in enumerate(slopes.items()):
        table = features
        for (prompt, framing), slope in zip(ASKS.items(), pair, strict=True):
            effects = PlantedEffects(valence_positive=0.4, valence_negative=0.4, log_frequency=slope, word_sd=0.2)
            table = table.assign(**{prompt: planted_scan(features, effects, place, framing)["score"]})
        tables[model] = table
    numbers = results.Results("frequency", "planted")
    numbers.extend(frequency.measure(tables, ASKS, n_boot=2, panel="planted"))
    numbers.extend(reading_question.measure(tables, ASKS, panel="planted"))
    found = frequency_curve.curves({"exact": word_tokens.of_tables(tables, ASKS)})
    numbers.extend(frequency_curve.measure(found, "planted"))
    numbers.extend(results.published().query("finding == 'frequency'"))
    numbers.extend(frequency.summary(numbers.frame()))
    return numbers.frame()


def said(rows: pd.DataFrame) -> str:
    return "\n".join(plain(sentence) for sentence in in_short.sentences(rows))


def test_a_slope_that_is_there_is_as_claimed(features):
    rows = rows_of(features, {"a": (0.3, 0.3), "b": (0.35, 0.3), "c": (0.3, 0.35)})
    text = said(rows)
    assert "27 of their thirty" in text and "out of reach" in text
    assert "6 of 6 slopes above zero" in text and "frequent words score higher, as claimed" in text
    assert "score higher too, whatever is asked" in text and "24 of 24 for worst" in text
    for write in (in_short.steps, in_short.apart, in_short.unrated, in_short.predictions, in_short.bends):
        assert all(plain(sentence) for sentence in write(rows)) and not write(rows[:0])


def test_the_other_way_round_is_said_so(features):
    text = said(rows_of(features, {"a": (-0.3, -0.3), "b": (-0.31, -0.3), "c": (-0.3, -0.31)}))
    assert "the other way round for greatest and worst" in text and "the rare words that score higher" in text


def test_a_slope_that_turns_with_the_question_is_no_liking_for_frequency(features):
    text = said(rows_of(features, {"a": (0.3, -0.3), "b": (0.35, -0.3), "c": (0.3, -0.35)}))
    assert "changes its sign with the question" in text and "as claimed for greatest" in text


def test_models_of_either_sign_cannot_tell(features):
    text = said(rows_of(features, {"a": (0.3, 0.3), "b": (-0.3, -0.3)}))
    assert "cannot be told: mean slope" in text


def test_one_model_has_intervals_over_words(features):
    text = said(rows_of(features, {"a": (0.3, 0.3)}))
    assert "one model, intervals over words" in text and "over models" not in text and "2 of 2 slopes" in text
