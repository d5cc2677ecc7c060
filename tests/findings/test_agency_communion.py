"""Planted preferences come back as rows, of a panel and of one model; pairs are pairs; log-probabilities keep words."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmnb.data import lexicons
from rmnb.errors import InputError
from rmnb.findings import agency_communion as agency
from rmnb.findings import agency_in_bases, agency_study, categories, moral_foundations
from rmnb.findings.log_ratios import implicit_reward, mwlr, word_log_ratio
from rmnb.findings.results import Results
from rmnb.panels import PromptSpec
from rmnb.scoring import store

NOUNS = lexicons.agency_communion()
FRAMING = {"good_one": "positive", "good_two": "positive", "bad_one": "negative", "bad_two": "negative"}
RECIPES = ("a", "b", "c", "d")


def rewards(effect, rng, noise=0.5):
    """Rewards of the nouns: communion is worth `effect` more where good is asked for, as much less where bad is."""
    sign = np.where(NOUNS["category"] == "communion", 0.5, -0.5)
    word = rng.normal(size=len(NOUNS))
    columns = {
        key: word + effect * sign * (1 if framing == "positive" else -1) + noise * rng.normal(size=len(NOUNS))
        for key, framing in FRAMING.items()
    }
    return pd.DataFrame(columns, index=pd.Index(NOUNS["word"], name="word"))


@pytest.fixture(scope="module")
def panel():
    """Scores, family and recipe of eight models: communion is worth more to the first base, under each recipe."""
    rng = np.random.default_rng(0)
    names = [f"{base}-{recipe}" for base in ("one", "two") for recipe in RECIPES]
    scores = {name: rewards(2.0 if name.startswith("one") else -1.0, rng) for name in names}
    return scores, {name: name[:3] for name in names}, {name: name[4:] for name in names}


def test_what_was_planted_comes_back_as_rows(panel):
    scores, family, recipe = panel
    rows = agency.measure(scores, NOUNS, family, FRAMING, recipe=recipe, panel="p")
    assert set(rows["panel"]) == {"p"} and set(rows["source"]) == {"panel"}
    gap = rows[rows["statistic"] == "agency_gap"].set_index(["model", "prompt"])
    assert gap.loc[("one-a", "positive"), "ci_low"] > 0 > gap.loc[("one-a", "negative"), "ci_high"]
    assert gap.loc[("two-a", "positive"), "ci_high"] < 0, "the rank number of agency is the smaller one"
    value = rows.set_index(["statistic", "other", "prompt"])["value"].sort_index()
    assert value["base_difference", "agency", "positive"] > 0 > value["base_difference", "agency", "negative"]
    assert value["base_difference_p", "agency", "positive"] == pytest.approx(2 / 70)
    assert value["base_difference_paired_p", "", "positive"] == pytest.approx(2 / 2**4)
    interaction = rows.set_index("statistic").loc["lmm_base_x_category_x_framing"]
    assert interaction["other"] == "communion" and interaction["ci_high"] < 0
    table = categories.compared(rows)
    assert len(table) == 6 and table["p, prompts (the paper's)"].isna().sum() == 2, "no such test of contrasts"
    assert len(categories.coefficients(rows)) == 8


def test_one_model_alone_has_its_rows_and_no_others(panel):
    scores, family, recipe = panel
    whole = agency.measure(scores, NOUNS, family, FRAMING, recipe=recipe)
    alone = agency.measure({"one-a": scores["one-a"]}, NOUNS, family, FRAMING, recipe=recipe)
    assert set(alone["statistic"]) == {"median_rank_agency", "median_rank_communion", "agency_gap"}
    same = whole[whole["model"] == "one-a"].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, same)
    seven = {name: table for name, table in scores.items() if name in ("one-a", "one-b", "two-a")}
    assert "base_difference" not in set(agency.measure(seven, NOUNS, family, FRAMING)["statistic"])
    assert agency.measure({}, NOUNS, family, FRAMING).empty
    assert agency.measure({"one-a": scores["one-a"].iloc[:1]}, NOUNS, family, FRAMING).empty, "one noun ranks nothing"
    assert agency.curve({"one-a": scores["one-a"]}, NOUNS, family, FRAMING) is None


def test_foundations_go_through_the_same_comparison(panel):
    scores, family, _ = panel
    words = NOUNS.assign(category=np.where(NOUNS["category"] == "agency", "authority", "care"))
    rows = moral_foundations.measure(scores, words, family, FRAMING, source="released", protocol="published")
    assert set(rows["finding"]) == {"moral_foundations"} and set(rows["protocol"]) == {"published"}
    agencies = agency.measure(scores, NOUNS, family, FRAMING)
    names = ("lmm_base_x_category_x_framing", "base_difference_p")
    for name in names:
        ours, theirs = (of[of["statistic"] == name]["value"].tolist() for of in (rows, agencies))
        assert ours == pytest.approx(theirs)


def test_only_recipes_that_both_bases_have_are_pairs(panel):
    scores, family, recipe = panel
    some = {name: scores[name] for name in scores if name not in ("two-c", "one-d")}
    rows = agency.measure(some, NOUNS, family, FRAMING, recipe=recipe | {"one-b": None})
    assert "base_difference_paired" not in set(rows["statistic"]), "one pair says nothing of others"
    rows = agency.measure(some, NOUNS, family, FRAMING, recipe=recipe).query("statistic == 'base_difference_paired'")
    assert rows["n"].tolist() == [2, 2]


def test_the_sign_of_a_preference_is_one_for_all_summaries(panel):
    scores, family, _ = panel
    for summary in agency.CHOICES["summary"]:
        assert agency.contrast(scores["one-a"][["good_one"]], NOUNS, summary) > 0
    for asked in ("positive", "negative"):
        curve = agency.curve(scores, NOUNS, family, FRAMING, asked)
        assert curve is not None and (curve["ci_low"] > 0).all()
        assert len(curve) == 3 * 2 * 2 and curve["headline"].sum() == 1
    only = {name: table[["good_one"]] for name, table in scores.items()}
    assert agency.curve(only, NOUNS, family, FRAMING, "negative") is None


def test_rows_at_the_level_of_models_say_how_much_the_tests_found(panel):
    scores, family, recipe = panel
    rows = agency.measure(scores, NOUNS, family, FRAMING, recipe=recipe, panel="p")
    found = rows.set_index(["statistic", "other"])
    assert found.loc[("comparisons_clear", "models"), ["value", "n"]].tolist() == [6, 6]
    assert found.loc[("comparisons_clear", "prompts"), ["value", "n"]].tolist() == [4, 4]
    assert found.loc["base_difference_joint_p", "value"].item() == pytest.approx(2 / 70)
    assert found.loc[("specifications_clear", "positive"), "n"] == 12
    means = rows[(rows["statistic"] == "base_agency_gap") & (rows["prompt"] == "positive")].set_index("model")
    assert means.loc["one", "ci_low"] > 0 > means.loc["two", "ci_high"] and means["n"].tolist() == [4, 4]


def test_a_joint_test_has_its_level_and_finds_one_difference_among_many():
    rng, small = np.random.default_rng(4), 0
    in_first = np.arange(10) < 4
    for _ in range(100):
        small += categories.joint_test(rng.normal(size=(10, 8)), in_first).pvalue <= 0.05
    assert small <= 12
    one = rng.normal(size=(10, 8))
    one[in_first, 3] += 10
    assert categories.joint_test(one, in_first).pvalue <= 2 / 210


def test_the_interval_over_nouns_covers_no_difference():
    rng, inside = np.random.default_rng(1), 0
    for _ in range(200):
        found = agency.agency_gap(rewards(0.0, rng), NOUNS)
        inside += found.ci_low < 0 < found.ci_high
    assert 0.9 <= inside / 200 <= 0.99


def test_planted_panels_say_what_each_test_sees():
    rows = agency.measure_planted(NOUNS, FRAMING).set_index(["panel", "statistic", "other", "prompt"])["value"]
    assert rows["planted", "planted_effect", "communion", ""] == 1.6
    assert rows["planted", "base_difference_p", "communion", "positive"] < 0.05
    assert rows["planted, bases alike", "base_difference_p", "communion", "positive"] > 0.05


def log_probabilities(effect, rng):
    return -12 + rewards(effect, rng)


def test_what_bases_say_first_has_the_gap_that_was_planted():
    rng = np.random.default_rng(2)
    tables = {"one": log_probabilities(2.0, rng), "two": log_probabilities(0.0, rng).iloc[:-5]}
    rows = agency_in_bases.measure_logprobs({"chat": tables}, NOUNS, FRAMING, n_boot=50)
    value = rows.set_index(["statistic", "model", "other", "prompt"])
    gap = value.loc[("mwlr_gap", "one over two (chat)", "plain", "positive")]
    assert gap["ci_low"] < -2 < gap["ci_high"] and gap["n"] == len(NOUNS) - 5
    assert value.loc[("agency_gap", "one", "chat", "positive"), "ci_low"] > 0
    assert rows.query("statistic == 'anova_f'")["n"].tolist() == [2 * 2 * len(FRAMING)]
    alone = agency_in_bases.measure_logprobs({"chat": {"one": tables["one"]}}, NOUNS, FRAMING)
    assert set(alone["statistic"]) == {"agency_gap"}
    apart = value.loc[("agency_gap_difference", "one less two", "chat", "positive")]
    assert apart["ci_low"] > 0 and apart["n"] == len(NOUNS) - 5


def test_a_tuned_copy_agrees_with_the_model_that_it_was_tuned_by():
    rng = np.random.default_rng(3)
    base, explicit = log_probabilities(0.0, rng), rewards(2.0, rng)
    pairs = {"copy over base (chat)": (base + 10 * explicit, base)}
    rows = agency_in_bases.measure_tuned(pairs, NOUNS, FRAMING, {"same": explicit, "few": explicit.iloc[:5]}, beta=0.1)
    value = rows.set_index(["statistic", "other"])["value"]
    assert value["implicit_spearman", "same"] == pytest.approx(1) and value["mwlr_gap", "plain"] < -1
    assert ("implicit_spearman", "few") not in value


def test_shipped_log_probabilities_find_their_words_again(tmp_path, monkeypatch):
    from rmnb.scoring import logprobs

    words = {"kindness": 0.1, " kindness": 0.2, " Kindness": 0.3, "ambition": 0.05, " Ambition": 0.15, "x": 0.2}
    tokens = pd.DataFrame({"token_id": np.arange(len(words), dtype=np.int32), "token": list(words), "kind": "word"})
    logs = np.log(np.array(list(words.values()), dtype=np.float32))
    monkeypatch.setattr(logprobs, "scan_logprobs", lambda lm, prompt: tokens.assign(score=logs))
    monkeypatch.setattr(logprobs, "next_token_logprobs", lambda lm, prompt: logs)
    asked = [PromptSpec(key="q", text="Q?", framing="positive")]
    frame = agency_study.score_nouns(None, asked, parts=("agency_communion",))
    assert "word" not in frame and "token" not in frame  # no text is shipped
    texts = agency_study.part_texts("agency_communion")
    told = {"parts": agency_study.described_parts({"agency_communion": texts}), "model": "owner/base"}
    store.write_table(tmp_path / "base.chat.parquet", frame, told)
    found = agency_study.read_logprobs(tmp_path / "base.chat.parquet")
    assert (found.name, found.wrapping, found.tuned, found.spellings) == ("base", "chat", False, 5)
    assert np.exp(found.table["q"]).to_dict() == pytest.approx({"ambition": 0.2, "kindness": 0.6})
    told["parts"] = agency_study.described_parts({"agency_communion": texts[1:]})
    store.write_table(tmp_path / "copy.chat.parquet", frame, told)
    with pytest.raises(InputError, match="have changed"):
        agency_study.read_logprobs(tmp_path / "copy.chat.parquet")


@given(st.lists(st.tuples(st.floats(-30, -0.1), st.floats(-30, -0.1)), min_size=1, max_size=20))
@settings(max_examples=25)
def test_log_ratios_change_sign_when_the_two_models_change_places(pairs):
    index = pd.Index([f"w{k}" for k in range(len(pairs))], name="word")
    one, other = (pd.DataFrame({"q": [pair[side] for pair in pairs]}, index=index) for side in (0, 1))
    plain = word_log_ratio(one, other, ["q"], weighted=False)
    assert np.allclose(plain, one["q"] - other["q"])
    weighted = word_log_ratio(one, other, ["q"])
    assert np.allclose(weighted, -word_log_ratio(other, one.iloc[::-1], ["q"]).loc[weighted.index])
    assert np.allclose(weighted, (np.exp(one["q"]) + np.exp(other["q"])) / 2 * plain)


def test_impossible_tokens_have_no_weight():
    nothing, half = np.array([-np.inf]), np.array([np.log(0.5)])
    assert mwlr(nothing, nothing)[0] == 0
    assert mwlr(half, nothing)[0] == np.inf


def test_the_implicit_reward_undoes_the_tuning_it_describes():
    """π ∝ π_ref exp(r/β): the reward comes back up to the constant of the prompt."""
    rng = np.random.default_rng(0)
    reference = np.log(rng.dirichlet(np.ones(50)))
    reward, beta = rng.normal(size=50), 0.3
    tuned = reference + reward / beta
    tuned -= np.log(np.exp(tuned).sum())
    found = implicit_reward(tuned, reference, beta)
    np.testing.assert_allclose(found - found.mean(), reward - reward.mean(), atol=1e-12)
    with pytest.raises(InputError, match="beta must be positive"):
        implicit_reward(tuned, reference, 0)


def test_median_ranks_by_hand():
    scores = pd.DataFrame({"p": [5.0, 1.0, 1.0, 0.0], "q": [0.0, 1.0, 2.0, 3.0]}, index=["a", "b", "c", "d"])
    words = pd.DataFrame({"word": ["a", "b", "c", "d", "unscored"], "category": ["x", "x", "y", "y", "x"]})
    table = categories.median_ranks(scores, words).set_index(["prompt", "category"])
    assert table["median_rank"].to_dict() == {("p", "x"): 1.75, ("p", "y"): 3.25, ("q", "x"): 3.5, ("q", "y"): 1.5}
    assert table["n"].eq(2).all()
    with pytest.raises(InputError, match="none of the words has a score"):
        categories.median_ranks(scores, words.assign(word="z"))


def test_no_rows_can_be_shown():
    assert categories.compared(Results("x").frame()).empty and categories.coefficients(Results("x").frame()).empty
