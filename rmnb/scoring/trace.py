"""The reward of a response as it grows, token by token."""

import numpy as np
import pandas as pd

from rmnb.errors import InputError
from rmnb.models.dialogue import Prompt
from rmnb.models.reward_model import RewardModel
from rmnb.scoring.engine import score_continuations
from rmnb.scoring.rows import check_prompt, common_prefix


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
    first = 0 if closing else 1  # without a closing id, an empty response has no reward
    rewards = score_continuations(rm, prefix, [[*own[:end], *closing] for end in range(first, len(own) + 1)])
    rewards = np.concatenate([[np.nan] * first, rewards]).astype(np.float32)
    return pd.DataFrame(
        {
            "position": np.arange(1, len(own) + 1),
            "token_id": own,
            "token": [rm.tokenizer.decode([i]) for i in own],
            "reward": rewards[1:],
            "change": np.diff(rewards),
        }
    )
