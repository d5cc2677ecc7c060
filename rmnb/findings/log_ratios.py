"""What the log-probabilities of two language models say of them: mixture-weighted log ratios and implicit rewards."""

import numpy as np
import pandas as pd

from rmnb.errors import InputError


def mwlr(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Mixture-weighted log ratio ½ (p₁ + p₂) (log p₁ − log p₂), positive where the first model prefers a token.

    Parameters
    ----------
    first, second
        Natural log-probabilities of the same tokens; they need not sum to one, and are not renormalised.

    Returns
    -------
    np.ndarray
        float64, of the common shape; 0 where both probabilities are 0.

    References
    ----------
    Christian et al. 2026, section 4 (arXiv 2601.20838).
    """
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    neither = np.isneginf(first) & np.isneginf(second)
    ratio = np.subtract(first, second, out=np.zeros(np.broadcast(first, second).shape), where=~neither)
    return 0.5 * (np.exp(first) + np.exp(second)) * ratio


def implicit_reward(tuned: np.ndarray, reference: np.ndarray, beta: float = 1.0) -> np.ndarray:
    """The reward that would have tuned one model into the other, β (log π − log π_ref), up to a constant of the prompt.

    Parameters
    ----------
    tuned, reference
        Natural log-probabilities of the same tokens.
    beta
        Strength of the pull towards the reference; it only scales.

    Returns
    -------
    np.ndarray
        float64, of the common shape.

    References
    ----------
    Rafailov et al. 2023, equation 5 (arXiv 2305.18290).
    """
    if beta <= 0:
        raise InputError(f"beta must be positive, not {beta}")
    return beta * (np.asarray(tuned, dtype=np.float64) - np.asarray(reference, dtype=np.float64))


def word_log_ratio(one: pd.DataFrame, other: pd.DataFrame, keys: list[str], weighted: bool = True) -> pd.Series:
    """For each word that both tables have, the mean over prompts of the log ratio: one model over the other.

    Tables have the index word and a column of log-probabilities a prompt. `weighted`: the mixture-weighted log ratio
    (`mwlr`), else log π₁ − log π₂ — the implicit reward with β = 1 where the first model is the second one tuned.
    """
    shared = [word for word in one.index if word in other.index]
    if not shared:
        raise InputError("the two tables share no word")
    function = mwlr if weighted else implicit_reward
    values = function(one.loc[shared, keys].to_numpy(), other.loc[shared, keys].to_numpy())
    return pd.Series(values.mean(axis=1), index=pd.Index(shared, name="word"))
