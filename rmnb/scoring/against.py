"""The same model elsewhere: does a server, or whoever wrote a file, give the rewards that the checkpoint gives?

Where it does not, known mistakes are made on purpose, each in turn, and the one that gives the rewards of the other
side is named.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rmnb.models.dialogue import Prompt, as_messages
from rmnb.models.reading import Reading
from rmnb.models.reward_model import RewardModel
from rmnb.scoring import endpoint
from rmnb.scoring.check import Finding
from rmnb.scoring.conversations import score_sequences
from rmnb.scoring.endpoint import Conversation
from rmnb.scoring.proof import ROUNDING

Ids = list[int]
QUESTIONS = ("What, in one word, is the greatest thing ever?", "What, in one word, is the worst thing ever?")
RESPONSES = ("love", "war", "peace and quiet for everybody, everywhere and always", "7", "It depends on whom you ask.")
#: Of other lengths and kinds, so that each mistake shows.
CONVERSATIONS = [Conversation(question, response) for question in QUESTIONS for response in RESPONSES]
_HALF = 0.03  # of the spread of rewards: what half precision may move them by


@dataclass(frozen=True)
class Comparison:
    """Rewards elsewhere against those of the checkpoint.

    Attributes
    ----------
    largest, median : float
        Differences, in units of reward.
    correlation : float
        Spearman's rank correlation of the two.
    n : int
        Conversations.
    same : bool
        Whether they differ by rounding alone.
    cause : str
        What explains the difference; empty where nothing known does, or nothing has to.
    worst : str
        The conversation with the largest difference, and both of its rewards.
    """

    largest: float
    median: float
    correlation: float
    n: int
    same: bool
    cause: str
    worst: str

    def __str__(self) -> str:
        text = (
            f"{self.n} conversations: largest difference {self.largest:.2g}, median {self.median:.2g}, "
            f"rank correlation {self.correlation:.3f}"
        )
        if self.same:
            return text
        cause = self.cause or "none of the known ones (is the template the same?)"
        return f"{text}, at {self.worst}; likely cause: {cause}"


def check_against(rm: RewardModel, origin: str) -> Finding:
    """Compare with a server, by its address, or with a file of rewards, by its path; see `rmnb.scoring.endpoint`.

    Raises
    ------
    InputError
        The endpoint is down or answers nonsense; no such file, or a line that is no reward.
    """
    if endpoint.is_address(origin):
        conversations = CONVERSATIONS
        rewards = endpoint.ask(origin, rendered(rm, conversations))
    else:
        conversations = endpoint.read_rewards(Path(origin))
        rewards = np.array([one.reward for one in conversations])
    found = compare(rm, conversations, rewards)
    return Finding("against", "ok" if found.same else "failed", str(found))


def rendered(rm: RewardModel, conversations: Sequence[Conversation]) -> list[str]:
    """Conversations as text in the model's own template, which a server tokenises itself."""
    return [
        rm.dialogue.render([*as_messages(one.prompt), {"role": "assistant", "content": one.response}])
        for one in conversations
    ]


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
    scale = max(1.0, float(np.abs(own).max()))
    off = np.abs(own - rewards)
    same = bool(off.max() <= ROUNDING[rm.spec.dtype] * scale)
    rank = (
        float(pd.Series(own).corr(pd.Series(rewards), method="spearman"))
        if len(own) > 1 and np.ptp(own) and np.ptp(rewards)
        else np.nan
    )
    cause = "" if same else _cause(rm, [one.prompt for one in conversations], ids, own, rewards)
    at = int(off.argmax())
    worst = f"number {at + 1} ({conversations[at].response[:40]!r}: {own[at]:.4g} here, {rewards[at]:.4g} there)"
    return Comparison(float(off.max()), float(np.median(off)), rank, len(own), same, cause, worst)


def _cause(rm: RewardModel, prompts: list[Prompt], ids: list[Ids], own: np.ndarray, rewards: np.ndarray) -> str:
    """The mistake whose rewards are nearest to those of the other side, if they are near at all."""
    made = {"": own, **_mistakes(rm, prompts, ids)}
    off = {name: float(np.abs(values - rewards).max()) for name, values in made.items()}
    if len(own) > 2 and np.ptp(rewards) > 0:
        with np.errstate(over="ignore"):
            squashed = 1 / (1 + np.exp(-own))
        off["a sigmoid over the reward: ask for the raw score"] = float(np.abs(squashed - rewards).max())
    nearest = min(off, key=lambda name: off[name])
    spread = float(np.ptp(own)) or 1.0
    if off[nearest] > _HALF * spread:
        if len(own) > 2 and np.ptp(own) and np.ptp(rewards) and abs(np.corrcoef(own, rewards)[0, 1]) > 0.9999:
            slope, shift = np.polyfit(own, rewards, 1)
            return f"another scale: its reward is {slope:.4g} times this one {shift:+.4g}"
        return ""
    half = off[nearest] > ROUNDING["float32"] * max(1.0, float(np.abs(own).max()))
    return ", ".join(filter(None, [nearest, "half precision" if half else ""]))


def _mistakes(rm: RewardModel, prompts: list[Prompt], ids: list[Ids]) -> dict[str, np.ndarray]:
    """Rewards under each known mistake that changes the ids or the place that is read."""
    words: Any = rm.tokenizer
    bos, pad = words.bos_token_id, words.pad_token_id
    closing = {str(prompt): len(rm.dialogue.frame(prompt)[1]) for prompt in prompts}
    longest = max(map(len, ids))
    changes: dict[str, Callable[[Ids, int], Ids]] = {
        "the closing id is missing": lambda one, after: one[:-1],
        "all closing ids are missing": lambda one, after: one[: len(one) - after],
    }
    if bos is not None:
        changes["BOS is doubled: the template writes one and the tokenizer another"] = lambda one, after: [bos, *one]
        if all(one[0] == bos for one in ids):
            changes["BOS is missing"] = lambda one, after: one[1:]
    # Where a padded batch is read at its end, or its padding is attended to: at other places for other lengths.
    last = replace(rm, reading=Reading("last"))
    for each in dict.fromkeys((pad, words.eos_token_id, 0)):
        if each is not None:
            name = repr(words.decode([each]))
            changes[f"padding on the right ({name}) is read"] = lambda one, after, i=each: (
                [*one, *[i] * (longest - len(one))]
            )
            changes[f"padding on the left ({name}) is attended to"] = lambda one, after, i=each: (
                [*[i] * (longest - len(one)), *one]
            )
    made = {}
    for name, change in changes.items():
        changed = [change(one, closing[str(prompt)]) for one, prompt in zip(ids, prompts, strict=True)]
        if all(changed):
            reader = last if name.startswith("padding") else rm
            made[name] = np.array([score_sequences(reader, [one])[0] for one in changed], dtype=float)
    if rm.reading.rule not in ("last", "own"):
        made["read at the last id, padding or not"] = score_sequences(last, ids).astype(float)
    return made
