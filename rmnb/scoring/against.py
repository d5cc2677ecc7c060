"""The same model elsewhere: does a server, or whoever wrote a file, give the rewards that the checkpoint gives?

Where it does not, known mistakes are made on purpose, each in turn, and the one that gives the rewards of the other
side is named. The requests are those that the servers' documentation has: vLLM's ``/classify`` and ``/pooling`` and
SGLang's ``/v1/classify`` take ``input``, SGLang's own ``/classify`` takes ``text``; ``use_activation`` asks vLLM for
the raw reward instead of its sigmoid.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import requests
import torch

from rmnb.errors import InputError
from rmnb.models.dialogue import Prompt, as_messages
from rmnb.models.reading import Reading
from rmnb.models.reward_model import RewardModel
from rmnb.scoring.check import CheckResult
from rmnb.scoring.parity import ROUNDING
from rmnb.scoring.row_files import Conversation, conversations_of, read_rows
from rmnb.scoring.rows import score_sequences

Ids = list[int]
QUESTIONS = ("What, in one word, is the greatest thing ever?", "What, in one word, is the worst thing ever?")
#: Of other lengths and kinds, so that each mistake shows.
RESPONSES = ("love", "peace and quiet for everybody, everywhere and always", "7", "It depends on whom you ask.")
_LONG = 2100  # ids: more than servers and tokenizers are set to cut at by habit (512, 1024, 2048)
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
        named = self._model()
        answer = self._ask("post", self.address, json={"input": list(texts), "use_activation": False, **named})
        if answer.status_code in (400, 422):  # SGLang's own endpoint calls its input so
            answer = self._ask("post", self.address, json={"text": list(texts), **named})
        if answer.status_code >= 400:
            raise InputError(f"{self.address} answers {answer.status_code}: {answer.text.strip()[:150]!r}")
        try:
            given = answer.json()
            rows = given["data"] if isinstance(given, dict) else given
            rewards = np.array([_number(row) for row in sorted(rows, key=lambda row: row.get("index", 0))], dtype=float)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InputError(f"{self.address} answers no list of rewards: {answer.text[:100]!r}") from error
        if len(rewards) != len(texts) or not np.isfinite(rewards).all():
            count = np.isfinite(rewards).sum()
            raise InputError(f"{self.address} answers {count} rewards to {len(texts)} conversations")
        return rewards

    def _model(self) -> dict[str, str]:
        """What the server calls its model, if it says."""
        parts = urlsplit(self.address)
        listed = self._ask("get", f"{parts.scheme}://{parts.netloc}/v1/models")
        try:
            return {"model": str(listed.json()["data"][0]["id"])}
        except (requests.RequestException, ValueError, KeyError, IndexError, TypeError):
            return {}

    def _ask(self, verb: str, address: str, **body: Any) -> requests.Response:
        try:
            return requests.request(verb, address, timeout=(10, self.timeout), headers=dict(self.headers), **body)
        except requests.Timeout as error:
            raise InputError(f"{address} has not answered within {self.timeout:g} seconds: --timeout waits") from error
        except requests.RequestException as error:
            raise InputError(f"{address} cannot be reached: {type(error).__name__}: is the server up?") from error


def _number(row: dict[str, Any]) -> float:
    """The one number of an answer: ``probs`` (classify), ``data`` (pooling, perhaps a row a token) or ``embedding``."""
    key = next(key for key in ("probs", "data", "embedding", "score", "") if key in row or not key)
    values = np.ravel(row[key])
    if key == "probs" and len(values) != 1:
        raise ValueError(f"{len(values)} numbers, where a reward model gives one")
    return float(values[-1])


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
    if not np.isfinite(rewards).all():
        place = int(np.flatnonzero(~np.isfinite(rewards))[0])
        raise InputError(f"{path}, row {place + 1}: the reward is no number: {rows[place].get('reward')!r}", path)
    return conversations, rewards


def asked(rm: RewardModel) -> list[Conversation]:
    """What a server is asked: two questions and four responses, a long response, and one after a system prompt."""
    conversations = [Conversation(question, response) for question in QUESTIONS for response in RESPONSES]
    sentence = f"{RESPONSES[1]}. "
    one, two = (len(ids) for ids in rm.dialogue.conversations(QUESTIONS[0], [sentence, sentence * 2]))
    room = min(_LONG, rm.context or _LONG) - one
    conversations.append(Conversation(QUESTIONS[0], (sentence * max(1, room // (two - one))).strip()))
    system = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTIONS[0]}]
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


@dataclass(frozen=True)
class Comparison:
    """Rewards elsewhere against those of the checkpoint.

    Attributes
    ----------
    largest : float
        Difference, in units of reward.
    cause : str or None
        What explains the difference; empty where nothing known does, None where there is none beyond rounding.
    text : str
        The differences, the conversation with the largest one, and the cause.
    """

    largest: float
    cause: str | None
    text: str


def check_against(rm: RewardModel, origin: Server | Path) -> CheckResult:
    """Compare with a server, or with a file of rewards (`read_rewards`).

    Raises
    ------
    InputError
        The endpoint is down or answers nonsense; no such file, or a line that is no reward.
    """
    if isinstance(origin, Server):
        conversations = asked(rm)
        rewards = origin.rewards(rendered(rm, conversations))
    else:
        conversations, rewards = read_rewards(origin)
    found = compare(rm, conversations, rewards)
    return CheckResult("against", "ok" if found.cause is None else "failed", found.text)


def compare(rm: RewardModel, conversations: Sequence[Conversation], rewards: np.ndarray) -> Comparison:
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
    off = np.abs(own - rewards)
    at = int(off.argmax())
    text = f"{len(own)} conversations: largest difference {off[at]:.2g}, median {np.median(off):.2g}"
    if off[at] <= ROUNDING[rm.spec.dtype] * max(1.0, float(np.abs(own).max())):
        return Comparison(float(off[at]), None, text)
    cause = _cause(rm, conversations, ids, own, rewards)
    worst = f"number {at + 1} ({conversations[at].response[:40]!r}: {own[at]:.4g} here, {rewards[at]:.4g} there)"
    text += f", at {worst}; likely cause: {cause or 'none of the known ones (is the template the same?)'}"
    return Comparison(float(off[at]), cause, text)


def _cause(
    rm: RewardModel, conversations: Sequence[Conversation], ids: list[Ids], own: np.ndarray, rewards: np.ndarray
) -> str:
    """The mistake whose rewards are nearest to those of the other side, if they are near at all."""
    spread = float(np.ptp(own)) or 1.0
    rounding = ROUNDING["float32"] * max(1.0, float(np.abs(own).max()))
    for smallest in (rounding, _HALF * spread):
        if of_some := _cause_of_some(rm, conversations, ids, np.abs(own - rewards) > smallest):
            return of_some
    short = np.array([len(each) <= _SHORT for each in ids])
    if not short.any():
        short[:] = True
    prompts = [one.prompt for one, is_short in zip(conversations, short, strict=True) if is_short]
    longest = max(map(len, ids))
    ids = [each for each, is_short in zip(ids, short, strict=True) if is_short]
    own, rewards = own[short], rewards[short]
    made = {"": own, **_mistakes(rm, prompts, ids, longest)}
    varied = len(own) > 2 and np.ptp(own) > 0 and np.ptp(rewards) > 0
    if varied:
        with np.errstate(over="ignore"):
            made["a sigmoid over the reward: ask for the raw score"] = 1 / (1 + np.exp(-own))
    off = {name: float(np.abs(values - rewards).max()) for name, values in made.items()}
    nearest = min(off, key=lambda name: off[name])
    if off[nearest] > _HALF * spread:
        if varied and abs(np.corrcoef(own, rewards)[0, 1]) > 0.9999:
            slope, shift = np.polyfit(own, rewards, 1)
            return f"another scale: its reward is {slope:.4g} times this one {shift:+.4g}"
        return ""
    if off[nearest] <= rounding:
        return nearest
    small = (
        "half precision" if _is_half(rm, ids, own, rewards) else "small differences that half precision would not make"
    )
    return small if not nearest else f"{nearest}, {small}"


def _cause_of_some(
    rm: RewardModel, conversations: Sequence[Conversation], ids: list[Ids], differs: np.ndarray
) -> str | None:
    """What the conversations that differ have in common, where the others agree."""
    if differs.all() or not differs.any():
        return None
    lengths = np.array([len(each) for each in ids])
    first = int(lengths[differs].min())
    if first > max(_SHORT, lengths[~differs].max()):
        return f"long conversations are truncated: the shortest that differs has {first} tokens"
    system = [as_messages(one.prompt)[0]["role"] == "system" for one in conversations]
    if np.array_equal(differs, system):
        return "the system prompt is left out or written otherwise"
    special = rm.tokenizer.all_special_tokens
    if np.array_equal(differs, [any(text in one.response for text in special) for one in conversations]):
        return "special tokens that a response spells out are control tokens there, plain text here"
    return None


def _is_half(rm: RewardModel, ids: list[Ids], own: np.ndarray, rewards: np.ndarray) -> bool:
    """Whether small differences go the way that half precision moves these very rewards."""
    for dtype in (torch.bfloat16, torch.float16):
        network = copy.deepcopy(rm.network).to(dtype)
        spec = rm.spec.model_copy(update={"dtype": str(dtype).removeprefix("torch.")})
        rough = replace(rm, network=network, spec=spec, plain_because="compared in half precision")
        try:
            moved = score_sequences(rough, ids) - own
        except InputError:  # float16 overflows in some models
            continue
        if np.ptp(moved) and np.corrcoef(moved, rewards - own)[0, 1] > 0.5:
            return True
    return False


def _mistakes(rm: RewardModel, prompts: list[Prompt], ids: list[Ids], longest: int) -> dict[str, np.ndarray]:
    """Rewards under each known mistake that changes the ids or the place that is read."""
    bos, closing = rm.tokenizer.bos_token_id, {str(prompt): len(rm.dialogue.frame(prompt)[1]) for prompt in prompts}
    changes: dict[str, Callable[[Ids, int], Ids]] = {
        "the closing id is missing": lambda one, after: one[:-1],
        "all closing ids are missing": lambda one, after: one[: len(one) - after],
    }
    if bos is not None:
        changes["BOS is doubled: the template writes one and the tokenizer another"] = lambda one, after: [bos, *one]
        if all(one[0] == bos for one in ids):
            changes["BOS is missing"] = lambda one, after: one[1:]
    # Where a padded batch is read at its end, or its padding is attended to: at other places for other lengths.
    for i in {rm.tokenizer.pad_token_id, rm.tokenizer.eos_token_id, 0} - {None}:
        name, padding = repr(rm.tokenizer.decode([i])), [i] * longest
        changes[f"padding on the right ({name}) is read"] = lambda one, after, padding=padding: (
            [*one, *padding[len(one) :]]
        )
        changes[f"padding on the left ({name}) is attended to"] = lambda one, after, padding=padding: (
            [*padding[len(one) :], *one]
        )
    last = replace(rm, reading=Reading("last"))
    made = {}
    for name, change in changes.items():
        changed = [change(one, closing[str(prompt)]) for one, prompt in zip(ids, prompts, strict=True)]
        if all(changed):
            reader = last if name.startswith("padding") else rm
            made[name] = np.array([score_sequences(reader, [one])[0] for one in changed], dtype=float)
    if rm.reading.rule not in ("last", "own"):
        made["read at the last id, padding or not"] = score_sequences(last, ids).astype(float)
    return made
