"""Rewards of the same conversations from elsewhere: a server's classification endpoint, or a file.

The requests are those that the servers' documentation has: vLLM's ``/classify`` and ``/pooling`` and SGLang's
``/v1/classify`` take ``input``, SGLang's own ``/classify`` takes ``text``; ``use_activation`` asks vLLM for the raw
reward instead of its sigmoid.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import requests

from rmnb.errors import InputError, first_line
from rmnb.models.dialogue import Prompt, as_messages

TIMEOUT = (10, 300)  # seconds to connect, seconds to answer


@dataclass(frozen=True)
class Conversation:
    """A prompt, a response, and its reward elsewhere if a file says it."""

    prompt: Prompt
    response: str
    reward: float = float("nan")


def is_address(text: str) -> bool:
    """Whether a text is the address of an endpoint; anything else is a file."""
    return text.startswith(("http://", "https://"))


def read_rewards(path: Path) -> list[Conversation]:
    """Conversations with rewards from JSON lines of prompt (a text, or messages), response and reward.

    Raises
    ------
    InputError
        No such file, or a line that is none of these; it is named.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or first_line(error)}") from error
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            texts = [row["response"], *(message["content"] for message in as_messages(row["prompt"]))]
            if not all(isinstance(text, str) for text in texts):
                raise TypeError
            found.append(Conversation(row["prompt"], row["response"], float(row["reward"])))
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(
                f"{path}, line {number}: it takes JSON with the keys prompt, response and reward (a number)"
            ) from error
        if not np.isfinite(found[-1].reward):
            raise InputError(f"{path}, line {number}: the reward is {found[-1].reward}")
    if not found:
        raise InputError(f"{path} holds no rewards")
    return found


def ask(address: str, texts: Sequence[str]) -> np.ndarray:
    """Rewards of filled chat templates from an endpoint, float64 [texts].

    Raises
    ------
    InputError
        The endpoint is down, refuses, or answers something that is not one number a text.
    """
    body: dict[str, Any] = {"input": list(texts), "use_activation": False}
    if model := _served_model(address):
        body["model"] = model
    answer = _post(address, body)
    if answer.status_code in (400, 422):  # SGLang's own endpoint calls its input so
        named = {"model": model} if model else {}
        answer = _post(address, {"text": list(texts), **named})
    if answer.status_code >= 400:
        raise InputError(f"{address} answers {answer.status_code}: {answer.text.strip()[:150]!r}")
    try:
        given = answer.json()
        rows = given["data"] if isinstance(given, dict) else given
        rows = sorted(rows, key=lambda row: row.get("index", 0))
        rewards = np.array([_number(row) for row in rows], dtype=float)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise InputError(f"{address} answers something that is no list of rewards: {answer.text[:100]!r}") from error
    if len(rewards) != len(texts) or not np.isfinite(rewards).all():
        raise InputError(f"{address} answers {np.isfinite(rewards).sum()} rewards to {len(texts)} conversations")
    return rewards


def _number(row: dict[str, Any]) -> float:
    """The one number of an answer: ``probs`` (classify), ``data`` (pooling, perhaps a row a token) or ``embedding``."""
    values = next(row[key] for key in ("probs", "data", "embedding") if key in row)
    last = values[-1] if isinstance(values, list) else values
    if isinstance(values, list) and len(values) > 1 and not isinstance(last, list):
        raise ValueError(f"{len(values)} numbers, where a reward model gives one")
    while isinstance(last, list):
        (last,) = last
    return float(last)


def _post(address: str, body: dict[str, Any]) -> requests.Response:
    try:
        return requests.post(address, json=body, timeout=TIMEOUT)
    except requests.RequestException as error:
        raise InputError(f"{address} cannot be reached: {type(error).__name__}") from error


def _served_model(address: str) -> str | None:
    """What the server calls its model, or None if it does not say."""
    parts = urlsplit(address)
    try:
        listed = requests.get(f"{parts.scheme}://{parts.netloc}/v1/models", timeout=TIMEOUT)
        return str(listed.json()["data"][0]["id"])
    except requests.ConnectionError as error:
        raise InputError(f"{address} cannot be reached: is the server up?") from error
    except (requests.RequestException, ValueError, KeyError, IndexError, TypeError):
        return None
