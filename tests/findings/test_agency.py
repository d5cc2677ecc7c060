"""Chapter 7's effects find what was planted, its cells compute the same, and words go into tables as they are."""

import itertools
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest

from rmnb import stats
from rmnb.data import lexicons
from rmnb.data.text_lists import described_parts, part_texts
from rmnb.errors import InputError
from rmnb.findings import agency, rows, tables
from rmnb.panels import load_panel
from rmnb.scoring import logprobs
from rmnb.scoring.store import write_table

CHAPTER = Path(__file__).parents[2] / "notebooks" / "07_agency_communion.ipynb"
NOUNS = lexicons.agency_communion()
PROMPTS = {"positive": ["good_one", "good_two"], "negative": ["bad_one", "bad_two"]}
FRAMING = {prompt: framing for framing, prompts in PROMPTS.items() for prompt in prompts}
BASE = {f"{base}-{recipe}": base for base in ("one", "two") for recipe in "abcd"}


def planted(effect, rng, noise=0.5):
    """Scores of the nouns: communion is worth `effect` more where good is asked for, as much less where bad is."""
    sign = np.where(NOUNS["category"] == "communion", 0.5, -0.5)
    word = rng.normal(size=len(NOUNS))
    columns = {}
    for prompt, framing in FRAMING.items():
        turn = 1 if framing == "positive" else -1
        columns[prompt] = word + turn * effect * sign + noise * rng.normal(size=len(NOUNS))
    return NOUNS.assign(**columns)


@pytest.fixture(scope="module")
def nouns():
    """Eight models; communion is worth more to those of the first base."""
    rng = np.random.default_rng(0)
    return {model: planted(2.0 if base == "one" else -1.0, rng) for model, base in BASE.items()}


@pytest.fixture(scope="module")
def medians(nouns):
    found = {model: agency.median_ranks(table, list(FRAMING)) for model, table in nouns.items()}
    return pd.concat(found, names=["model"])


def run_cells(*tags, **names):
    """What cells of the chapter, found by their tags, make of names that they use."""
    for cell in nbformat.read(CHAPTER, 4).cells:
        if {*tags} & {*cell.metadata.get("tags", [])}:
            exec(compile(cell.source, CHAPTER.name, "exec"), names)
    return names


def test_the_chapters_cells_compute_what_the_effects_do(nouns, medians):
    by_model = medians["agency"].unstack("prompt")[PROMPTS["positive"]]
    known = {"np": np, "pd": pd, "stats": stats, "rows": rows, "agency": agency, "itertools": itertools}
    names = run_cells(
        "one-model", "one-gap", "shuffles",
        nouns=nouns, prompts=PROMPTS, by_model=by_model, base=BASE, first="one", n=2, seed=0, **known,
    )  # fmt: skip
    assert names["gap"] == agency.gap(nouns["one-a"], "positive", PROMPTS)["agency_gap"]
    pd.testing.assert_frame_equal(
        names["median_rank"], agency.median_ranks(nouns["one-a"], PROMPTS["positive"]), check_names=False
    )
    tests = agency.compare_bases(medians, BASE, FRAMING).query("question == 'positive' and other == 'agency'")
    found = tests.set_index("quantity")["value"]
    assert names["observed"] == pytest.approx(found["base_difference"])
    as_far = np.abs(names["models_shuffled"]) >= abs(names["observed"]) - 1e-9
    assert len(as_far) == 70 and as_far.mean() == pytest.approx(found["base_difference_p"])


def test_planted_preferences_come_back(nouns, medians):
    found = rows.each(nouns, agency.gap, PROMPTS, prompts=PROMPTS).set_index(["model", "question"])
    assert found.loc[("one-a", "positive"), "low"] > 0 > found.loc[("one-a", "negative"), "high"]
    assert found.loc[("two-a", "positive"), "high"] < 0, "the preferred kind has the smaller ranks"
    tests = agency.compare_bases(medians, BASE, FRAMING).set_index(["quantity", "other", "question"])
    assert tests.loc[("base_difference", "agency", "positive"), "low"] > 0
    assert tests.loc[("base_difference_p", "agency", "positive"), "value"] == pytest.approx(2 / 70)
    assert tests.loc[("base_effect_size", "communion", "positive"), "value"] < -0.8
    unlike = agency.compare_bases(medians, dict(zip(BASE, ["x", "y"] * 4, strict=True)), FRAMING)
    p_value = unlike.set_index(["quantity", "other", "question"])["value"]
    assert p_value["base_difference_p", "agency", "positive"] > 0.05


def test_the_interval_over_nouns_covers_no_difference():
    rng, inside = np.random.default_rng(1), 0
    for _ in range(200):
        found = agency.gap(planted(0.0, rng), "positive", PROMPTS)["agency_gap"]
        inside += found.ci_low < 0 < found.ci_high
    assert 0.9 <= inside / 200 <= 0.99


def test_what_cannot_be_compared_is_refused(nouns):
    with pytest.raises(InputError, match="2 of one, 1 of two"):
        agency.two_bases(["one", "one", "two"])
    with pytest.raises(InputError, match="fewer than two words"):
        agency.gap(nouns["one-a"].iloc[:1], "positive", PROMPTS)
    with pytest.raises(InputError, match="hold other words"):
        agency.log_ratio(nouns["one-a"], nouns["one-b"].iloc[::-1].reset_index(drop=True), ["good_one"])


def test_median_ranks_and_log_ratios_by_hand():
    table = pd.DataFrame({"word": list("abcd"), "category": ["x", "x", "y", "y"], "p": [5.0, 1.0, 1.0, 0.0]})
    assert agency.median_ranks(table, ["p"]).loc["p"].to_dict() == {"x": 43.75, "y": 81.25}
    first = table.assign(p=[np.log(0.5), np.log(0.1), -np.inf, np.log(0.4)])
    second = table.assign(p=[np.log(0.25), np.log(0.1), -np.inf, np.log(0.8)])
    plain = agency.log_ratio(first, second, ["p"], weighted=False)
    assert plain.tolist() == pytest.approx([np.log(2), 0, 0, -np.log(2)])
    weighted = agency.log_ratio(first, second, ["p"])
    assert weighted.tolist() == pytest.approx([0.375 * np.log(2), 0, 0, -0.6 * np.log(2)])
    swapped = agency.log_ratio(second, first, ["p"])
    assert swapped.tolist() == pytest.approx((-weighted).tolist())


def test_the_interaction_is_the_squared_t_of_its_contrast(medians):
    two = medians.loc[["one-a", "two-a"]]
    cells = two.melt(ignore_index=False, value_name="rank").reset_index()
    cells["framing"] = cells["prompt"].map(FRAMING)
    grouped = cells.groupby(["model", "category", "framing"])["rank"]
    sign = np.array([1, 1, -1, -1, -1, -1, 1, 1])
    error = np.sqrt(grouped.var().mean() * (sign**2 / grouped.size()).sum())
    assert agency.interaction_f(two, FRAMING) == pytest.approx(((grouped.mean() * sign).sum() / error) ** 2)


def test_log_probabilities_of_nouns_find_their_words_again(tmp_path, monkeypatch):
    words = {"kindness": 0.1, " kindness": 0.2, " Kindness": 0.3, "ambition": 0.05, " Ambition": 0.15, "x": 0.2}
    tokens = pd.DataFrame({"token_id": np.arange(len(words), dtype=np.int32), "token": list(words), "kind": "word"})
    logs = np.log(np.array(list(words.values()), dtype=np.float32))
    monkeypatch.setattr(logprobs, "scan_logprobs", lambda lm, prompt: tokens.assign(score=logs))
    monkeypatch.setattr(logprobs, "next_token_logprobs", lambda lm, prompt: logs)
    panel = load_panel("demo")
    frame = logprobs.score_nouns(None, [panel.prompt("best")], parts=("agency_communion",))
    assert not {"word", "token"} & set(frame), "no text is shipped"
    texts = {"agency_communion": part_texts("agency_communion")}
    provenance = {"parts": described_parts(texts), "wrapping": "chat"}
    directory = tmp_path / "logprobs"
    directory.mkdir()
    monkeypatch.setattr(tables, "store_directory", lambda panel: tmp_path / "scores")
    write_table(directory / "gemma3-270m.chat.parquet", frame, provenance)
    table = tables.load_logprobs(panel)["gemma3-270m", "chat"].set_index("word")
    assert np.exp(table["best"]).to_dict() == pytest.approx({"ambition": 0.2, "kindness": 0.6})
    changed = {"agency_communion": texts["agency_communion"][1:]}
    write_table(directory / "gemma3-270m.chat.parquet", frame, {**provenance, "parts": described_parts(changed)})
    with pytest.raises(InputError, match="have changed"):
        tables.load_logprobs(panel)
