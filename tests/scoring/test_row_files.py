"""Rows: as transformers scores each conversation alone, from every form of a file, in its order, token by token."""

import json

import numpy as np
import pandas as pd
import pytest
from checkpoints import own_ids, own_rewards, write_decoder, write_encoder
from commands import run
from transformers import AutoTokenizer

import rmnb
from rmnb.errors import InputError
from rmnb.scoring.rows import conversations_of, pair_accuracies, read_rows, score_file, score_sequences, trace
from rmnb.scoring.store import read_table

TURNS = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Yes."}]
QUESTION = {"role": "user", "content": "What is good?"}
WORDS = ["love", "peace", "war", "water", "pain", "good", "bad", "is", "the", "are", "one", "word", "in", "and"]


PROMPTS = ["What is best?", [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "And worst?"}]]
RESPONSES = ["love", "war and peace", "", "a b c d e f g"]


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


def test_a_line_that_is_no_json_is_named_and_other_line_breaks_are_text(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"prompt": "a\u2028", "response": "b"}\n\n{"prompt"\n', encoding="utf-8")
    with pytest.raises(InputError, match="cannot be read: line 3: Expecting"):
        read_rows(file)


@pytest.mark.parametrize(
    "row",
    [{}, {"prompt": "a"}, {"prompt": "a", "response": 7}, {"response": "b"}, {"messages": [*TURNS, QUESTION]}, []],
)
def test_a_row_that_is_none_is_named(row):
    with pytest.raises(InputError, match="row 2"):
        conversations_of([{"prompt": "a", "response": "b"}, row])


def theirs(directory, prompts, responses) -> np.ndarray:
    """transformers' own logits of each conversation alone."""
    words = AutoTokenizer.from_pretrained(directory)
    rows = zip(prompts, responses, strict=True)
    return own_rewards(directory, [own_ids(words, prompt, [response])[0] for prompt, response in rows])


def test_pairs_are_scored_as_by_transformers_and_counted_as_by_rewardbench(directory, rm, tmp_path):
    rows = pairs(50)
    table = score_file(rm, write(tmp_path / "pairs.jsonl", rows))
    expected = {}
    for key in ("chosen", "rejected"):
        expected[key] = theirs(directory, [row["prompt"] for row in rows], [row[key] for row in rows])
        np.testing.assert_allclose(table[f"reward_{key}"], expected[key], atol=1e-4)
    by_subset = pair_accuracies(table, "subset").set_index("part")
    assert by_subset.loc["all", "accuracy"] == (expected["chosen"] > expected["rejected"]).mean()
    assert by_subset["pairs"].to_dict() == {"s0": 17, "s1": 17, "s2": 16, "all": 50}
    assert (by_subset["low"] < by_subset["accuracy"]).all() and (by_subset["accuracy"] < by_subset["high"]).all()


KINDS = {"jsonl": dict(orient="records", lines=True), "csv": dict(index=False), "parquet": {}}


@pytest.mark.parametrize("suffix", KINDS)
def test_the_command_scores_each_kind_of_file_in_its_order(directory, rm, tmp_path, monkeypatch, capsys, suffix):
    frame = pd.DataFrame(pairs(20))[["prompt", "chosen", "subset"]].rename(columns={"chosen": "response"})
    file, out = tmp_path / f"rows.{suffix}", tmp_path / "rewards.parquet"
    getattr(frame, f"to_{suffix.removesuffix('l')}")(file, **KINDS[suffix])
    assert run(monkeypatch, "score", directory, file, "--out", out, "--device", "cpu", "--json") == 0
    table = read_table(out)[0]
    np.testing.assert_allclose(table["reward"], rm.score(frame["prompt"], frame["response"]), atol=1e-4)
    assert table["subset"].tolist() == frame["subset"].tolist()
    assert [row["reward"] for row in json.loads(capsys.readouterr().out)] == pytest.approx(table["reward"])


def test_a_row_that_is_too_long_is_named_or_cut(rm, tmp_path):
    file = write(tmp_path / "long.jsonl", [{"prompt": "a?", "response": text} for text in ("love", "peace " * 600)])
    with pytest.raises(InputError, match=r"row 2 has too many"):
        score_file(rm, file)
    assert np.isfinite(score_file(rm, file, shorten=True)["reward"]).all()
    with pytest.raises(InputError, match="this prompt alone is too long"):
        score_file(rm, write(file, [{"prompt": "peace " * 600, "response": "love"}]), shorten=True)


@pytest.mark.parametrize("repeats", [1, 20])
def test_rows_are_scored_as_by_transformers_in_their_order(rm, directory, repeats):
    prompts = [prompt for prompt in PROMPTS for _ in RESPONSES] * repeats
    responses = RESPONSES * len(PROMPTS) * repeats
    expected = np.tile(theirs(directory, prompts[:8], responses[:8]), repeats)
    np.testing.assert_allclose(rm.score(prompts, responses), expected, atol=1e-4)
    np.testing.assert_allclose(rm.score(PROMPTS[1], RESPONSES), expected[4:8], atol=1e-4)


@pytest.mark.parametrize(
    ("prompt", "responses"),
    [
        ("a", "love"),
        ("a", {"love", "war"}),
        ("a", []),
        ("a", None),
        (None, ["love"]),
        ([{"role": "user"}], ["love"]),
        ([{"role": "user", "content": None}], ["love"]),
        ([{"role": "user", "content": [{"type": "text", "text": "What?"}]}], ["love"]),
        ("a", ["love", 7]),
        (["a", "b", "c"], ["love", "war"]),
        (TURNS, ["c"]),
    ],
)
def test_what_cannot_be_scored_is_said(rm, prompt, responses):
    with pytest.raises(InputError):
        rm.score(prompt, responses)


@pytest.mark.parametrize("write", (write_decoder, write_encoder))
def test_each_row_is_the_reward_of_a_closed_beginning(write, tmp_path):
    rm = rmnb.load_reward_model(write(tmp_path), device="cpu")
    response = "Love, peace and water are good"
    table = trace(rm, PROMPTS[0], response)
    prefix, closing = rm.dialogue.frame(PROMPTS[0])
    alone = [
        score_sequences(rm, [[*prefix, *table["token_id"][:end], *closing]], prefix)[0] for end in range(len(table) + 1)
    ]
    assert "".join(table["token"]) == response and len(table) > 5
    np.testing.assert_allclose(table["reward"], alone[1:], atol=1e-5)
    np.testing.assert_allclose(table["change"], np.diff(alone), atol=1e-5)
    assert table["reward"].iloc[-1] == pytest.approx(rm.score(PROMPTS[0], [response])[0], abs=1e-5)


def test_nothing_cannot_be_traced(rm):
    with pytest.raises(InputError, match="empty"):
        trace(rm, PROMPTS[0], "")
