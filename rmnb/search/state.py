"""What every method works with: the tokens to choose from, and what has been scored so far."""

import itertools
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from tqdm import tqdm

from rmnb.errors import InputError
from rmnb.plans import ResumableStore
from rmnb.search.config import SearchConfig
from rmnb.visible import visible

if TYPE_CHECKING:
    from rmnb.search.rewards import RewardObjective

Ids = tuple[int, ...]

_ATTEMPTS = 50


class Finished(Exception):
    """Steps or budget are spent."""


@dataclass
class SearchState:
    """Draws and scores sequences, none twice, and remembers the best.

    Parameters
    ----------
    objective, config
        What scores, and what is sought.
    scan
        Best single tokens: a scan with columns token_id and score, or None.
    pieces
        Where rewards are kept on disk. What an earlier run kept there is looked up, not scored again: the same seed
        makes the same proposals, so a search that was cut off ends as if it had not been.
    progress
        Show a line with the best reward and its text.

    Attributes
    ----------
    values : dict
        What is to be maximised, of each sequence scored: its reward, or less its reward.
    best : list of sequences
        The `keep` best ones of the length sought, best first; of equal ones the first scored.
    history : list of dict
        After each call of `score`: how many sequences are scored, and the best reward.
    """

    objective: "RewardObjective"
    config: SearchConfig
    scan: pd.DataFrame | None = None
    pieces: ResumableStore | None = None
    progress: bool = False

    def __post_init__(self):
        self.rng = np.random.default_rng(self.config.seed)
        self.allowed = allowed_ids(self.objective.words, self.config)
        self.values: dict[Ids, float] = {}
        self.best: list[Ids] = []
        self.history: list[dict[str, float]] = []
        self.steps = 0
        self.budget = self.config.budget or sys.maxsize
        self.bar = tqdm(total=self.config.budget, unit=" scored", disable=not self.progress)
        self._known = {tuple(ids): reward for piece in self.pieces or () for ids, reward in json.loads(piece)}
        self._allowed = set(self.allowed.tolist())

    @property
    def fraction(self) -> float:
        """How much of the steps or of the budget is spent, 0 to 1."""
        return max(self.steps / self.config.steps, len(self.values) / self.budget)

    def rank(self, sequences: Iterable[Ids]) -> list[Ids]:
        """Sequences that are scored, best first; equal ones stay in order."""
        return sorted(sequences, key=self.values.__getitem__, reverse=True)

    def score(self, sequences: Sequence[Ids], parent: Ids | None = None, ends_step: bool = True) -> None:
        """Find the rewards of sequences, as far as they are not known.

        Parameters
        ----------
        sequences
            They may hold some that were scored before.
        parent
            As `RewardObjective.measure` takes it.
        ends_step
            False where more must be scored before the method has made one step.

        Raises
        ------
        Finished
            Steps or budget are spent; as much as the budget allows has been scored.
        """
        config, values, known = self.config, self.values, self._known
        fresh = [ids for ids in dict.fromkeys(sequences) if ids not in values][: self.budget - len(values)]
        if unknown := [ids for ids in fresh if ids not in known]:
            measured = list(zip(unknown, self.objective.measure(unknown, parent).tolist(), strict=True))
            known.update(measured)
            if self.pieces is not None:
                place = len(self.pieces.places())
                self.pieces.write(place, json.dumps(measured).encode())  # floats come back bit for bit
        values.update((ids, config.sign * known[ids]) for ids in fresh)
        self.best = self.rank([*self.best, *(ids for ids in fresh if len(ids) == config.length)])[: config.keep]
        if self.best:
            best = self.best[0]
            self.history.append({"scored": len(values), "best_reward": known[best]})
            self.bar.set_postfix_str(f"{known[best]:+.3f} {visible(self.objective.texts([best])[0])}", refresh=False)
        self.bar.update(len(fresh))
        self.steps += ends_step
        if self.fraction >= 1:
            raise Finished

    def filter(self, sequences: Iterable[Ids]) -> list[Ids]:
        """Those of allowed tokens whose text is tokenised into the same ids; that may be waived."""
        sequences = [ids for ids in sequences if self._allowed.issuperset(ids)]
        if not sequences or not self.config.filter_ids:
            return sequences
        return list(itertools.compress(sequences, self.objective.retokenises(sequences)))

    def random(self, count: int, length: int | None = None) -> list[Ids]:
        """Random sequences of allowed tokens that pass the filter: as many as asked for, or fewer if they are rare.

        Uniformly drawn; where few of those pass, longer ones are written as text, tokenised again and cut.

        Raises
        ------
        InputError
            None was found.
        """
        length = length or self.config.length
        accepted: dict[Ids, None] = {}
        for attempt in range(_ATTEMPTS):
            rare = attempt >= _ATTEMPTS // 2
            draws = self.rng.choice(self.allowed, (2 * count, length * (1 + rare)))
            sequences = list(map(tuple, draws.tolist()))
            if rare:
                sequences = [self.objective.encode(text)[:length] for text in self.objective.texts(sequences)]
            accepted.update(dict.fromkeys(self.filter(ids for ids in sequences if len(ids) == length)))
            if len(accepted) >= count:
                break
        if not accepted:
            raise InputError("no sequence of allowed tokens keeps its ids as text: waive that, or allow more tokens")
        return list(accepted)[:count]

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
        `allowed` and `banned` decide.

    Raises
    ------
    InputError
        Nothing is left.
    """
    kind, token = words["kind"], words["token"]
    ordinary = ~kind.isin(["special", "unused"])
    printable = ordinary & ~kind.isin(["byte", "whitespace"]) & token.map(str.isprintable)
    printable &= ~token.str.contains("\ufffd")
    sets = {
        "every": kind.notna(),
        "all": ordinary,
        "printable": printable,
        "words": kind.isin(["word_start", "word_continuation"]),
        "ascii": printable & token.map(str.isascii),
    }
    chosen = sets.get(config.allowed, printable & words["script"].isin([config.allowed, "none"]))
    chosen &= ~words["token_id"].isin(config.banned)
    if not chosen.any():
        raise InputError(f"no token is left to search with (allowed: {config.allowed})")
    return words.loc[chosen, "token_id"].to_numpy(np.int64)
