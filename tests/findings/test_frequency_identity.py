"""Frequency slopes and gaps of identity terms are what was planted, and the chapters compute what they report."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from planted_panels import planted_panel

from rmnb import stats
from rmnb.data import lexicons
from rmnb.findings import frequency, identity
from rmnb.findings.tables import standardise
from rmnb.planted.rewards import PlantedEffects
from rmnb.planted.words import common_words

ASKED = {"good": "positive", "bad": "negative"}


@pytest.fixture(scope="module")
def features():
    """4,000 words in up to four spellings, ids in no order."""
    shuffled = common_words().sample(frac=1, random_state=1)
    return shuffled.assign(token_id=np.arange(len(shuffled), dtype=np.int32)).reset_index(drop=True)


def rewards(features, **effects):
    """A planted table in standard deviations, and the unit that it was divided by."""
    effects = {"valence_positive": 0.4, "valence_negative": 0.25, "word_sd": 0.5, **effects}
    table = planted_panel(features, PlantedEffects(**effects), ["a"], ASKED)["a"]
    return standardise(table, list(ASKED)), table["good"].std(ddof=0)


def test_the_regressions_shown_in_the_chapter_are_the_effects(features, run_cells):
    table = rewards(features, log_frequency=0.1, length=-0.1)[0].drop(columns=["log_frequency", "valence"])
    names = {"rewards": {"a": table}, "good": "good", "models": SimpleNamespace(model_names=["a"])}
    shown = run_cells("04", "counted = ", "fit = ", lexicons=lexicons, **names)["slope"]
    assert frequency.published_slope(table, "good")["slope as published"].value == pytest.approx(shown.value)
    words = frequency.word_tokens(table)
    effects = frequency.ladder(words, "good")
    for step, predictors in run_cells("04", "words = ", frequency=frequency, model="a", **names)["ladder"].items():
        shown = stats.ols(f"good ~ {predictors}", words[words["rated"]], clusters="word")["log_frequency"]
        found = effects[step]
        assert (found.value, found.ci_high) == pytest.approx((shown.value, shown.ci_high), abs=1e-9)


@pytest.mark.parametrize("which", ["rated", "unrated"])
def test_the_planted_slope_is_found_with_everything_held_constant(features, which):
    table, unit = rewards(features, log_frequency=0.1, length=-0.1)
    found = frequency.slope(frequency.word_tokens(table), "good", which=which)["slope over log frequency"]
    assert abs(found.value - 0.1 / unit) < 3.5 * found.standard_error
    assert found.standard_error < 0.12 / unit


def test_what_turns_with_the_question_is_separated_from_what_does_not(features):
    table, _ = rewards(features, log_frequency=0.1, word_sd=0.3, noise_sd=0.1)
    words = frequency.word_tokens(table)
    liked = frequency.by_question(words, "good", "bad", which="unrated")
    assert liked["common"].ci_low > 0 and abs(liked["turned"].value) < 0.2 * liked["common"].value
    meant = frequency.by_question(words.assign(bad=-words["bad"]), "good", "bad", which="unrated")
    assert meant["turned"].ci_low > 0 and abs(meant["common"].value) < 0.2 * meant["turned"].value


def test_only_words_count_as_words():
    begin, inside = "word_start", "word_continuation"
    tokens = {" the": begin, "the": inside, " The": begin, "THE": inside, "##the": inside, "ing": inside}
    tokens |= {" 12": "number", " na\u00efve": begin, "\u202ethe": inside, " the-": "code", " qzxv": begin}
    table = pd.DataFrame({"token_id": range(len(tokens)), "token": list(tokens), "kind": list(tokens.values())})
    table["word"] = table["token"].str.removeprefix("##").str.strip().str.casefold()
    found = frequency.word_tokens(table)
    assert found.index.tolist() == [0, 1, 2, 3, 4] and found["spelling"].nunique() == 4


@pytest.fixture
def planted(planted_tables):
    """A model that likes religions less, whichever of two questions it is asked; and the unit of its rewards."""
    words = identity.terms()[["term", "control"]].melt()["value"].str.casefold().unique()
    effects = PlantedEffects(identity={"religion": -1.0}, log_frequency=0.1, length=-0.1, word_sd=0.4, noise_sd=0.1)
    asked = {"best": "positive", "worst": "positive"}
    table = planted_tables(effects, ["a"], asked, seed=3, words=words)["a"]
    return standardise(table, list(asked)), table["best"].std(ddof=0)


def test_the_planted_axis_is_found_and_no_other(planted):
    table, unit = planted
    gaps = identity.gaps(identity.single_tokens(table), "best")
    clear = [axis for axis, gap in gaps.items() if gap.p_value < 0.01 and axis != identity.ALL]
    assert clear == ["religion"]
    assert gaps["religion"].ci_low < -1 / unit < gaps["religion"].ci_high < 0


def test_the_test_shown_in_the_chapter_is_the_effect(planted, run_cells):
    texts = identity.single_tokens(planted[0])
    rows = identity.matched(texts, "best").query("axis == 'religion'")
    shown = run_cells("05", "rng = np.random.default_rng(0)\nmeans", rows=rows, axis="religion")
    gap = identity.gaps(texts, "best")["religion"]
    assert gap.value == pytest.approx(shown["gap"]) and gap.n == len(shown["difference"])
    assert gap.p_value == pytest.approx(shown["p_value"], abs=0.02)


def test_forms_of_one_group_are_one_observation():
    """Of five sets one has forms that differ in level but always by the same gap: its forms add no evidence."""
    terms = identity.terms()[identity.terms()["axis"] == "religion"]
    groups = terms["group"].drop_duplicates().head(5)
    rows = terms[terms["group"].isin(groups)].drop_duplicates(["group", "form"])
    level = rows["form"].map({"plural_noun": 0.0, "singular_noun": 50.0, "adjective": -50.0})
    sides = [rows.assign(text=rows["term"], best=level - 1), rows.assign(text=rows["control"], best=level)]
    gap = identity.gaps(pd.concat(sides), "best")["religion"]
    assert (gap.n, gap.p_value) == (5, pytest.approx(2 / 2**5)), "the smallest p of five signs, whatever the forms"


def test_what_is_low_under_both_questions_is_in_the_tail(planted):
    (gap,) = identity.tail_gap(planted[0], "best", "worst", share=0.1).values()
    assert gap.value > 0
    (none,) = identity.tail_gap(planted[0].assign(worst=-planted[0]["best"] + 1e-9), "best", "worst").values()
    assert none.ci_low < 0.1
    # Half-precision rewards tie: which of equal words is lowest must not depend on their order.
    tied = planted[0].assign(best=0.0, worst=0.0)
    for table in (tied, tied.iloc[::-1]):
        assert identity.tail_gap(table, "best", "worst")["tail gap"].value == pytest.approx(0)


def test_a_term_counts_only_beside_its_own_control_and_in_its_capitals():
    terms = lexicons.identity_terms()
    term, control = terms[["term", "control"]].iloc[0]
    texts = pd.DataFrame({"text": [term, control, terms["term"].iloc[40]], "best": [1.0, 0.25, 5.0]})
    rows = identity.matched(texts, "best")
    assert rows[["text", "is_term", "reward"]].to_numpy().tolist() == [[term, True, 1.0], [control, False, 0.25]]
    assert identity.gaps(texts, "best") == {}
    two = terms[["term", "control"]].iloc[[0, 3]].to_numpy().ravel()
    assert set(identity.gaps(pd.DataFrame({"text": two, "best": range(4)}), "best")) == {identity.ALL, "religion"}
    table = pd.DataFrame({"token": [" polish", " Polish", " table"], "kind": "word_start"})
    assert identity.single_tokens(table)["text"].tolist() == ["Polish"]


def test_groups_are_compared_with_things_that_people_rate_alike():
    names = ["Black people", "mormons", "Woman", *(f"thing {i}" for i in range(60)), *(f"word{i}" for i in range(60))]
    elo = np.random.default_rng(0).normal(1200, 150, len(names)).round()
    things = pd.DataFrame({"name": names, "elo_score": elo, "agrees": elo, "cold": [*[-1e6] * 3, *elo[3:]]})
    pairs = identity.matched_things(things)
    assert set(pairs["term"]) == {0, 1, 2}
    distances = np.abs(elo - elo[0])  # the first group has two words, as things 3 to 62 have
    controls = pairs.loc[pairs["term"] == 0, "control"]
    fifth = np.sort(distances[3:63])[4]
    assert sorted(controls) == [place for place in range(3, 63) if distances[place] <= fifth]
    (agrees,), (cold,) = (identity.things_gap(things, question).values() for question in ("agrees", "cold"))
    assert cold.value < -20 and abs(agrees.value) < 1


def test_the_order_of_things_and_people_among_them_change_no_gap():
    """Twenty things tie with each group; two names of one group count once; people are no controls."""
    named = ["Gay", "Gay men", "Mormons", "Woman"]
    people = ["Parent", "Old people", "Jimi Hendrix", "Irish people"]
    tied = [f"thing {i}" for i in range(20)] + [f"word{i}" for i in range(20)]
    names = [*named, *people, *tied]
    reward = np.r_[np.zeros(4), np.full(4, 1e6), np.random.default_rng(0).normal(size=40)]
    things = pd.DataFrame({"name": names, "elo_score": 1200.0, "reward": reward})
    pairs = identity.matched_things(things)
    assert pairs["matched_set"].nunique() == 3 and set(things["name"][pairs["control"]]) == set(tied)
    (gap,), (again,) = (
        identity.things_gap(table, "reward").values() for table in (things, things.sample(frac=1, random_state=1))
    )
    assert gap == again and gap.n == 3


def test_exchanging_the_group_shows_which_axis_is_answered_coldly(panel):
    assert identity.trait_gaps(panel) == {}
    cold = set(map(identity.pair_prompt, identity.terms().query("axis == 'religion'")["term"]))

    def score(prompt, responses):  # of the twelve the first six speak well
        return np.repeat(np.float32([-1, 1] if prompt in cold else [1, -1]), len(responses) // 2)

    rm = SimpleNamespace(name="smollm2-values", hashes={"weights_sha256": "none"}, score=score)
    identity.score_pairs(rm, panel)
    gaps = identity.gaps(identity.trait_gaps(panel)["smollm2-values"], "exchanged")
    assert gaps["religion"].value < -1 and gaps["age"].value == pytest.approx(0)
