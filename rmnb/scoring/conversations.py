"""Rewards of texts and of whole conversations, on top of the engine; gives `RewardModel` its `score`."""

from collections.abc import Iterable, Sequence

import numpy as np

from rmnb.errors import InputError
from rmnb.models.dialogue import Prompt, check_protocol
from rmnb.models.loading import load_reward_model
from rmnb.models.reward_model import RewardModel
from rmnb.scoring.engine import Ids, score_continuations

__all__ = ["common_prefix", "load_reward_model", "score_responses", "score_sequences"]


def score_responses(rm: RewardModel, prompt: Prompt, responses: Sequence[str], protocol: str = "exact") -> np.ndarray:
    """Rewards of texts as responses to a prompt, float32 [responses]; behind `RewardModel.score`.

    Raises
    ------
    InputError
        No response, an empty one, one that is no text, or an unknown protocol.
    """
    if isinstance(responses, str):
        raise InputError(f"responses must be a list of texts, not one text: give [{responses[:20]!r}]")
    if not isinstance(responses, Iterable):
        raise InputError(f"responses must be a list of texts, not {responses!r}")
    responses = list(responses)  # a pandas Series and an array are lists too
    if not responses:
        raise InputError("no response given: name at least one")
    if odd := [text for text in responses if not isinstance(text, str)]:
        raise InputError(f"responses must be texts, found {odd[0]!r} ({type(odd[0]).__name__})")
    if check_protocol(protocol) == "published":
        return score_sequences(rm, rm.dialogue.published_ids(prompt, responses))
    if "" in responses:
        raise InputError(f"response {responses.index('') + 1} is empty: there is nothing to score")
    return score_sequences(rm, rm.dialogue.conversations(prompt, responses), rm.dialogue.frame(prompt)[0])


def score_sequences(rm: RewardModel, sequences: Sequence[Ids], start: Ids | None = None) -> np.ndarray:
    """Rewards of whole conversations; what they all begin with is run once, identical ones are scored once.

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
    endings = [tuple(ids[len(prefix) :]) for ids in sequences]
    place = {ending: index for index, ending in enumerate(dict.fromkeys(endings))}
    return score_continuations(rm, prefix, list(place))[[place[ending] for ending in endings]]


def common_prefix(sequences: Sequence[Ids]) -> list[int]:
    """The ids that all sequences begin with, at least one id of each left over."""
    first, last = min(map(list, sequences)), max(map(list, sequences))
    longest = min(len(ids) for ids in sequences) - 1
    shared = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), longest)
    return first[: min(shared, longest)]


RewardModel.score = score_responses  # here, where model and engine are both known
