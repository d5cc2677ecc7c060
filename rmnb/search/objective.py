"""What a search needs to know of what is sought."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd

Ids = tuple[int, ...]


class Objective(Protocol):
    """What a search needs to know; `rmnb.search.rewards` has the one that models give.

    Attributes
    ----------
    words
        The vocabulary, as `rmnb.models.vocabulary.vocabulary` gives it.
    provenance
        JSON values that say what is measured.
    """

    words: pd.DataFrame
    provenance: dict[str, Any]

    def measure(self, sequences: Sequence[Ids], parent: Ids | None = None) -> np.ndarray:
        """Reward and mean log-probability a token of each sequence, float64 [sequences, 2].

        `parent` is a sequence that the others mostly begin like: a hint that saves work, without influence on results
        beyond rounding.
        """
        ...

    def gradients(self, ids: Ids) -> tuple[np.ndarray, np.ndarray]:
        """Gradients of the two with respect to the one-hot of each token, [length, vocabulary] each."""
        ...

    def survives(self, sequences: Sequence[Ids]) -> np.ndarray:
        """Whether each sequence survives being written as text, bool [sequences]."""
        ...

    def texts(self, sequences: Sequence[Ids]) -> list[str]:
        """The text of each sequence."""
        ...

    def encode(self, text: str) -> Ids:
        """The ids of a text."""
        ...
