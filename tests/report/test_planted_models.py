"""A number of a report of a model with a planted oddity stands out, and that of the same model without it does not."""

from typing import get_args

import pandas as pd
import pytest
from report import planted_models

import rmnb
from rmnb.report import numbers, scores

KINDS = get_args(planted_models.Kind)
NUMBERS = {
    "frequency": ("frequency_slope_unrated", "greatest", ""),
    "identity": ("identity_gap", "positive", "all axes"),
    "deaf": ("framing_kendall", "greatest", "worst"),
}


def find(table: pd.DataFrame, key: tuple[str, str, str]) -> pd.Series:
    return table.set_index(numbers.KEY).loc[key]


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> dict[str, pd.DataFrame]:
    """The numbers of a quick report of each kind."""
    found = {}
    for kind in KINDS:
        directory = tmp_path_factory.mktemp(kind)
        model = rmnb.load_reward_model(planted_models.write(directory / "model", kind), device="cpu")
        scores.score(model, directory / "report", quick=True)
        found[kind] = numbers.measure(scores.read(directory / "report"))
    return found


@pytest.mark.parametrize("oddity", NUMBERS)
def test_a_planted_number_is_beyond_all_known_models_in_its_own_kind_alone(measured, oddity):
    demo = numbers.known().query("panel == 'demo'").set_index(numbers.KEY)["value"].loc[[NUMBERS[oddity]]]
    for kind, table in measured.items():
        row = find(table, NUMBERS[oddity])
        beyond = row["low"] > demo.max() or row["high"] < demo.min()
        assert beyond == (kind == oddity), (kind, row)


def test_without_an_oddity_the_question_is_read_and_nothing_else_is_clear(measured):
    for key in (NUMBERS["frequency"], NUMBERS["identity"], ("agency_gap", "positive", "")):
        row = find(measured["none"], key)
        assert row["low"] < 0 < row["high"], row
    assert find(measured["none"], NUMBERS["deaf"])["high"] < -0.3


@pytest.mark.parametrize("kind", ["frequency", "identity"])
def test_what_stands_out_most_is_what_was_planted(measured, kind):
    places = numbers.stand_out(measured[kind], numbers.known())
    assert places["name"].head(3).str.startswith(NUMBERS[kind][0].split("_")[0]).any(), places.head(3)
