"""The same model elsewhere: does a server, or whoever wrote a file, give the rewards that the checkpoint gives?

Where it does not, known mistakes are made on purpose, each in turn, and the one that gives the rewards of the other
side is named. The requests are those that the servers' documentation has: vLLM's ``/classify`` and ``/pooling`` and
SGLang's ``/v1/classify`` take ``input``, SGLang's own ``/classify`` takes ``text``; ``use_activation`` asks vLLM for
the raw reward instead of its sigmoid.
"""

from collections.abc import Iterator, Mapping, Sequence
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
        try:
            # SGLang's own endpoint calls its input text.
            for body in ({"input": list(texts), "use_activation": False}, {"text": list(texts)}):
                answer = requests.post(self.address, json=body, timeout=(10, self.timeout), headers=dict(self.headers))
                if answer.status_code not in (400, 422):
                    break
        except requests.RequestException as error:
            advice = f"is the server up, and are {self.timeout:g} s enough (--timeout)?"
            raise InputError(f"{self.address} does not answer: {type(error).__name__}: {advice}") from error
        try:
            rows = answer.json()
            rows = rows["data"] if isinstance(rows, dict) else rows
            rewards = np.array([_number(row) for row in sorted(rows, key=lambda row: row.get("index", 0))])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            found = f"{answer.status_code}, no list of rewards: {answer.text.strip()[:150]!r}"
            raise InputError(f"{self.address} answers {found}") from error
        if np.isfinite(rewards).sum() != len(texts):
            raise InputError(f"{self.address} answers {len(rewards)} rewards to {len(texts)} texts, or no numbers")
        return rewards


def _number(row: dict[str, Any]) -> float:
    """The one number of an answer: ``probs`` (classify), ``data`` (pooling, perhaps a row a token) or ``embedding``."""
    [reward] = row["probs"] if "probs" in row else np.ravel(row.get("data") or row["embedding"])[-1:]
    return float(reward)


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
    if isinstance(origin, Path):
        return compare(rm, *read_rewards(origin))
    conversations = probes(rm)
    return compare(rm, conversations, origin.rewards(rendered(rm, conversations)))


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
    scale = max(1.0, float(np.abs(own).max()))
    if differences[at] <= ROUNDING[rm.spec.dtype] * scale:
        return CheckResult("against", "ok", text)
    causes = _causes(rm, conversations, ids, own, rewards, differences > ROUNDING["float32"] * scale)
    cause = next(cause for cause, explains in causes if explains)
    text += f", at number {at + 1} ({conversations[at].response[:40]!r}: {own[at]:.4g} here, {rewards[at]:.4g} there)"
    return CheckResult("against", "failed", f"{text}; likely cause: {cause}")


def _causes(
    rm: RewardModel,
    conversations: Sequence[Conversation],
    ids: list[Ids],
    own: np.ndarray,
    rewards: np.ndarray,
    differs: np.ndarray,
) -> Iterator[tuple[str, bool]]:
    """Known mistakes, and whether each explains the rewards of the other side; the last always does."""
    lengths = np.array([len(one) for one in ids])
    if not differs.all():  # what the conversations that differ have in common, where the others agree
        special, short = rm.tokenizer.all_special_tokens, max(_SHORT, lengths[differs].min())
        system = [as_messages(prompt)[0]["role"] == "system" for prompt, _ in conversations]
        spelled = [any(text in response for text in special) for _, response in conversations]
        yield "long conversations are truncated", np.array_equal(differs, lengths >= short)
        yield "the system prompt is left out", np.array_equal(differs, system)
        spells = "special tokens that a response spells out are control tokens there, plain text here"
        yield spells, np.array_equal(differs, spelled)
    has_room = lengths < (rm.context or np.inf)
    ids, own, rewards = [ids[place] for place in np.flatnonzero(has_room)], own[has_room], rewards[has_room]
    margin = _HALF * np.ptp(own)

    def explains(values: np.ndarray) -> bool:
        return np.abs(values - rewards).max() <= margin

    yield "differences as small as half precision makes", explains(own)
    yield "a sigmoid over the reward: ask for the raw score", explains(1 / (1 + np.exp(-own.clip(-500))))
    bos = [] if rm.tokenizer.bos_token_id is None else [rm.tokenizer.bos_token_id]
    doubled = "BOS is doubled: the template writes one and the tokenizer another"
    yield "the closing id is missing", explains(score_sequences(rm, [one[:-1] for one in ids]))
    yield doubled, explains(score_sequences(rm, [bos + one for one in ids]))
    yield "BOS is missing", explains(score_sequences(rm, [one[len(bos) :] for one in ids]))
    slope, shift = np.polyfit(own, rewards, 1)
    same = np.abs(slope * own + shift - rewards).max() < margin * abs(slope)
    yield f"another scale: its reward is {slope:.4g} times this one {shift:+.4g}", same
    yield "none of the known ones (is the template the same?)", True
