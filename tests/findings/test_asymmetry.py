"""The effects of chapter 2 recover what was planted, and the chapter's own regression is the effect's."""

import numpy as np
import pytest

from rmnb.errors import InputError
from rmnb.findings import asymmetry
from rmnb.findings.rows import each
from rmnb.findings.tables import afinn, rated_tokens, standardise
from rmnb.panels import load_panel
from rmnb.planted.rewards import PlantedEffects

QUESTIONS = {"greatest": "positive", "worst": "negative"}
EFFECTS = PlantedEffects(valence_positive=0.30, valence_negative=0.15, word_sd=0.7, noise_sd=0.3)


def test_planted_slopes_come_back_under_either_question(planted_tables):
    tables = planted_tables(EFFECTS, [f"model {place}" for place in range(6)], QUESTIONS, seed=3)
    frame = each(tables, asymmetry.slopes, QUESTIONS, ratings=afinn())
    mean = frame.groupby(["question", "quantity"])["value"].mean()
    for question, sign in (("greatest", 1), ("worst", -1)):
        assert mean[question, "good"] == pytest.approx(sign * 0.30, abs=0.05)
        assert mean[question, "bad"] == pytest.approx(sign * 0.15, abs=0.05)
    assert ((frame["low"] < frame["value"]) & (frame["value"] < frame["high"])).all()


def test_the_regression_of_the_chapter_is_the_effect(planted_tables, run_cells):
    table = planted_tables(EFFECTS, ["a"], QUESTIONS)["a"]
    shown = run_cells("02", 'words["side"]', words=rated_tokens(table, afinn()), question="greatest")
    for name, estimate in asymmetry.slopes(table, "greatest", afinn()).items():
        expected = shown[name] if name == "difference" else shown["fit"][shown[name]]
        assert (estimate.value, estimate.ci_low) == pytest.approx((expected.value, expected.ci_low), abs=1e-10)


def test_order_takes_away_an_asymmetry_that_is_only_one_of_scale(planted_tables):
    even = PlantedEffects(valence_positive=0.3, valence_negative=0.3, word_sd=0.8)
    table = standardise(planted_tables(even, ["a"], QUESTIONS, seed=4)["a"], ["greatest"])
    bent = table.assign(greatest=np.exp(table["greatest"]))
    assert asymmetry.slopes(bent, "greatest", afinn())["difference"].ci_low > 0
    straight, stretched = (asymmetry.order(one, "greatest", afinn())["difference"] for one in (table, bent))
    assert stretched.value == pytest.approx(straight.value, abs=1e-12)


def test_frequency_that_goes_with_valence_is_held_constant(planted_tables):
    effects = PlantedEffects(valence_positive=0.2, valence_negative=0.2, log_frequency=0.3, word_sd=0.3)
    table = planted_tables(effects, ["a"], QUESTIONS)["a"]
    free, held = (asymmetry.slopes(table, "greatest", afinn(), hold_frequency=hold) for hold in (False, True))
    assert abs(held["difference"].value) < 0.05 and held["good"].ci_low < 0.2 < held["good"].ci_high
    assert abs(free["good"].value - 0.2) > abs(held["good"].value - 0.2)


def test_levels_say_where_words_lie_and_how_far_apart(planted_tables):
    effects = PlantedEffects(valence_positive=1.0, valence_negative=0.1, word_sd=0.5, noise_sd=0.1)
    levels = asymmetry.levels(planted_tables(effects, ["a"], QUESTIONS)["a"], "greatest", afinn())
    assert levels["mean +3"].value - levels["mean +1"].value == pytest.approx(2, abs=0.2)
    assert levels["entropy +3"].value < levels["entropy -1"].value <= 1.05


def test_a_noisy_bottom_is_told_from_a_clean_top(planted_tables):
    table = planted_tables(EFFECTS, ["a"], QUESTIONS)["a"]
    rng = np.random.default_rng(5)
    truth = rng.normal(size=len(table))
    noise = np.where(truth < 0, 0.5, 0.05)
    one, other = (table.assign(greatest=truth + noise * rng.normal(size=len(table))) for _ in range(2))
    found = asymmetry.seed_agreement(one, other, "greatest")
    assert found["top"].ci_low > found["bottom"].ci_high
    with pytest.raises(InputError, match="vocabularies differ"):
        asymmetry.seed_agreement(one, other.iloc[:-1], "greatest")


def test_seed_pairs_are_of_one_base_and_one_recipe():
    pairs = [("smollm2-mixed", "smollm2-mixed-seed2"), ("gemma3-mixed", "gemma3-mixed-seed2")]
    assert load_panel("demo").seed_pairs == pairs
