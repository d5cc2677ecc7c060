"""Rows: as transformers scores each conversation alone, from every form of a file, in its order, token by token."""

import functools
import gzip
import json
import os
import sys
from datetime import datetime
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from checkpoints import EARLIER, own_ids, own_rewards, user, write_decoder, write_encoder
from commands import run
from transformers import AutoTokenizer

import rmnb
from rmnb.errors import InputError
from rmnb.scoring.engine import score_sequences
from rmnb.scoring.forms import read_forms
from rmnb.scoring.pairs import GAP, pair_numbers
from rmnb.scoring.row_files import read_rows
from rmnb.scoring.rows import score_file, trace
from rmnb.scoring.store import read_table

QUESTION = user("What is good?")
WORDS = ["love", "peace", "war", "water", "pain", "good", "bad", "is", "the", "are", "one", "word", "in", "and"]


PROMPTS = ["What is best?", [{"role": "system", "content": "Be brief."}, user("And worst?")]]
RESPONSES = ["love", "war and peace", "", "a b c d e f g"]


def pairs(n):
    """Pairs of random answers, of many lengths."""
    generator = np.random.default_rng(0)

    def text():
        return " ".join(generator.choice(WORDS, generator.integers(1, 30)))

    return [
        {"prompt": f"What is {text()}?", "chosen": text(), "rejected": text(), "subset": f"s{place % 3}"}
        for place in range(n)
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"prompt": "a\u2028", "response": "b"}\n\n{"prompt"\n', "cannot be read: line 3: Expecting"),
        ("5\n", "row 1: it has no keys, it is 5"),
        (
            '{"prompt": "a", "response": "b", "response": "c"}',
            "two keys of an object have the same name",
        ),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_a_line_that_is_no_row_is_named_and_other_line_breaks_are_text(tmp_path, content, message):
    file = tmp_path / "rows.jsonl"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message):
        read_rows(file)


@pytest.mark.parametrize("rows", ["a,b,\nc,d,\n", "a,b\nc\n", 'a,"b" c\n'])
def test_a_row_of_a_csv_with_too_many_or_too_few_fields_is_refused_by_its_number(tmp_path, rows):
    file = tmp_path / "rows.csv"
    file.write_text("prompt,response\n" + rows)
    with pytest.raises(InputError, match=r"row [12] has more or fewer fields|expected after"):
        read_rows(file)


def test_files_are_read_gzipped_with_a_byte_order_mark_as_a_list_with_gaps_and_as_tables(tmp_path):
    row = {"prompt": "a, b?", "response": "c\u2028d"}
    line, table = json.dumps(row), '\ufeffprompt,response\n"a, b?",c\u2028d\n\n'
    files = {
        "1.jsonl": f"\ufeff{line}\n",
        "2.json": f"[{line}]",
        "3.json": json.dumps(row, indent=1),
        "4.json": line,
        "5.csv": table,
        "6.tsv": table.replace('"a, b?",', "a, b?\t").replace("prompt,", "prompt\t"),
        "7.jsonl": line[:-1] + ', "score": NaN}',
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
        for file in (tmp_path / name, tmp_path / f"{name}.gz"):
            assert read_rows(file) == [row | ({"score": None} if name == "7.jsonl" else {})]


def test_messages_of_a_table_of_pandas_are_arrays_and_may_hold_a_time(rm, tmp_path):
    file = tmp_path / "rows.parquet"
    asked = [QUESTION | {"time": datetime(2026, 1, 1)}]
    tools = [{"name": "a", "strict": True}, {"name": "b"}]  # a table pads the second
    pd.DataFrame([{"prompt": asked, "response": "love", "tools": tools}]).to_parquet(file)
    [row] = read_rows(file)
    assert row.pop("tools") == tools
    expected = pytest.approx(rm.score("What is good?", ["love"]), abs=1e-4)
    assert score_file(rm, [row])["reward"].tolist() == expected
    frame = pd.read_parquet(file)
    assert rm.score(frame["prompt"], frame["response"]) == expected


def theirs(directory, prompts, responses) -> np.ndarray:
    """transformers' own logits of each conversation alone."""
    words = AutoTokenizer.from_pretrained(directory)
    rows = zip(prompts, responses, strict=True)
    return own_rewards(directory, [own_ids(words, prompt, [response])[0] for prompt, response in rows])


def accuracies(table, by=None):
    return pair_numbers(table, by).query("name == 'accuracy'").set_index("part")


def test_pairs_are_scored_as_by_transformers_and_counted_as_by_rewardbench(directory, rm):
    frame = pd.DataFrame(pairs(50))
    table = score_file(rm, frame.to_dict("records"))
    chosen, rejected = (theirs(directory, frame["prompt"], frame[side]) for side in ("chosen", "rejected"))
    np.testing.assert_allclose(table["reward_chosen"], chosen, atol=1e-4)
    np.testing.assert_allclose(table["reward_rejected"], rejected, atol=1e-4)
    by_subset = accuracies(table, "subset")
    assert by_subset.loc["", "value"] == (chosen > rejected).mean()
    assert by_subset["pairs"].to_dict() == {"s0": 17, "s1": 17, "s2": 16, "": 50}
    assert (by_subset["low"] < by_subset["value"]).all() and (by_subset["value"] < by_subset["high"]).all()


WRITE = {
    "jsonl": functools.partial(pd.DataFrame.to_json, orient="records", lines=True),
    "csv": functools.partial(pd.DataFrame.to_csv, index=False),
    "parquet": pd.DataFrame.to_parquet,
}
READ = {"jsonl": functools.partial(pd.read_json, lines=True), "csv": pd.read_csv, "parquet": pd.read_parquet}


@pytest.mark.parametrize(("given", "asked"), [("jsonl", "csv"), ("csv", "parquet"), ("parquet", "jsonl")])
def test_the_command_scores_each_kind_of_file_in_its_order_into_each_kind_and_on_stdout(
    given, asked, directory, rm, tmp_path, printed_json, monkeypatch
):
    frame = pd.DataFrame(pairs(20))
    file, out = tmp_path / f"rows.{given}", tmp_path / f"rewards.{asked}"
    WRITE[given](frame, file)
    shown = printed_json("score", directory, file, "--out", out)
    table = READ[asked](out)
    np.testing.assert_allclose(table["reward_chosen"], rm.score(frame["prompt"], frame["chosen"]), atol=1e-4)
    assert table["subset"].tolist() == frame["subset"].tolist()
    shown = [row["reward_chosen"] for row in shown["rows"]]
    kept = read_table(out if asked == "parquet" else Path(f"{out}.parquet"))[0]["reward_chosen"]
    assert shown == pytest.approx(kept) and table["reward_chosen"].tolist() == pytest.approx(kept)
    given_rows = file.read_bytes()
    assert run(monkeypatch, "score", directory, file, "--out", file) == 2 and file.read_bytes() == given_rows


def test_the_same_response_twice_is_a_tie_whatever_else_is_scored_with_it(rm):
    texts = [" ".join(WORDS[: 1 + number % 5]) for number in range(60)]
    rows = [{"prompt": "a?", "chosen": text, "rejected": text} for text in texts]
    assert accuracies(score_file(rm, rows))["value"].tolist() == [0]


def test_lists_are_right_if_every_rejected_response_has_a_lower_reward(rm):
    rewards = dict(zip(WORDS, rm.score("a?", WORDS), strict=True))
    low, *_, middle, high = sorted(WORDS, key=rewards.get)
    rows = [
        {"prompt": "a?", "chosen": [middle], "rejected": [low, high], "subset": "s"},
        {"prompt": "a?", "chosen": [low, high], "rejected": [middle], "subset": None},
        {"prompt": "a?", "chosen": high, "rejected": low, "subset": "s"},
    ]
    table = score_file(rm, rows)
    assert table["row"].tolist() == [1, 1, 1, 2, 2, 2, 3, 3]
    by = accuracies(table, "subset")
    assert by["value"].to_dict() == {"s": 0.5, GAP: 0, "": pytest.approx(1 / 3)}
    assert by["pairs"].to_dict() == {"s": 2, GAP: 1, "": 3}  # the row without a subset is not dropped


def test_margins_go_with_length_and_calibration_are_those_that_were_planted():
    rng = np.random.default_rng(0)
    margin = rng.normal(1, 1, 4000)
    chosen = rng.random(4000) < 1 / (1 + np.exp(-margin))  # what people chose, with just these probabilities
    lengths = np.where(chosen, margin.argsort().argsort(), -margin.argsort().argsort())
    signed = np.where(chosen, margin, -margin)
    frame = pd.DataFrame(
        {"reward_chosen": signed, "reward_rejected": 0.0, "length_chosen": lengths, "length_rejected": 0}
    )
    frame.attrs["provenance"] = {"kind": "pairs"}
    numbers = pair_numbers(frame).set_index("name")
    assert numbers.loc["margin", "value"] == pytest.approx(signed.mean())
    assert numbers.loc["length_correlation", "value"] > 0.9
    assert numbers.loc["calibration_error", "value"] < 0.03
    assert numbers.loc["brier_score", "value"] == pytest.approx(np.mean((1 / (1 + np.exp(signed))) ** 2))
    assert (numbers["low"] < numbers["high"]).all()
    frame[["reward_chosen", "reward_rejected"]] *= 5
    assert pair_numbers(frame).set_index("name").loc["calibration_error", "value"] > 0.1
    frame.attrs["provenance"] = {"kind": "pairs", "head": "armorm"}
    assert "brier_score" not in set(pair_numbers(frame)["name"])
    frame.attrs["provenance"] = {"kind": "pairs", "head": "log-probability", "beta": 0.1}  # as DPO trains it
    assert "brier_score" in set(pair_numbers(frame)["name"])


def test_columns_of_any_kind_are_kept_and_a_column_called_reward_is_not_overwritten(rm, tmp_path):
    kinds = [[1, {"a": 2}], {}, 2**70, datetime(2026, 1, 1), "text", None, 1.5, True]
    rows = [
        {"prompt": "a?", "response": "love", "reward": 3, "x": x, "y": {}, "z": 2**64, "s": "\ud800"} for x in kinds
    ]
    out = tmp_path / "out.parquet"
    rows = read_forms(rows, ignore=["x", "y"])
    table = score_file(rm, rows, out)
    assert table["input_reward"].eq(3).all() and table["reward"].nunique() == 1 and not table["reward"].eq(3).any()
    assert table["x"].tolist()[:2] == ['[1, {"a": 2}]', "{}"] and pd.isna(table["x"][5])
    pd.testing.assert_frame_equal(read_table(out)[0], table, check_dtype=False)
    pd.testing.assert_frame_equal(score_file(rm, rows, out), table)


def test_corrected_labels_are_read_though_no_reward_is_computed_again(rm, tmp_path, monkeypatch):
    rows = pairs(6)
    out = tmp_path / "out.parquet"
    first = score_file(rm, rows, out)
    monkeypatch.setattr(type(rm), "score", None)
    corrected = score_file(rm, [row | {"subset": "other"} for row in rows], out)
    assert set(corrected["subset"]) == {"other"} == set(read_table(out)[0]["subset"])
    pd.testing.assert_series_equal(corrected["reward_chosen"], first["reward_chosen"])


def test_rows_come_from_standard_input_or_a_stream(directory, rm, monkeypatch, printed_json):
    content = '{"prompt": "a?", "response": "love"}\n'
    monkeypatch.setattr(sys, "stdin", StringIO(content))
    reading, writing = os.pipe()
    with open(writing, "w") as stream:
        stream.write(content)
    for source in ("-", f"/dev/fd/{reading}"):
        [row] = printed_json("score", directory, source)["rows"]
        assert row["reward"] == pytest.approx(rm.score("a?", ["love"])[0], abs=1e-4)


def test_a_row_that_is_too_long_is_named_or_cut_also_inside_a_character_of_several_ids(rm):
    rows = [{"prompt": "a?", "response": text} for text in ("love", "peace " * 600, "\U0001f600" * 600)]
    with pytest.raises(InputError, match=r"row 2 has too many"):
        score_file(rm, rows)
    assert np.isfinite(score_file(rm, rows, shorten=True)["reward"]).all()
    with pytest.raises(InputError, match="this prompt alone is too long"):
        score_file(rm, [{"prompt": "peace " * 600, "response": "love"}], shorten=True)


def test_rows_are_scored_as_by_transformers_in_their_order(rm, directory):
    prompts = [prompt for prompt in PROMPTS for _ in RESPONSES]
    responses = RESPONSES * len(PROMPTS)
    expected = theirs(directory, prompts, responses)
    np.testing.assert_allclose(rm.score(prompts * 20, responses * 20), np.tile(expected, 20), atol=1e-4)
    np.testing.assert_allclose(rm.score(PROMPTS[1], RESPONSES), expected[4:], atol=1e-4)


@pytest.mark.parametrize(
    ("prompt", "responses"),
    [
        ("a", "love"),
        ("a", {"love", "war"}),
        ("a", []),
        ("a", None),
        (None, ["love"]),
        ([{"role": "user"}], ["love"]),
        ([user(None)], ["love"]),
        ([user([{"type": "image", "url": "a"}])], ["love"]),
        ("a", ["love", 7]),
        (["a", "b", "c"], ["love", "war"]),
        (EARLIER, ["c"]),
    ],
)
def test_what_cannot_be_scored_is_said(rm, prompt, responses):
    with pytest.raises(InputError):
        rm.score(prompt, responses)


@pytest.mark.parametrize("write", (write_decoder, write_encoder))
def test_each_row_is_the_reward_of_a_closed_beginning(write, tmp_path):
    rm = rmnb.load_reward_model(write(tmp_path))
    response = "Love, peace and water are good"
    table = trace(rm, PROMPTS[0], response)
    prefix, closing = rm.dialogue.frame_ids(PROMPTS[0])
    alone = [
        score_sequences(rm, [[*prefix, *table["token_id"][:end], *closing]], [len(prefix)])[0]
        for end in range(len(table) + 1)
    ]
    assert "".join(table["token"]) == response and len(table) > 5
    np.testing.assert_allclose(table["reward"], alone[1:], atol=1e-5)
    np.testing.assert_allclose(table["change"], np.diff(alone), atol=1e-5)
    assert table["reward"].iloc[-1] == pytest.approx(rm.score(PROMPTS[0], [response])[0], abs=1e-5)
