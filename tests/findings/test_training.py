"""Chapter 9: trajectories are read back with their words, gaps find what was planted, its cells compute the same."""

from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.stats import mannwhitneyu

from rmnb.data import lexicons, text_lists
from rmnb.data.sources import UnreachableError
from rmnb.data.text_lists import TextList
from rmnb.errors import InputError
from rmnb.findings import rows, tables, training
from rmnb.panels import load_panel
from rmnb.scoring import list_scores
from rmnb.training.runs import trajectory_path

CHAPTER = Path(__file__).parents[2] / "notebooks" / "09_training.ipynb"
STEPS = ["0", "1", "2", "4"]
NOUNS = lexicons.agency_communion()


def nouns_of(table):
    return NOUNS.merge(table[table["part"] == "agency_communion"], on="word")


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
    """A run whose liking of valence grows with the step, while agency falls behind communion."""
    texts = TextList("training", ("afinn", "agency_communion"), ("greatest",))
    valence = tables.afinn().to_dict()
    kind = NOUNS.set_index("word")["category"].to_dict()

    def scorer(step):
        def score(words):
            noise = np.random.default_rng(step).normal(0, 0.3, len(words))
            liked = [step * 0.2 * valence.get(word, 0) - step * (kind.get(word) == "agency") for word in words]
            return (noise + liked).astype(np.float32)

        return score

    columns = {step: scorer(int(step)) for step in STEPS}
    list_scores.score_columns(trajectory_path(panel, "run"), texts, columns, {"model": "run"})
    return tables.load_trajectories(panel)["run"]


def test_gaps_follow_what_was_planted(planted):
    assert planted.columns.tolist() == ["part", "word", *STEPS]
    nouns = nouns_of(planted)
    gaps = rows.each({"run": nouns}, training.gap, STEPS, n_draws=200).set_index("question")
    assert gaps.loc["0", "low"] < 0 < gaps.loc["0", "high"]
    assert gaps.loc["4", "low"] > 30, "percent of the ranks: agency stands lower"
    with pytest.raises(InputError, match="fewer than two"):
        training.gap(nouns[nouns["category"] == "agency"], "4")


def test_two_runs_are_compared_on_the_same_nouns(planted):
    one = nouns_of(planted)
    other = one.assign(**{"4": one["4"] + 8 * (one["category"] == "agency")})
    pair = rows.each_pair({"one": one, "other": other}, training.gap_between, [("one", "other")], ["4"], n_draws=200)
    assert pair["low"].item() > 50
    back = training.gap_between(other, one, "4", n_draws=200)["base_gap"]
    assert back.value == pytest.approx(-pair["value"].item())
    with pytest.raises(InputError, match="other nouns"):
        training.gap_between(one, other.iloc[:-1], "4")


def test_the_chapters_cells_compute_what_the_effect_does(planted):
    names = {"np": np, "pd": pd, "one": "run", "n_boot": 500, "seed": 0, "ratings": tables.afinn()}
    names |= {"runs": {"run": planted}, "steps": {"run": STEPS}, "nouns": {"run": nouns_of(planted)}}
    for cell in nbformat.read(CHAPTER, 4).cells:
        if {"loss", "learned", "one-gap"} & {*cell.metadata.get("tags", [])}:
            exec(compile(cell.source, CHAPTER.name, "exec"), names)
    effect = training.gap(names["nouns"]["run"], "4")["agency_less_communion"]
    assert names["value"] == pytest.approx(effect.value)
    assert (names["low"], names["high"]) == pytest.approx((effect.ci_low, effect.ci_high), abs=2.5)
    right = mannwhitneyu(names["good"]["4"], names["bad"]["4"]).statistic / len(names["good"]) / len(names["bad"])
    assert names["learned"].loc["4", "pairs in order"] == pytest.approx(right)
    slope = (np.logaddexp(0, -1e-6) - np.logaddexp(0, 1e-6)) / 2e-6
    assert names["pull"][2] == pytest.approx(-slope) and names["loss"][2] == pytest.approx(np.log(2))


def test_a_panel_without_runs_says_so(panel):
    with pytest.raises(InputError, match="no training run of panel p"):
        tables.load_trajectories(panel)


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
