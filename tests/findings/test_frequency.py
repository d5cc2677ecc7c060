"""The frequency slope is what was planted, its confounds are seen, and the paper's regression is the paper's."""

import numpy as np
import pandas as pd
import pytest

from rmnb import stats
from rmnb.data import sources
from rmnb.errors import InputError
from rmnb.findings import frequency, released_vocabulary
from rmnb.truth.planted import PlantedEffects, planted_scan
from rmnb.truth.simulation_words import common_words


@pytest.fixture(scope="module")
def features():
    """4,000 words in up to four spellings, ids in no order."""
    shuffled = common_words().sample(frac=1, random_state=1)
    return shuffled.assign(token_id=np.arange(len(shuffled), dtype=np.int32)).reset_index(drop=True)


def planted(features, seed=0, framing="positive", **effects):
    effects = {"valence_positive": 0.4, "valence_negative": 0.25, "length": -0.1, "word_sd": 0.5, **effects}
    scan = planted_scan(features, PlantedEffects(**effects), seed, framing)
    return scan, frequency.word_tokens(scan)


@pytest.mark.parametrize("words", ["AFINN", "others", "all"])
@pytest.mark.parametrize("unit", ["token", "word"])
def test_the_planted_slope_is_found_with_everything_held_constant(features, words, unit):
    scan, tokens = planted(features, log_frequency=0.1)
    found = frequency.slope(frequency.choose(tokens, words, unit=unit))
    truth = 0.1 / scan["score"].std(ddof=0)
    assert abs(found.value - truth) < 3.5 * found.standard_error
    assert found.standard_error < 0.3 * truth * (4 if words == "AFINN" else 1)


def test_length_looks_like_frequency_until_it_is_held_constant(features):
    _, tokens = planted(features)
    rows = frequency.choose(tokens, "others")
    without, held = (frequency.slope(rows, step) for step in ("valence", "length"))
    assert without.ci_low > 0 and abs(held.value) < 3.5 * held.standard_error
    gone = frequency.lost(rows, "valence", n_boot=20)
    assert gone.ci_low > 0 and gone.value == pytest.approx(without.value - frequency.slope_value(rows), abs=1e-9)


def test_what_turns_with_the_question_is_told_from_what_does_not(features):
    word_effects = {"word_sd": 0.3, "noise_sd": 0.1, "length": 0.0}
    _, tokens = planted(features, log_frequency=0.1, **word_effects)
    _, other = planted(features, 1, "negative", log_frequency=0.1, **word_effects)
    _, turned = planted(features, 1, "negative", log_frequency=-0.1, **word_effects)
    same = frequency.framed({"good": tokens, "bad": other}, "good", "bad", words="others")
    flips = frequency.framed({"good": tokens, "bad": turned}, "good", "bad", words="others")
    assert same.common.ci_low > 0 and abs(same.turned.value) < 0.2 * same.common.value
    assert flips.turned.ci_low > 0 and abs(flips.common.value) < 0.2 * flips.turned.value


def test_within_a_word_only_the_token_counts(features):
    _, tokens = planted(features, log_frequency=0.3)
    nothing = frequency.within_word(tokens)
    assert abs(nothing.value) < 3.5 * nothing.standard_error
    liked = tokens.assign(z=tokens["z"] - 0.2 * tokens["log_id"])
    assert frequency.within_word(liked).value == pytest.approx(nothing.value - 0.2, abs=1e-9)


def test_within_word_is_the_regression_with_a_level_for_every_word(features):
    _, tokens = planted(features.head(900))
    several = tokens.loc[tokens["word"].duplicated(keep=False)]
    dummies = pd.get_dummies(several[["word", "spelling"]].astype(str), dtype=float)
    design = np.column_stack([several["log_id"], dummies])
    expected = np.linalg.lstsq(design, several["z"].to_numpy(), rcond=None)[0][0]
    assert frequency.within_word(tokens).value == pytest.approx(expected, abs=1e-8)


def test_the_fast_slope_is_the_slope(features):
    rows = frequency.choose(planted(features, log_frequency=0.1)[1])
    for step in frequency.STEPS:
        assert frequency.slope_value(rows, step) == pytest.approx(frequency.slope(rows, step).value, abs=1e-9)


def test_partial_residuals_lie_on_the_line_that_was_planted(features):
    scan, tokens = planted(features, log_frequency=0.2, word_sd=0.2, noise_sd=0.1)
    bins, bend = frequency.partial_residuals(frequency.choose(tokens, "others"))
    fitted = stats.least_squares(bins["residual"], {"x": bins["log_frequency"]})["x"].value
    assert fitted == pytest.approx(0.2 / scan["score"].std(ddof=0), rel=0.1)
    assert bend.p_value > 1e-3 and bins["log_frequency"].is_monotonic_increasing


def test_the_published_regression_is_that_of_the_released_tables(mirror, features):
    scan, _ = planted(features, log_frequency=0.1)
    table = scan.assign(greatest=scan["score"], best=scan["score"], worst=scan["score"])
    rows = released_vocabulary.frequency_slopes({"one": table}).query("model == 'one' and prompt == 'best'")
    for standardise, statistic in ((False, "slope_log_frequency"), (True, "slope_log_frequency_standardised")):
        found = frequency.published_slope(scan, standardise)
        expected = rows.set_index("statistic").loc[statistic]
        assert (found.value, found.ci_low) == pytest.approx((expected["value"], expected["ci_low"]), abs=1e-9)


def test_only_words_count_as_words():
    tokens = [" the", "the", " The", "THE", "##the", "ing", " 12", " na\u00efve", "\u202ethe", " the-", " qzxv"]
    kinds = ["word_start", *["word_continuation"] * 1, "word_start", *["word_continuation"] * 3, "number"]
    kinds += ["word_start", "word_continuation", "code", "word_start"]
    ids = np.arange(len(tokens), dtype=np.int32)
    scan = pd.DataFrame({"token_id": ids, "token": tokens, "kind": kinds, "score": np.linspace(0, 1, len(tokens))})
    found = frequency.word_tokens(scan)
    assert found.index.tolist() == [0, 1, 2, 3, 4]
    assert found["spelling"].nunique() == 4 and set(found["word"]) == {"the"}
    assert frequency.slope(frequency.choose(found, "all")) is None


def test_an_unknown_choice_is_named():
    with pytest.raises(InputError, match="wordfreq, BNC"):
        frequency.frequency_list("guess")
    assert issubclass(sources.UnreachableError, InputError)
