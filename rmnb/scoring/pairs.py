"""All answers of two tokens of a list: the reward of every pair.

The first token lengthens the prefix that is run once, so that a pair costs no more than a token.
"""

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from tqdm import tqdm

from rmnb.errors import InputError
from rmnb.models.reward_model import RewardModel
from rmnb.panels import PromptSpec
from rmnb.plans import ResumableStore
from rmnb.scoring.engine import NonFiniteReward, PrefixScorer
from rmnb.scoring.scanning import describe_prompt, ids_sha256
from rmnb.scoring.store import Provenance, describe_model, read_finished

BATCH = 500  # second tokens at once


def scan_pairs(
    rm: RewardModel, prompt: PromptSpec, ids: Sequence[int], output: Path, progress: bool = False
) -> tuple[Float[np.ndarray, "ids ids"], Provenance]:
    """The reward of every pair of tokens as the response to a prompt.

    Rewards are kept beside `output` as they are computed; called again after an interruption, the scan goes on and ends
    bit-identical. `ResumableStore.discard` removes what is kept.

    Parameters
    ----------
    rm
        The reward model.
    prompt
        The question.
    ids
        Token ids.
    output
        Where the caller will write the pairs, with the provenance.
    progress
        Show a progress bar.

    Returns
    -------
    rewards : ndarray
        float32 [first token, second token].
    provenance : dict
        What was scored and how.

    Raises
    ------
    InputError
        A reward is not finite (the pair is named), or what is at `output` is of another plan.
    """
    prefix, closing = rm.dialogue.frame(prompt.conversation)
    plan = {**describe_model(rm), **describe_prompt(rm, prompt, "exact"), "ids_sha256": ids_sha256(ids)}
    read_finished(output, plan)  # refuses another plan's
    pieces = ResumableStore(output, {**plan, "batch_size": BATCH})

    def score(first: int) -> np.ndarray:
        start = [*prefix, first]
        try:
            return PrefixScorer(rm, start)([rm.reading.kept(start, (second, *closing)) for second in ids], BATCH)
        except NonFiniteReward as error:
            pair = (first, ids[error.index])
            raise InputError(f"the reward of the pair of tokens {pair} is {error.reward}: {error.advice}") from error

    rows = [
        pieces.rewards(place, functools.partial(score, first))
        for place, first in enumerate(tqdm(ids, unit=" first tokens", disable=not progress))
    ]
    return np.stack(rows), pieces.begun
