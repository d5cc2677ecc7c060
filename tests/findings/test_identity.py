"""Gaps between identity terms and controls are what was planted, and nothing is compared that is not matched."""

import numpy as np
import pandas as pd
import pytest

from rmnb.data import lexicons
from rmnb.findings import identity
from rmnb.findings.tables import standardise
from rmnb.panels import load_panel
from rmnb.planted.rewards import PlantedEffects, planted_table, word_features

ASKED = {"best": "positive", "worst": "positive"}


@pytest.fixture(scope="module")
def planted():
    """A model that likes religions less, whichever of two questions it is asked; and the unit of its rewards."""
    table = identity.terms().query("term.str.isalpha() and control.str.isalpha()")
    texts = list(dict.fromkeys([*table["term"], *table["control"]]))
    vocabulary = pd.DataFrame({"token_id": range(len(texts)), "token": [f" {text}" for text in texts]})
    features = word_features(vocabulary.assign(kind="word_start"))
    effects = PlantedEffects(identity={"religion": -1.0}, log_frequency=0.1, length=-0.1, word_sd=0.4, noise_sd=0.1)
    table = planted_table(features, effects, ASKED, seed=3)
    return standardise(table, list(ASKED)), table["best"].std(ddof=0)


def test_the_planted_axis_is_found_and_no_other(planted):
    table, unit = planted
    gaps = identity.gaps(identity.single_tokens(table), "best")
    clear = [axis for axis, gap in gaps.items() if gap.p_value < 0.01 and axis != identity.ALL]
    assert clear == ["religion"]
    assert gaps["religion"].ci_low < -1 / unit < gaps["religion"].ci_high < 0


def test_the_exchange_test_shown_in_the_chapter_is_the_effect(planted):
    texts = identity.single_tokens(planted[0])
    gap = identity.gaps(texts, "best", n_permutations=4000)["age"]
    rows = identity.matched(texts, "best").query("axis == 'age'").sort_values("matched_set")
    rng = np.random.default_rng(1)

    def mean_gap(is_term):
        means = rows.groupby(["matched_set", is_term])["reward"].mean().unstack()
        return (means[True] - means[False]).mean()

    labels = rows["is_term"].to_numpy()
    orders = [np.lexsort([rng.random(len(rows)), rows["matched_set"]]) for _ in range(1000)]
    by_chance = np.abs([mean_gap(labels[order]) for order in orders])
    assert mean_gap(labels) == pytest.approx(gap.value)
    assert np.mean(by_chance >= abs(gap.value)) == pytest.approx(gap.p_value, abs=0.05)


def test_what_is_low_under_both_questions_is_in_the_tail(planted):
    (gap,) = identity.tail_gap(planted[0], "best", "worst", share=0.1).values()
    assert gap.value > 0
    (none,) = identity.tail_gap(planted[0].assign(worst=-planted[0]["best"] + 1e-9), "best", "worst").values()
    assert none.ci_low < 0.1


def test_a_term_counts_only_beside_its_own_control():
    terms = lexicons.identity_terms()
    first = terms.iloc[0]
    texts = pd.DataFrame({"text": [first["term"], first["control"], terms["term"].iloc[40]], "best": [1.0, 0.25, 5.0]})
    rows = identity.matched(texts, "best")
    assert rows["text"].tolist() == [first["term"], first["control"]]
    assert rows["is_term"].tolist() == [True, False] and rows["reward"].tolist() == [1.0, 0.25]
    assert identity.gaps(texts, "best") == {}


def test_capitals_count_because_they_make_another_word():
    table = pd.DataFrame({"token": [" polish", " Polish", " table"], "kind": "word_start"})
    assert identity.single_tokens(table)["text"].tolist() == ["Polish"]


def test_wordings_of_one_question_are_averaged():
    terms = lexicons.identity_terms()
    texts = list(dict.fromkeys([*terms["term"], *terms["control"]]))
    old = pd.Series(texts).isin(terms.query("axis == 'age'")["term"]).to_numpy()
    noise = np.random.default_rng(0).normal(size=(3, len(texts)))
    scores = pd.DataFrame({"part": "identity", "text": texts, "a": 5.0 * old, "b": 5.0 * old, "c": 0.0})
    scores[["a", "b", "c"]] += noise.T
    lists = identity.average_wordings(scores, {"good": ["a", "b"], "bad": ["c"]})
    good, bad = (identity.gaps(lists, question, n_permutations=200) for question in ("good", "bad"))
    assert good["age"].value > 2 > 5 * bad["age"].value


def test_groups_are_compared_with_things_that_people_rate_alike():
    rng = np.random.default_rng(0)
    names = ["Black people", "mormons", "Woman", *(f"thing {i}" for i in range(60)), *(f"word{i}" for i in range(60))]
    elo = np.round(rng.normal(1200, 150, len(names)))
    things = pd.DataFrame({"name": names, "elo_score": elo})
    sets = identity.matched_things(things)
    assert sets.loc[sets["is_term"], "name"].tolist() == names[:3]
    assert not sets.index.duplicated().any() and (sets.groupby("matched_set").size() == 6).all()
    first = sets.index[sets["matched_set"] == names[0]][1:]
    same = [place for place in range(3, len(names)) if " " in names[place]]
    assert np.sort(np.abs(elo[first] - elo[0])) == pytest.approx(np.sort(np.abs(elo[same] - elo[0]))[:5])
    things = things.assign(agrees=elo, cold=np.where(np.arange(len(names)) < 3, -1e6, elo))
    (agrees,), (cold,) = (identity.things_gap(things, question).values() for question in ("agrees", "cold"))
    assert cold.value < -20 < agrees.ci_low < 0 < agrees.ci_high


class Likes:
    """Answers well of everybody but of the groups of one axis."""

    name, weights_sha256 = "likes", "none"

    def __init__(self, axis):
        groups = identity.terms().query("axis == @axis")["term"]
        self.cold = {identity.pair_prompt(term) for term in groups}

    def score(self, prompt, responses):
        sign = -1 if prompt in self.cold else 1
        return np.array([sign * identity.TRAITS[trait] for trait in responses], dtype=np.float32)


def test_exchanging_the_group_shows_which_axis_is_answered_coldly(tmp_path):
    model = {"name": "likes", "source": "nowhere/likes"}
    asked = {"key": "greatest", "text": "What is the greatest thing?", "framing": "positive"}
    panel = load_panel("demo").model_validate(
        {"name": "own", "title": "Own", "scores": str(tmp_path), "models": [model], "prompts": [asked]}
    )
    assert identity.warmth(panel) == {}
    identity.score_pairs(Likes("religion"), panel)
    gaps = identity.gaps(identity.warmth(panel)["likes"], "exchanged")
    assert gaps["religion"].value < -1 and gaps["age"].value == pytest.approx(0)
