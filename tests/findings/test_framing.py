"""The effects of chapter 3 recover what was planted, and the chapter's own computations are the effects'."""

import numpy as np
import pandas as pd
import pytest

from rmnb import stats
from rmnb.findings import framing
from rmnb.findings.rows import each
from rmnb.findings.tables import afinn, rated_tokens
from rmnb.planted.rewards import PlantedEffects

QUESTIONS = {"best": "positive", "worst": "negative"}
PAIR = ("best", "worst")
EFFECTS = PlantedEffects(valence_positive=0.30, valence_negative=0.20, negative_framing=-0.6, word_sd=0.7, noise_sd=0.3)


def test_planted_contrasts_come_back(planted_tables):
    tables = planted_tables(EFFECTS, [f"model {place}" for place in range(8)], QUESTIONS, seed=1)
    found = each(tables, framing.contrasts, [PAIR], ratings=afinn())
    mean = found.groupby("quantity")["value"].mean()
    planted = {"good, best": 0.30, "bad, best": 0.20, "good, worst": 0.18, "bad, worst": 0.12}
    for name, weights in framing.CONTRASTS.items():
        truth = sum(weight * planted[slope] for slope, weight in weights.items())
        assert mean[name] == pytest.approx(truth, abs=0.03)
        single = found[found["quantity"] == name]
        assert ((single["low"] < truth) & (truth < single["high"])).mean() >= 0.5


def test_the_computations_of_the_chapter_are_the_effects(planted_tables):
    table = planted_tables(EFFECTS, ["a"], QUESTIONS)["a"]
    tau = table[["best"]].corrwith(table["worst"], method="kendall")["best"]
    assert framing.turn(table, *PAIR)["tau"].value == pytest.approx(tau, abs=1e-12)
    rated = rated_tokens(table, afinn())
    one = rated.melt(["word", "valence"], list(PAIR), var_name="question", value_name="reward")
    one["followed"] = one["valence"].where(one["question"] == "best", -one["valence"])
    one["part"] = np.where(one["valence"] > 0, "good, ", "bad, ") + one["question"]
    fit = stats.ols("reward ~ 0 + part + part:followed", one, clusters="word")
    effects = framing.contrasts(table, *PAIR, ratings=afinn())
    for name, weights in framing.CONTRASTS.items():
        expected = fit.estimate({f"part[{part}]:followed": weight for part, weight in weights.items()})
        assert effects[name].value == pytest.approx(expected.value, abs=1e-10)
        assert effects[name].ci_high == pytest.approx(expected.ci_high, abs=1e-10)


def test_a_model_that_ignores_the_question_weighs_good_and_bad_alike(planted_tables):
    table = planted_tables(EFFECTS, ["a"], QUESTIONS)["a"]
    deaf = table.assign(worst=table["best"])
    found = framing.contrasts(deaf, *PAIR, ratings=afinn())
    assert found["bad words weigh more"].value == pytest.approx(0, abs=1e-9)
    assert found["best is followed more"].value == pytest.approx(0.5, abs=0.1)
    assert framing.turn(deaf, *PAIR)["tau"].value == 1
    assert framing.value_share(deaf, *PAIR, n_boot=5)["share"].value == pytest.approx(0, abs=1e-9)


def test_a_mirror_has_all_its_variance_along_value(planted_tables):
    table = planted_tables(EFFECTS, ["a"], QUESTIONS)["a"]
    share = framing.value_share(table.assign(worst=-table["best"]), *PAIR, n_boot=5)["share"]
    assert share.value == pytest.approx(1) and share.ci_low == pytest.approx(1)


def test_rewordings_are_told_by_what_differs():
    """Rewards of 400 texts: an adjective counts a little, a style more, the framing turns them round."""
    rng = np.random.default_rng(0)
    framings = {"best": "positive", "good": "positive", "worst": "negative"}
    meaning, of_style, of_adjective = rng.normal(size=400), {}, {}
    table, keys = {}, {}
    for adjective, asked in framings.items():
        for style in ("one", "please"):
            key = f"{adjective}_ever_{style}"
            keys[key] = asked
            manner = of_style.setdefault(style, rng.normal(size=400))
            taste = of_adjective.setdefault(adjective, rng.normal(size=400))
            sign = 1 if asked == "positive" else -1
            table[key] = sign * meaning + 0.5 * manner + 0.2 * taste
    found = {change: framing.rewording(pd.DataFrame(table), change, keys) for change in framing.CHANGES}
    assert found["adjective"]["spearman"].value > found["style"]["spearman"].value > 0.6
    assert found["framing"]["spearman"].value < -0.4
    assert found["scope"] == {}
    assert found["style"]["spearman"].n == 3 and found["framing"]["spearman"].n == 4
