"""The sentences on identity say what planted panels hold, either way, and nothing that rows do not allow."""

import pandas as pd
import pytest

from rmnb.findings import identity, quoting
from rmnb.findings.in_short import identity as in_short
from rmnb.findings.results import Results


def rows(good, bad=None, alike=(), things=None, source="panel"):
    """A results table of models with those gaps under best (and worst), each known to 0.1."""
    results = Results("identity", "p")
    for prompt, gaps in (("best", good), ("worst", bad or [])):
        for place, gap in enumerate(gaps):
            known = {"ci_low": gap - 0.1, "ci_high": gap + 0.1, "model": f"m{place}", "protocol": "exact", "n": 60}
            results.add("panel", "identity_gap", gap, other="all axes", prompt=prompt, **known)
    for place, gap in enumerate(bad or []):
        known = {"ci_low": gap - 0.1, "ci_high": gap + 0.1, "model": f"m{place}", "protocol": "exact", "n": 60}
        results.add("panel", "identity_tail_gap", 0.1 * gap, other="worst", prompt="best", **known)
    for place, gap in enumerate(things or []):
        about = {"model": f"m{place}", "prompt": "elo_greatest", "protocol": "exact"}
        results.add(source, "identity_gap_things", gap, ci_low=gap - 3, ci_high=gap + 3, n=120, **about)
        results.add(source, "identity_gap_things_p", 0.01, n=20, **about)
    table = results.frame()
    return pd.concat([table, identity.over_models(table, alike)], ignore_index=True)


def said(table):
    return " ".join(map(quoting.plain, in_short.sentences(table)))


LOW, HIGH = [-0.5, -0.6, -0.4], [0.5, 0.6, 0.4]


@pytest.mark.parametrize(
    ("good", "bad", "verdict"),
    [
        (LOW, HIGH, "turns with the question, as a judgement does and avoidance would not"),
        (LOW, LOW, "low under either question, as avoidance would have it"),
        (HIGH, HIGH, "terms stand above controls under either question, the other way round"),
        (HIGH, LOW, "the other way round: high when something good is asked for"),
        (LOW, [-1.0, 0.0, 1.0], "whether it turns with the question cannot be told"),
    ],
)
def test_each_way_a_gap_can_turn_has_its_sentence(good, bad, verdict):
    assert verdict in said(rows(good, bad))


def test_models_that_do_not_read_the_question_are_reported_apart():
    table = rows([*LOW, -0.3, -0.3], [*HIGH, -0.3, -0.3], alike=["m3", "m4"])
    text = said(table)
    assert "In 3 models that read the question: −0.50 (" in text and "turns with the question" in text
    assert "In the 2 that do not: −0.30 and −0.30." in text


def test_one_model_and_one_question_are_not_spoken_of_as_many():
    alone = said(rows([-0.5], [0.5]))
    assert "in m0, one model" in alone and "over" not in alone.split("control")[1]
    assert "cannot be told without a question that asks for something bad" in said(rows([-0.5]))
    assert "too few terms" in said(Results("identity", "p").frame())


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ([-10, -12, -11], "clearly lower in 3 and clearly higher in 0 of 3 models: as the paper suggests"),
        ([10, 12, 11], "clearly lower in 0 and clearly higher in 3 of 3 models: the other way round"),
        ([-10, 12, 1], "which side cannot be told"),
        ([-10], "in one model: as the paper suggests"),
    ],
)
@pytest.mark.parametrize("source", ["released", "panel"])
def test_things_have_a_sentence_either_way(gaps, verdict, source):
    assert verdict in said(rows(LOW, HIGH, things=gaps, source=source))


def test_a_planted_zero_that_comes_out_is_said():
    from rmnb.findings.identity_checks import measure_planted

    text = quoting.plain(in_short.planted(measure_planted("best", n_permutations=999)))
    assert "7 axes with no planted gap 1 came out with p < 0.05, 0 with q < 0.05 (the largest, ethnicity: 0.64" in text
