"""What the log-probabilities of two language models say of them: mixture-weighted log ratios and implicit rewards.

Scans come from `rmnb.scoring.logprobs`; nothing here needs a model.
"""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from rmnb.errors import InputError
from rmnb.findings.align import align


def word_logprobs(scans: Mapping[str, pd.DataFrame], words: Sequence[str]) -> pd.DataFrame:
    """Log-probabilities of the words that are one token in every vocabulary, spelt just so (case and spaces count).

    Returns
    -------
    DataFrame
        float32, one column a model; the index holds the words that are left, in the given order.

    Raises
    ------
    InputError
        None of the words is a single token in all vocabularies.
    """
    shared = align(scans, "exact")
    kept = [word for word in dict.fromkeys(words) if word in shared.index]
    if not kept:
        raise InputError(f"none of the {len(words)} words is a single token in the vocabulary of {' and '.join(scans)}")
    return shared.loc[kept]


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


def mwlr_pairs(scans: Mapping[str, pd.DataFrame], firsts: Sequence[str], seconds: Sequence[str]) -> pd.DataFrame:
    """The MWLR of every first model against every second one, each pair over all that its two vocabularies share.

    Returns
    -------
    DataFrame
        first, second (names), token, mwlr (float64), rank (1 is the highest of the pair); a model is not paired with
        itself.

    Raises
    ------
    InputError
        A name is not among the scans, there is no pair, or two vocabularies share nothing.
    """
    if unknown := sorted({*firsts, *seconds} - set(scans)):
        raise InputError(f"no scan of {', '.join(unknown)}: there are {', '.join(scans)}")
    parts = []
    for first, second in itertools.product(firsts, seconds):
        if first != second:
            shared = align({"first": scans[first], "second": scans[second]}, "exact")
            values = mwlr(shared["first"].to_numpy(), shared["second"].to_numpy())
            part = pd.DataFrame({"first": first, "second": second, "token": shared.index, "mwlr": values})
            parts.append(part.assign(rank=part["mwlr"].rank(ascending=False, method="min").astype(int)))
    if not parts:
        raise InputError("no pair of different models: name at least two")
    return pd.concat(parts, ignore_index=True)


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
