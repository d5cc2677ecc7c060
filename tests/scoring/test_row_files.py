"""Rows of files: every form, in order, after an interruption, and as RewardBench would score them."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from commands import run
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from rmnb.errors import InputError
from rmnb.scoring.row_files import conversations_of, pair_accuracies, score_file
from rmnb.scoring.store import read_table

TURNS = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Yes."}]
QUESTION = {"role": "user", "content": "What is good?"}
WORDS = ["love", "peace", "war", "water", "pain", "good", "bad", "is", "the", "are", "one", "word", "in", "and"]


def answer(text):
    return {"role": "assistant", "content": text}


def write(path, rows):
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    return path


def pairs(n):
    """Pairs of random answers, of many lengths."""
    generator = np.random.default_rng(0)

    def text():
        return " ".join(generator.choice(WORDS, generator.integers(1, 30)))

    return [
        {"prompt": f"What is {text()}?", "chosen": text(), "rejected": text(), "subset": f"s{place % 3}"}
        for place in range(n)
    ]


def test_every_form_of_a_row_is_the_same_conversation(tmp_path):
    forms = [
        {"prompt": [*TURNS, QUESTION], "response": "love"},
        {"messages": [*TURNS, QUESTION], "response": "love"},
        {"messages": [*TURNS, QUESTION, answer("love")]},
    ]
    for form in forms:
        [one] = conversations_of([form])["response"]
        assert (one.prompt, one.response) == ([*TURNS, QUESTION], "love")
    for form in (
        {"prompt": "What is good?", "chosen": "love", "rejected": "war"},
        {"prompt": "ignored", "chosen": [QUESTION, answer("love")], "rejected": [QUESTION, answer("war")]},
        {"prompt": [QUESTION], "chosen": [answer("love")], "rejected": [answer("war")]},
    ):
        found = conversations_of([form])
        assert [found[key][0].response for key in ("chosen", "rejected")] == ["love", "war"]
        assert found["chosen"][0].prompt in ("What is good?", [QUESTION])


@pytest.mark.parametrize(
    "row", [{}, {"prompt": "a"}, {"prompt": "a", "response": 7}, {"response": "b"}, {"messages": [QUESTION]}, []]
)
def test_a_row_that_is_none_is_named(row):
    with pytest.raises(InputError, match="row 2"):
        conversations_of([{"prompt": "a", "response": "b"}, row])


def test_pairs_are_scored_as_rewardbench_scores_them(directory, rm, tmp_path):
    """Its pipeline: filled templates, tokenised in padded batches, through transformers' classifier."""
    rows = pairs(200)
    table = score_file(rm, write(tmp_path / "pairs.jsonl", rows))
    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForSequenceClassification.from_pretrained(directory).eval()
    expected = {}
    for key in ("chosen", "rejected"):
        turns = [[{"role": "user", "content": row["prompt"]}, answer(row[key])] for row in rows]
        logits = []
        for start in range(0, len(turns), 16):
            options = dict(padding=True, return_tensors="pt", return_dict=True)
            with torch.no_grad():
                logits.append(model(**tokenizer.apply_chat_template(turns[start : start + 16], **options)).logits[:, 0])
        expected[key] = torch.cat(logits).numpy()
        np.testing.assert_allclose(table[f"reward_{key}"], expected[key], atol=1e-4)
    by_subset = pair_accuracies(table, "subset").set_index("part")
    assert by_subset.loc["all", "accuracy"] == (expected["chosen"] > expected["rejected"]).mean()
    assert by_subset["pairs"].tolist() == [67, 67, 66, 200]
    assert (by_subset["low"] < by_subset["accuracy"]).all() and (by_subset["accuracy"] < by_subset["high"]).all()


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_the_command_scores_each_kind_of_file_in_its_order(directory, rm, tmp_path, monkeypatch, capsys, suffix):
    frame = pd.DataFrame(pairs(20))[["prompt", "chosen", "subset"]].rename(columns={"chosen": "response"})
    file, out = tmp_path / f"rows.{suffix}", tmp_path / "rewards.parquet"
    {
        "csv": lambda: frame.to_csv(file, index=False),
        "parquet": lambda: frame.to_parquet(file),
        "jsonl": lambda: write(file, frame.to_dict("records")),
    }[suffix]()
    assert run(monkeypatch, "score", directory, file, "--out", out, "--device", "cpu") == 0
    table = read_table(out)[0]
    np.testing.assert_allclose(table["reward"], rm.score(frame["prompt"], frame["response"]), atol=1e-4)
    assert table["subset"].tolist() == frame["subset"].tolist()
    assert capsys.readouterr().out == f"20 rows in {out}\n"
    assert run(monkeypatch, "score", directory, file, "--device", "cpu", "--json") == 0
    assert [row["reward"] for row in json.loads(capsys.readouterr().out)] == pytest.approx(table["reward"], abs=1e-4)


def test_a_row_that_is_too_long_is_named_or_cut(rm, tmp_path):
    file = write(tmp_path / "long.jsonl", [{"prompt": "a?", "response": text} for text in ("love", "peace " * 600)])
    with pytest.raises(InputError, match=r"row 2 has too many"):
        score_file(rm, file)
    assert np.isfinite(score_file(rm, file, shorten=True)["reward"]).all()
