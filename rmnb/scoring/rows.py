"""Rewards of rows, each a prompt and a response, of a file too, and of a response as it grows.

What a row of a file says: ``prompt`` (a text, or messages) or ``messages`` (that end with the question), and
``response``; or ``messages`` alone, that end with the response; or ``chosen`` and ``rejected`` in its place, each a
text or messages. The import gives `RewardModel` its `score`.
"""

import contextlib
import functools
import hashlib
import json
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from pandas.api.types import is_list_like
from tqdm import tqdm

from rmnb.errors import InputError, first_line
from rmnb.models.dialogue import Prompt, as_messages, check_protocol, common_prefix
from rmnb.models.reward_model import RewardModel
from rmnb.panels import load_panel
from rmnb.plans import ResumableStore, exclusive
from rmnb.scoring import store
from rmnb.scoring.engine import Ids, score_continuations
from rmnb.scoring.store import describe_model, read_finished, write_table

logger = logging.getLogger(__name__)
_TEXTS = {"prompt", "messages", "response", "chosen", "rejected"}
_MANY = 8  # rows a prompt, from which on running each prompt once pays


def score(
    rm: RewardModel,
    prompt: Prompt | Sequence[Prompt],
    responses: Sequence[str],
    protocol: str = "exact",
    pieces: ResumableStore | None = None,
    progress: bool = False,
) -> np.ndarray:
    """Rewards of texts as responses to a prompt, or row by row to several; behind `RewardModel.score`.

    Rows of like length are scored together, or those of one prompt, where each has many.

    Parameters
    ----------
    rm
        The reward model.
    prompt
        A text or messages, for all responses; or a list of as many of these as there are responses. A text is asked as
        it stands: the key of a panel's prompt is not looked up, but warned of.
    responses
        Texts; an empty one is a conversation that ends at once.
    protocol
        ``exact`` or ``published``.
    pieces
        Where rewards are kept as they are computed; called again after an interruption, the work goes on.
    progress
        Show a progress bar.

    Returns
    -------
    np.ndarray
        float32 [responses].

    Raises
    ------
    InputError
        No response, one that is no text, no order among them, prompts of another number, messages that end with the
        assistant's, an unknown protocol, or a reward that is not finite.
    """
    if isinstance(responses, Mapping) or not is_list_like(responses, allow_sets=False):
        raise InputError(f"responses must be a list of texts, in an order, not {str(responses)[:60]!r}")
    responses = list(responses)  # a pandas Series and an array are lists too
    if not responses:
        raise InputError("no response given: name at least one")
    if isinstance(prompt, str) and prompt in _known_keys():
        logger.warning("%r is scored as a text: `load_panel(...).prompt(%r).text` is the question", prompt, prompt)
    prompts: list[Any] = list(prompt) if is_list_like(prompt) else [prompt]
    if not is_list_like(prompt) or (prompts and isinstance(prompts[0], dict)):  # a text, or messages
        prompts = [prompt] * len(responses)
    if len(prompts) != len(responses):
        raise InputError(f"{len(prompts)} prompts and {len(responses)} responses: give one prompt, or one for each")
    for question, response in zip(prompts, responses, strict=True):
        check_prompt(question)
        if not isinstance(response, str):
            raise InputError(f"responses must be texts, found {response!r}")
    check_protocol(protocol)
    pieces = pieces or ResumableStore(None, {})
    rewards = np.empty(len(responses), dtype=np.float32)
    with tqdm(total=len(responses), unit=" rows", disable=not progress) as bar:
        groups = _groups(rm, prompts, responses, protocol)
        for number, (rows, sequences, start) in enumerate(groups):
            rewards[rows] = pieces.rewards(number, score_sequences, rm, sequences, start)
            bar.update(len(rows))
    return rewards


@functools.cache
def _known_keys() -> set[str]:
    return {prompt.key for prompt in load_panel("demo").all_prompts}


def _groups(
    rm: RewardModel, prompts: list[Prompt], responses: list[str], protocol: str
) -> Iterator[tuple[list[int], list[Ids], Ids | None]]:
    """Rows to score at once, the ids of their conversations, and those of the prompt that they share, if they do."""
    by_prompt: dict[str, list[int]] = {}
    for row, prompt in enumerate(prompts):
        by_prompt.setdefault(json.dumps(prompt), []).append(row)
    tokenise = rm.dialogue.conversations if protocol == "exact" else rm.dialogue.published_ids
    sequences: dict[int, Ids] = {}
    for rows in by_prompt.values():
        sequences.update(zip(rows, tokenise(prompts[rows[0]], [responses[row] for row in rows]), strict=True))
    groups = list(by_prompt.values())
    # Of a pair without a template, the prompt's ids tell question and answer apart.
    is_mixed = rm.dialogue.template is not None and len(groups) > 1 and len(responses) < _MANY * len(groups)
    if is_mixed:
        groups = [sorted(sequences, key=lambda row: len(sequences[row]))]
    for rows in groups:
        start = None if is_mixed or protocol != "exact" else rm.dialogue.frame(prompts[rows[0]])[0]
        for first in range(0, len(rows), store.SHARD):
            shard = rows[first : first + store.SHARD]
            yield shard, [sequences[row] for row in shard], start


def check_prompt(prompt: Prompt) -> None:
    """Raise InputError for messages that end with the assistant's: the response would be its second in a row."""
    if as_messages(prompt)[-1]["role"] == "assistant":
        raise InputError("the last message must be the user's: it is the question", "messages")


def score_sequences(rm: RewardModel, sequences: Sequence[Ids], start: Ids | None = None) -> np.ndarray:
    """Rewards of whole conversations; what they all begin with is run once.

    Parameters
    ----------
    rm
        The reward model.
    sequences
        Ids of each conversation.
    start
        Ids of the prompt: what is run once ends there at the latest. Of a pair, it tells question and answer apart.

    Returns
    -------
    np.ndarray
        float32 [sequences].
    """
    prefix = common_prefix(sequences if start is None else [*sequences, [*start, -1]])  # -1: no id
    return score_continuations(rm, prefix, [ids[len(prefix) :] for ids in sequences])


def trace(rm: RewardModel, prompt: Prompt, response: str) -> pd.DataFrame:
    """The reward of each beginning of a response, closed as a whole response is: one pass over what they share.

    Parameters
    ----------
    rm
        The reward model.
    prompt
        A question, or messages.
    response
        Any text; its ids are those that it has in the whole conversation.

    Returns
    -------
    DataFrame
        One row a token: position (from 1), token_id, token, reward (float32, of the response up to and with this
        token; the last is the reward of the whole response) and change (float32, less the row before; the first row's
        is less the reward of an empty response, or NaN where a closed conversation cannot be without one).

    Raises
    ------
    InputError
        An empty response, or one that is longer than the model's context.
    """
    check_prompt(prompt)
    if not response:
        raise InputError("the response is empty: there is nothing to trace")
    ids = rm.dialogue.conversations(prompt, [response])[0]
    prefix, closing = rm.dialogue.frame(prompt)
    prefix = common_prefix([ids, [*prefix, -1]])  # a response may join the words around it; -1: no id
    rest = ids[len(prefix) :]
    closing = common_prefix([rest[::-1], [*closing[::-1], -1]])[::-1]
    own = rest[: len(rest) - len(closing)]
    rewards = np.full(len(own) + 1, np.nan, dtype=np.float32)
    first = 0 if closing else 1  # without a closing id, an empty response has no reward
    rewards[first:] = score_continuations(rm, prefix, [[*own[:end], *closing] for end in range(first, len(rewards))])
    return pd.DataFrame(
        {
            "position": range(1, len(rewards)),
            "token_id": own,
            "token": [rm.tokenizer.decode([i]) for i in own],
            "reward": rewards[1:],
            "change": np.diff(rewards),
        }
    )


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
            rows = _read_json_lines(path)
    except (OSError, ValueError) as error:  # ValueError: what is no JSON, CSV, Parquet or Unicode
        reason = getattr(error, "strerror", None) or first_line(error)
        raise InputError(f"{path} cannot be read: {reason}", path) from error
    if not rows:
        raise InputError(f"{path} holds no rows", path)
    return rows  # pyright: ignore[reportReturnType]


def _read_json_lines(path: Path) -> list[dict[str, Any]]:
    rows = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                if line.strip():
                    rows.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise ValueError(f"line {number}: {error.msg}") from error
    return rows


def conversations_of(rows: Sequence[dict[str, Any]]) -> dict[str, list[Conversation]]:
    """The conversations of rows: under ``response``, or under ``chosen`` and ``rejected``.

    Raises
    ------
    InputError
        A row has other keys than the first, or a value that is no text and no messages; its number is named.
    """
    keys = ("chosen", "rejected") if "chosen" in rows[0] else ("response",)
    conversations: dict[str, list[Conversation]] = {key: [] for key in keys}
    for number, row in enumerate(rows, start=1):
        try:
            for key in keys:
                conversations[key].append(_conversation(row, key))
        except (InputError, KeyError, TypeError, AttributeError, IndexError) as error:
            takes = "prompt or messages, and response or chosen and rejected"
            raise InputError(f"row {number}: it takes {takes} ({first_line(error)})", number) from error
    return conversations


def _conversation(row: dict[str, Any], key: str) -> Conversation:
    prompt = row.get("prompt") or row.get("messages")
    answer = row.get(key)
    if answer is None and key == "response":  # messages that end with the response
        prompt = None
        answer = row["messages"]
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
    conversations = []
    for column in by_key.values():
        for row, conversation in enumerate(column, start=1):
            shortened = truncate(rm, conversation)
            if shortened != conversation and not shorten:
                raise InputError(f"row {row} has too many tokens for {rm.name}: shorten it, or give --truncate", row)
            conversations.append(shortened)
    prompts, responses = zip(*conversations, strict=True)
    digest = hashlib.sha256(json.dumps([prompts, responses]).encode("utf-8", "surrogatepass")).hexdigest()
    plan = {**describe_model(rm), "protocol": "exact", "rows": len(responses), "rows_sha256": digest}
    with contextlib.nullcontext() if output is None else exclusive(output):
        if (finished := read_finished(output, plan)) is not None:
            return finished
        rewards = rm.score(prompts, responses, pieces=ResumableStore(output, plan), progress=progress)
        table = pd.DataFrame([{key: value for key, value in row.items() if key not in _TEXTS} for row in rows])
        for key, part in zip(by_key, np.split(rewards, len(by_key)), strict=True):
            table["reward" if key == "response" else f"reward_{key}"] = part
        if output is not None:
            write_table(output, table, plan)
            ResumableStore.discard(output)
    return table


def truncate(rm: RewardModel, conversation: Conversation) -> Conversation:
    """The conversation, the end of its response cut where it is too long for the model.

    Raises
    ------
    InputError
        The prompt alone is too long.
    """
    prompt, response = conversation
    limit = rm.context or sys.maxsize
    while (excess := len(rm.dialogue.conversations(prompt, [response])[0]) - limit) > 0:
        ids = rm.tokenizer(response, add_special_tokens=False)["input_ids"]
        if len(ids) <= excess:
            raise InputError(f"this prompt alone is too long for {rm.name}: {str(prompt)[:60]!r}")
        response = str(rm.tokenizer.decode(ids[:-excess]))
    return Conversation(prompt, response)


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
    groups = right.groupby(frame[by]) if by else ()
    rows = [{"part": part, **accuracy(correct)} for part, correct in (*groups, ("all", right))]
    return pd.DataFrame(rows).rename(columns={"value": "accuracy"})


def accuracy(correct: pd.Series | np.ndarray) -> dict[str, float]:
    """The share of pairs that were judged rightly (bool): value, low, high (Wilson's 95 % interval), pairs."""
    from scipy.stats import binomtest  # loading it takes memory and half a second

    low, high = binomtest(int(correct.sum()), len(correct)).proportion_ci(0.95, method="wilson")
    return {"value": correct.mean(), "low": low, "high": high, "pairs": len(correct)}


RewardModel.score = score  # here, where model and engine are both known
