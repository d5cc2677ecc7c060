"""The sentences on agreement with people say what planted models do, and name those that are not clear of zero."""

import re

import numpy as np
import pandas as pd
import pytest

from rmnb.findings import people, people_choices, people_summary, quoting, specifications, votes
from rmnb.findings.in_short import people as in_short
from rmnb.findings.results import Results


def rows(truth, sign=1, seen=()):
    """The table of a panel of planted models, two questions of which the second is asked for less."""
    items, scores = votes.planted_things(truth, np.arange(800) + 50, seed=4)
    tables = {people.QUESTION: sign * scores, "elo_prefer": sign * scores}
    half = np.arange(len(items)) % 2 == 0
    measured = people.measure(items, tables, {model: half for model in seen}, panel="p")
    results = Results("elo", "p")
    results.extend(measured)
    results.extend(people_summary.over_models(measured))
    curve = people_choices.specifications(items, tables[people.QUESTION])
    results.extend(specifications.survival_rows(curve, "elo", "p", people.QUESTION))
    about = {"panel": "p", "source": "panel", "prompt": people.QUESTION, "protocol": "exact"}
    results.extend(people.measure_ends(people.rank_gaps(items, tables[people.QUESTION]), **about))
    return results.frame()


def said(table):
    return " ".join(map(quoting.plain, in_short.sentences(table)))


def test_a_model_that_is_not_clear_of_zero_is_named():
    text = said(rows({"knows": 0.6, "knows-too": 0.5, "knows-not": 0.0}))
    assert "2 of 3 lie clearly above zero, not knows-not at " in text and "cannot be told from so few" in text
    assert "lie clearly above zero." in said(rows({"knows": 0.6, "knows-too": 0.5}))


def test_models_that_learned_from_votes_are_told_from_the_others():
    text = said(rows({"knows": 0.8, "knows-too": 0.7, "one": 0.2, "two": 0.3}, seen=["knows", "knows-too"]))
    told = re.search(
        r"learned from votes on other things reach (0.\d+) to (0.\d+), those that did not (0.\d+) to", text
    )
    assert told and [float(number) for number in told.groups()] == pytest.approx([0.7, 0.8, 0.2], abs=0.06)
    assert "learned" not in said(rows({"one": 0.2, "two": 0.3}))


def test_agreement_the_other_way_round_is_said():
    text = said(rows({"knows": 0.6, "knows-too": 0.5, "more": 0.7}, sign=-1))
    assert "0 of 3 lie clearly above zero; 3 clearly the other way round" in text and "below zero in 6 of 6" in text
    assert "one model, knows, agrees at −0.6" in (alone := said(rows({"knows": 0.6}, sign=-1)))
    assert "the other way round" in alone and "over models" not in alone


def test_nothing_is_said_of_a_panel_without_scores():
    text = said(Results("elo", "p").frame())
    assert "No model of this panel has scored the things" in text and "specifications" not in text


def test_the_published_range_and_the_released_scores_open_the_box():
    results = Results("elo", "p")
    about = {"prompt": people.QUESTION, "protocol": "published", "panel": "facct2025"}
    for place, value in enumerate((0.29, 0.4, 0.54)):
        results.add("published", "human_spearman", value, model=f"m{place}", **about)
        known = {"ci_low": value - 0.02, "ci_high": value + 0.02, "n": 7530, "model": f"m{place}"}
        results.add("released", "human_spearman", value, **known, **about)
        results.add("released", "human_spearman_words", 0.75, **{**known, "ci_low": 0.7, "ci_high": 0.8}, **about)
        results.add(
            "released", "human_spearman_corrected", 1.1 * value, other="K 32", **{**about, "model": f"m{place}"}
        )
    results.add("released", "elo_valence_spearman", 0.74, ci_low=0.65, ci_high=0.84, n=100)
    table = pd.concat([results.frame(), people_summary.over_models(results.frame())], ignore_index=True)
    text = said(table)
    assert "from 0.29 to 0.54 in three models" in text and "0.29 to 0.54, median 0.40" in text
    assert "on the 100 that are plain words of praise and blame the median is 0.75, over all 7,530 it is 0.40" in text
    assert "explains at most 7% of the distance" in text
    near = quoting.plain(in_short.beside_valence(table))
    assert "0.74 (0.65 to 0.84)" in near and "3 of the paper's 3 models" in near


@pytest.mark.parametrize("source", ["panel"])
def test_what_had_to_stand_at_the_ends_is_told(source):
    text = quoting.plain(in_short.ends(rows({"a": 0.0, "b": 0.0, "c": 0.0}), source))
    assert "correlate at −0.8" in text and "Of 20 things at the ends" in text
