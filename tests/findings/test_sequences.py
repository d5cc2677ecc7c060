"""The study behind the chapter on sequences: what it finds is the model's, is read back, and is in the chapter."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from checkpoints import write_decoder

import rmnb
from rmnb.book.notebook import run_notebook
from rmnb.errors import InputError
from rmnb.findings import results, search_files, sequences
from rmnb.findings import search_study as study
from rmnb.panels import load_panel
from rmnb.report.audit import audit_panel
from rmnb.scoring import store

MODELS = {"tiny-a": "llama", "tiny-b": "gemma3"}


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    """Two tiny models, scanned and searched as the study does, with less effort."""
    directory = tmp_path_factory.mktemp("study")
    description = {
        "name": "tiny",
        "title": "Tiny panel",
        "scores": str(directory / "scores"),
        "models": [
            {"name": name, "source": str(write_decoder(directory / name, kind)), "family": kind}
            for name, kind in MODELS.items()
        ],
        "prompts": [{"key": "greatest", "text": "What is the greatest thing?", "framing": "positive"}],
    }
    path = directory / "tiny.yml"
    path.write_text(yaml.safe_dump(description))
    loaded = load_panel(path)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"LENGTHS": (2, 4), "METHODS_LENGTH": 4, "BUDGET": 96, "SINGLE_SEEDS": 2}.items():
            patch.setattr(study, name, value)
        patch.setattr(study, "SINGLE_WIDTHS", (4,))
        patch.setattr(study, "NATURAL_PAIRS", 5)
        for name in MODELS:
            rm = rmnb.load_reward_model(name, panel=loaded)
            scan = rmnb.scan_vocabulary(rm, loaded.prompt("greatest"))
            store.write_scores(loaded, scan, scan.attrs["provenance"])
        study.main(str(path))
    return path


def test_what_was_found_is_what_the_model_scores(panel):
    found = sequences.best_found(search_files.every_search(load_panel(panel)))
    wanted = [(name, direction, length) for name in MODELS for direction in ("max", "min") for length in (1, 2, 4)]
    assert list(zip(found["model"], found["direction"], found["length"], strict=True)) == wanted
    for name in MODELS:
        mine = found[found["model"] == name]
        rm = rmnb.load_reward_model(name, panel=load_panel(panel))
        again = rm.score("What is the greatest thing?", mine["text"].tolist())
        np.testing.assert_allclose(again, mine["reward"], atol=1e-4)


def test_the_audit_scores_what_was_found_again(panel):
    audited = audit_panel(load_panel(panel), sample=4)
    searched = audited[audited["prompt"] == "sequences (searched)"]
    assert searched["model"].tolist() == list(MODELS) and (searched["verdict"] == "ok").all()


def test_ranks_of_single_tokens_are_those_of_the_scan(panel):
    loaded = load_panel(panel)
    found = search_files.load_searches(loaded).single
    assert set(found["model"]) == set(MODELS) and len(found) == 8
    for (model, direction), rows in found.groupby(["model", "direction"]):
        scores = store.read_scores(loaded, str(model), "greatest").set_index("token_id")["score"]
        order = scores.rank(ascending=direction == "min", method="min")
        np.testing.assert_array_equal(rows["rank"], order.loc[rows["token_id"]])


def test_models_of_one_panel_judge_the_same_texts(panel):
    loaded = load_panel(panel)
    judged = search_files.load_searches(loaded).transfer
    own = judged[judged["origin"] == judged["judge"]].sort_values(["origin", "direction", "length"])
    found = sequences.best_found(search_files.every_search(loaded))
    np.testing.assert_allclose(own["z"], found["z"], atol=1e-3)
    assert len(judged) == len(MODELS) * len(found)


def test_finds_that_nobody_has_judged_are_named(panel, monkeypatch):
    loaded = load_panel(panel)
    found = search_files.every_search(loaded)
    monkeypatch.setattr(search_files, "every_search", lambda _: found.iloc[:1])
    with pytest.raises(InputError, match="has not scored all that was found: run"):
        search_files.load_searches(loaded)


def test_one_model_alone_is_measured_without_what_needs_two(panel):
    found = search_files.load_searches(load_panel(panel))
    whole = sequences.measure(found, "tiny", n_boot=20)
    mine = found.searches[found.searches["model"] == "tiny-a"]
    rows = sequences.measure(dataclasses.replace(found, searches=mine, transfer=pd.DataFrame()), "tiny", n_boot=20)
    assert set(whole["statistic"]) - set(rows["statistic"]) == {"sequence_gain", "transfer_z"}
    assert sequences.measure(sequences.Searches(found.searches.iloc[:0])).empty


def test_the_best_found_is_the_best_of_all_methods_and_seeds():
    rows = [("gcg", 0, "max", 4.9), ("gcg", 1, "max", 5.5), ("beam", 0, "max", 7.8), ("random", 2, "max", -0.3)]
    rows += [("gcg", 0, "min", -9.9), ("gcg", 2, "min", -10.5), ("beam", 0, "min", -7.2)]
    searches = pd.DataFrame(rows, columns=["method", "seed", "direction", "z"]).assign(model="a", length=8)
    best = sequences.best_found(searches).set_index("direction")
    assert best["z"].to_dict() == {"max": 7.8, "min": -10.5} and best["method"].to_dict() == {
        "max": "beam",
        "min": "gcg",
    }
    measured = sequences.measure(sequences.Searches(searches)).set_index(["statistic", "other"])["value"]
    assert measured["sequence_z", "max 8"] == 7.8 and measured["sequence_z_gcg", "max 8"] == 4.9


def test_no_search_of_the_demo_panel_reached_farther_than_the_best_found():
    panel = load_panel("demo")
    best = sequences.best_found(search_files.every_search(panel)).set_index(["model", "direction", "length"])["reward"]
    for model in panel.model_names:
        for (direction, length, _, _), result in search_files.results(panel, model).items():
            sign = 1 if direction == "max" else -1
            assert sign * best[model, direction, length] >= sign * result.best["reward"]


def test_a_sequence_of_any_length_counts_as_gain_over_single_tokens():
    rows = [
        ("a", "max", 1, 2.0),
        ("a", "max", 8, 5.0),
        ("a", "max", 16, 3.0),
        ("a", "min", 1, -3.0),
        ("a", "min", 2, -2.5),
    ]
    best = pd.DataFrame([*rows, ("b", "max", 8, 1.0)], columns=["model", "direction", "length", "z"])
    gains = sequences.best_gains(best).set_index(["model", "direction"])["gain"]
    assert gains.to_dict() == {("a", "max"): 3.0, ("a", "min"): -0.5}


def test_results_of_the_first_searches_are_still_read():
    results = search_files.results(load_panel("demo"), "smollm2-values")
    best = results["max", 8, "gcg", 0].best
    assert best["survives"] and len(best["ids"]) == 8 and best["reward"] > 4


def test_a_method_without_chance_meets_each_run_of_the_other():
    rows = [
        (model, method, seed, z)
        for model, beam in (("a", 1.0), ("b", 2.0))
        for method, runs in (("gcg", (2.0, 3.0, 4.0)), ("beam", (beam,)), ("random", (1.0, 1.0, 1.0)))
        for seed, z in enumerate(runs)
    ]
    course = pd.DataFrame(rows, columns=["model", "method", "seed", "z"]).assign(direction="max", scored=10)
    beam, random = (sequences.advantage(course, 10, other) for other in ("beam", "random"))
    assert (beam.value, beam.n) == (pytest.approx(1.5), 6) and (random.value, random.n) == (pytest.approx(2), 6)


def test_the_best_of_random_tokens_is_that_of_simulated_draws():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=5000)
    z = (scores - scores.mean()) / scores.std()
    best = np.array([rng.choice(z, 50, replace=False).max() for _ in range(4000)])
    found = sequences.best_of_random(scores, 50)
    simulated = np.quantile(best, [0.5, 0.025, 0.975])
    np.testing.assert_allclose([found.value, found.ci_low, found.ci_high], simulated, atol=0.06)
    assert sequences.best_of_random(-scores, 50, "min").value == pytest.approx(found.value)


def test_the_chapter_shows_what_was_found(panel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook = Path(__file__).parents[2] / "notebooks" / "08_sequences.ipynb"
    run_notebook(notebook, tmp_path / "out.ipynb", {"panel": str(panel), "n_boot": 20, "plantings": 1})
    table = results.read_results(tmp_path / "results")
    shown = table.query("statistic == 'sequence_z'")
    found = sequences.best_found(search_files.every_search(load_panel(panel)))
    assert shown["other"].tolist() == [f"{d} {n}" for d, n in zip(found["direction"], found["length"], strict=True)]
    np.testing.assert_allclose(shown["value"], found["z"])
