"""Rows of a file: conversations, or pairs of a chosen and a rejected response, scored in the order of the file.

What a row says: ``prompt`` (a text, or messages) or ``messages`` (that end with the question), and ``response``; or
``messages`` alone, that end with the response; or ``chosen`` and ``rejected`` in its place, each a text or messages.
"""

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from statsmodels.stats.proportion import proportion_confint

from rmnb.errors import InputError, first_line
from rmnb.models.dialogue import Prompt, as_messages
from rmnb.models.reward_model import RewardModel
from rmnb.plans import ResumableStore, alone
from rmnb.scoring.rows import describe_rows, score_rows
from rmnb.scoring.store import read_finished, write_table

_TEXTS = {"prompt", "messages", "response", "chosen", "rejected"}


class Conversation(NamedTuple):
    """A prompt and a response."""

    prompt: Prompt
    response: str


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON-lines, CSV or Parquet file.

    Raises
    ------
    InputError
        The file cannot be read, or holds no row.
    """
    try:
        if path.suffix == ".parquet":
            rows = pq.read_table(path).to_pylist()
        elif path.suffix == ".csv":
            rows = pd.read_csv(path, dtype=str, keep_default_na=False).to_dict("records")
        else:
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:  # ValueError: what is no JSON, CSV, Parquet or Unicode
        reason = getattr(error, "strerror", None) or first_line(error)
        raise InputError(f"{path} cannot be read: {reason}", path) from error
    if not rows:
        raise InputError(f"{path} holds no rows", path)
    return rows


def conversations_of(rows: Sequence[dict[str, Any]]) -> dict[str, list[Conversation]]:
    """The conversations of rows: under ``response``, or under ``chosen`` and ``rejected``.

    Raises
    ------
    InputError
        A row has other keys than the first, or a value that is no text and no messages; its number is named.
    """
    keys = ("chosen", "rejected") if "chosen" in rows[0] else ("response",)
    found: dict[str, list[Conversation]] = {key: [] for key in keys}
    for number, row in enumerate(rows, start=1):
        try:
            for key in keys:
                found[key].append(_conversation(row, key))
        except (InputError, KeyError, TypeError, AttributeError, IndexError) as error:
            takes = "prompt or messages, and response or chosen and rejected"
            raise InputError(f"row {number}: it takes {takes} ({first_line(error)})", number) from error
    return found


def _conversation(row: dict[str, Any], key: str) -> Conversation:
    prompt, answer = row.get("prompt") or row.get("messages"), row.get(key)
    if answer is None and key == "response":  # messages that end with the response
        prompt, answer = None, row["messages"]
    if isinstance(answer, str):
        as_messages(prompt)  # type: ignore[arg-type]
        return Conversation(prompt, answer)  # type: ignore[arg-type]
    *before, last = as_messages(answer)  # type: ignore[arg-type]
    if last["role"] != "assistant":
        raise InputError("the last message is not the assistant's")
    if not before or before[0]["role"] == "assistant":
        before = [*as_messages(prompt), *before]  # type: ignore[arg-type]
    return Conversation(before, last["content"])


def score_file(
    rm: RewardModel, path: Path, output: Path | None = None, shorten: bool = False, progress: bool = False
) -> pd.DataFrame:
    """Score the rows of a file.

    Parameters
    ----------
    rm
        The reward model.
    path
        JSON lines, CSV or Parquet.
    output
        Parquet file for the rewards. What is done is kept beside it: cut off, the same call goes on.
    shorten
        Cut the end of a response that is too long for the model, in place of an error.
    progress
        Show a progress bar.

    Returns
    -------
    DataFrame
        In the order of the file: its columns that are no conversations, then reward, or reward_chosen and
        reward_rejected (float32).

    Raises
    ------
    InputError
        As `read_rows` and `conversations_of`; a conversation is too long; or other rewards are at `output`.
    """
    rows = read_rows(path)
    by_key = conversations_of(rows)
    conversations = [conversation for column in by_key.values() for conversation in column]
    for place, conversation in enumerate(conversations):
        conversations[place] = truncate(rm, conversation)
        if conversations[place] != conversation and not shorten:
            row = place % len(rows) + 1
            raise InputError(f"row {row} has too many tokens for {rm.name}: shorten it, or give --truncate", row)
    prompts, responses = zip(*conversations, strict=True)
    plan = describe_rows(rm, prompts, responses, "exact")
    with contextlib.nullcontext() if output is None else alone(output):
        if (finished := read_finished(output, plan)) is not None:
            return finished
        rewards = score_rows(rm, prompts, responses, output=output, progress=progress)
        table = pd.DataFrame([{key: value for key, value in row.items() if key not in _TEXTS} for row in rows])
        for key, part in zip(by_key, np.split(rewards, len(by_key)), strict=True):
            table["reward" if key == "response" else f"reward_{key}"] = part
        if output is not None:
            write_table(output, table, plan)
            ResumableStore.discard(output)
    return table


def truncate(rm: RewardModel, one: Conversation) -> Conversation:
    """The conversation, the end of its response cut where it is too long for the model.

    Raises
    ------
    InputError
        The prompt alone is too long.
    """
    while (excess := len(rm.dialogue.conversations(one.prompt, [one.response])[0]) - (rm.context or 10**9)) > 0:
        ids = rm.tokenizer(one.response, add_special_tokens=False)["input_ids"]
        if len(ids) <= excess:
            raise InputError(f"this prompt alone is too long for {rm.name}: {str(one.prompt)[:60]!r}")
        one = Conversation(one.prompt, rm.tokenizer.decode(ids[:-excess]))
    return one


def pair_accuracies(frame: pd.DataFrame, by: str | None = None) -> pd.DataFrame:
    """How often the chosen response has the higher reward; a tie counts as wrong, as in RewardBench.

    Parameters
    ----------
    frame
        As `score_file` returns it for pairs.
    by
        A column: one row a value of it, then one for all.

    Returns
    -------
    DataFrame
        part, accuracy, low, high (Wilson's 95 % interval), pairs.

    Raises
    ------
    InputError
        There is no such column.
    """
    if by is not None and by not in frame:
        raise InputError(f"the rows have no column {by!r}: choose one of {', '.join(map(str, frame))}", by)
    right = frame["reward_chosen"] > frame["reward_rejected"]
    rows = []
    for part, correct in [*(right.groupby(frame[by]) if by else ()), ("all", right)]:
        low, high = proportion_confint(correct.sum(), len(correct), method="wilson")
        rows.append([part, correct.mean(), low, high, len(correct)])
    return pd.DataFrame(rows, columns=["part", "accuracy", "low", "high", "pairs"])
