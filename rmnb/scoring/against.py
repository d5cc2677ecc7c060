"""Hold rewards from elsewhere, a server's or a file's, against those of the model, and say where they part.

Requests to servers are those that their documentation has: vLLM's ``/classify`` and ``/pooling`` and SGLang's
``/v1/classify`` take ``input``, SGLang's own ``/classify`` takes ``text``, OpenRLHF's ``serve_rm`` takes ``query``; of
a model that reads pairs vLLM's ``/score`` takes ``text_1`` and ``text_2``. ``use_activation`` asks vLLM for the raw
reward instead of its sigmoid.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import requests
from pydantic import BaseModel, Field, FiniteFloat, StrictInt

from rmnb.conversation import as_conversation
from rmnb.errors import InputError, list_some
from rmnb.models.dialogue import common_prefix
from rmnb.panels.specs import validate
from rmnb.scoring.check import CheckResult
from rmnb.scoring.engine import score_sequences
from rmnb.scoring.forms import Exchange, read_forms
from rmnb.scoring.parity import QUESTION, spread
from rmnb.scoring.reward_model import RewardModel
from rmnb.scoring.row_files import read_rows
from rmnb.scoring.rows import truncate

QUESTIONS = (QUESTION, "What, in one word, is the worst thing ever?")
#: Of other lengths and kinds, so that each mistake shows.
RESPONSES = ("love", "peace and quiet for everybody, everywhere and always", "7", "It depends on whom you ask.")
_LONG = 250 * f"{RESPONSES[1]}. "  # more ids than servers and tokenizers are set to cut at by habit (512, 1024, 2048)
_SHOWN = 5  # ids from where two lists part
# Of the rewards' standard deviation: what other code in fp32 may move them by, and what half precision may.
_FULL, _HALF = 1e-3, 0.1


@dataclass(frozen=True)
class Elsewhere:
    """Rewards from elsewhere, float [rows], of conversations, or of ids as they were fed there, or both."""

    rewards: np.ndarray
    conversations: Sequence[Exchange] = ()
    ids: Sequence[list[int]] = ()


class _Rewarded(BaseModel):
    """What a row says beside its conversation."""

    reward: FiniteFloat
    ids: list[Annotated[StrictInt, Field(ge=0)]] = []


def read_elsewhere(path: Path) -> Elsewhere:
    """Rewards of a file of rows: each has a reward, and a conversation (`rmnb.scoring.rows`) or ids (a list), or both.

    Raises
    ------
    InputError
        As `read_rows` and `read_forms`; ids are no list of numbers; a reward is missing, or is no number.
    """
    rows = read_rows(path)
    if rows and not rows[0].keys() & {"reward"}:
        keys = list_some(rows[0])
        raise InputError(f"{path}: a row takes reward, and prompt and response, or ids; the first has {keys}", path)
    known = [validate(_Rewarded, row, f"{path}, row {number}") for number, row in enumerate(rows, start=1)]
    rewards = np.array([row.reward for row in known])
    ids = [row.ids for row in known if row.ids]
    if ids and len(ids) < len(rows):
        raise InputError(f"{path}: some rows have ids, and some have none", path)
    if ids and not rows[0].keys() & {"response", "messages"}:
        return Elsewhere(rewards, ids=ids)
    content = read_forms(rows, ignore=["ids", "reward"])
    if content.kind != "single":
        raise InputError(f"{path} holds several responses a row: each takes prompt, response and reward", path)
    return Elsewhere(rewards, [answer.conversation for answer in content.answers], ids)


def probes(rm: RewardModel) -> list[Exchange]:
    """What a server is asked: two questions and four responses, a long response, and one after a system prompt."""
    asked = list(map(as_conversation, QUESTIONS))
    conversations = [Exchange(question, response) for question in asked for response in RESPONSES]
    conversations.append(truncate(rm, Exchange(asked[0], _LONG)))
    system = as_conversation([{"role": "system", "content": "Be brief."}, *asked[0].messages])
    try:
        rm.dialogue.conversations(system, ["love"])
    except InputError:  # a template that takes no system prompt
        return conversations
    return [*conversations, Exchange(system, "love")]


def request_bodies(rm: RewardModel, conversations: Sequence[Exchange]) -> list[dict[str, Any]]:
    """The forms in which servers are asked for the rewards of conversations, one after the other until one is taken.

    A conversation is text in the model's own template, which a server tokenises itself, or a pair.
    """
    if rm.dialogue.template is None:
        prompts, responses = zip(*conversations, strict=True)
        return [{"text_1": prompts, "text_2": responses, "use_activation": False}]
    texts = [rm.dialogue.render(prompt, response) for prompt, response in conversations]
    return [{"input": texts, "use_activation": False}, {"text": texts}, {"query": texts}]


def request_rewards(
    address: str, bodies: Sequence[Mapping[str, Any]], timeout: float = 60, headers: Mapping[str, str] | None = None
) -> np.ndarray:
    """Rewards of conversations by a server.

    Parameters
    ----------
    address
        Of its endpoint.
    bodies
        See `request_bodies`.
    timeout
        Seconds until an answer must be there.
    headers
        Sent with each request, such as ``Authorization``.

    Returns
    -------
    np.ndarray
        float64 [conversations].

    Raises
    ------
    InputError
        The endpoint is down, refuses, or answers something that is not one number a conversation.
    """
    answer: Any = None
    try:
        for body in bodies:
            answer = requests.post(address, json=body, timeout=(10, timeout), headers=headers)
            if answer.status_code not in (400, 422, 500):  # of a form that it does not know, serve_rm says 500
                break
    except requests.RequestException as error:
        advice = f"is the server up, and are {timeout:g} s enough (--timeout)?"
        raise InputError(f"{address} does not answer: {type(error).__name__}: {advice}") from error
    try:
        rows = answer.json()
        if isinstance(rows, dict):
            rows = rows["data"] if "data" in rows else [{"rewards": reward} for reward in rows["rewards"]]
        in_order = sorted(rows, key=lambda row: row.get("index", 0))
        rewards = np.array([_number(row) for row in in_order])
    except (ValueError, TypeError, KeyError, AttributeError, StopIteration) as error:
        reason = str(error) if isinstance(error, InputError) else "no list of rewards"
        content = f"{answer.status_code}, {reason}: {answer.text.strip()[:150]!r}"
        raise InputError(f"{address} answers {content}") from error
    count = len(next(value for value in bodies[0].values() if isinstance(value, Sequence)))
    if np.isfinite(rewards).sum() != count:
        raise InputError(f"{address} answers {len(rewards)} rewards to {count} texts, or no numbers")
    return rewards


def _number(row: dict[str, Any]) -> float:
    """The one number of an answer: ``probs`` (classify), ``data`` (pooling, perhaps one a token), ``embedding`` …"""
    content = next(row[key] for key in ("probs", "data", "embedding", "score", "rewards") if row.get(key) is not None)
    numbers = np.atleast_1d(content).astype(float)
    if numbers.shape[-1] > 1:
        raise InputError(f"{numbers.shape[-1]} numbers each: hidden states or classes, not a reward")
    return float(numbers.ravel()[-1])


def compare_rewards(rm: RewardModel, elsewhere: Elsewhere) -> CheckResult:
    """Hold rewards from elsewhere against those of the model, and say in which conversations they part."""
    rm.refuse_several("a comparison of rewards")
    rewards = elsewhere.rewards
    conversations = elsewhere.conversations
    if rm.dialogue.template is None and elsewhere.ids:
        raise InputError(f"{rm.name} reads pairs, and ids do not say where the answer begins: give prompt and response")
    fed = [rm.dialogue.conversations(prompt, [response])[0] for prompt, response in conversations]
    ids = list(elsewhere.ids or fed)
    starts = None if elsewhere.ids else [rm.answer_start(prompt) for prompt, _ in conversations]
    own = score_sequences(rm, ids, starts).astype(float)
    differences = np.abs(own - rewards)
    worst = int(differences.argmax())
    tolerance = max(spread(rm), float(own.std())) * (_FULL if rm.spec.dtype == "float32" else _HALF)
    text = f"{len(own)} conversations: largest difference {differences[worst]:.2g}, median {np.median(differences):.2g}"
    verdict = "ok"
    parted = np.flatnonzero(differences > tolerance)
    if len(parted):
        verdict = "failed"
        lengths = [len(ids[number]) for number in parted]
        text += (
            f"; {len(parted)} part, of {min(lengths)} to {max(lengths)} ids, first number {parted[0] + 1}; "
            f"most at number {worst + 1} ({own[worst]:.4g} here, {rewards[worst]:.4g} there)"
        )
    for number, (theirs, ours) in enumerate(zip(ids, fed, strict=False), 1):
        if theirs != ours:
            place = len(common_prefix([[*theirs, -1], [*ours, -2]]))  # no ids
            there, here = theirs[place : place + _SHOWN], ours[place : place + _SHOWN]
            text += f"; ids part at number {number}, place {place + 1}: {there or 'none'} there, {here or 'none'} here"
            verdict = "warning" if verdict == "ok" else verdict
            break
    return CheckResult("against", verdict, text)
