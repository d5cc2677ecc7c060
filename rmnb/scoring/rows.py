"""Rewards of rows, each a prompt and a response, of a file too (`rmnb.scoring.forms`); of a response as it grows."""

import hashlib
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rmnb.conversation import Prompt, Response
from rmnb.errors import InputError
from rmnb.models.dialogue import common_prefix
from rmnb.plans import kept
from rmnb.scoring.engine import PrefixScorer
from rmnb.scoring.forms import Answer, Exchange, RowTable, read_forms
from rmnb.scoring.reward_model import RewardModel, check_prompt
from rmnb.scoring.row_files import Row
from rmnb.scoring.store import content_sha256, describe_model, note_model, read_table, write_table

logger = logging.getLogger(__name__)
_SIDES = ("", "_chosen", "_rejected")


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
        is less the reward of an empty response, or NaN where a closed conversation cannot be without one). Of several
        outputs reward_NAME and change_NAME.

    Raises
    ------
    InputError
        An empty response, also one of which the template leaves nothing, or one longer than the model's context.
    """
    check_prompt(prompt)
    prefix, closing = rm.dialogue.frame_ids(prompt)
    if not rm.dialogue.written(prompt, response):
        raise InputError(f"the template leaves nothing of the response {response!r}: there is nothing to trace")
    ids = rm.dialogue.conversations(prompt, [response])[0]
    prefix = common_prefix([ids, [*prefix, -1]])  # a response may join the words around it; -1: no id
    rest = ids[len(prefix) :]
    closing = common_prefix([rest[::-1], [*closing[::-1], -1]])[::-1]
    own = rest[: len(rest) - len(closing)]
    rewards = np.full((len(own) + 1, len(rm.outputs)), np.nan, dtype=np.float32)
    first = 0 if closing else 1  # without a closing id, an empty response has no reward
    beginnings = [[*own[:end], *closing] for end in range(first, len(rewards))]
    starts = [rm.answer_start(prompt)] * len(beginnings)
    rewards[first:] = PrefixScorer(rm, prefix)(beginnings, starts=starts).reshape(len(beginnings), -1)
    tokens = [rm.tokenizer.decode([i]) for i in own]
    table = pd.DataFrame({"position": range(1, len(rewards)), "token_id": own, "token": tokens})
    table[rm.columns("reward")] = rewards[1:]
    table[rm.columns("change")] = np.diff(rewards, axis=0)
    return table


def score_file(
    rm: RewardModel,
    rows: Sequence[Row] | RowTable,
    output: Path | None = None,
    shorten: bool = False,
    progress: bool = False,
    restart: bool = False,
) -> pd.DataFrame:
    """Score the rows of a file.

    Parameters
    ----------
    rm
        The reward model.
    rows
        As `rmnb.scoring.row_files.read_rows` reads them, or as `rmnb.scoring.forms.read_forms` does.
    output
        Parquet file for the rewards. What is done is kept beside it: cut off, the same call goes on.
    shorten
        Cut the end of a response that is too long for the model, in place of an error.
    progress
        Show a progress bar.
    restart
        Score again what lies at `output`, begun or finished.

    Returns
    -------
    DataFrame
        In the order of the file: the columns that are carried along (lists and mappings as JSON; one that has the name
        of a column below is called input_NAME), then reward and length, or reward_chosen, reward_rejected and their
        lengths (rewards float32, lengths of responses in characters). If a row has several responses of a side, a row a
        response in place of that, with row (from 1), side, reward, length. Rows whose responses are all equally good
        are left out. Its ``attrs["provenance"]`` has ``kind`` (`rmnb.scoring.forms.RowTable`), ``outputs`` (the names
        that rewards have without a side) and ``carried`` (the column of each key that is carried along).

    Raises
    ------
    InputError
        A row cannot be read, see `rmnb.scoring.forms`; a conversation is too long; or other rewards are at `output`.
    """
    content = rows if isinstance(rows, RowTable) else read_forms(rows)
    answers = content.answers
    conversations = [truncate(rm, conversation) for *_, conversation in answers]
    cut = [row for (row, _, whole), short in zip(answers, conversations, strict=True) if short != whole]
    if cut and not shorten:
        number = cut[0] + 1
        raise InputError(f"row {number} has too many tokens for {rm.name}: shorten it, or give --truncate", number)
    prompts, responses = zip(*conversations, strict=True)
    plan = {**describe_model(rm), "protocol": "exact", "rows_sha256": rows_sha256(answers)}
    if cut:
        plan["truncated"] = True
    names = rm.columns("reward")
    with kept(output, plan, read_table, restart) as work:
        if work.finished is None:
            work.begin(note_model(rm))
            rewards = rm.score(prompts, responses, work=work, progress=progress)
            table, notes = _table(content, names, rewards)
        else:
            table, notes = _table(content, names, np.zeros(len(answers) * len(names)))
            rewarded = [f"{name}{side}" for name in names for side in _SIDES if f"{name}{side}" in table]
            table[rewarded] = work.finished[rewarded]
        work.provenance = {**work.provenance, **notes}
        # Labels that were corrected since are those of the file, though no reward has changed.
        if output is not None and work.provenance.get("content_sha256") != content_sha256(table):
            write_table(output, table, work.provenance)
    table.attrs["provenance"] = work.provenance
    return table


def rows_sha256(answers: Sequence[Answer]) -> str:
    """The hash of conversations, by which a file of rewards says of which rows they are."""
    places = [(answer.row, answer.side) for answer in answers]
    prompts = [str(answer.conversation.prompt) for answer in answers]
    responses = [answer.conversation.response for answer in answers]
    said = json.dumps([places, prompts, responses], default=str)
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def _table(content: RowTable, names: list[str], rewards: np.ndarray) -> tuple[pd.DataFrame, dict[str, Any]]:
    """What `score_file` returns, and what is noted of it."""
    scored = pd.DataFrame([(row, side) for row, side, _ in content.answers], columns=["row", "side"])
    scored[names] = rewards.reshape(len(scored), -1).astype("float32")
    scored["length"] = [len(response_text(conversation.response)) for *_, conversation in content.answers]
    if content.kind in ("single", "labelled", "pairs"):  # one response of each side: a column for each
        sides = [
            of_side.set_index("row").drop(columns="side").add_suffix("" if side == "response" else f"_{side}")
            for side, of_side in scored.groupby("side")
        ]
        scored = pd.concat(sides, axis=1).sort_index()
        places = scored.index
    else:
        scored = scored.sort_values("row", kind="stable")
        places = scored["row"]
        scored["row"] += 1
    taken = {"row", "side", *(f"{name}{side}" for name in (*names, "length") for side in _SIDES)}
    carried: dict[str, str] = {}
    columns: dict[str, list[Any]] = {}
    for key in content.columns:
        name = key
        while name in taken or name in columns:
            name = f"input_{name}"
        carried[key] = name
        columns[name] = _storable([content.rows[place].get(key) for place in places])
    table = pd.concat([pd.DataFrame(columns), scored.reset_index(drop=True)], axis=1)
    return table, {"kind": content.kind, "outputs": names, "carried": carried}


def response_text(response: Response) -> str:
    """What a response says: of a message, its content, or else its calls of tools."""
    if isinstance(response, str):
        return response
    return response["content"] or json.dumps(response["tool_calls"])


def _storable(values: list[Any]) -> list[Any]:
    """Values of one plain type as they are, all others as text: a table's column has one type."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool} or (kinds <= {int, float} and all(abs(value or 0) < 2**63 for value in values)):
        return values
    texts = [
        value if value is None or isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
        for value in values
    ]
    return [text and text.encode("utf-8", "backslashreplace").decode() for text in texts]


def truncate(rm: RewardModel, conversation: Exchange) -> Exchange:
    """The conversation, the end of its response cut where it is too long for the model.

    Raises
    ------
    InputError
        The prompt alone is too long, or the response is no text.
    """
    prompt, response = conversation
    limit = rm.context or sys.maxsize
    while (excess := len(rm.dialogue.conversations(prompt, [response])[0]) - limit) > 0:
        if not isinstance(response, str) or not response:
            raise InputError(f"this prompt alone is too long for {rm.name}: {str(prompt)[:60]!r}")
        ids = rm.tokenizer(response, add_special_tokens=False)["input_ids"]
        kept = str(rm.tokenizer.decode(ids[:-excess]))
        # Each round ends earlier, also where the cut falls into a character of several ids.
        response = response[: min(len(kept), len(response) - 1)]
    return Exchange(prompt, response)
