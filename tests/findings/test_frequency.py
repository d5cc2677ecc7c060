"""The frequency slope is what was planted, its confounds are seen, and the paper's regression is the paper's."""

import numpy as np
import pandas as pd
import pytest

from rmnb.findings import frequency, frequency_curve, frequency_slopes, word_tokens
from rmnb.findings.results import COLUMNS
from rmnb.truth.planted import PlantedEffects, planted_scan
from rmnb.truth.simulation_words import common_words

ASKS = {"good": "positive", "bad": "negative"}


@pytest.fixture(scope="module")
def features():
    """4,000 words in up to four spellings, ids in no order."""
    shuffled = common_words().sample(frac=1, random_state=1)
    return shuffled.assign(token_id=np.arange(len(shuffled), dtype=np.int32)).reset_index(drop=True)


def planted(features, seed=0, framing="positive", **effects):
    effects = {"valence_positive": 0.4, "valence_negative": 0.25, "length": -0.1, "word_sd": 0.5, **effects}
    scan = planted_scan(features, PlantedEffects(**effects), seed, framing)
    return scan, word_tokens.word_tokens(scan)


@pytest.mark.parametrize("words", ["AFINN", "others", "all"])
@pytest.mark.parametrize("unit", ["token", "word"])
def test_the_planted_slope_is_found_with_everything_held_constant(features, words, unit):
    scan, tokens = planted(features, log_frequency=0.1)
    found = frequency_slopes.slope(word_tokens.choose(tokens, words, unit=unit))
    truth = 0.1 / scan["score"].std(ddof=0)
    assert abs(found.value - truth) < 3.5 * found.standard_error
    assert found.standard_error < 0.3 * truth * (4 if words == "AFINN" else 1)


def test_length_looks_like_frequency_until_it_is_held_constant(features):
    _, tokens = planted(features)
    rows = word_tokens.choose(tokens, "others")
    without, held = (frequency_slopes.slope(rows, step) for step in ("valence", "length"))
    assert without.ci_low > 0 and abs(held.value) < 3.5 * held.standard_error
    gone = frequency_slopes.lost(rows, "valence", n_boot=20)
    assert gone.ci_low > 0 and gone.value == pytest.approx(without.value - frequency_slopes.slope_value(rows), abs=1e-9)


def test_what_turns_with_the_question_is_told_from_what_does_not(features):
    word_effects = {"word_sd": 0.3, "noise_sd": 0.1, "length": 0.0}
    _, tokens = planted(features, log_frequency=0.1, **word_effects)
    _, other = planted(features, 1, "negative", log_frequency=0.1, **word_effects)
    _, turned = planted(features, 1, "negative", log_frequency=-0.1, **word_effects)
    same = frequency_slopes.framed(tokens, other, words="others")
    flips = frequency_slopes.framed(tokens, turned, words="others")
    assert same["common"].ci_low > 0 and abs(same["turned"].value) < 0.2 * same["common"].value
    assert flips["turned"].ci_low > 0 and abs(flips["common"].value) < 0.2 * flips["turned"].value


def test_within_a_word_only_the_token_counts(features):
    _, tokens = planted(features, log_frequency=0.3)
    nothing = frequency_slopes.within_word(tokens)
    assert abs(nothing.value) < 3.5 * nothing.standard_error
    liked = tokens.assign(z=tokens["z"] - 0.2 * tokens["log_id"])
    assert frequency_slopes.within_word(liked).value == pytest.approx(nothing.value - 0.2, abs=1e-9)


def test_within_word_is_the_regression_with_a_level_for_every_word(features):
    _, tokens = planted(features.head(900))
    several = tokens.loc[tokens["word"].duplicated(keep=False)]
    dummies = pd.get_dummies(several[["word", "spelling"]].astype(str), dtype=float)
    design = np.column_stack([several["log_id"], dummies])
    expected = np.linalg.lstsq(design, several["z"].to_numpy(), rcond=None)[0][0]
    assert frequency_slopes.within_word(tokens).value == pytest.approx(expected, abs=1e-8)


def test_the_fast_slope_is_the_slope(features):
    rows = word_tokens.choose(planted(features, log_frequency=0.1)[1])
    for step in frequency_slopes.STEPS:
        assert frequency_slopes.slope_value(rows, step) == pytest.approx(
            frequency_slopes.slope(rows, step).value, abs=1e-9
        )


def test_partial_residuals_lie_on_the_line_that_was_planted(features):
    scan, tokens = planted(features, log_frequency=0.2, word_sd=0.2, noise_sd=0.1)
    bins, bend = frequency_slopes.partial_residuals(word_tokens.choose(tokens, "others"))
    fitted = np.polyfit(bins["log_frequency"], bins["residual"], 1)[0]
    assert fitted == pytest.approx(0.2 / scan["score"].std(ddof=0), rel=0.1)
    assert bend.p_value > 1e-3 and bins["log_frequency"].is_monotonic_increasing


@pytest.fixture(scope="module")
def tables(features):
    """Two models asked for something good and bad; the second has not been scanned with the bad one."""
    word_effects = {"word_sd": 0.3, "noise_sd": 0.1}
    scans = [
        [
            planted(features, 10 * model + i, framing, log_frequency=0.1, **word_effects)[0]
            for i, framing in enumerate(ASKS.values())
        ]
        for model in range(2)
    ]
    one, two = (pair[0].assign(good=pair[0]["score"], bad=pair[1]["score"]) for pair in scans)
    return {"one": one.drop(columns="score"), "two": two.drop(columns=["score", "bad"])}


def test_a_panel_and_one_of_its_models_come_through_the_same_door(tables):
    found = frequency.measure(tables, ASKS, n_boot=10, panel="mine")
    assert list(found.columns) == list(COLUMNS) and set(found["panel"]) == {"mine"}
    single = found.set_index(["statistic", "prompt", "model", "other"]).sort_index()
    assert single.loc[("slope_log_frequency_others", "good", "two", ""), "ci_low"].item() > 0
    mean = single["value"]["slope_log_frequency_others", "good", "", ""]
    assert mean == pytest.approx(
        np.mean([single["value"]["slope_log_frequency_others", "good", m, ""] for m in tables])
    )
    # A slope that both questions share, and no second question for the second model.
    common = found.query("statistic == 'slope_log_frequency_common_others'")
    assert common["model"].tolist() == ["one"] and (common["ci_low"] > 0).all()
    assert found.query("model == 'two' and prompt == 'bad'").empty
    last = single["value"]["slope_log_frequency_step", "good", "one", "token id"]
    assert last == single["value"]["slope_log_frequency_controlled", "good", "one", ""]
    alone = frequency.measure({"two": tables["two"]}, {"good": "positive"}, n_boot=10, panel="mine")
    key = list(COLUMNS[:8])
    both = found[found["model"] == "two"].merge(alone, on=key)
    assert len(both) == (alone["model"] == "two").sum() == (found["model"] == "two").sum()
    assert both["value_x"].tolist() == both["value_y"].tolist()


def test_the_published_regression_is_one_of_released_tables_too(tables):
    about = {"panel": "facct2025", "source": "released", "protocol": "published"}
    authors = {"A": tables["one"].drop(columns="kind")}
    found = frequency.measure_published(authors, ["good", "bad"], **about)
    slope = found.query("model == 'A'").set_index(["statistic", "prompt"])["value"]
    for prompt in ASKS:
        ratio = slope["slope_log_frequency", prompt] / slope["slope_log_frequency_standardised", prompt]
        assert ratio == pytest.approx(float(tables["one"][prompt].std(ddof=0)))
    panel = frequency.measure(tables, ASKS, n_boot=2).query("model == 'one'")
    shown = panel.set_index(["statistic", "prompt"])["value"]
    assert slope.to_dict() == pytest.approx({key: shown[key] for key in slope.index})


def test_planted_scenes_are_told_apart():
    found = frequency.measure_planted("best", seed=1)
    held = found.query("statistic == 'slope_log_frequency_others'").set_index("other")
    truth = found.query("statistic == 'planted_effect'").set_index("other")["value"]
    assert truth[""] > 0 and (truth.drop("") == 0).all() and len(truth) == len(frequency.SCENES)
    assert held.loc["", "ci_low"] > 0 and (held.drop("")["value"].abs() < 0.2 * truth[""]).all()


def test_every_choice_of_the_curve_is_a_mean_over_models(tables):
    tokens = word_tokens.of_tables(tables, ["good"])
    found = frequency_curve.curves({"exact": tokens, "published": {}})["good"]
    assert "protocol" not in found and len(found) == 2 * 2 * 3 * 2
    chosen = found.query("words == 'others' and unit == 'token' and held == 'valence' and score == 'standard score'")
    rows = [word_tokens.choose(words, "others") for words in tokens["good"].values()]
    assert chosen["value"].item() == pytest.approx(
        np.mean([frequency_slopes.slope(of, "valence").value for of in rows])
    )
    assert set(frequency_curve.measure({"good": found}, "mine")["n"]) == {24}
    assert frequency_curve.curves({"exact": {}}) == {} and frequency_curve.measure({}, "mine").empty


def test_only_words_count_as_words():
    tokens = [" the", "the", " The", "THE", "##the", "ing", " 12", " na\u00efve", "\u202ethe", " the-", " qzxv"]
    kinds = ["word_start", *["word_continuation"] * 1, "word_start", *["word_continuation"] * 3, "number"]
    kinds += ["word_start", "word_continuation", "code", "word_start"]
    ids = np.arange(len(tokens), dtype=np.int32)
    scan = pd.DataFrame({"token_id": ids, "token": tokens, "kind": kinds, "score": np.linspace(0, 1, len(tokens))})
    found = word_tokens.word_tokens(scan)
    assert found.index.tolist() == [0, 1, 2, 3, 4]
    assert found["spelling"].nunique() == 4 and set(found["word"]) == {"the"}
    assert frequency_slopes.slope(word_tokens.choose(found, "all")) is None
