"""A reward of sequences whose best one is known."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from rmnb.searching.config import Ids


class PlantedPairs:
    """Normal rewards of tokens by position and of neighbouring pairs; see `rmnb.searching.rewards.RewardObjective`.

    What one position should hold depends on its neighbours, so that single tokens do not tell.

    Parameters
    ----------
    length
        Tokens of a sequence.
    tokens
        Size of the vocabulary.
    pair_sd
        Standard deviation of a pair's reward; that of a token is 1.
    seed
        Of the rewards.
    """

    def __init__(self, length: int = 4, tokens: int = 300, pair_sd: float = 0.5, seed: int = 0):
        rng = np.random.default_rng(seed)
        self.single = rng.normal(size=(length, tokens))
        self.pair = rng.normal(0, pair_sd, (tokens, tokens))
        self.plan: dict[str, Any] = {}
        self.notes: dict[str, Any] = {}
        self.vectors = np.eye(tokens, dtype=np.float32)
        self.before: set[int] = set()
        self.words = pd.DataFrame({"token_id": range(tokens), "token": "t", "kind": "word_start", "script": "none"})

    def measure(self, sequences: Sequence[Ids], parent: Ids | None = None) -> np.ndarray:
        """See `RewardObjective.measure`."""
        ids = np.array(sequences)
        of_tokens = self.single[np.arange(ids.shape[1]), ids].sum(1)
        return of_tokens + self.pair[ids[:, :-1], ids[:, 1:]].sum(1)

    def slopes(self, ids: Ids) -> np.ndarray:
        """What each token would give at each position among the others."""
        of_tokens = self.single.copy()
        for i, token in enumerate(ids[:-1]):
            of_tokens[i + 1] += self.pair[token]
            of_tokens[i] += self.pair[:, ids[i + 1]]
        return of_tokens

    def retokenises(self, sequences: Sequence[Ids]) -> np.ndarray:
        """All do."""
        return np.ones(len(sequences), dtype=bool)

    def texts(self, sequences: Sequence[Ids]) -> list[str]:
        """Tokens by number."""
        return [" ".join(f"t{token}" for token in ids) for ids in sequences]

    def encode(self, text: str) -> Ids:
        """Words have no meaning here: the ids of two tokens."""
        return (0, 1)

    def optimum(self) -> tuple[Ids, float]:
        """The best sequence and its reward, by dynamic programming (Viterbi)."""
        value, paths = self.single[0], []
        for single in self.single[1:]:
            totals = value[:, None] + self.pair
            paths.append(totals.argmax(0))
            value = totals.max(0) + single
        best = [int(value.argmax())]
        for path in reversed(paths):
            best.append(int(path[best[-1]]))
        return tuple(reversed(best)), float(value.max())
