"""The effects of chapter 3 recover what was planted, and the chapter's own computations are the effects'."""

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

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


def test_the_computations_of_the_chapter_are_the_effects(planted_tables, run_cells):
    table = planted_tables(EFFECTS, ["a"], QUESTIONS)["a"]
    known = {"best": "best", "worst": "worst", "same": "best", "turns": ["a"], "models": None, "framing": framing}
    scores = pd.concat({question: table[[question]].set_axis(["a"], axis=1) for question in PAIR}, axis=1)
    loaded = SimpleNamespace(load_rated=lambda *_: rated_tokens(table, afinn()).assign(model="a"))
    shown = run_cells("03", "tau = ", "rated = ", "fit = ", scores=scores, rmnb=loaded, **known)
    assert framing.turn(table, *PAIR)["tau"].value == pytest.approx(shown["turn"]["a"], abs=1e-12)
    effects = framing.contrasts(table, *PAIR, ratings=afinn())
    for name, weights in framing.CONTRASTS.items():
        expected = shown["fit"].estimate({f"part[{part}]:followed": weight for part, weight in weights.items()})
        assert effects[name].value == pytest.approx(expected.value, abs=1e-10)
        assert effects[name].ci_high == pytest.approx(expected.ci_high, abs=1e-10)


def test_a_model_that_ignores_the_question_weighs_good_and_bad_alike(planted_tables):
    table = planted_tables(EFFECTS, ["a"], QUESTIONS)["a"]
    deaf = table.assign(worst=table["best"])
    found = framing.contrasts(deaf, *PAIR, ratings=afinn())
    assert found["bad words weigh more"].value == pytest.approx(0, abs=1e-9)
    assert found["best is followed more"].value == pytest.approx(0.5, abs=0.1)
    assert framing.turn(deaf, *PAIR)["tau"].value == 1
    for twin, expected in ((deaf, 0), (table.assign(worst=-table["best"]), 1)):  # the second turns wholly
        assert framing.value_share(twin, *PAIR, n_boot=5)["share"].value == pytest.approx(expected, abs=1e-9)


def test_rewordings_are_told_by_what_differs():
    """Rewards of 400 texts: an adjective counts a little, a style more, the framing turns them round."""
    sign, table, keys = {"best": 1, "good": 1, "worst": -1}, pd.DataFrame(), {}
    meaning, *drawn = np.random.default_rng(0).normal(size=(6, 400))
    drawn = dict(zip([*sign, "one", "please"], drawn, strict=True))
    for adjective, style in itertools.product(sign, ["one", "please"]):
        keys[f"{adjective}_ever_{style}"] = str(sign[adjective])
        own = 0.5 * drawn[style] + 0.2 * drawn[adjective]
        table[f"{adjective}_ever_{style}"] = sign[adjective] * meaning + own
    found = {change: framing.rewording(table, change, keys) for change in framing.CHANGES}
    assert found.pop("scope") == {}
    rho = {change: estimates["spearman"].value for change, estimates in found.items()}
    assert rho["adjective"] > rho["style"] > 0.6 and rho["framing"] < -0.4
    assert (found["style"]["spearman"].n, found["framing"]["spearman"].n) == (3, 4)
