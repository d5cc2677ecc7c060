"""Ask a server for the rewards of the same model.

The requests are those that the servers' documentation has: vLLM's ``/classify`` and ``/pooling`` and SGLang's
``/v1/classify`` take ``input``, SGLang's own ``/classify`` takes ``text``; ``use_activation`` asks vLLM for the raw
reward instead of its sigmoid.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import requests

from rmnb.errors import InputError


def request_rewards(
    address: str, texts: Sequence[str], timeout: float = 60, headers: Mapping[str, str] | None = None
) -> np.ndarray:
    """Rewards of filled chat templates by a server.

    Parameters
    ----------
    address
        Of its classify or pooling endpoint.
    texts
        Filled chat templates.
    timeout
        Seconds until an answer must be there.
    headers
        Sent with each request, such as ``Authorization``.

    Returns
    -------
    np.ndarray
        float64 [texts].

    Raises
    ------
    InputError
        The endpoint is down, refuses, or answers something that is not one number a text.
    """
    try:
        # SGLang's own endpoint calls its input text.
        for body in ({"input": list(texts), "use_activation": False}, {"text": list(texts)}):
            answer = requests.post(address, json=body, timeout=(10, timeout), headers=headers)
            if answer.status_code not in (400, 422):
                break
    except requests.RequestException as error:
        advice = f"is the server up, and are {timeout:g} s enough (--timeout)?"
        raise InputError(f"{address} does not answer: {type(error).__name__}: {advice}") from error
    try:
        rows = answer.json()
        rows = rows["data"] if isinstance(rows, dict) else rows
        rewards = np.array([_number(row) for row in sorted(rows, key=lambda row: row.get("index", 0))])
    except (ValueError, TypeError, KeyError, AttributeError, StopIteration) as error:
        reason = str(error) if isinstance(error, InputError) else "no list of rewards"
        content = f"{answer.status_code}, {reason}: {answer.text.strip()[:150]!r}"
        raise InputError(f"{address} answers {content}") from error
    if np.isfinite(rewards).sum() != len(texts):
        raise InputError(f"{address} answers {len(rewards)} rewards to {len(texts)} texts, or no numbers")
    return rewards


def _number(row: dict[str, Any]) -> float:
    """The one number of an answer: ``probs`` (classify), ``data`` (pooling, perhaps one a token), ``embedding``."""
    content = next(row[key] for key in ("probs", "data", "embedding") if row.get(key))
    numbers = np.atleast_1d(content).astype(float)
    if numbers.shape[-1] > 1:
        raise InputError(f"{numbers.shape[-1]} numbers each: hidden states or classes, not a reward")
    return float(numbers.ravel()[-1])
