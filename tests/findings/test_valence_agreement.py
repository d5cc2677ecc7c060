"""The effects of chapters 1 to 3 recover what was planted, and the chapters' own computations are the effects'."""

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from rmnb.findings import asymmetry, framing, heterogeneity
from rmnb.findings.rows import measure_each, measure_each_pair
from rmnb.findings.tables import afinn, rated_tokens, standardise
from rmnb.panels import load_panel
from rmnb.planted.rewards import PlantedEffects

QUESTIONS = {"best": "positive", "worst": "negative"}
PAIR = ("best", "worst")
EFFECTS = PlantedEffects(valence_positive=0.50, valence_negative=0.10, negative_framing=-0.2, word_sd=0.7, noise_sd=0.3)
SLOPES = {"good, best": 0.50, "bad, best": 0.10, "good, worst": 0.10, "bad, worst": 0.02}
CONTRASTS = {"bad words weigh more": -0.24, "answers weigh more": 0.16, "best is followed more": 0.24}


@pytest.fixture
def table(planted_tables):
    """One model's."""
    return planted_tables(EFFECTS, ["a"], QUESTIONS)["a"]


def test_planted_slopes_and_contrasts_come_back(planted_tables):
    tables = planted_tables(EFFECTS, [f"model {place}" for place in range(8)], QUESTIONS, seed=1)
    slopes = measure_each(tables, asymmetry.slopes, QUESTIONS, ratings=afinn()).groupby(["quantity", "question"])
    for slope, planted in SLOPES.items():
        sign = 1 if "best" in slope else -1
        assert slopes["value"].mean()[*slope.split(", ")] == pytest.approx(sign * planted, abs=0.04)
    found = measure_each(tables, framing.contrasts, [PAIR], ratings=afinn()).set_index("quantity")
    assert CONTRASTS.keys() == framing.CONTRASTS.keys()
    for name, truth in CONTRASTS.items():
        single = found.loc[name]
        assert single["value"].mean() == pytest.approx(truth, abs=0.03)
        assert single["value"].between(single["low"], single["high"]).all()
        assert ((single["low"] < truth) & (truth < single["high"])).mean() >= 0.5


def test_the_regressions_of_the_chapters_are_the_effects(table, run_cells):
    rated = rated_tokens(table, afinn())
    shown = run_cells("02", 'words["side"]', words=rated, question="best")
    for name, estimate in asymmetry.slopes(table, "best", afinn()).items():
        expected = shown["gap"] if name == "difference" else shown["fit"][shown[name]]
        assert (estimate.value, estimate.ci_low) == pytest.approx((expected.value, expected.ci_low), abs=1e-10)
    known = {"best": "best", "worst": "worst", "turns": ["a"], "pairs": [PAIR], "models": None, "framing": framing}
    scores = pd.concat({question: table[[question]].set_axis(["a"], axis=1) for question in PAIR}, axis=1)
    loaded = SimpleNamespace(load_rated=lambda *_: rated.assign(model="a"))
    shown = run_cells("03", "tau = ", "rated = ", "fit = ", scores=scores, rmnb=loaded, **known)
    assert framing.tau_between(table, *PAIR)["tau"].value == pytest.approx(
        shown["tau"].loc["a", "best, worst"], abs=1e-12
    )
    for name, estimate in framing.contrasts(table, *PAIR, ratings=afinn()).items():
        weights = {f"part[{part}]:followed": weight for part, weight in framing.CONTRASTS[name].items()}
        expected = shown["fit"].estimate(weights)
        assert (estimate.value, estimate.ci_high) == pytest.approx((expected.value, expected.ci_high), abs=1e-10)


def test_order_takes_away_an_asymmetry_that_is_only_one_of_scale(planted_tables):
    even = PlantedEffects(valence_positive=0.3, valence_negative=0.3, word_sd=0.8)
    table = standardise(planted_tables(even, ["a"], QUESTIONS, seed=4)["a"], ["best"])
    bent = table.assign(best=np.exp(table["best"]))
    assert asymmetry.slopes(bent, "best", afinn())["difference"].ci_low > 0
    straight, stretched = (asymmetry.order(one, "best", afinn())["difference"] for one in (table, bent))
    assert stretched.value == pytest.approx(straight.value, abs=1e-12)
    assert straight.ci_low < 0 < straight.ci_high


def test_frequency_that_goes_with_valence_is_held_constant(planted_tables):
    effects = PlantedEffects(valence_positive=0.2, valence_negative=0.2, log_frequency=0.3, word_sd=0.3)
    table = planted_tables(effects, ["a"], QUESTIONS)["a"]
    free, held = (asymmetry.slopes(table, "best", afinn(), hold_frequency=hold) for hold in (False, True))
    assert abs(held["difference"].value) < 0.05 and held["good"].ci_low < 0.2 < held["good"].ci_high
    assert abs(free["good"].value - 0.2) > abs(held["good"].value - 0.2)


def test_pairs_of_seeds_are_of_one_base_and_one_recipe():
    twice = ["smollm2-values", "smollm2-harmless", "smollm2-mixed", "smollm2-fair", "gemma3-mixed"]
    panel = load_panel("demo")
    assert panel.seed_pairs == [(name, f"{name}-seed2") for name in twice]
    assert set(panel.model_names) - set(panel.first_seeds) == {f"{name}-seed2" for name in twice}


def test_a_model_that_ignores_the_question_weighs_good_and_bad_alike(table):
    deaf = table.assign(worst=table["best"])
    found = framing.contrasts(deaf, *PAIR, ratings=afinn())
    assert found["bad words weigh more"].value == pytest.approx(0, abs=1e-9)
    assert found["best is followed more"].value == pytest.approx(0.5, abs=0.1)
    assert framing.tau_between(deaf, *PAIR)["tau"].value == 1
    mirror = table.assign(worst=-table["best"], same=table["best"] + np.random.default_rng(0).normal(size=len(table)))
    near = mirror.assign(worst=-table["best"] + np.random.default_rng(1).normal(size=len(table)))
    for turned, expected in ((deaf, 2), (mirror.assign(same=mirror["best"]), 0)):
        found = framing.beyond_mirror(turned.assign(same=turned["best"]), *PAIR, "same")["beyond mirror"]
        assert found.value == pytest.approx(expected)
    # Synonyms agree no better than the opposite is reversed: a mirror, though its tau is far from -1.
    found = framing.beyond_mirror(near, *PAIR, "same")["beyond mirror"]
    assert framing.tau_between(near, *PAIR)["tau"].value > -0.8 and found.ci_low < 0 < found.ci_high
    for twin, expected in ((deaf, 0), (table.assign(worst=-table["best"]), 1)):  # the second turns wholly
        assert framing.value_share(twin, *PAIR, n_draws=5)["share"].value == pytest.approx(expected, abs=1e-9)


def test_rewordings_are_told_by_what_differs():
    """Rewards of 400 texts: an adjective counts a little, a style more, the framing turns them round."""
    sign, table, keys = {"best": 1, "good": 1, "worst": -1}, pd.DataFrame(), {}
    drawn = pd.DataFrame(np.random.default_rng(0).normal(size=(400, 6)), columns=["meaning", *sign, "one", "please"])
    for adjective, style in itertools.product(sign, ["one", "please"]):
        keys[key := f"{adjective}_ever_{style}"] = str(sign[adjective])
        table[key] = sign[adjective] * drawn["meaning"] + 0.5 * drawn[style] + 0.2 * drawn[adjective]
    found = {change: framing.rewording(table, change, keys) for change in framing.CHANGES}
    assert found.pop("scope") == {}
    rho = {change: estimates["spearman"].value for change, estimates in found.items()}
    assert rho["adjective"] > rho["style"] > 0.6 and rho["framing"] < -0.4
    assert (found["style"]["spearman"].n, found["framing"]["spearman"].n) == (3, 4)


RHO = np.sin(np.pi / 2 * 0.4)  # of jointly normal rewards whose τ is 0.4


@pytest.fixture
def tables():
    """Two models whose rankings agree at τ = 0.4, one on a stretched scale, and one skewed by 1."""
    rng = np.random.default_rng(0)
    first, second = rng.multivariate_normal([0, 0], [[1, RHO], [RHO, 1]], size=6000).T
    rewards = {"stretched": np.exp(first), "plain": second, "skewed": rng.gamma(4.0, size=6000)}
    words = [f"word {place // 2}" for place in range(6000)]
    return {name: pd.DataFrame({"word": words, "greatest": values}) for name, values in rewards.items()}


def test_planted_agreement_and_skewness_come_back(tables):
    found = measure_each_pair(tables, heterogeneity.agreement, [("stretched", "plain")], ["greatest"]).set_index(
        "quantity"
    )
    assert found.loc["tau", "low"] < 0.4 < found.loc["tau", "high"]
    assert found.loc["spearman", "value"] == pytest.approx(6 / np.pi * np.arcsin(RHO / 2), abs=0.03)
    moments = measure_each(tables, heterogeneity.moments, ["greatest"]).set_index(["model", "quantity"])
    assert moments.loc[("skewed", "skewness"), "low"] < 1 < moments.loc[("skewed", "skewness"), "high"]


def test_the_computations_of_the_chapter_are_the_effects(tables, run_cells):
    scores = pd.concat(tables, axis=1).xs("greatest", axis=1, level=1)
    tau = run_cells("01", "tau = ", scores=scores, names=list(tables))["tau"]
    effect = heterogeneity.agreement(tables["stretched"], tables["plain"], "greatest")["tau"]
    assert effect.value == pytest.approx(tau.loc["stretched", "plain"], abs=1e-12)
    assert effect.n_clusters == 3000  # of 6,000 tokens, two a word
    z = (scores - scores.mean()) / scores.std(ddof=0)  # as the chapter's figure has them
    skewness = heterogeneity.moments(tables["skewed"], "greatest")["skewness"].value
    assert skewness == pytest.approx((z["skewed"] ** 3).mean(), abs=1e-10)


@pytest.mark.parametrize(("panel", "maker"), [("demo", "recipe"), ("facct2025", "developer")])
def test_properties_that_tell_no_models_apart_are_left_out(panel, maker):
    alike = heterogeneity.similarities(heterogeneity.properties(load_panel(panel)))
    assert list(alike) == ["base", maker, "parameters", "rank"]
