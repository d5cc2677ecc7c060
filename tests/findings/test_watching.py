"""The log of a training becomes rows and sentences that say what it holds."""

import pytest

from rmnb.findings import watching
from rmnb.findings.in_short.watching import sentences
from rmnb.findings.quoting import plain

LOG = [
    {"step": 0, "values/valence": 0.1, "values/framing": 0.9, "values/agency_less_communion": 0.5, "values/seconds": 2},
    {"step": 10, "loss": 0.7, "accuracy": 0.5},
    {"step": 20, "loss": 0.3, "values/valence": 0.75, "values/framing": -0.8, "values/agency_less_communion": 0.25},
    {"step": 20, "train_runtime": 100.0},
]
ABOUT = {"model": "one", "steps": 20, "planned": 20, "measurements": 2, "share_of_time": 0.04}


def test_a_trainers_log_becomes_rows_and_sentences():
    log = watching.course(LOG)
    assert list(log["step"]) == [0, 10, 20] and log["loss"].iloc[-1] == 0.3
    rows = watching.measure(log, ABOUT, "demo")
    told = " ".join(map(plain, sentences(rows)))
    assert told.startswith("one, 20 of 20 steps: 2 measurements took 4.0%") and "turn its ranking" in told
    assert "Valence went from 0.10 (step 0) to 0.75 (step 20)" in told
    drawn = watching.points(log, "valence")
    assert list(drawn["step"]) == [0, 20] and list(drawn["value"]) == [0.1, 0.75]


def test_what_ships_is_a_log_with_its_provenance():
    log, about = watching.shipped("smollm2-values")
    assert log["step"].max() == about["steps"] and log["valence"].notna().sum() == about["measurements"]
    assert 0 < about["share_of_time"] < 1
    assert log["seconds"].sum() == pytest.approx(about["seconds_measuring"], abs=1)
