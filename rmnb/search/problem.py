"""What every method works on: an objective, the options, the tokens to choose from, the strings to begin with."""

import itertools
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from rmnb.errors import InputError
from rmnb.search.config import SearchConfig

_ATTEMPTS = 50
_BLANKS = (" .", " !", ".", "!", " x", " a", " the", " ")
_MIXED_FROM = 64  # best tokens that are mixed
_TRIES = 100

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
        """Reward of each sequence, float64 [sequences].

        `parent` is a sequence that the others mostly begin like: a hint that saves work, without influence on results
        beyond rounding.
        """
        ...

    def gradient(self, ids: Ids) -> np.ndarray:
        """Gradient of the reward with respect to the one-hot of each token, float64 [length, vocabulary]."""
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
        return self.config.sign * self.objective.gradient(ids)


def allowed_ids(words: pd.DataFrame, config: SearchConfig) -> np.ndarray:
    """Ids that a search may choose from, ascending, int64.

    Parameters
    ----------
    words
        The vocabulary as `rmnb.models.vocabulary.vocabulary` gives it.
    config
        `allowed`, `script` and `banned` decide.

    Raises
    ------
    InputError
        Nothing is left.
    """
    kind, token = words["kind"], words["token"]
    chosen = np.ones(len(words), dtype=bool)
    if config.allowed != "every":
        chosen &= ~kind.isin(["special", "unused"]).to_numpy()
    if config.allowed in ("printable", "ascii", "language"):
        visible = [text.isprintable() and "\ufffd" not in text and bool(text.strip()) for text in token]
        chosen &= np.array(visible) & (kind != "byte").to_numpy()
    if config.allowed == "words":
        chosen &= kind.isin(["word_start", "word_continuation"]).to_numpy()
    if config.allowed == "ascii":
        chosen &= np.array([text.isascii() for text in token])
    if config.allowed == "language":
        chosen &= words["script"].isin([config.script, "none"]).to_numpy()
    ids = words["token_id"].to_numpy().astype(np.int64)[chosen]
    ids = ids[~np.isin(ids, config.banned)]
    if not len(ids):
        raise InputError(f"no token is left to search with (allowed: {config.allowed}, script: {config.script})")
    return ids


def best_tokens(problem: Problem, rng: np.random.Generator) -> Generator[Proposal, np.ndarray, list[int]]:
    """Allowed tokens from the best on, by their reward as the whole response: of the scan, or of a random sample."""
    if problem.scanned is not None:
        return problem.scanned
    chosen = rng.permutation(problem.allowed)[: problem.config.single_tokens]
    single = problem.surviving([(int(i),) for i in chosen]) or problem.random(problem.config.width, rng, 1)
    width = max(problem.config.width, 256)
    values: list[float] = []
    for start in range(0, len(single), width):
        values += (yield Proposal(single[start : start + width], origin="single tokens", ends_step=False)).tolist()
    return [single[i][0] for i in np.argsort(-np.array(values), kind="stable")]


def initial(problem: Problem, origin: str, best: list[int], rng: np.random.Generator) -> Ids:
    """The initial string of that name: the first of its variants that survives, or else a random one."""
    length = problem.config.length
    allowed = set(problem.allowed.tolist())
    if origin == "blank":
        variants = [ids * length for text in _BLANKS if len(ids := problem.objective.encode(text)) == 1]
    elif origin == "best_repeated":
        variants = [(token,) * length for token in best[:_MIXED_FROM]]
    elif origin == "best_mixed":
        variants = [tuple(map(int, rng.choice(best[:_MIXED_FROM], length))) for _ in range(_TRIES)]
    elif origin == "sentence":
        words = problem.objective.encode(problem.config.sentence)
        variants = [tuple(itertools.islice(itertools.cycle(words), length))]
    else:
        variants = []
    variants = [ids for ids in variants if allowed.issuperset(ids)]
    kept = problem.surviving(variants) if variants else []
    return kept[0] if kept else problem.random(1, rng)[0]
