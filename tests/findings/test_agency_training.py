"""Chapters 7 and 9: effects on nouns find what was planted, their cells compute the same, stored words come back."""

import functools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import policies
import pytest
from scipy.stats import bootstrap, brunnermunzel, mannwhitneyu

from rmnb import stats
from rmnb.data import lexicons, list_scores, text_lists
from rmnb.data.sources import UnreachableError
from rmnb.data.text_lists import TextList, described_parts, part_texts
from rmnb.errors import InputError
from rmnb.findings import agency, lists, rows, tables, training
from rmnb.scoring.store import write_table
from rmnb.training.runs import trajectory_path

NOUNS = lexicons.agency_communion()
PROMPTS = {"positive": ["good_one", "good_two"], "negative": ["bad_one", "bad_two"]}
FRAMING = {prompt: framing for framing, prompts in PROMPTS.items() for prompt in prompts}
BASE = {f"{base}-{recipe}": base for base in ("one", "two") for recipe in "abcd"}


def planted(effect, rng):
    """Scores of the nouns: communion is worth `effect` more where good is asked for, as much less where bad is."""
    meaning = effect * np.where(NOUNS["category"] == "communion", 0.5, -0.5)
    table, word = NOUNS.copy(), rng.normal(size=len(NOUNS))
    for prompt in FRAMING:
        asked = meaning if prompt in PROMPTS["positive"] else -meaning
        table[prompt] = word + asked + rng.normal(0, 0.5, len(NOUNS))
    return table


@pytest.fixture(scope="module")
def nouns():
    """Eight models; communion is worth more to those of the first base."""
    rng = np.random.default_rng(0)
    return {model: planted(2.0 if base == "one" else -1.0, rng) for model, base in BASE.items()}


@pytest.fixture(scope="module")
def medians(nouns):
    found = {model: agency.median_ranks(table, list(FRAMING)) for model, table in nouns.items()}
    return pd.concat(found, names=["model"])


@pytest.fixture(scope="module")
def tests(medians):
    """What compares the bases, by quantity, category and framing."""
    return agency.compare_bases(medians, BASE, FRAMING).set_index(["quantity", "other", "question"])


def test_the_chapters_cells_compute_what_the_effects_do(nouns, run_cells):
    known = {"nouns": nouns, "prompts": PROMPTS, "base": BASE, "first": "one", "n": 2, "seed": 0}
    models = SimpleNamespace(groups={model: model[-1] for model in BASE})
    names = run_cells("07", "def gap_by_prompt(", "by_prompt = ", models=models, **known, agency=agency)
    by_model = names["by_model"].mean(axis="columns")
    gaps = {model: agency.gap(table, "positive", PROMPTS)["agency_gap"].value for model, table in nouns.items()}
    assert by_model.to_dict() == pytest.approx(gaps)
    assert names["over_prompts"].value == pytest.approx(names["over_recipes"].value)
    assert (names["over_prompts"].n, names["over_recipes"].n) == (16, 4)


def test_seeds_are_averaged_and_recipes_on_both_bases_compared_with_themselves():
    values = pd.Series({"one-a": 5.0, "one-a-seed2": 7.0, "one-b": 2.0, "one-c": 90.0, "two-a": 1.0, "two-b": 1.0})
    base = {model: model[:3] for model in values.index}
    found = agency.difference_of_bases(values, base, {model: model[4] for model in values.index})
    assert (found.value, found.n) == (3.0, 2), "recipe c is on one base alone"
    assert found.p_value == stats.sign_flip_test([5.0, 1.0]).p_value
    alone = agency.difference_of_bases(values, base)
    assert (alone.value, alone.n) == (26 - 1, 6)


def test_planted_preferences_come_back(nouns, tests):
    found = rows.measure_each(nouns, agency.gap, PROMPTS, prompts=PROMPTS).set_index(["model", "question"])
    assert found.loc[("one-a", "positive"), "low"] > 0 > found.loc[("one-a", "negative"), "high"]
    assert found.loc[("two-a", "positive"), "high"] < 0, "the preferred kind has the smaller ranks"
    assert tests["low"]["base_difference", "agency", "positive"] > 0
    assert tests["value"]["base_difference_p", "agency", "positive"] == pytest.approx(2 / 70)
    assert tests["value"]["base_effect_size", "communion", "positive"] < -0.8
    with pytest.raises(InputError, match="2 of one, 1 of two"):
        agency.two_bases(["one", "one", "two"])
    with pytest.raises(InputError, match="fewer than two words"):
        agency.gap(nouns["one-a"].iloc[:1], "positive", PROMPTS)


def test_the_test_of_a_gap_is_that_of_brunner_and_munzel_and_its_value_the_difference_of_mean_ranks(nouns):
    table, asked = nouns["one-a"], {"one": ["good_one"]}
    scores = table["good_one"].groupby(table["category"])
    gap = agency.gap(table, "one", asked)["agency_gap"]
    known = brunnermunzel(scores.get_group("agency"), scores.get_group("communion"))
    assert gap.value / gap.standard_error == pytest.approx(known.statistic)
    assert gap.p_value == pytest.approx(known.pvalue, rel=1e-6, abs=0)
    ranks = agency.percent_ranks(table, ["good_one"])["good_one"].groupby(table["category"]).mean()
    assert gap.value == pytest.approx(ranks["agency"] - ranks["communion"])


def test_log_probabilities_of_nouns_find_their_words_again(panel, tmp_path, monkeypatch):
    words = {"kindness": 0.1, " kindness": 0.2, " Kindness": 0.3, "ambition": 0.05, " Ambition": 0.15, "x": 0.2}
    logs = np.log(np.float32([*words.values()]))
    tokens = pd.DataFrame({"token_id": range(len(words)), "token": list(words)})
    monkeypatch.setattr(policies, "scan_logprobs", lambda lm, prompt: tokens)
    monkeypatch.setattr(policies, "next_token_logprobs", lambda lm, prompt: logs)
    monkeypatch.setattr(policies, "NOUNS", ("agency_communion",))
    frame = policies.score_nouns(None, [panel.prompt("best")])
    assert not {"word", "token"} & set(frame), "no text is shipped"
    parts = described_parts({"agency_communion": part_texts("agency_communion")})
    file = tmp_path / "logprobs" / "gemma3-270m.chat.parquet"
    write_table(file, frame, {"parts": parts, "wrapping": "chat"})
    table = lists.load_logprobs(panel)["gemma3-270m", "chat"].set_index("word")
    assert np.exp(table["best"]).to_dict() == pytest.approx({"ambition": 0.2, "kindness": 0.6})


RUN, STEPS = "smollm2-values", ["0", "1", "2", "4"]


def nouns_of(table):
    return NOUNS.merge(table[table["part"] == "agency_communion"], on="word")


@pytest.fixture
def run(panel):
    """A run whose liking of valence grows with the step, while agency falls behind communion."""
    valence, agency = tables.afinn(), NOUNS.query("category == 'agency'")["word"]

    def score(words, step):
        words, noise = pd.Series(words), np.random.default_rng(step).normal(0, 0.3, len(words))
        return (noise + step * (0.2 * words.map(valence).fillna(0) - words.isin(agency))).to_numpy(np.float32)

    columns = {step: functools.partial(score, step=int(step)) for step in STEPS}
    list_scores.score_columns(
        trajectory_path(panel, RUN), TextList("training", ("afinn", "agency_communion"), ()), columns, {}, {}
    )
    return lists.load_trajectories(panel)[RUN]


def test_gaps_follow_what_was_planted(run):
    assert run.columns.tolist() == ["part", "word", *STEPS]
    nouns = nouns_of(run)
    gaps = rows.measure_each({"run": nouns}, training.gap, STEPS, n_draws=200).set_index("question")
    assert gaps.loc["0", "low"] < 0 < gaps.loc["0", "high"]
    assert gaps.loc["4", "low"] > 30, "percent of the ranks: agency stands lower"
    with pytest.raises(InputError, match="n_draws must be 2 or more, got 1"):
        training.gap(nouns, "4", n_draws=1)


def test_two_runs_are_compared_on_the_same_nouns(run):
    one = nouns_of(run)
    other = one.assign(**{"4": one["4"] + 8 * (one["category"] == "agency")})
    pair = training.gap_between(one, other, "4", n_draws=200)["base_gap"]
    assert pair.ci_low > 50
    assert training.gap_between(other, one, "4", n_draws=200)["base_gap"].value == pytest.approx(-pair.value)
    with pytest.raises(InputError, match="other nouns"):
        training.gap_between(one, other.iloc[:-1], "4")


def test_the_chapters_cells_compute_the_gap_of_a_run(run, run_cells):
    known = {"example": "run", "n_boot": 500, "seed": 0, "afinn": tables.afinn, "bootstrap": bootstrap}
    known |= {"runs": {"run": run}, "steps": {"run": STEPS}, "nouns": {"run": nouns_of(run)}}
    names = run_cells("09", "margin = ", "example = next(", "last = ", **known)
    effect = training.gap(names["nouns"]["run"], "4")["agency_less_communion"]
    value, interval = names["gap_of"](*names["samples"]), names["interval"]
    shown = (value, interval.low, interval.high)
    assert shown == pytest.approx((effect.value, effect.ci_low, effect.ci_high), abs=2.5)
    pairs = len(names["good"]) * len(names["bad"])
    won = mannwhitneyu(names["good"]["4"], names["bad"]["4"]).statistic
    assert names["learned"].loc["4", "pairs in order"] == pytest.approx(won / pairs)
    slope = np.diff(np.logaddexp(0, [1e-6, -1e-6])) / 2e-6
    assert (names["pull"][2], names["loss"][2]) == pytest.approx((-slope.item(), np.log(2)))


def test_scores_of_other_texts_are_refused_and_unreachable_ones_go_by_their_place(panel, run, monkeypatch):
    with monkeypatch.context() as context, pytest.raises(InputError, match="agency_communion have changed"):
        context.setitem(text_lists._PARTS, "agency_communion", lambda: ["other", "words"])
        lists.load_trajectories(panel)

    def unreachable():
        raise UnreachableError("not here")

    monkeypatch.setitem(text_lists._PARTS, "agency_communion", unreachable)
    nouns = lists.load_trajectories(panel)[RUN].query("part == 'agency_communion'")["word"]
    assert nouns.iloc[-1] == "agency_communion 119"
    trajectory_path(panel, RUN).unlink()
    with pytest.raises(InputError, match="no training run of panel demo"):
        lists.load_trajectories(panel)
