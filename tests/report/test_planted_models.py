"""A report of a model with a planted oddity opens with it, and a report of the same model without it does not."""

from typing import get_args

import pandas as pd
import pytest
from report import planted_models

import rmnb
from rmnb.findings.quoting import find, plain, side
from rmnb.report import in_short, numbers, reference, scores

KINDS = get_args(planted_models.Kind)
ODDITIES = {
    "frequency": "It prefers frequent words",
    "identity": "It rates words for groups of people below matched controls",
    "deaf": "It does not read the question",
}
NUMBERS = {
    "frequency": ("slope_log_frequency_others", "", "greatest"),
    "identity": ("identity_gap", "all axes", "words, positive"),
    "deaf": ("framing_kendall", "worst", "greatest"),
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> dict[str, pd.DataFrame]:
    """The rows of a quick report of each kind."""
    found = {}
    for kind in KINDS:
        directory = tmp_path_factory.mktemp(kind)
        model = rmnb.load_reward_model(planted_models.write(directory / "model", kind), device="cpu")
        scores.score(model, directory / "report", quick=True)
        measured = numbers.measure(scores.read(directory / "report"), n_boot=20, n_permutations=200)
        found[kind] = pd.concat([measured, reference.places(measured)], ignore_index=True)
    return found


@pytest.mark.parametrize("oddity", NUMBERS)
def test_a_planted_number_is_beyond_all_reference_models_in_its_own_kind_alone(rows, oddity):
    statistic, other, prompt = NUMBERS[oddity]
    demo = reference.rows().query("panel == 'demo'")
    known = reference.like(reference.Number("", statistic, other, prompt), demo)["value"]
    for kind, of_kind in rows.items():
        row = find(of_kind, statistic, other=other, prompt=prompt)
        assert row is not None
        beyond = row["ci_low"] > known.max() or row["ci_high"] < known.min()
        assert beyond == (kind == oddity), (kind, row)


def test_without_an_oddity_the_question_is_read_and_nothing_else_is_clear(rows):
    for statistic, other, prompt in (NUMBERS["frequency"], NUMBERS["identity"], ("agency_gap", "", "positive")):
        row = find(rows["none"], statistic, other=other, prompt=prompt)
        assert row is not None and side(row) == 0, row
    turned = find(rows["none"], "framing_kendall", other="worst", prompt="greatest")
    assert turned is not None and turned["ci_high"] < -0.3


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_sentences_name_the_planted_oddity_and_no_other(rows, kind):
    said = [plain(sentence) for sentence in in_short.sentences(rows[kind])]
    for oddity, words in ODDITIES.items():
        places = [place for place, sentence in enumerate(said, 1) if sentence.startswith(words)]
        assert (min(places, default=9) <= 3) if oddity == kind else not places, said
