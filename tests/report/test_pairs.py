"""Two models on the same rows: what changed, which rows flipped, and a gate on it."""

import json

import numpy as np
import pytest
from bs4 import BeautifulSoup
from checkpoints import write_decoder
from commands import run

from rmnb.report import pairs
from rmnb.scoring import loading
from rmnb.scoring import pairs as scored_pairs
from rmnb.scoring.forms import read_forms

WORDS = [*"abcdefgh", "love", "war", "peace", "pain", "good", "bad", "water", "words"]


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Intervals are tried in `tests/stats/test_paired.py`."""
    monkeypatch.setattr(pairs, "DRAWS", 40)
    monkeypatch.setattr(scored_pairs, "_DRAWS", 20)


@pytest.fixture(scope="module")
def files(directory, tmp_path_factory):
    """Rows of which two share a prompt, a second checkpoint, and what `score --out` writes of both models."""
    place = tmp_path_factory.mktemp("pairs")
    rng = np.random.default_rng(0)
    rows = []
    for number in range(60):
        chosen, rejected = rng.choice(WORDS, 2, replace=False)
        rows.append(
            {"prompt": f"What is {number // 2}?", "chosen": chosen, "rejected": rejected, "subset": "xy"[number % 2]}
        )
    (place / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    write_decoder(place / "other", rows=400, seed=1)
    with pytest.MonkeyPatch.context() as patched:
        for model, out in ((directory, "a.csv"), (place / "other", "b.parquet")):
            assert run(patched, "score", model, place / "rows.jsonl", "--out", place / out) == 0
    return place, rows


def test_models_and_what_was_written_of_them_compare_alike_and_a_gate_stops(files, directory, monkeypatch, capsys):
    place, rows = files
    words = ["--rows", place / "rows.jsonl", "--by", "subset"]
    loaded = ["compare", directory, place / "other", *words, "--out", place / "loaded"]
    assert run(monkeypatch, *loaded, "--fail-if", "lower change accuracy > 1") == 0
    assert run(monkeypatch, "compare", place / "other", directory, *loaded[3:]) == 2
    assert "holds other work: it differs in weights" in (said := capsys.readouterr().err) and "--restart" in said
    monkeypatch.setattr(loading, "load_reward_model", None)  # two files: nothing is loaded
    read = ["compare", place / "a.csv", place / "b.parquet", *words, "--out", place / "read"]
    assert run(monkeypatch, *read, "--fail-if", "upper change accuracy[x] > -0.9", "--fail-if", "accuracy < 0.01") == 1
    said = capsys.readouterr().out
    assert "broken  upper change accuracy[x] > -0.9" in said and "kept    accuracy < 0.01" in said
    first, second = (json.loads((place / out / "compare.json").read_text()) for out in ("loaded", "read"))
    assert first["numbers"] == second["numbers"] and first["flipped"] == second["flipped"]
    tables = [pairs.read_rewards(place / name, read_forms(rows)) for name in ("a.csv", "b.parquet")]
    margins = [(table["reward_chosen"] - table["reward_rejected"]).to_numpy(float) for table in tables]
    [overall] = [row for row in second["numbers"] if (row["name"], row["other"]) == ("accuracy", "")]
    right = [margin > 0 for margin in margins]
    assert overall["change"] == pytest.approx(right[1].mean() - right[0].mean())
    assert overall["low"] < overall["change"] < overall["high"]
    flipped = second["flipped"]
    assert {row["row"] - 1 for row in flipped} == {*np.flatnonzero(right[0] != right[1])}
    spreads = [margin.std(ddof=1) for margin in margins]
    most = max(flipped, key=lambda row: abs(row["margin_a"] / spreads[0] - row["margin_b"] / spreads[1]))
    assert flipped[0] == most and flipped[0]["chosen"] == rows[most["row"] - 1]["chosen"]
    page = BeautifulSoup((place / "read" / "compare.html").read_text(), "html.parser")
    [limit] = [row.text for row in page("tr") if "upper change accuracy[x]" in row.text]
    assert "Rows that flipped" in page.text and "broken" in limit


def test_a_model_and_itself_differ_by_nothing_and_pass(files):
    place, rows = files
    content = read_forms(rows)
    table = pairs.read_rewards(place / "b.parquet", content)
    found = pairs.compare(table, table, content).set_index("name")
    assert found[["change", "low", "high"]].eq(0).all(axis=None) and pairs.flipped(table, table, content).empty
    raised = table.assign(reward_chosen=table["reward_chosen"] + np.linspace(1, 2, len(table)))
    raised.attrs = table.attrs
    margin = pairs.compare(table, raised, content).set_index("name").loc["margin"]
    assert 1 < margin["low"] < margin["change"] < margin["high"] < 2


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ("compare {a} {b} --rows {other}", "no rewards of these rows"),
        ("compare {a} {b} --rows {rows} --quick", "--rows"),
        ("compare {a} {b} --by subset", "--rows"),
        ("compare {a} {b} --fail-if accuracy<1", "give them with --rows"),
        ("compare {a} {b} --rows {rows} --fail-if identity_gap>0", "no number 'identity_gap'"),
        ("score {model} {rows} --fail-if change\u00a0accuracy<0", "nothing is compared"),
        ("score {model} {rows} --as rm-bench", "not its rows"),
        ("score {model} love --fail-if accuracy<1", "one file of rows"),
    ],
)
def test_what_cannot_be_compared_is_one_line(line, about, files, directory, monkeypatch, capsys, tmp_path):
    place, rows = files
    (tmp_path / "other.jsonl").write_text(json.dumps(rows[0]))
    monkeypatch.chdir(tmp_path)
    names = {"a": place / "a.csv", "b": place / "b.parquet", "rows": place / "rows.jsonl", "model": directory}
    words = line.format(**names, other=tmp_path / "other.jsonl").split(" ")
    assert run(monkeypatch, *(word.replace("\u00a0", " ") for word in words)) == 2
    assert about in capsys.readouterr().err and not list(tmp_path.glob("compare*"))
