"""The estimators of the framing chapter find what was planted, and tell a change of wording from one of meaning."""

import numpy as np
import pandas as pd
import pytest

from rmnb import stats
from rmnb.findings import asymmetry, framing, released, results, scan_tables
from rmnb.findings.results import Results
from rmnb.panels import load_prompts
from rmnb.truth import planted

PAIR = ("best", "worst")


def test_contrasts_recover_what_was_planted_over_models():
    asks: dict = {"best": "positive", "worst": "negative"}
    tables = asymmetry.planted_tables(asks, [f"model {i}" for i in range(8)], 1, framing.PLANTED)
    lexicon = scan_tables.afinn()
    found = {m: framing.contrasts(*(scan_tables.rated(t, key, lexicon) for key in PAIR)) for m, t in tables.items()}
    numbers = Results("framing", "planted")
    framing.add_contrasts(numbers, "planted", found, PAIR)
    mean = numbers.frame().query("model == ''").set_index("statistic")
    for name, value in framing.planted_truth().items():
        assert mean.loc[f"framing_{name}", "value"] == pytest.approx(value, abs=0.03)
        alone = [getattr(one, name) for one in found.values()]
        assert np.mean([one.ci_low < value < one.ci_high for one in alone]) >= 0.5
    # Eight models of one sign: 2 of 256 patterns of signs are as extreme.
    assert mean.loc["framing_damping_p", "value"] == pytest.approx(2 / 256)


def test_one_fit_gives_the_contrasts_of_the_slopes_fitted_apart():
    rng = np.random.default_rng(2)
    lexicon = scan_tables.afinn()
    halves = [lexicon.assign(score=rng.normal(size=len(lexicon)) + 0.2 * lexicon["valence"]) for _ in range(2)]
    fits = [stats.valence_slopes(half["score"], half["valence"]) for half in halves]
    apart = framing.of_slopes(*((fit.positive.value, fit.negative.value) for fit in fits))
    together = framing.contrasts(*halves)
    for name in framing.CONTRASTS:
        assert getattr(together, name).value == pytest.approx(apart[name], abs=1e-9)


def test_a_model_that_does_not_listen_shows_damping_and_no_loss_aversion():
    words = scan_tables.afinn().iloc[::3]
    same = words.assign(score=0.4 * words["valence"] + np.random.default_rng(3).normal(size=len(words)))
    found = framing.contrasts(same, same)
    assert found.loss_aversion.value == pytest.approx(0, abs=1e-9)
    assert found.damping.value == pytest.approx(0.8, abs=0.15)


def test_the_axes_separate_valence_from_what_is_good_for_both():
    vocabulary = planted.word_features(planted.spell(scan_tables.afinn()["word"].iloc[::3], variants=2))
    effects = planted.PlantedEffects(valence_positive=0.5, valence_negative=0.5, log_frequency=0.3, word_sd=0.3)
    asks: dict = {"best": "positive", "worst": "negative"}
    scans = {key: planted.planted_scan(vocabulary, effects, 4, framed) for key, framed in asks.items()}
    table = framing.axes_of(scan_tables.as_table(scans), *PAIR)
    assert np.corrcoef(table["difference"], table["sum"])[0, 1] == pytest.approx(0, abs=1e-9)
    difference, total = (framing.axis_meaning(table, axis) for axis in ("difference", "sum"))
    assert difference["afinn_spearman"][0] > 0.9 > 0.3 > abs(total["afinn_spearman"][0])
    assert total["frequency_spearman"][0] > 0.6


def test_wordings_are_sorted_by_the_one_thing_that_changes():
    prompts = load_prompts("iclr2026")
    rng = np.random.default_rng(5)
    meaning, noise = rng.normal(size=300), {"ever": 0.1, "world": 0.3, "time": 0.3}
    scores = {
        prompt.key: (1 if prompt.framing == "positive" else -1) * meaning
        + noise[prompt.key.split("_")[1]] * rng.normal(size=300)
        for prompt in prompts
    }
    found = framing.changes(pd.DataFrame(scores), prompts)
    counts = found["change"].value_counts().to_dict()
    # 6 adjectives x 3 scopes x 3 styles: 9 x 3 + 9 x 3 pairs of adjectives within a framing, 9 x 9 across.
    assert counts == {"framing": 81, "adjective": 54, "scope": 54, "style": 54}
    median = found.groupby("change")["spearman"].median()
    assert median["framing"] < -0.8 and median["style"] > 0.8


def test_the_released_nouns_keep_their_order_when_only_the_wording_changes(mirror):
    numbers = Results("framing", "iclr2026")
    framing.add_changes(numbers, "released", {"R-Gem-2B": released.noun_scores()["R-Gem-2B"]}, "published")
    median = numbers.frame().set_index("other")["value"]
    assert median["style"] > median["framing"] + 0.5


def test_published_contrasts_follow_from_the_printed_slopes():
    slope = results.published().query("finding == 'asymmetry'").set_index(["prompt", "statistic"])["value"]
    halves = [(slope[key, "slope_positive"], slope[key, "slope_negative"]) for key in PAIR]
    found = framing.of_slopes(*halves)
    assert found["match"] == pytest.approx(((0.81 - 0.50) + (0.33 - 0.10)) / 2)
    assert found["loss_aversion"] == pytest.approx(((0.50 + 0.33) - (0.81 + 0.10)) / 2)
