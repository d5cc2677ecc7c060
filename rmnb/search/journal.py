"""What has been scored: no sequence twice, the best ones at hand, and on disk, so that a search can go on.

The journal on disk holds what was measured, in order. A method makes the same proposals when it is sent the same
values; so an interrupted search is taken up by running it again from the start with the journal answering instead of
the models.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rmnb.errors import InputError
from rmnb.plans import Pieces
from rmnb.search.config import SearchConfig
from rmnb.search.problem import Ids, Objective

_SECONDS = 10.0  # at most so much work is lost


class Journal:
    """Scores sequences, each once.

    Parameters
    ----------
    objective, config
        What scores, and what is sought.
    output
        The file that the search will write. With it, rewards are kept beside it, and what an earlier search kept there
        is not scored again; a search of another plan is refused, the first difference named.
    plan
        What is searched and how, JSON values.

    Attributes
    ----------
    rewards : dict
        The reward of each sequence measured.
    best : list of sequences
        The `keep` best ones of the length sought, best first; of equal ones the first measured.
    """

    def __init__(self, objective: Objective, config: SearchConfig, output: Path | None, plan: dict[str, Any]):
        self._objective, self._config = objective, config
        self._pieces = None if output is None else Pieces(output, plan, "search")
        earlier = [json.loads(piece) for piece in self._pieces or ()]
        self._written, self._flushed = len(earlier), time.monotonic()
        self._earlier = iter([(tuple(ids), reward) for piece in earlier for ids, reward in piece])
        self._waiting: list[tuple[Ids, float]] = []
        self.rewards: dict[Ids, float] = {}
        self.best: list[Ids] = []

    def unknown(self, sequences: Sequence[Ids]) -> list[Ids]:
        """Those that have not been measured, each once."""
        return [ids for ids in dict.fromkeys(sequences) if ids not in self.rewards]

    def values(self, sequences: Sequence[Ids], parent: Ids | None = None) -> np.ndarray:
        """What is to be maximised, float64 [sequences]."""
        if fresh := self.unknown(sequences):
            self.rewards.update(zip(fresh, self._look_up(fresh, parent), strict=True))
            candidates = [*self.best, *(ids for ids in fresh if len(ids) == self._config.length)]
            self.best = sorted(candidates, key=lambda ids: -self._config.sign * self.rewards[ids])[: self._config.keep]
        return self._config.sign * np.array([self.rewards[ids] for ids in sequences], dtype=np.float64)

    def flush(self) -> None:
        """Write what is waiting."""
        if self._waiting and self._pieces is not None:
            self._pieces.write(self._written, json.dumps(self._waiting).encode())  # floats come back bit for bit
            self._written += 1
        self._waiting, self._flushed = [], time.monotonic()

    def _look_up(self, sequences: list[Ids], parent: Ids | None) -> list[float]:
        """From the journal on disk as far as it goes, then from the models."""
        kept = [entry for _, entry in zip(sequences, self._earlier, strict=False)]
        if [ids for ids, _ in kept] != sequences[: len(kept)]:
            raise InputError("what is kept of this search took another turn (other machine or versions?): delete it")
        if rest := sequences[len(kept) :]:
            measured = list(zip(rest, self._objective.measure(rest, parent).tolist(), strict=True))
            self._waiting += measured
            if time.monotonic() - self._flushed >= _SECONDS:
                self.flush()
            kept += measured
        return [reward for _, reward in kept]
