"""Hold rewards from elsewhere, a server's or a file's, against those of the model.

Requests to servers are those that their documentation has: vLLM's ``/classify`` and ``/pooling`` and SGLang's
``/v1/classify`` take ``input``, SGLang's own ``/classify`` takes ``text``; ``use_activation`` asks vLLM for the raw
reward instead of its sigmoid.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import requests

from rmnb.errors import InputError
from rmnb.models.dialogue import as_messages
from rmnb.scoring.check import CheckResult
from rmnb.scoring.engine import score_sequences
from rmnb.scoring.forms import Conversation, conversations_of
from rmnb.scoring.parity import QUESTION, spread
from rmnb.scoring.reward_model import RewardModel
from rmnb.scoring.row_files import read_rows
from rmnb.scoring.rows import truncate

QUESTIONS = (QUESTION, "What, in one word, is the worst thing ever?")
#: Of other lengths and kinds, so that each mistake shows.
RESPONSES = ("love", "peace and quiet for everybody, everywhere and always", "7", "It depends on whom you ask.")
_LONG = 250 * f"{RESPONSES[1]}. "  # more ids than servers and tokenizers are set to cut at by habit (512, 1024, 2048)
# Of the rewards' standard deviation: what other code in fp32 may move them by, and what half precision may.
_FULL, _HALF = 1e-3, 0.1


@dataclass(frozen=True)
class Elsewhere:
    """Rewards from elsewhere, float [rows], of conversations, or of ids as they were fed there, or both."""

    rewards: np.ndarray
    conversations: Sequence[Conversation] = ()
    ids: Sequence[list[int]] = ()


def read_elsewhere(path: Path) -> Elsewhere:
    """Rewards of a file of rows: each has a reward, and a conversation (`rmnb.scoring.rows`) or ids (a list), or both.

    Raises
    ------
    InputError
        As `read_rows` and `conversations_of`; ids are no list of numbers; a reward is missing, or is no number.
    """
    rows = read_rows(path)
    values = [row.get("reward") for row in rows]
    rewards = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce").to_numpy(float)
    if (bad := np.flatnonzero(~np.isfinite(rewards))).size:
        raise InputError(f"{path}, row {bad[0] + 1}: the reward is no number: {values[bad[0]]!r}", path)
    all_ids = []
    if "ids" in rows[0]:
        for number, row in enumerate(rows, start=1):
            ids = row.get("ids")
            if not (isinstance(ids, list) and ids and all(type(i) is int and i >= 0 for i in ids)):
                raise InputError(f"{path}, row {number}: ids is a list of token ids, not {str(ids)[:60]!r}", path)
            all_ids.append(ids)
        if not rows[0].keys() & {"response", "messages"}:
            return Elsewhere(rewards, ids=all_ids)
    answers = conversations_of(rows)
    if len(answers) > len(rows) or answers[0].side != "response":
        raise InputError(f"{path} holds several responses a row: each takes prompt, response and reward", path)
    return Elsewhere(rewards, [answer.conversation for answer in answers], all_ids)


def probes(rm: RewardModel) -> list[Conversation]:
    """What a server is asked: two questions and four responses, a long response, and one after a system prompt."""
    conversations = [Conversation(question, response) for question in QUESTIONS for response in RESPONSES]
    conversations.append(truncate(rm, Conversation(QUESTIONS[0], _LONG)))
    system = [{"role": "system", "content": "Be brief."}, *as_messages(QUESTIONS[0])]
    try:
        rm.dialogue.conversations(system, ["love"])
    except InputError:  # a template that takes no system prompt
        return conversations
    return [*conversations, Conversation(system, "love")]


def rendered(rm: RewardModel, conversations: Sequence[Conversation]) -> list[str]:
    """Conversations as text in the model's own template, which a server tokenises itself."""
    if rm.dialogue.template is None:
        raise InputError(f"{rm.name} has no chat template to send to a server: hold a file of rewards against it")
    return [rm.dialogue.render(prompt, response) for prompt, response in conversations]


def request_rewards(
    address: str, texts: Sequence[str], timeout: float = 60, headers: Mapping[str, str] | None = None
) -> np.ndarray:
    """Rewards of filled chat templates by a server.

    Parameters
    ----------
    address
        Of its classify or pooling endpoint.
    texts
        Filled chat templates.
    timeout
        Seconds until an answer must be there.
    headers
        Sent with each request, such as ``Authorization``.

    Returns
    -------
    np.ndarray
        float64 [texts].

    Raises
    ------
    InputError
        The endpoint is down, refuses, or answers something that is not one number a text.
    """
    try:
        # SGLang's own endpoint calls its input text.
        for body in ({"input": list(texts), "use_activation": False}, {"text": list(texts)}):
            answer = requests.post(address, json=body, timeout=(10, timeout), headers=headers)
            if answer.status_code not in (400, 422):
                break
    except requests.RequestException as error:
        advice = f"is the server up, and are {timeout:g} s enough (--timeout)?"
        raise InputError(f"{address} does not answer: {type(error).__name__}: {advice}") from error
    try:
        rows = answer.json()
        rows = rows["data"] if isinstance(rows, dict) else rows
        in_order = sorted(rows, key=lambda row: row.get("index", 0))
        rewards = np.array([_number(row) for row in in_order])
    except (ValueError, TypeError, KeyError, AttributeError, StopIteration) as error:
        reason = str(error) if isinstance(error, InputError) else "no list of rewards"
        content = f"{answer.status_code}, {reason}: {answer.text.strip()[:150]!r}"
        raise InputError(f"{address} answers {content}") from error
    if np.isfinite(rewards).sum() != len(texts):
        raise InputError(f"{address} answers {len(rewards)} rewards to {len(texts)} texts, or no numbers")
    return rewards


def _number(row: dict[str, Any]) -> float:
    """The one number of an answer: ``probs`` (classify), ``data`` (pooling, perhaps one a token), ``embedding``."""
    content = next(row[key] for key in ("probs", "data", "embedding") if row.get(key))
    numbers = np.atleast_1d(content).astype(float)
    if numbers.shape[-1] > 1:
        raise InputError(f"{numbers.shape[-1]} numbers each: hidden states or classes, not a reward")
    return float(numbers.ravel()[-1])


def compare_rewards(rm: RewardModel, elsewhere: Elsewhere) -> CheckResult:
    """Hold rewards from elsewhere against those of the model."""
    rewards = elsewhere.rewards
    is_pair = rm.dialogue.template is None
    fed = [rm.dialogue.conversations(prompt, [response])[0] for prompt, response in elsewhere.conversations]
    ids = list(elsewhere.ids or fed)
    if is_pair and elsewhere.ids:
        raise InputError(f"{rm.name} reads pairs, and ids do not say where the answer begins: give prompt and response")
    if is_pair:
        prompts, responses = zip(*elsewhere.conversations, strict=True)
        own = rm.score(prompts, responses).astype(float)
    else:
        own = score_sequences(rm, ids).astype(float)
    differences = np.abs(own - rewards)
    worst = int(differences.argmax())
    unit = max(spread(rm), float(own.std()))
    text = f"{len(own)} conversations: largest difference {differences[worst]:.2g}, median {np.median(differences):.2g}"
    if differences[worst] <= unit * (_FULL if rm.spec.dtype == "float32" else _HALF):
        if other := [row for row, (theirs, ours) in enumerate(zip(ids, fed, strict=False), 1) if theirs != ours]:
            return CheckResult("against", "warning", f"{text}; but {len(other)} have other ids, first row {other[0]}")
        return CheckResult("against", "ok", text)
    text += f", at number {worst + 1} ({own[worst]:.4g} here, {rewards[worst]:.4g} there)"
    return CheckResult("against", "failed", text)
