"""The estimators of the asymmetry chapter find what was planted, and only that."""

import numpy as np
import pandas as pd
import pytest

from rmnb import stats
from rmnb.errors import InputError
from rmnb.findings import asymmetry, asymmetry_choices, scan_tables, valence
from rmnb.panels import Panel
from rmnb.truth import planted

WORDS = [word for word in scan_tables.afinn()["word"] if word.isalpha()][::2]


def test_mean_difference_is_that_of_all_pairs_and_its_interval_covers():
    x = np.random.default_rng(0).normal(size=40).round(1)
    pairs = np.abs(x[:, None] - x)[np.triu_indices(40, 1)]
    assert stats.mean_difference(x).value == pytest.approx(pairs.mean(), abs=1e-12)
    rng = np.random.default_rng(1)
    truth = 2 / np.sqrt(np.pi)  # of a standard normal
    found = [stats.mean_difference(rng.normal(size=80)) for _ in range(400)]
    assert 0.91 < np.mean([one.ci_low <= truth <= one.ci_high for one in found]) < 0.98


def test_tail_ratio_of_known_distributions():
    places = (np.arange(200_000) + 0.5) / 200_000
    exponential = -np.log1p(-places)
    truth = np.log(np.log(50) / (np.log(2) + np.log(0.99)))
    assert stats.tail_ratio(exponential) == pytest.approx(truth, abs=1e-3)
    assert stats.tail_ratio(-exponential) == pytest.approx(-truth, abs=1e-3)
    assert stats.tail_ratio(places) == pytest.approx(0, abs=1e-9)
    with pytest.raises(InputError, match="no reach"):
        stats.tail_ratio([0.0] * 99 + [1.0])


def test_place_entropy_does_not_depend_on_how_many_words_there_are():
    rng = np.random.default_rng(2)
    few, many = (np.mean([stats.place_entropy(rng.random(n)).value for _ in range(200)]) for n in (40, 4000))
    assert few == pytest.approx(many, abs=0.02) and many == pytest.approx(1, abs=0.01)
    together = [stats.place_entropy(0.5 * rng.random(200)) for _ in range(200)]
    truth = np.log(5) / np.log(10)
    assert np.mean([one.value for one in together]) == pytest.approx(truth, abs=0.01)


FRAMING: dict = {"greatest": "positive", "worst": "negative"}


def test_planted_slopes_come_back_under_either_framing():
    rows = asymmetry.measure_planted(FRAMING, [f"model {i}" for i in range(6)], seed=3).query("model == ''")
    found = rows[rows["other"] == ""].set_index(["prompt", "statistic"])["value"]
    truth = rows[rows["statistic"] == "planted_effect"]
    assert len(truth) == 4
    for row in truth.itertuples():
        assert found[row.prompt, row.other] == pytest.approx(row.value, abs=0.05)


def test_one_door_for_a_panel_one_model_and_released_scores():
    tables = asymmetry.planted_tables(FRAMING, ["a", "b"], seed=3)
    rows = asymmetry.measure(tables, seeds=[("a", "b")], n_boot=5)
    alone = asymmetry.measure({"a": tables["a"]}, n_boot=5, source="released", protocol="published")
    assert (alone["source"] == "released").all() and (alone["protocol"] == "published").all()
    assert {f"seed_tau_{end}" for end in ("top", "bottom")} == set(rows["statistic"]) - set(alone["statistic"])
    key = ["statistic", "prompt", "other"]
    one = rows.query("model == 'a' and other != 'b'").set_index(key)["value"]
    assert one.equals(alone.query("model == 'a'").set_index(key)["value"])
    counts = rows[rows["statistic"] == "models_clearly_above"].set_index(["other", "prompt"])["value"]
    assert counts["slope_difference_standardised", "greatest"] == 2 and counts["tail_ratio", "worst"] <= 2
    mean = rows.query("statistic == 'afinn_kendall_difference' and model == ''")
    assert mean["prompt"].tolist() == list(FRAMING) and (mean["n"] == 2).all()
    # The mean over models is over words where there is one model alone.
    mean = alone[(alone["model"] == "") & (alone["statistic"] == "slope_difference")].iloc[0]
    assert (mean["ci_low"], mean["n"]) == tuple(
        alone.query("model == 'a' and statistic == 'slope_difference'")[["ci_low", "n"]].iloc[0]
    )


def test_the_curve_begins_with_the_headline_and_counts_what_there_is():
    tables = asymmetry.planted_tables({"greatest": "positive"}, ["a", "b"], seed=3)
    curve = asymmetry_choices.specifications(tables, {}, "greatest")
    assert set(curve["protocol"]) == {"exact"} and len(curve) == 4 * 2 * 2 * 2
    headline = curve[curve["headline"]].iloc[0]
    rows = asymmetry.measure_slopes(tables).query("model == '' and statistic == 'slope_difference_standardised'")
    assert headline["value"] == pytest.approx(rows["value"].iloc[0], abs=1e-12)


def test_models_that_do_not_read_the_question_are_reported_apart():
    rows = asymmetry.measure_slopes(asymmetry.planted_tables(FRAMING, ["a", "b", "c"], seed=3))
    apart = asymmetry.measure_apart(rows, ["c"]).query("prompt == 'greatest'").set_index("statistic")
    of = rows.query("statistic == 'slope_difference_standardised' and prompt == 'greatest'").set_index("model")
    assert apart.loc["mean_turning", "value"] == pytest.approx(of.loc[["a", "b"], "value"].mean())
    assert apart.loc["mean_not_turning", ["value", "ci_low"]].tolist() == of.loc["c", ["value", "ci_low"]].tolist()
    assert apart.loc["models_above", ["value", "n"]].tolist() == [2, 2]
    assert asymmetry.measure_apart(rows, []).query("statistic == 'mean_not_turning'").empty


def test_ranks_take_away_an_asymmetry_that_is_only_one_of_scale():
    # A reward that is a convex function of a symmetric one has steeper good words, and ranks them no better.
    vocabulary = planted.word_features(planted.spell(WORDS, variants=1))
    even = planted.PlantedEffects(valence_positive=0.3, valence_negative=0.3, word_sd=0.8)
    scan = planted.planted_scan(vocabulary, even, seed=4)
    table = scan_tables.as_table({"greatest": scan.assign(score=np.exp(scan["score"]))})
    lexicon = scan_tables.afinn()
    words = scan_tables.rated(scan_tables.on_scale(table, ["greatest"], "score"), "greatest", lexicon)
    assert valence.slopes(words)["difference"].ci_low > 0
    symmetric = scan_tables.as_table({"greatest": scan})
    for one in (table, symmetric):
        ranked = scan_tables.rated(scan_tables.on_scale(one, ["greatest"], "rank"), "greatest", lexicon)
        found, expected = (valence.agreement(one)["positive"].value for one in (ranked, words))
        assert found == pytest.approx(expected)
    levels = valence.by_level(words)
    assert levels[3]["spread"].value > 2 * levels[-3]["spread"].value


def test_frequency_that_goes_with_valence_is_held_constant():
    vocabulary = planted.word_features(planted.spell(WORDS, variants=1))
    effects = planted.PlantedEffects(valence_positive=0.2, valence_negative=0.2, log_frequency=0.3, word_sd=0.3)
    words = scan_tables.rated(
        scan_tables.as_table({"g": planted.planted_scan(vocabulary, effects)}), "g", scan_tables.afinn()
    )
    free, held = valence.slopes(words), valence.slopes(words, hold_frequency=True)
    assert valence.slope_difference(words, True) == pytest.approx(held["difference"].value, abs=1e-9)
    assert abs(held["difference"].value) < 0.05 and held["positive"].ci_low < 0.2 < held["positive"].ci_high
    assert abs(free["positive"].value - 0.2) > abs(held["positive"].value - 0.2)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ("every spelling", ["love", "love", "love"]),
        ("first in a word", ["love", "love"]),
        ("as published", ["love", "love"]),
        ("mean of spellings", ["love"]),
    ],
)
def test_which_tokens_count_as_a_word(tokens, expected):
    texts = [" love", "love", " LOVE", "lovely", "LOVE", " tree"]
    kinds = ["word_start", "word_continuation", "word_start", "word_continuation", "code", "word_start"]
    scan = pd.DataFrame({"token_id": range(6), "token": texts, "kind": kinds, "score": np.arange(6.0)})
    lexicon = pd.DataFrame({"word": ["love"], "valence": [3]})
    found = scan_tables.rated(scan_tables.as_table({"best": scan}), "best", lexicon, tokens)
    assert found["word"].tolist() == expected and (found["valence"] == 3).all()


def test_seed_pairs_are_of_one_base_and_one_recipe():
    recipes = [("a", "S", "mixed"), ("b", "S", "mixed-seed2"), ("c", "G", "mixed-seed2"), ("d", "G", "helpful")]
    models = [{"name": n, "source": "x/y", "family": f, "recipe": r} for n, f, r in recipes]
    panel = Panel.model_validate({"name": "p", "title": "p", "models": models, "prompts": [_PROMPT]})
    assert asymmetry.seed_pairs(panel) == [("a", "b")]


_PROMPT = {"key": "best", "text": "best?", "framing": "positive"}


def test_reliability_tells_a_noisy_bottom_from_a_clean_top():
    rng = np.random.default_rng(5)
    truth = rng.normal(size=6000)
    noise = np.where(truth < 0, 0.5, 0.05)
    one, other = (pd.Series(truth + noise * rng.normal(size=6000)) for _ in range(2))
    found = asymmetry.seed_reliability(one, other, np.arange(6000))
    assert found["top"].ci_low > found["bottom"].ci_high
    flipped = asymmetry.seed_reliability(-one, -other, np.arange(6000))
    assert flipped["top"].value == pytest.approx(found["bottom"].value, abs=0.01)
