"""Planted preferences come back with their sign, pairs are pairs, log-probabilities keep their words."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmnb.errors import InputError
from rmnb.findings import agency_communion as agency
from rmnb.findings.results import Results
from rmnb.panels import Panel, PromptSpec
from rmnb.scoring import store

NOUNS = agency.nouns()
FRAMING = {"good_one": "positive", "good_two": "positive", "bad_one": "negative", "bad_two": "negative"}


def rewards(effect, rng, noise=0.5):
    """Rewards of the nouns: communion is worth `effect` more where good is asked for, as much less where bad is."""
    sign = np.where(NOUNS["category"] == "communion", 0.5, -0.5)
    word = rng.normal(size=len(NOUNS))
    columns = {
        key: word + effect * sign * (1 if framing == "positive" else -1) + noise * rng.normal(size=len(NOUNS))
        for key, framing in FRAMING.items()
    }
    return pd.DataFrame(columns, index=pd.Index(NOUNS["word"], name="word"))


def panel_of(models):
    specs = [{"name": n, "source": f"no/{n}", "family": f, "recipe": r} for n, f, r in models]
    return Panel.model_validate(
        {"name": "p", "title": "P", "models": specs, "prompts": [{"key": "q", "text": "Q?", "framing": "positive"}]}
    )


def test_the_gap_has_the_sign_that_was_planted_and_turns_with_the_framing():
    table = rewards(2.0, np.random.default_rng(0))
    good = agency.noun_gap(table, NOUNS, ["good_one", "good_two"])
    bad = agency.noun_gap(table, NOUNS, ["bad_one", "bad_two"])
    assert good.ci_low > 0 > bad.ci_high, "communion is planted above agency: the rank number of agency is larger"
    for summary, sign in (("median rank", 1), ("mean rank", 1)):
        found = agency.contrast({"m": table}, {"m": "b"}, NOUNS, ["good_one"], summary)["m"]
        assert np.sign(found) == sign
    assert agency.contrast({"m": table}, {"m": "b"}, NOUNS, ["good_one"], "score")["m"] > 0, (
        "one sign for all summaries"
    )


def test_the_interval_over_nouns_covers_no_difference():
    rng, inside = np.random.default_rng(1), 0
    for _ in range(200):
        found = agency.noun_gap(rewards(0.0, rng), NOUNS, list(FRAMING))
        inside += found.ci_low < 0 < found.ci_high
    assert 0.9 <= inside / 200 <= 0.99


def test_the_interaction_is_that_of_the_analysis_of_variance():
    import statsmodels.api as sm
    import statsmodels.formula.api as smf

    rng = np.random.default_rng(2)
    tables = {"one": rewards(0.8, rng), "two": rewards(-0.1, rng)}
    ranks = agency.ranks_by_prompt(tables, {"one": "one", "two": "two"}, FRAMING, NOUNS)
    f, df = agency.interaction_f(ranks)
    fit = smf.ols("median_rank ~ C(model) * C(category) * C(framing)", ranks).fit()
    theirs = sm.stats.anova_lm(fit, typ=2).loc["C(model):C(category)"]
    assert f == pytest.approx(theirs["F"], rel=1e-9) and df == fit.df_resid
    with pytest.raises(InputError, match="two models"):
        agency.interaction_f(ranks[ranks["model"] == "one"])


def test_only_recipes_that_both_bases_have_are_pairs():
    recipes = ("a", "b", "c", "d")
    models = [(f"{base}-{recipe}", base, recipe) for base in ("one", "two") for recipe in recipes]
    values = {name: (5.0 if base == "one" else 3.0) + place for place, r in enumerate(recipes)
              for name, base, recipe in models if recipe == r}  # fmt: skip
    values["two-e"], values["one-none"] = 1000.0, 1000.0  # a recipe on one base, a model without recipe
    panel = panel_of([*models, ("two-e", "two", "e"), ("one-none", "one", None)])
    results = Results("agency_communion", "p")
    assert agency.add_paired(results, "panel", values, panel, prompt="positive")
    value = results.frame().set_index("statistic")["value"]
    assert value["base_difference_paired"] == pytest.approx(2)
    assert value["base_difference_paired_p"] == pytest.approx(2 / 2**4)
    assert not agency.add_paired(results, "panel", {"one-a": 1.0}, panel)


def lone_model(words):
    """A stand-in for a language model whose vocabulary and probabilities are given."""
    tokens = pd.DataFrame({"token_id": np.arange(len(words), dtype=np.int32), "token": list(words), "kind": "word"})
    return tokens, np.log(np.array(list(words.values()), dtype=np.float32))


def test_shipped_log_probabilities_find_their_words_again(tmp_path, monkeypatch):
    from rmnb.scoring import logprobs

    words = {
        "kindness": 0.1,
        " kindness": 0.2,
        " Kindness": 0.3,
        "ambition": 0.05,
        " Ambition": 0.15,
        "twice": 0.1,
        "x": 0.1,
    }
    tokens, logs = lone_model(words)
    monkeypatch.setattr(logprobs, "scan_logprobs", lambda lm, prompt: tokens.assign(score=logs))
    monkeypatch.setattr(logprobs, "next_token_logprobs", lambda lm, prompt: logs)
    asked = [PromptSpec(key="q", text="Q?", framing="positive")]
    frame = agency.score_nouns(None, asked, parts=("agency_communion",))
    assert "word" not in frame and "token" not in frame  # no text is shipped
    texts = agency.part_texts("agency_communion")
    told = {"parts": agency.described_parts({"agency_communion": texts})}
    store.write_table(tmp_path / "b.parquet", frame, told)
    table, _ = agency.read_logprobs(tmp_path / "b.parquet")
    either = np.exp(agency.noun_logprobs(table)["q"])
    assert either.to_dict() == pytest.approx({"ambition": 0.2, "kindness": 0.6})
    lower = np.exp(agency.noun_logprobs(table, capitals=False)["q"])
    assert lower["ambition"] == pytest.approx(0.05)
    store.write_table(tmp_path / "b.parquet", frame, {"parts": agency.described_parts({"agency_communion": texts[1:]})})
    with pytest.raises(InputError, match="have changed"):
        agency.read_logprobs(tmp_path / "b.parquet")


@given(st.lists(st.tuples(st.floats(-30, -0.1), st.floats(-30, -0.1)), min_size=1, max_size=20))
@settings(deadline=None, max_examples=25)
def test_log_ratios_change_sign_when_the_two_models_change_places(pairs):
    index = pd.Index([f"w{k}" for k in range(len(pairs))], name="word")
    one, other = (pd.DataFrame({"q": [pair[side] for pair in pairs]}, index=index) for side in (0, 1))
    plain = agency.word_log_ratio(one, other, ["q"], weighted=False)
    assert np.allclose(plain, one["q"] - other["q"])
    weighted = agency.word_log_ratio(one, other, ["q"])
    assert np.allclose(weighted, -agency.word_log_ratio(other, one.iloc[::-1], ["q"]).loc[weighted.index])
    assert np.allclose(weighted, (np.exp(one["q"]) + np.exp(other["q"])) / 2 * plain)


def test_a_base_with_one_model_gives_ranks_and_a_reason():
    rng = np.random.default_rng(3)
    tables = {name: rewards(1.0, rng) for name in ("a1", "a2", "b1", "b2")}
    family = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}
    ranks = agency.ranks_by_prompt(tables, family, FRAMING, NOUNS)
    results = Results("agency_communion", "p")
    assert "2 of a, 1 of b" in agency.add_ranks(results, ranks[ranks["model"] != "b2"])
    assert set(results.frame()["statistic"]) == {"median_rank_agency", "median_rank_communion"}
    results = Results("agency_communion", "p")
    assert agency.add_ranks(results, ranks) == ""
    assert "base_difference_p" in set(results.frame()["statistic"])
