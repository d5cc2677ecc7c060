"""Does it travel: tables of words in carriers, and the estimators of chapter 11 on planted rewards."""

import sys

import numpy as np
import pandas as pd
import pytest
from notebook_files import ROOT
from scipy.linalg import helmert
from sklearn.linear_model import BayesianRidge

from rmnb import stats
from rmnb.errors import InputError
from rmnb.findings import carriers
from rmnb.panels import load_panel
from rmnb.scoring.store import panel_directory, read_table, write_table

MODEL = "smollm2-values"
GREATEST = carriers.sentences().query("question == 'greatest'")
ESTIMATORS = {"helmert": helmert, "BayesianRidge": BayesianRidge}  # what the chapter imports


def test_sixteen_bits_leave_kendalls_tau_as_it_is(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "workflow")
    monkeypatch.delitem(sys.modules, "carriers", raising=False)
    from carriers import on_16_bits  # pyright: ignore[reportMissingImports]

    rng = np.random.default_rng(0)
    alone = rng.gamma(2, size=3000)
    rewards = pd.Series(alone + rng.gamma(1, 2, 3000))
    for column in (rewards, -1e3 * rewards + 7):
        numbers, scale = on_16_bits(column)
        read = scale["low"] + scale["step"] * numbers
        assert numbers.dtype == np.uint16 and np.abs(read - column).max() <= 0.51 * scale["step"]
        taus = [stats.kendall_interval(alone, each).value for each in (read, column)]
        assert abs(taus[0] - taus[1]) < 1e-4


def test_a_word_has_its_own_reward_in_each_carrier_and_stale_tables_are_refused(tmp_path, monkeypatch):
    demo = load_panel("demo")
    shipped = panel_directory(demo, "carriers") / f"{MODEL}.parquet"
    numbers, provenance = read_table(shipped)
    monkeypatch.setattr(carriers, "panel_directory", lambda panel, kind: tmp_path)
    assert not carriers.load_carriers(demo, demo.models)

    write_table(tmp_path / shipped.name, numbers.iloc[::-1], provenance)  # in another order
    (table,) = carriers.load_carriers(demo, demo.models).values()
    rewards = table.set_index("token")["greatest.plain"]
    golden = {" love": 8.395915, " people": 7.709754, " war": -3.512488}  # transformers' own, on whole sentences
    np.testing.assert_allclose(rewards[list(golden)], [*golden.values()], atol=1e-3)

    plain = provenance["rewards"]["greatest.plain"]
    for changed, line in (
        ({"weights_sha256": "other"}, "weights"),
        ({"dtype": "bfloat16"}, "dtype"),
        ({"rewards": {"greatest.plain": plain | {"answer": "It is {}."}}}, "answer"),
        ({"rewards": {"greatest.plain": plain | {"prompt": "What is it?"}}}, "prompt"),
        ({"rewards": {"greatest.shouted": plain}}, "answer"),
    ):
        write_table(tmp_path / shipped.name, numbers, provenance | changed)
        with pytest.raises(InputError, match=line):
            carriers.load_carriers(demo, demo.models)

    write_table(tmp_path / shipped.name, numbers.drop(columns="worst.not"), provenance | {"rewards": {}})
    with pytest.raises(InputError, match=r"lacks the sentences worst\.not: run"):
        carriers.load_carriers(demo, demo.models)


def test_words_in_carriers_have_the_rewards_of_whole_sentences_at_the_speed_that_the_book_states():
    demo = load_panel("demo")
    measured = pd.read_csv(panel_directory(demo, "carriers") / "parity.csv")
    expected = {(model, carrier) for model in demo.model_names for carrier in carriers.sentences().index}
    assert {*zip(measured["model"], measured["carrier"], strict=True)} == expected
    assert measured["difference"].max() < 1e-4
    assert (measured["speed"] > 0.8 * measured["ids"]).all()
    assert measured["ids"].between(4, 13).all()


def test_the_layout_gives_each_part_its_share_and_sees_a_product(run_cells):
    rng = np.random.default_rng(0)
    names = carriers.sentences().index
    word, sentence = rng.normal(size=2000), rng.normal(size=len(names))
    effects = {"additive": 0.5 * rng.normal(size=(2000, len(names))), "product": 0.5 * np.outer(word, sentence)}
    complete = {
        kind: pd.DataFrame(np.add.outer(word, sentence) + effect, columns=names) for kind, effect in effects.items()
    }
    parts = run_cells("11", "def layout", sentences=carriers.sentences(), of_greatest=GREATEST, carried=complete)[
        "parts"
    ]
    among_all = parts.xs("8 sentences", level="among")
    of_sentences = np.var(sentence[names.isin(GREATEST.index)])
    truth = np.array([1, of_sentences, 0.25]) / (1 + of_sentences + 0.25)
    found = among_all.loc["additive", ["word", "sentence", "interaction"]].astype(float)
    np.testing.assert_allclose(found, truth, atol=0.05)
    assert found.sum() == pytest.approx(1)
    assert among_all.loc["additive", "of it a product"] < 0.01 < 0.9 < among_all.loc["product", "of it a product"]


def test_a_grader_that_likes_words_everywhere_is_told_from_one_that_likes_them_alone(run_cells):
    word_slopes = run_cells("11", "def word_slopes", **ESTIMATORS)["word_slopes"]
    contents, _ = read_table(panel_directory(load_panel("demo"), "carriers") / "answers/contents.parquet")
    words = contents.columns.drop(["prompt", "length"])
    clear, errors, correlations = {}, [], []
    for kappa in (0, 0.1):
        found = []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            alone = pd.Series(rng.normal(size=len(words)), words)
            slopes = kappa * alone + 0.1 * rng.normal(size=len(words))
            of_prompt = 3 * rng.normal(size=contents["prompt"].max() + 1)[contents["prompt"]]
            reward = contents[words] @ slopes + np.log(contents["length"].clip(lower=1)) + of_prompt
            reward += rng.normal(size=len(contents))
            estimate, found_slopes = word_slopes(contents.assign(reward=reward), alone)
            found.append(estimate["low"] > 0)
            errors.append(estimate["value"] - kappa)
            correlations.append(found_slopes.corr(slopes))
        clear[kappa] = np.mean(found)
    assert clear[0] <= 0.1 and clear[0.1] >= 0.9, "level and power"
    assert abs(np.mean(errors)) < 0.02 and np.mean(correlations) > 0.3
