"""Rewards of rows, each a prompt and a response, and of a response as it grows; gives `RewardModel` its `score`."""

import functools
import hashlib
import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api.types import is_list_like
from tqdm import tqdm

from rmnb.errors import InputError
from rmnb.models.dialogue import Prompt, as_messages, check_protocol, common_prefix
from rmnb.models.reward_model import RewardModel
from rmnb.panels import load_panel
from rmnb.plans import ResumableStore
from rmnb.scoring import store
from rmnb.scoring.engine import Ids, score_continuations
from rmnb.scoring.store import Provenance, describe_model

logger = logging.getLogger(__name__)
_MANY = 8  # rows a prompt, from which on running each prompt once pays


def score(rm: RewardModel, prompt: Prompt | Sequence[Prompt], responses: Sequence[str], protocol: str = "exact"):
    """Rewards of texts as responses to a prompt, or row by row to several; behind `RewardModel.score`.

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

    Returns
    -------
    np.ndarray
        float32 [responses].

    Raises
    ------
    InputError
        No response, one that is no text, no order among them, messages that end with the assistant's, or an unknown
        protocol.
    """
    if isinstance(responses, Mapping) or not is_list_like(responses, allow_sets=False):
        raise InputError(f"responses must be a list of texts, in an order, not {str(responses)[:60]!r}")
    responses = list(responses)  # a pandas Series and an array are lists too
    if isinstance(prompt, str) and prompt in _known_keys():
        logger.warning("%r is scored as a text: `load_panel(...).prompt(%r).text` is the question", prompt, prompt)
    is_one = not is_list_like(prompt) or isinstance(next(iter(prompt), None), dict)
    prompts = [prompt] * len(responses) if is_one else list(prompt)
    return score_rows(rm, prompts, responses, protocol)  # type: ignore[arg-type]


@functools.cache
def _known_keys() -> frozenset[str]:
    return frozenset(prompt.key for prompt in load_panel("demo").all_prompts)


def score_rows(
    rm: RewardModel,
    prompts: Collection[Prompt],
    responses: Collection[str],
    protocol: str = "exact",
    output: Path | None = None,
    progress: bool = False,
) -> np.ndarray:
    """The reward of each row: a prompt, and a response to it.

    Rows of like length are scored together, or those of one prompt, where each has many.

    Parameters
    ----------
    rm
        The reward model.
    prompts
        Texts or lists of messages.
    responses
        As many texts.
    protocol
        ``exact`` or ``published``.
    output
        Where the caller will write the rewards. With it, they are kept beside that file as they are computed; called
        again after an interruption, the work goes on. `rmnb.plans.ResumableStore.discard` removes what is kept.
    progress
        Show a progress bar.

    Returns
    -------
    np.ndarray
        float32 [rows], in the given order.

    Raises
    ------
    InputError
        No row, prompts and responses of other numbers or kinds, a reward that is not finite, or other work at `output`.
    """
    prompts, responses = list(prompts), list(responses)
    if not responses:
        raise InputError("no response given: name at least one")
    if len(prompts) != len(responses):
        raise InputError(f"{len(prompts)} prompts and {len(responses)} responses: give one prompt, or one for each")
    for prompt, response in zip(prompts, responses, strict=True):
        check_prompt(prompt)
        if not isinstance(response, str):
            raise InputError(f"responses must be texts, found {response!r}")
    pieces = ResumableStore(output, describe_rows(rm, prompts, responses, protocol) if output else {})
    rewards = np.empty(len(responses), dtype=np.float32)
    with tqdm(total=len(responses), unit=" rows", disable=not progress, smoothing=0.05) as bar:
        groups = _groups(rm, prompts, responses, check_protocol(protocol))
        for number, (rows, sequences, start) in enumerate(groups):
            rewards[rows] = pieces.rewards(number, score_sequences, rm, sequences, start)
            bar.update(len(rows))
    return rewards


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


def describe_rows(rm: RewardModel, prompts: Sequence[Prompt], responses: Sequence[str], protocol: str) -> Provenance:
    """The plan and provenance of rewards of rows."""
    rows = json.dumps([list(prompts), list(responses)]).encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(rows).hexdigest()
    return {**describe_model(rm), "protocol": protocol, "rows": len(responses), "rows_sha256": digest}


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
    table = pd.DataFrame({"position": np.arange(1, len(rewards)), "token_id": own})
    return table.assign(token=[rm.tokenizer.decode([i]) for i in own], reward=rewards[1:], change=np.diff(rewards))


RewardModel.score = score  # here, where model and engine are both known
