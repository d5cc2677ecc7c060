"""The same model elsewhere: does a server, or whoever wrote a file, give the rewards that the checkpoint gives?

Where it does not, known mistakes are made on purpose, each in turn, and the one that gives the rewards of the other
side is named. The requests are those that the servers' documentation has: vLLM's ``/classify`` and ``/pooling`` and
SGLang's ``/v1/classify`` take ``input``, SGLang's own ``/classify`` takes ``text``; ``use_activation`` asks vLLM for
the raw reward instead of its sigmoid.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import requests

from rmnb.errors import InputError
from rmnb.models.dialogue import as_messages
from rmnb.models.reward_model import RewardModel
from rmnb.scoring.check import CheckResult
from rmnb.scoring.parity import ROUNDING
from rmnb.scoring.row_files import Conversation, conversations_of, read_rows, truncate
from rmnb.scoring.rows import score_sequences

Ids = list[int]
QUESTIONS = ("What, in one word, is the greatest thing ever?", "What, in one word, is the worst thing ever?")
#: Of other lengths and kinds, so that each mistake shows.
RESPONSES = ("love", "peace and quiet for everybody, everywhere and always", "7", "It depends on whom you ask.")
_LONG = 250 * f"{RESPONSES[1]}. "  # more ids than servers and tokenizers are set to cut at by habit (512, 1024, 2048)
_SHORT = 200  # ids: what is longer does not take part in padding a batch
_HALF = 0.03  # of the spread of rewards: what half precision may move them by


@dataclass(frozen=True)
class Server:
    """An endpoint that gives rewards.

    Attributes
    ----------
    address : str
        Of its classify or pooling endpoint.
    timeout : float
        Seconds until an answer must be there.
    headers : dict
        Sent with each request, such as ``Authorization``.
    """

    address: str
    timeout: float = 60
    headers: Mapping[str, str] = field(default_factory=dict)

    def rewards(self, texts: Sequence[str]) -> np.ndarray:
        """Rewards of filled chat templates, float64 [texts].

        Raises
        ------
        InputError
            The endpoint is down, refuses, or answers something that is not one number a text.
        """
        answer = self._post({"input": list(texts), "use_activation": False})
        if answer.status_code in (400, 422):  # SGLang's own endpoint calls its input so
            answer = self._post({"text": list(texts)})
        if answer.status_code >= 400:
            raise InputError(f"{self.address} answers {answer.status_code}: {answer.text.strip()[:150]!r}")
        try:
            rows = answer.json()
            rows = rows["data"] if isinstance(rows, dict) else rows
            rewards = np.array([_number(row) for row in sorted(rows, key=lambda row: row.get("index", 0))])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InputError(f"{self.address} answers no list of rewards: {answer.text[:100]!r}") from error
        if np.isfinite(rewards).sum() != len(texts):
            raise InputError(
                f"{self.address} answers {len(rewards)} rewards to {len(texts)} conversations, or no numbers"
            )
        return rewards

    def _post(self, body: dict[str, Any]) -> requests.Response:
        try:
            return requests.post(self.address, json=body, timeout=(10, self.timeout), headers=dict(self.headers))
        except requests.Timeout as error:
            raise InputError(f"{self.address} has not answered within {self.timeout:g} s: --timeout waits") from error
        except requests.RequestException as error:
            raise InputError(f"{self.address} cannot be reached: {type(error).__name__}: is the server up?") from error


def _number(row: dict[str, Any]) -> float:
    """The one number of an answer: ``probs`` (classify), ``data`` (pooling, perhaps a row a token) or ``embedding``."""
    if "probs" in row:
        [reward] = row["probs"]
        return float(reward)
    return float(np.ravel(row.get("data") or row["embedding"])[-1])


def read_rewards(path: Path) -> tuple[list[Conversation], np.ndarray]:
    """Conversations, and their rewards, from a file of rows with a reward each (`rmnb.scoring.row_files`).

    Raises
    ------
    InputError
        As `read_rows` and `conversations_of`; a reward is missing, or is no number.
    """
    rows = read_rows(path)
    conversations = conversations_of(rows).get("response")
    if conversations is None:
        raise InputError(f"{path} holds pairs: each row takes prompt, response and reward", path)
    rewards = pd.to_numeric(pd.Series([row.get("reward") for row in rows]), errors="coerce").to_numpy(float)
    if bad := np.flatnonzero(~np.isfinite(rewards)).tolist():
        raise InputError(f"{path}, row {bad[0] + 1}: the reward is no number: {rows[bad[0]].get('reward')!r}", path)
    return conversations, rewards


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
    return [
        rm.dialogue.render([*as_messages(one.prompt), {"role": "assistant", "content": one.response}])
        for one in conversations
    ]


def check_against(rm: RewardModel, origin: Server | Path) -> CheckResult:
    """Compare with a server, or with a file of rewards (`read_rewards`).

    Raises
    ------
    InputError
        The endpoint is down or answers nonsense; no such file, or a line that is no reward.
    """
    if isinstance(origin, Server):
        conversations = probes(rm)
        return compare(rm, conversations, origin.rewards(rendered(rm, conversations)))
    return compare(rm, *read_rewards(origin))


def compare(rm: RewardModel, conversations: Sequence[Conversation], rewards: np.ndarray) -> CheckResult:
    """Hold rewards from elsewhere against those of the model, and find out what went wrong.

    Parameters
    ----------
    rm
        The reward model.
    conversations
        What was scored.
    rewards
        float [conversations], as the other side gave them.
    """
    ids = [rm.dialogue.conversations(one.prompt, [one.response])[0] for one in conversations]
    own = score_sequences(rm, ids).astype(float)
    differences = np.abs(own - rewards)
    at = int(differences.argmax())
    text = f"{len(own)} conversations: largest difference {differences[at]:.2g}, median {np.median(differences):.2g}"
    tolerances = {dtype: limit * max(1.0, float(np.abs(own).max())) for dtype, limit in ROUNDING.items()}
    if differences[at] <= tolerances[rm.spec.dtype]:
        return CheckResult("against", "ok", text)
    differs = differences > tolerances["float32"]
    cause = _cause_of_some(rm, conversations, ids, differs) or _cause_of_all(rm, ids, own, rewards)
    text += f", at number {at + 1} ({conversations[at].response[:40]!r}: {own[at]:.4g} here, {rewards[at]:.4g} there)"
    return CheckResult("against", "failed", f"{text}; likely cause: {cause}")


def _cause_of_some(
    rm: RewardModel, conversations: Sequence[Conversation], ids: list[Ids], differs: np.ndarray
) -> str | None:
    """What the conversations that differ have in common, where the others agree."""
    if differs.all():
        return None
    lengths, special = np.array(list(map(len, ids))), rm.tokenizer.all_special_tokens
    shared = {
        "long conversations are truncated": lengths >= max(_SHORT, lengths[differs].min()),
        "the system prompt is left out": [as_messages(one.prompt)[0]["role"] == "system" for one in conversations],
        "special tokens that a response spells out are control tokens there, plain text here": [
            any(text in one.response for text in special) for one in conversations
        ],
    }
    return next((cause for cause, has in shared.items() if np.array_equal(differs, has)), None)


def _cause_of_all(rm: RewardModel, ids: list[Ids], own: np.ndarray, rewards: np.ndarray) -> str:
    """The mistake, made on purpose, that gives nearly the rewards of the other side."""
    bos = [] if rm.tokenizer.bos_token_id is None else [rm.tokenizer.bos_token_id]
    has_room = np.array([len(one) < (rm.context or np.inf) for one in ids])
    ids, own, rewards = [one for one, has in zip(ids, has_room, strict=True) if has], own[has_room], rewards[has_room]
    mistakes = {
        "the closing id is missing": [one[:-1] for one in ids],
        "BOS is doubled: the template writes one and the tokenizer another": [bos + one for one in ids],
        "BOS is missing": [one[len(bos) :] for one in ids],
    }
    made = {"differences as small as half precision makes": own}
    made["a sigmoid over the reward: ask for the raw score"] = 1 / (1 + np.exp(-own.clip(-500)))
    made |= {cause: score_sequences(rm, changed) for cause, changed in mistakes.items()}
    margin = _HALF * np.ptp(own)
    for cause, values in made.items():
        if np.abs(values - rewards).max() <= margin:
            return cause
    slope, shift = np.polyfit(own, rewards, 1)
    if np.abs(slope * own + shift - rewards).max() < margin * abs(slope):
        return f"another scale: its reward is {slope:.4g} times this one {shift:+.4g}"
    return "none of the known ones (is the template the same?)"
