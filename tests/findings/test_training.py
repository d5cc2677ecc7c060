"""Trajectories: written column by column, read back with their texts, and their measures find what was planted."""

import numpy as np
import pandas as pd
import pytest
import yaml

from rmnb.data import lexicons, text_lists
from rmnb.data.sources import UnreachableError
from rmnb.data.text_lists import TextList
from rmnb.errors import InputError
from rmnb.findings import training, training_records
from rmnb.panels import load_panel
from rmnb.scoring import list_scores
from rmnb.training.runs import trajectory_path

STEPS = [0, 1, 2, 4]


@pytest.fixture
def panel(tmp_path):
    path = tmp_path / "panel.yml"
    spec = {"name": "run", "base": "smollm2-135m-instruct", "adapter": "nowhere", "recipe": "values", "family": "A"}
    prompt = {"key": "greatest", "text": "What is it?", "framing": "positive"}
    path.write_text(
        yaml.safe_dump(
            {
                "name": "p",
                "title": "P",
                "scores": str(tmp_path / "scores"),
                "models": [{"name": "m", "source": "a/b"}],
                "watched": [spec],
                "prompts": [prompt],
            }
        )
    )
    return load_panel(path)


@pytest.fixture
def planted(panel):
    """A run whose liking of valence grows with the step, of frequency stays, and of agency falls behind communion."""
    texts = TextList("training", ("afinn", "agency_communion"), ("greatest",))
    valence = lexicons.afinn().set_index("word")["valence"].to_dict()
    kind = lexicons.agency_communion().set_index("word")["category"].to_dict()

    def scorer(step):
        def score(words):
            noise = np.random.default_rng(step).normal(0, 0.3, len(words))
            liked = [step * 0.2 * valence.get(word, 0) - step * (kind.get(word) == "agency") for word in words]
            return (noise + liked + 0.2 * lexicons.zipf(words)).astype(np.float32)

        return score

    columns = {str(step): scorer(step) for step in STEPS}
    list_scores.score_columns(trajectory_path(panel, "run"), texts, columns, {"model": "run"})
    return training.load_trajectories(panel)["run"]


def test_measures_follow_what_was_planted(planted):
    assert training.steps(planted) == STEPS
    followed = training.follow({"run": planted}, lexicons.agency_communion(), n_draws=200)
    at = followed.set_index(["statistic", "step"])
    sd = {step: planted.loc[planted["part"] == "afinn", step].std(ddof=0) for step in STEPS}
    for step in STEPS:
        valence, frequency = (at.loc[f"slope_{name}_standardised", step] for name in ("valence", "log_frequency"))
        assert valence["ci_low"] < valence["value"] < valence["ci_high"]
        assert frequency["ci_low"] - 0.02 < 0.2 / np.log(10) / sd[step] < frequency["ci_high"] + 0.02
        if step:
            assert valence["value"] == pytest.approx(step * 0.2 / sd[step], rel=0.1)
    first, last = at.loc["agency_less_communion", 0], at.loc["agency_less_communion", 4]
    assert first["ci_low"] < 0 < first["ci_high"] or abs(first["value"]) < 20
    assert last["ci_low"] > 30, "percent of the ranks: agency stands lower"
    assert at.loc["median_rank_agency", 4]["value"] > 85 and at.loc["median_rank_communion", 4]["value"] < 36
    assert at.loc["spearman_last", 0]["value"] < at.loc["spearman_last", 2]["value"] < 1
    rows = training.measure(followed, "p").set_index("statistic")
    assert rows.loc["slope_valence_standardised", "value"] == at.loc["slope_valence_standardised", 4]["value"]
    assert set(rows.index) == set(training._AT_THE_END.values()) and set(rows["model"]) == {"run"}


def test_two_bases_of_one_recipe_are_compared_on_the_same_words(planted):
    other = planted.copy()
    other.attrs = planted.attrs | {"family": "B"}
    nouns = lexicons.agency_communion()
    kind = nouns.set_index("word")["category"]
    for step in STEPS:  # the second base turns the first one's liking of communion round
        other[step] = planted[step] + 2 * step * (planted["text"].map(kind) == "agency")
    gap = training.measure_bases({"one": planted, "two": other}, nouns, "p", n_draws=200).iloc[0]
    assert (gap["model"], gap["other"], gap["n"]) == ("A less B", "values", len(nouns)) and gap["ci_low"] > 50
    back = training.measure_bases({"two": other, "one": planted}, nouns, "p", n_draws=200).iloc[0]
    assert back["value"] == pytest.approx(-gap["value"])
    assert training.measure_bases({"one": planted}, nouns).empty, "one base"


def test_how_a_head_begins_is_told():
    """Mixed recipes fit a probe before their first step; their first ranking is no accident of random numbers."""
    heads = training_records.heads(load_panel("demo"))
    assert {heads[f"{base}-{recipe}"] for base in ("smollm2", "gemma3") for recipe in ("values", "harmless")} == {
        "random"
    }
    assert {heads["gemma3-mixed"], heads["smollm2-mixed-seed2"], heads["smollm2-mixed-half"]} == {"probe"}
    course = pd.DataFrame(
        {"model": [*"mmn"], "step": [0, 4, 0], "statistic": "spearman_last", "value": [0.7, 1.0, 0.5]}
    )
    rows = training.measure_beginnings(course, {"m": "probe", "n": "probe"})
    assert set(rows["other"]) == {"probe"} and set(rows["statistic"]) == {"spearman_first"}
    assert rows.set_index("model")["value"].to_dict() == pytest.approx({"m": 0.7, "n": 0.5, "": 0.6})
    assert len(training.measure_beginnings(course[:2], {"m": "random"})) == 1, "one run has no mean"


def test_records_become_rows():
    made = training_records.accuracies(load_panel("demo"))
    rows = training_records.measure(made, "demo").set_index(["statistic", "model", "other"])
    right = rows.loc[("held_out_accuracy", "gemma3-values", "all")]
    assert right["ci_low"] < right["value"] < right["ci_high"]
    assert rows.loc[("framing_spearman", "gemma3-harmless", "worst"), "value"] > 0.9


def test_a_panel_without_runs_has_no_rows(panel):
    followed = training.follow(training.load_trajectories(panel), lexicons.agency_communion())
    assert training.measure(followed, "p").empty and training_records.accuracies(panel).empty


def test_scores_of_other_texts_are_refused_and_unreachable_ones_go_by_their_place(panel, planted, monkeypatch):
    path = trajectory_path(panel, "run")
    with monkeypatch.context() as context:
        context.setitem(text_lists._PARTS, "agency_communion", lambda: ["other", "words"])
        with pytest.raises(InputError, match="agency_communion have changed"):
            list_scores.read_list(path)

    def unreachable():
        raise UnreachableError("not here")

    monkeypatch.setitem(text_lists._PARTS, "agency_communion", unreachable)
    frame, _ = list_scores.read_list(path)
    texts = frame[frame["part"] == "agency_communion"]["text"]
    assert texts.tolist() == [f"agency_communion {place}" for place in range(120)]


def test_a_list_that_was_cut_off_goes_on_and_ends_the_same(tmp_path):
    texts = TextList("training", ("agency_communion",), ("greatest",))
    calls = []

    def score(words):
        calls.append(len(words))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return np.arange(len(words), dtype=np.float32)

    columns = {"1": score, "2": score}
    with pytest.raises(KeyboardInterrupt):
        list_scores.score_columns(tmp_path / "cut.parquet", texts, columns, {})
    list_scores.score_columns(tmp_path / "cut.parquet", texts, columns, {})
    assert len(calls) == 3 and not list(tmp_path.glob("*.partial"))
    frame, _ = list_scores.read_list(tmp_path / "cut.parquet")
    expected = pd.Series(np.arange(120, dtype=np.float32))
    assert np.array_equal(frame["1"], expected) and np.array_equal(frame["2"], expected)


def test_the_released_runs_show_that_one_file_is_another(mirror):
    assert training.same_file("uf_13", "uf_27") and not training.same_file("uf_27", "uf_54")
    courses = training.released_courses()
    rows = training.measure(courses, "iclr2026", source="released", protocol="published")
    last = rows.query("model == 'gemma-2-2b-it' and other == 'unified-27k'").set_index("statistic")["value"]
    assert last["final_median_rank_agency"] == 742.5 and last["final_median_rank_communion"] == 696
    assert not courses.duplicated(["model", "other", "step", "statistic"]).any()
    rows = training.measure_released(courses, "iclr2026").set_index(["statistic", "other"])["value"]
    ends = rows["base_gap_end"]
    assert ends["unified-27k"] == pytest.approx(100 * ((742.5 - 696) - (657.5 - 805)) / 1365)
    assert ends.mean() == pytest.approx(rows["base_difference_paired", ""]) and len(ends) == 4
