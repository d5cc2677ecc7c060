"""What a panel trains: what is finished is not done again, what is missing is named."""

import json

import pytest

from rmnb.errors import InputError
from rmnb.panels import load_panel
from rmnb.training import runs as training_runs

ACCURACY = {"value": 0.6, "low": 0.55, "high": 0.65, "pairs": 300}
MEASURES = ("held_out", "framing", "unseen_items", "rm_bench")
CHANCE = {"value": 0.5, "low": 0.45, "high": 0.55, "pairs": 300}


@pytest.fixture
def panel(tmp_path, monkeypatch):
    """The demo panel with nothing trained yet."""
    monkeypatch.setenv("RMNB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path / "cache"))
    return load_panel("demo")


def _measured(panel, tmp_path, name, **evaluation):
    directory = tmp_path / "data" / str(training_runs.runs(panel)[name].adapter)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "provenance.json").write_text(json.dumps({"pairs": 7, "steps": 3, "evaluation": evaluation}))


def test_a_run_is_unfinished_until_it_is_measured_and_followed(panel, tmp_path):
    assert training_runs.unfinished(panel) == list(training_runs.runs(panel))
    _measured(panel, tmp_path, "smollm2-values", **{key: {"all": ACCURACY} for key in MEASURES[:-1]})
    assert "smollm2-values" in training_runs.unfinished(panel)  # RM-Bench is missing
    _measured(panel, tmp_path, "smollm2-values", **{key: {"all": ACCURACY} for key in MEASURES})
    assert "smollm2-values" not in training_runs.unfinished(panel)  # trained elsewhere: no snapshots to follow
    snapshot = training_runs.work_directory(panel, "smollm2-values") / "snapshots" / "step-0"
    snapshot.mkdir(parents=True)
    assert "smollm2-values" in training_runs.unfinished(panel)
    trajectory = training_runs.trajectory_path(panel, "smollm2-values")
    trajectory.parent.mkdir(parents=True)
    trajectory.touch()
    assert "smollm2-values" not in training_runs.unfinished(panel)


def test_what_was_measured_is_not_measured_again(panel, tmp_path):
    everything = {key: {"all": ACCURACY} for key in MEASURES}
    _measured(panel, tmp_path, "gemma3-values", **everything)
    assert training_runs.train_model(panel, "gemma3-values") == everything
    with pytest.raises(InputError, match="no model 'nobody' with a recipe"):
        training_runs.train_model(panel, "nobody")


def test_the_overview_ranks_by_rm_bench_and_names_what_is_no_better_than_chance(panel, tmp_path):
    _measured(
        panel, tmp_path, "smollm2-values", held_out={"all": ACCURACY, "things": ACCURACY}, rm_bench={"all": CHANCE}
    )
    _measured(
        panel, tmp_path, "gemma3-values", held_out={"all": ACCURACY, "hh-rlhf": CHANCE}, rm_bench={"all": ACCURACY}
    )
    overview = training_runs.overview(panel)
    table = overview[overview["model"].isin(["smollm2-values", "gemma3-values"])]
    assert len(overview) == len(panel.models) and set(overview["rank"].drop(table.index)) <= {""}
    assert table["rank"].tolist() == ["2", "1"] and table["pairs"].tolist() == ["7", "7"]
    assert table["held out"].tolist() == ["0.600 [0.550, 0.650]"] * 2
    assert "unseen items" not in table
    [note] = overview.attrs["notes"]
    assert "gemma3-values" in note and "hh-rlhf" in note
