"""What every method works on: an objective, the options, the tokens to choose from."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from rmnb.errors import InputError
from rmnb.search.config import SearchConfig
from rmnb.search.objective import Ids, Objective

_ATTEMPTS = 50


@dataclass(frozen=True)
class Proposal:
    """Sequences to score next; `parent` is the one that they were made from, `origin` the initial string's name.

    `ends_step` is False where more must be scored before the method has made one step.
    """

    sequences: list[Ids]
    parent: Ids | None = None
    origin: str = ""
    ends_step: bool = True


# A method yields proposals and is sent what is to be maximised, float64, one value a sequence.
Proposals = Generator[Proposal, np.ndarray, None]


@dataclass(frozen=True)
class Problem:
    """The objective, the options, the allowed ids (ascending), and the best single tokens if a scan is known."""

    objective: Objective
    config: SearchConfig
    allowed: np.ndarray
    scanned: list[int] | None = None

    def surviving(self, sequences: Sequence[Ids]) -> list[Ids]:
        """Those that survive being written as text; all of them if that is waived."""
        if not self.config.survive:
            return list(sequences)
        return [ids for ids, kept in zip(sequences, self.objective.survives(sequences), strict=True) if kept]

    def random(self, count: int, rng: np.random.Generator, length: int | None = None) -> list[Ids]:
        """Random sequences of allowed tokens that survive: as many as asked for, or fewer if they are rare.

        Uniformly drawn; where few of those survive, longer ones are written as text, read again and cut.

        Raises
        ------
        InputError
            None was found.
        """
        length = length or self.config.length
        found: dict[Ids, None] = {}
        for attempt in range(_ATTEMPTS):
            rare = attempt >= _ATTEMPTS // 2
            draws = rng.choice(self.allowed, (2 * count, (2 if rare else 1) * length))
            sequences = list(map(tuple, draws.tolist()))
            found.update(dict.fromkeys(self.surviving(self._read_again(sequences, length) if rare else sequences)))
            if len(found) >= count:
                break
        if not found:
            raise InputError("no sequence of allowed tokens survives being written as text: waive it, or allow more")
        return list(found)[:count]

    def _read_again(self, sequences: list[Ids], length: int) -> list[Ids]:
        """What the tokenizer makes of their texts, cut to a length; those with forbidden tokens are left out."""
        allowed = set(self.allowed.tolist())
        again = [self.objective.encode(text)[:length] for text in self.objective.texts(sequences)]
        return [ids for ids in again if len(ids) == length and allowed.issuperset(ids)]

    def gradient(self, ids: Ids) -> np.ndarray:
        """Gradient of what is maximised with respect to one-hot tokens, [length, vocabulary]."""
        return self.config.value(*self.objective.gradients(ids))
