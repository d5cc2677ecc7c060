"""The estimators of the framing chapter find what was planted, whoever the scores are from."""

import numpy as np
import pandas as pd
import pytest

from rmnb import stats
from rmnb.data import released_files
from rmnb.findings import asymmetry, framing, framing_curve, scan_tables
from rmnb.findings.results import COLUMNS
from rmnb.truth import planted

ASKS: dict = {"best": "positive", "worst": "negative"}
PAIR = ("best", "worst")


@pytest.fixture(scope="module")
def tables():
    """Two models of one recipe and a third, over every third word of AFINN in four spellings."""
    return {m: t.iloc[::3] for m, t in asymmetry.planted_tables(ASKS, ["a", "a-2", "b"], 1, framing.PLANTED).items()}


def test_contrasts_recover_what_was_planted_over_models():
    found = framing.measure_planted([f"model {i}" for i in range(8)], seed=1)
    mean = found.query("model == ''").set_index("statistic")["value"]
    truth = found.query("statistic == 'planted_effect'").set_index("other")["value"]
    assert len(truth) == 3
    for statistic, value in truth.items():
        assert mean[statistic] == pytest.approx(value, abs=0.03)
        alone = found[(found["statistic"] == statistic) & (found["model"] != "")]
        assert alone["value"].between(value - 0.1, value + 0.1).all()
        assert ((alone["ci_low"] < value) & (value < alone["ci_high"])).mean() >= 0.5
    # Eight models of one sign: 2 of 256 patterns of signs are as extreme.
    assert mean["framing_damping_p"] == pytest.approx(2 / 256)


def test_a_panel_and_one_of_its_models_come_through_the_same_door(tables):
    found = framing.measure(tables, ASKS, [("a", "a-2")], n_boot=20, panel="mine")
    assert list(found.columns) == list(COLUMNS) and set(found["panel"]) == {"mine"}
    value = found.set_index(["statistic", "model", "other"])["value"]
    for model, table in tables.items():
        assert value["framing_kendall", model, "worst"] == pytest.approx(
            stats.kendall_tau(table["best"], table["worst"])
        )
        rho = np.corrcoef(table["best"], table["worst"])[0, 1]
        assert value["framing_share_valence", model, "worst"] == pytest.approx((1 - rho) / 2, abs=1e-5)
    assert value["noise_ceiling", "a", "a-2"].size == 2 and "framing_damping_p" in set(found["statistic"])
    alone = framing.measure({"b": tables["b"]}, ASKS, n_boot=20, panel="mine")
    assert not {"noise_ceiling", "framing_damping_p"} & set(alone["statistic"])
    both = found.merge(alone, on=list(COLUMNS[:8])).query("model == 'b'")
    assert len(both) == (alone["model"] == "b").sum() and both["value_x"].to_numpy() == pytest.approx(both["value_y"])


def test_questions_of_one_framing_have_no_contrasts(tables):
    found = framing.measure(tables, {"best": "positive", "worst": "positive"})
    assert set(found["statistic"]) == {"framing_kendall", "framing_spearman"}
    assert framing_curve.curves({"exact": tables}, {"best": "positive"}, list(tables)) == {}


def test_released_scores_come_through_the_same_door(mirror):
    tables = dict(list(framing.released_tables().items())[:2])
    found = framing.measure(tables, ASKS, n_boot=10, panel=released_files.ICLR, source="released", protocol="published")
    assert set(found["source"]) == {"released"} and set(found["protocol"]) == {"published"}
    apart = framing.measure_contrasts(tables, panel=released_files.ICLR, source="released", protocol="published")
    both = found.merge(apart, on=list(COLUMNS[:8]))
    assert len(both) == len(apart) == 3 * 4 and both["value_x"].to_numpy() == pytest.approx(both["value_y"].to_numpy())


def test_one_fit_gives_the_contrasts_of_the_slopes_fitted_apart():
    rng = np.random.default_rng(2)
    lexicon = scan_tables.afinn()
    halves = [lexicon.assign(score=rng.normal(size=len(lexicon)) + 0.2 * lexicon["valence"]) for _ in range(2)]
    slopes = [
        [np.polyfit(part["valence"], part["score"], 1)[0] for _, part in half.groupby(half["valence"] <= 0)]
        for half in halves
    ]
    apart = framing.of_slopes(*map(tuple, slopes))
    together = framing.contrasts(*halves)
    assert {name: estimate.value for name, estimate in together.items()} == pytest.approx(apart, abs=1e-9)


def test_a_model_that_does_not_listen_shows_damping_and_no_loss_aversion():
    words = scan_tables.afinn().iloc[::3]
    same = words.assign(score=0.4 * words["valence"] + np.random.default_rng(3).normal(size=len(words)))
    found = framing.contrasts(same, same)
    assert found["loss_aversion"].value == pytest.approx(0, abs=1e-9)
    assert found["damping"].value == pytest.approx(0.8, abs=0.15)


def test_the_axes_separate_valence_from_what_is_good_for_both():
    vocabulary = planted.word_features(planted.spell(scan_tables.afinn()["word"].iloc[::3], variants=2))
    effects = planted.PlantedEffects(valence_positive=0.5, valence_negative=0.5, log_frequency=0.3, word_sd=0.3)
    scans = {key: planted.planted_scan(vocabulary, effects, 4, framed) for key, framed in ASKS.items()}
    table = framing.axes_of(scan_tables.as_table(scans), *PAIR)
    assert np.corrcoef(table["difference"], table["sum"])[0, 1] == pytest.approx(0, abs=1e-9)
    difference, total = (framing.axis_meaning(table, axis) for axis in ("difference", "sum"))
    assert difference["afinn_spearman"][0] > 0.9 > 0.3 > abs(total["afinn_spearman"][0])
    assert total["frequency_spearman"][0] > 0.6


def test_every_choice_of_the_curve_is_a_correlation_of_the_two_questions(tables):
    found = framing_curve.curves({"exact": tables, "published": tables}, ASKS, ["a", "b"])["best and worst"]
    assert isinstance(found, pd.DataFrame) and len(found) == 2 * 4 * 3
    plain = found.query("tokens == 'all' and correlation == 'pearson' and protocol == 'exact'")["value"].item()
    assert plain == pytest.approx(np.mean([np.corrcoef(tables[m]["best"], tables[m]["worst"])[0, 1] for m in "ab"]))
    assert "protocol" not in framing_curve.curve({"exact": tables}, PAIR)
    rows = framing_curve.measure({"best and worst": found}, "models that turn", "mine")
    assert set(rows["other"]) == {"best and worst, models that turn"} and set(rows["n"]) == {len(found)}


def test_published_contrasts_follow_from_the_printed_slopes():
    found = framing.published_contrasts().set_index("statistic")["value"]
    assert found["framing_match"] == pytest.approx(((0.81 - 0.50) + (0.33 - 0.10)) / 2)
    assert found["framing_loss_aversion"] == pytest.approx(((0.50 + 0.33) - (0.81 + 0.10)) / 2)
