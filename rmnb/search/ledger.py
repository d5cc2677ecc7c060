"""What has been scored: no sequence twice, the best ones at hand, and on disk, so that a search can go on.

The log on disk holds what was measured, in order. A method makes the same proposals when it is sent the same values;
so an interrupted search is taken up by running it again from the start with the log answering instead of the models.
"""

import hashlib
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rmnb.errors import InputError
from rmnb.files import atomic_path
from rmnb.plans import claim, partial_directory
from rmnb.search.config import SearchConfig
from rmnb.search.objective import Ids, Objective

_SECONDS = 10.0  # at most so much work is lost


class Log:
    """Measurements on disk, beside the output of a search in progress.

    Parameters
    ----------
    output
        The file that the search will write.
    plan
        What is searched and how, JSON values. A log of another plan is refused, the first difference named.
    seconds
        Time between two writes.
    """

    def __init__(self, output: Path, plan: dict[str, Any], seconds: float = _SECONDS):
        self.directory = partial_directory(output)
        self._waiting: list[tuple[Ids, np.ndarray]] = []
        self._written, self._seconds = time.monotonic(), seconds
        claim(self.directory, plan, "search")
        self._files = len(list(self.directory.glob("*.npz")))

    def read(self) -> Iterator[tuple[Ids, np.ndarray]]:
        """What was measured: ids and [reward, log-probability], in order."""
        for file in sorted(self.directory.glob("*.npz")):
            if file.stem.split("-")[1] != _short_sha256(file):
                raise InputError(f"damaged log {file}: delete {self.directory} and search again")
            with np.load(file) as stored:
                ends = np.cumsum(stored["lengths"])[:-1]
                sequences = [tuple(ids.tolist()) for ids in np.split(stored["ids"], ends)]
                yield from zip(sequences, stored["measured"], strict=True)

    def append(self, sequences: Sequence[Ids], measured: np.ndarray) -> None:
        """Keep what one step measured; written at once or with later steps."""
        self._waiting += zip(sequences, measured, strict=True)
        if time.monotonic() - self._written >= self._seconds:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting."""
        if not self._waiting:
            return
        sequences, measured = zip(*self._waiting, strict=True)
        ids = np.array([i for sequence in sequences for i in sequence], dtype=np.int32)
        lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int32)
        # The name carries the checksum: written under a temporary name first, renamed when it is known.
        unnamed = self.directory / "next"
        with atomic_path(unnamed) as temporary, open(temporary, "wb") as file:
            np.savez(file, ids=ids, lengths=lengths, measured=np.stack(measured))
        unnamed.replace(self.directory / f"{self._files:06d}-{_short_sha256(unnamed)}.npz")
        self._files += 1
        self._waiting, self._written = [], time.monotonic()

    @staticmethod
    def discard(output: Path) -> None:
        """Delete the log of a search, once its result is written."""
        shutil.rmtree(partial_directory(output), ignore_errors=True)


class Ledger:
    """Scores sequences, each once.

    Attributes
    ----------
    scored : int
        Sequences measured.
    best : list of (value, ids)
        The `keep` best ones of the length sought, best first; of equal ones the first measured.
    """

    def __init__(self, objective: Objective, config: SearchConfig, log: Log | None = None):
        self._objective, self._config, self._log = objective, config, log
        self._earlier = iter([]) if log is None else log.read()
        self._measured: dict[Ids, tuple[float, float]] = {}
        self.best: list[tuple[float, Ids]] = []

    @property
    def scored(self) -> int:
        return len(self._measured)

    def unknown(self, sequences: Sequence[Ids]) -> list[Ids]:
        """Those that have not been measured, each once."""
        return [ids for ids in dict.fromkeys(sequences) if ids not in self._measured]

    def measured(self, ids: Ids) -> tuple[float, float]:
        """Reward and mean log-probability of a sequence that was measured."""
        return self._measured[ids]

    def values(self, sequences: Sequence[Ids], parent: Ids | None = None) -> np.ndarray:
        """What is to be maximised, float64 [sequences]."""
        fresh = self.unknown(sequences)
        if fresh:
            self._measured.update(zip(fresh, map(tuple, self._look_up(fresh, parent).tolist()), strict=True))
            found = np.array([self._measured[ids] for ids in fresh])
            of_length = [
                (value, ids)
                for value, ids in zip(self._config.value(*found.T).tolist(), fresh, strict=True)
                if len(ids) == self._config.length
            ]
            self.best = sorted([*self.best, *of_length], key=lambda pair: -pair[0])[: self._config.keep]
        if not len(sequences):
            return np.zeros(0)
        return self._config.value(*np.array([self._measured[ids] for ids in sequences]).T)

    def _look_up(self, sequences: list[Ids], parent: Ids | None) -> np.ndarray:
        """From the log as far as it goes, then from the models."""
        logged = [entry for _, entry in zip(sequences, self._earlier, strict=False)]
        if [ids for ids, _ in logged] != sequences[: len(logged)]:
            raise InputError("the log of this search took another turn (other machine or versions?): delete it")
        rest = sequences[len(logged) :]
        if rest:
            measured = self._objective.measure(rest, parent)
            if self._log is not None:
                self._log.append(rest, measured)
            logged += zip(rest, measured, strict=True)
        return np.array([measured for _, measured in logged])


def _short_sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
