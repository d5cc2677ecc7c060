"""Rows of files: every form, in order, after an interruption, and as RewardBench would score them."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from commands import run
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from rmnb.errors import InputError
from rmnb.scoring import rows as scored_rows
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
        texts = [
            tokenizer.apply_chat_template(
                [{"role": "user", "content": row["prompt"]}, answer(row[key])], tokenize=False
            )
            for row in rows
        ]
        logits = []
        for start in range(0, len(texts), 16):
            options = dict(padding=True, truncation=True, max_length=2048, add_special_tokens=False)
            inputs = tokenizer(texts[start : start + 16], return_tensors="pt", **options)
            with torch.no_grad():
                logits.append(model(**inputs).logits[:, 0])
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
    writers = {"csv": frame.to_csv, "parquet": frame.to_parquet}
    if suffix == "jsonl":
        write(file, frame.to_dict("records"))
    else:
        writers[suffix](file, index=False)
    assert run(monkeypatch, "score", directory, file, "--out", out, "--device", "cpu") == 0
    rewards = [
        float(rm.score(prompt, [text])[0]) for prompt, text in zip(frame["prompt"], frame["response"], strict=True)
    ]
    table = read_table(out)[0]
    assert table["reward"].tolist() == pytest.approx(rewards, abs=1e-4) and table["subset"].tolist() == [
        *frame["subset"]
    ]
    assert capsys.readouterr().out == f"20 rows in {out}\n"
    assert run(monkeypatch, "score", directory, file, "--device", "cpu", "--json") == 0
    assert [row["reward"] for row in json.loads(capsys.readouterr().out)] == pytest.approx(rewards, abs=1e-4)


def test_cut_off_it_goes_on_and_other_rows_are_refused(rm, tmp_path, monkeypatch):
    file, out = write(tmp_path / "pairs.jsonl", pairs(700)), tmp_path / "rewards.parquet"
    whole = score_file(rm, file)
    compute, calls = scored_rows.score_sequences, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return compute(*arguments)

    monkeypatch.setattr(scored_rows, "score_sequences", interrupted)
    with pytest.raises(KeyboardInterrupt):
        score_file(rm, file, out)
    pd.testing.assert_frame_equal(score_file(rm, file, out), whole)
    pd.testing.assert_frame_equal(score_file(rm, file, out), whole)
    write(file, pairs(699))
    with pytest.raises(InputError, match="holds other work"):
        score_file(rm, file, out)


def test_a_row_that_is_too_long_is_named_or_cut(rm, tmp_path):
    file = write(tmp_path / "long.jsonl", [{"prompt": "a?", "response": text} for text in ("love", "peace " * 600)])
    with pytest.raises(InputError, match=r"row 2 has too many"):
        score_file(rm, file)
    assert np.isfinite(score_file(rm, file, shorten=True)["reward"]).all()
