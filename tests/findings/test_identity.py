"""Gaps between identity terms and controls are what was planted, and nothing is compared that is not matched."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control

from rmnb.data import lexicons
from rmnb.findings import identity, identity_checks, identity_study
from rmnb.findings.scan_tables import as_table
from rmnb.panels import load_panel
from rmnb.truth.planted import PlantedEffects, planted_scan

FRAMING = {"best": "positive", "worst": "negative"}


@pytest.fixture(scope="module")
def vocabulary():
    """Every term and control that is one word, with and without a space before it."""
    table = identity.terms().query("term.str.isalpha() and control.str.isalpha()")
    texts = list(dict.fromkeys([*table["term"], *table["control"]]))
    tokens = [*(f" {text}" for text in texts), *texts]
    kinds = ["word_start"] * len(texts) + ["word_continuation"] * len(texts)
    ids = np.arange(len(tokens), dtype=np.int32)
    return pd.DataFrame({"token_id": ids, "token": tokens, "kind": pd.Categorical(kinds)})


@pytest.fixture(scope="module")
def table(vocabulary):
    """A model that likes religions less, whichever of two questions it is asked."""
    effects = PlantedEffects(identity={"religion": -1.0}, log_frequency=0.1, length=-0.1, word_sd=0.4, noise_sd=0.1)
    return as_table({prompt: planted_scan(vocabulary, effects, seed) for seed, prompt in enumerate(FRAMING, 3)})


def wide(rows):
    return rows.pivot(index=["model", "prompt", "other"], columns="statistic", values="value")


def test_the_planted_axis_comes_back_as_rows_of_one_model(table):
    rows = identity.measure({"one": table}, FRAMING, panel="planted", n_permutations=999)
    assert set(rows["panel"]) == {"planted"} and set(rows["source"]) == {"panel"}
    found = wide(rows).loc[("one", "best")]
    axes = found.drop(index=["all axes", "worst"])
    assert axes.index[axes["identity_gap_q"] < 0.05].tolist() == ["religion"]
    assert (axes["identity_gap_q"] >= axes["identity_gap_p"]).all()
    religion = rows.query("statistic == 'identity_gap' and other == 'religion' and prompt == 'best'").iloc[0]
    assert religion["ci_low"] < -1 / table["best"].std(ddof=0) < religion["ci_high"] < 0
    tail = found.loc["worst"]  # religions are many among the words that are low under both questions
    assert tail["identity_tail_gap"] == pytest.approx(tail["identity_tail_terms"] - tail["identity_tail_controls"])
    assert tail["identity_tail_gap"] > 0


def test_every_choice_is_tried_with_what_there_is(table):
    asked = {"exact": {"one": table}, "published": {"one": table.drop(columns="worst")}}
    curve = identity_checks.specifications(asked, ["best", "worst"])
    assert curve.groupby(["protocol", "wording"]).size().to_dict() == {
        **dict.fromkeys([("exact", "best"), ("exact", "worst"), ("published", "best")], 12)
    }
    headline = curve.loc[curve["headline"], ["protocol", "wording", "form", "spelling", "score"]]
    assert headline.to_numpy().tolist() == [["exact", "best", "all", "after a space", "z"]]
    assert len(identity_checks.specifications(asked, ["worst"])) == 12


def test_a_gap_found_where_none_was_planted_is_counted():
    rows = identity_checks.measure_planted("best", n_permutations=999)
    of = rows[rows["source"] == "planted"].set_index(["statistic", "other"])["value"]
    gaps = of.xs("planted_effect")
    assert gaps[gaps != 0].index.tolist() == ["religion"] and gaps["religion"] < 0
    zero = gaps.index[gaps == 0]
    for end in ("p", "q"):
        assert of["identity_discoveries", f"zero, {end}"] == (of.xs(f"identity_gap_{end}")[zero] < 0.05).sum()
    assert of["identity_discoveries", "zero, p"] == 1, "the chapter speaks of it: is it still so?"


def test_what_is_found_in_many_models_is_summed_up(table):
    turned = table.assign(worst=-table["best"])
    rows = identity.measure({"turns": turned, "too": turned, "not": table}, FRAMING, panel="p", n_permutations=999)
    together = identity.over_models(rows, alike=["not"])
    key = ["prompt", "statistic", "other"]
    of = together.set_index(key)["value"]
    each = rows[(rows["statistic"] == "identity_gap") & (rows["other"] == "all axes")]
    for prompt in FRAMING:
        values = each[each["prompt"] == prompt].set_index("model")["value"]
        assert of[prompt, "identity_gap", "all axes"] == pytest.approx(values.mean())
        assert of[prompt, "mean_turning", "identity_gap"] == pytest.approx(values["turns"])
        assert of[prompt, "mean_not_turning", "identity_gap"] == pytest.approx(values["not"])
        assert of[prompt, "models_above", "identity_gap"] == (values > 0).sum()
    found = identity.tested(rows)
    low = found["discovery"] & (found["value"] < 0) & (found["prompt"] == "best")
    assert of["best", "identity_discoveries", "below"] == low.sum() > 0
    assert of["worst", "identity_discoveries", "religion above"] == 2
    alone = identity.over_models(rows[rows["model"] == "not"])
    assert not alone["statistic"].isin(["identity_gap", "mean_turning"]).any()


def test_false_discoveries_are_controlled_over_models_too(table):
    one, ten = (
        wide(identity.measure({str(i): table[["token", "kind", "best"]] for i in range(count)}, FRAMING))
        for count in (1, 10)
    )
    ten = ten.dropna(subset="identity_gap_p")
    assert len(ten) == 10 * one["identity_gap_p"].count()
    assert ten["identity_gap_q"].to_numpy() == pytest.approx(false_discovery_control(ten["identity_gap_p"]))


def test_a_term_counts_only_beside_its_own_control():
    terms = lexicons.identity_terms()
    row = terms.iloc[0]
    scores = {row["term"]: 1.0, row["control"]: 0.25, terms["term"].iloc[40]: 5.0}
    rows = identity.pairs(scores)
    assert rows["text"].tolist() == [row["term"], row["control"]]
    assert rows["is_term"].tolist() == [True, False] and rows["score"].tolist() == [1.0, 0.25]
    assert identity.measure(warmth={"one": scores}).empty


def test_longer_terms_are_averaged_over_the_prompts_of_a_framing():
    terms = lexicons.identity_terms()
    texts = list(dict.fromkeys([*terms["term"], *terms["control"]]))
    of_axis = pd.Series(texts).isin(terms.query("axis == 'age'")["term"]).to_numpy()
    noise = np.random.default_rng(0).normal(size=(3, len(texts)))
    asked = {"a": "positive", "b": "positive", "c": "negative"}
    loved = {prompt: of_axis * 5.0 * (kind == "positive") for prompt, kind in asked.items()}
    columns = {prompt: shift + z for (prompt, shift), z in zip(loved.items(), noise, strict=True)}
    words = pd.DataFrame({"part": "identity", "text": texts, **columns})
    found = wide(identity.measure(framing=asked, lists={"one": words}, n_permutations=500))["identity_gap"]
    assert set(found.index.get_level_values("prompt")) == {"words, positive", "words, negative"}
    positive = found["one", "words, positive"]
    assert (
        positive.drop("all axes").idxmax() == "age" and positive["age"] > 2 > 5 * found["one", "words, negative", "age"]
    )


def test_capitals_count_because_they_make_another_word():
    table = pd.DataFrame({"token": [" polish", " Polish", " table"], "kind": "word_start", "best": [1.0, 2.0, 3.0]})
    assert list(identity.scan_scores(table, "best")) == ["Polish"]
    assert identity.scan_scores(table, "best", unit="rank")["Polish"] == pytest.approx(0)


def test_the_tail_is_lowest_under_both_questions():
    worst = np.where(np.arange(40) == 7, -500.0, -np.arange(40.0))
    table = pd.DataFrame(
        {"token": [f" w{i}" for i in range(40)], "kind": "word_start", "best": np.arange(40.0), "worst": worst}
    )
    words = identity.tail(table, "best", "worst", share=0.05)
    assert words["token"].iloc[0] == " w7" and words["lowest"].sum() == 2
    assert words["score"].is_monotonic_increasing


def test_groups_are_compared_with_things_that_people_rate_alike():
    rng = np.random.default_rng(0)
    names = ["Black people", "mormons", "Woman", *(f"thing {i}" for i in range(60)), *(f"word{i}" for i in range(60))]
    things = pd.DataFrame({"name": names, "elo_score": np.round(rng.normal(1200, 150, len(names)))})
    sets = identity.matched_things(things)
    assert sets.loc[sets["is_term"], "name"].tolist() == names[:3]
    assert not sets.index.duplicated().any() and (sets.groupby("matched_set").size() == 6).all()
    elo = things["elo_score"]
    for item, members in sets.groupby("matched_set"):
        place = names.index(item)
        controls = members.index.drop(place)
        assert {len(names[i].split()) for i in controls} == {len(item.split())}
    first = sets.index[sets["matched_set"] == names[0]][1:]
    same = [i for i in range(3, len(names)) if " " in names[i]]
    nearest = np.sort((elo.iloc[same] - elo.iloc[0]).abs())[:5]
    assert np.sort((elo[first] - elo.iloc[0]).abs()) == pytest.approx(nearest)


def test_released_scores_of_things_go_through_the_same_door():
    names = ["mormons", "Woman", "Muslims", *(f"word{i}" for i in range(60))]
    elo = np.random.default_rng(1).normal(1200, 150, len(names))
    scores = pd.DataFrame({"agrees": elo, "cold": np.where(np.arange(len(names)) < 3, -1e6, elo)})
    things = pd.DataFrame({"name": names, "elo_score": elo})
    rows = identity.measure(items=things, things={"q": scores}, source="released", protocol="published")
    assert set(rows["source"]) == {"released"} and set(rows["statistic"].str.removeprefix("identity_gap_things")) == {
        *("", "_p", "_q")
    }
    gap = rows.query("statistic == 'identity_gap_things'").set_index("model")
    assert gap.loc["cold", "value"] < -20 < gap.loc["agrees", "ci_low"] < 0 < gap.loc["agrees", "ci_high"]


class Likes:
    """Answers well of everybody but of the groups of one axis."""

    name, weights_sha256 = "likes", "none"

    def __init__(self, axis):
        groups = identity.terms().query("axis == @axis")["term"]
        self.cold = {identity_study.pair_prompt(term) for term in groups}

    def score(self, prompt, responses):
        sign = -1 if prompt in self.cold else 1
        return np.array([sign * identity_study.TRAITS[trait] for trait in responses], dtype=np.float32)


def test_exchanging_the_group_shows_which_axis_is_answered_coldly(tmp_path):
    model = {"name": "likes", "source": "nowhere/likes"}
    asked = {"key": "greatest", "text": "What is the greatest thing?", "framing": "positive"}
    panel = load_panel("demo").model_validate(
        {"name": "own", "title": "Own", "scores": str(tmp_path), "models": [model], "prompts": [asked]}
    )
    assert identity_study.warmth(panel) == {}
    identity_study.score_pairs(Likes("age"), panel)
    warmth = identity_study.warmth(panel)
    assert not {"hours", "days"} & set(warmth["likes"])
    found = identity.measure(warmth=warmth, n_permutations=500).query("statistic == 'identity_gap_warmth'")
    gaps = found.set_index("other")["value"].to_dict()
    assert (
        gaps.pop("all axes") < 0
        and gaps.pop("age") < -1
        and list(gaps.values()) == pytest.approx([0] * len(gaps), abs=1e-6)
    )
