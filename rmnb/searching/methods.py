"""The methods of a search: a Gaussian process that says what to score next, and chance, which it is measured against.

A method draws and scores through a `SearchState` until that raises `Finished`, or until it has nothing left to try.
"""

import itertools
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from rmnb.errors import InputError
from rmnb.plans import Work
from rmnb.searching.config import Ids, SearchConfig
from rmnb.searching.result import SearchResult
from rmnb.searching.surrogate import SequenceProcess, most_promising, unit_vectors
from rmnb.visible import visible

if TYPE_CHECKING:
    from rmnb.searching.rewards import RewardObjective

_ATTEMPTS = 50
_PATIENCE = 4  # steps without gain before a search begins anew
_PARENTS = 8  # sequences that are changed at once
_TOKENS = 32  # tokens that are put at each of their positions
_PROPOSED = 512  # sequences among which a step chooses
_REMEMBERED = 1024  # sequences that the process is given at most, the best


class Finished(Exception):
    """Steps or budget are spent."""


@dataclass
class SearchState:
    """Draws and scores sequences, none twice, and remembers the best.

    Parameters
    ----------
    objective, config
        What scores, and what is sought.
    work
        Where rewards are kept on disk. What an earlier run kept there is looked up, not scored again: the same seed
        makes the same proposals on the same machine, so a search that was cut off ends as if it had not been.
    progress
        Show a line with the best reward and its text.
    earlier
        A result with fewer steps, from which the search goes on.

    Attributes
    ----------
    values : dict
        What is to be maximised, of each sequence scored: its reward, or less its reward.
    best : list of sequences
        The `keep` best ones, best first; of equal ones the first scored.
    history : list of dict
        After each call of `score`: how many sequences are scored, and the best reward.
    """

    objective: "RewardObjective"
    config: SearchConfig
    work: Work = field(default_factory=Work)
    progress: bool = False
    earlier: SearchResult | None = None

    def __post_init__(self):
        self.rng = np.random.default_rng(self.config.seed)
        self.allowed = allowed_ids(self.objective.words, self.config)
        self.values: dict[Ids, float] = {}
        self.best: list[Ids] = []
        self.history: list[dict[str, float]] = []
        self.steps = 0
        self.budget = self.config.budget or sys.maxsize
        self.bar = tqdm(total=self.config.budget, unit=" scored", disable=not self.progress)
        self._known: dict[Ids, float] = {}
        for place in self.work.pieces():
            measured: Any = self.work.read(place)
            self._known.update((tuple(ids), reward) for ids, reward in json.loads(measured))
        self._allowed = set(self.allowed.tolist())
        self.scored = 0  # in earlier steps too
        if self.earlier is not None:
            self.rng = np.random.default_rng((self.config.seed, self.earlier.steps))
            self.steps = self.earlier.steps
            self.history = self.earlier.history.to_dict("records")  # type: ignore[assignment]
            found = self.earlier.sequences
            self.values.update(zip(found["ids"], self.config.sign * found["reward"], strict=True))
            self.best = self.rank(self.values)
            self.scored = self.earlier.scored

    def rank(self, sequences: Iterable[Ids]) -> list[Ids]:
        """Sequences that are scored, best first; equal ones stay in order."""
        return sorted(sequences, key=self.values.__getitem__, reverse=True)

    def score(self, sequences: Sequence[Ids], parent: Ids | None = None) -> None:
        """Find the rewards of sequences, as far as they are not known.

        Parameters
        ----------
        sequences
            They may hold some that were scored before.
        parent
            As `RewardObjective.measure` takes it.

        Raises
        ------
        Finished
            Steps or budget are spent: as much as the budget allows has been scored.
        """
        config = self.config
        values = self.values
        known = self._known
        fresh = [ids for ids in dict.fromkeys(sequences) if ids not in values]
        fresh = fresh[: self.budget - self.scored]
        if unknown := [ids for ids in fresh if ids not in known]:
            rewards = self.objective.measure(unknown, parent)
            if not np.isfinite(rewards).all():
                raise InputError("a reward is not finite, so that nothing can be sought")
            measured = list(zip(unknown, rewards.tolist(), strict=True))
            known.update(measured)
            self.work.write(len(self.work.pieces()), json.dumps(measured).encode())  # floats come back bit for bit
        for ids in fresh:
            values[ids] = config.sign * known[ids]
        self.scored += len(fresh)
        self.best = self.rank(self.best + fresh)[: config.keep]
        best = self.best[0]
        reward = config.sign * values[best]
        self.history.append({"scored": self.scored, "best_reward": reward})
        self.bar.set_postfix_str(f"{reward:+.3f} {visible(self.objective.texts([best])[0])}", refresh=False)
        self.bar.update(len(fresh))
        self.steps += 1
        if self.steps >= config.steps or self.scored >= self.budget:
            raise Finished

    def filter(self, sequences: Iterable[Ids]) -> list[Ids]:
        """Those of allowed tokens whose text is tokenised into the same ids; that may be waived."""
        sequences = [ids for ids in sequences if self._allowed.issuperset(ids)]
        if not sequences or not self.config.filter_ids:
            return sequences
        return list(itertools.compress(sequences, self.objective.retokenises(sequences)))

    def random(self, count: int, before: bool = False) -> list[Ids]:
        """Random sequences of allowed tokens that pass the filter: as many as asked for, or fewer if they are rare.

        Uniformly drawn; with `before` a share of each sequence, itself uniformly drawn, from tokens that stand before
        the answer. Where few sequences pass, longer ones are written as text, tokenised again and cut.

        Raises
        ------
        InputError
            None was found.
        """
        length = self.config.length
        standing = sorted(self._allowed.intersection(self.objective.before)) or self.allowed
        accepted: dict[Ids, None] = {}
        for attempt in range(_ATTEMPTS):
            rare = attempt >= _ATTEMPTS // 2
            shape = (2 * count, length * (1 + rare))
            draws = self.rng.choice(self.allowed, shape)
            if before:
                share = self.rng.random((len(draws), 1))
                draws = np.where(self.rng.random(shape) < share, self.rng.choice(standing, shape), draws)
            sequences = list(map(tuple, draws.tolist()))
            if rare:
                sequences = [self.objective.encode(text)[:length] for text in self.objective.texts(sequences)]
            accepted.update(dict.fromkeys(self.filter(ids for ids in sequences if len(ids) == length)))
            if len(accepted) >= count:
                break
        if not accepted:
            raise InputError("no sequence of allowed tokens keeps its ids as text: allow more tokens, or every")
        return list(accepted)[:count]


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
        No id is allowed.
    """
    kind = words["kind"]
    token = words["token"]
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
        raise InputError(f"no token is left to search with: allow others than {config.allowed}, or ban fewer")
    return words.loc[chosen, "token_id"].to_numpy(np.int64)


def surrogate_search(state: SearchState) -> None:
    """Score what a Gaussian process over sequences promises most, and fit it again; where that brings nothing, anew.

    Each beginning scores random sequences that hold more or fewer of the tokens before the answer: the question's own
    words help where the best answer is sought, others where the worst is.
    """
    vectors = unit_vectors(state.objective.vectors[state.allowed])
    found = state.best  # by a search that goes on
    scored = -1
    while state.scored > scored:  # until a beginning finds nothing that is not scored yet
        scored = state.scored
        known = state.random(state.config.sample, before=True)
        state.score(known)
        known = list(dict.fromkeys([*found, *known]))
        found = []
        idle = 0
        while idle < _PATIENCE and len(known) > 1:
            known = state.rank(known)[:_REMEMBERED]
            best = known[0]
            places = np.searchsorted(state.allowed, known)
            process = SequenceProcess(vectors, places, np.array([state.values[ids] for ids in known]))
            fresh = proposals(state, process, places[:_PARENTS])
            if not fresh:
                break
            mean, covariance = process.expected(np.searchsorted(state.allowed, fresh))
            chosen = [fresh[i] for i in most_promising(mean, covariance, state.config.width)]
            state.score(chosen, best)
            known = state.rank([*known, *chosen])
            idle = idle + 1 if known[0] == best else 0


def proposals(state: SearchState, process: SequenceProcess, places: np.ndarray) -> list[Ids]:
    """Sequences that pass the filter and are not scored yet, those of which the process expects most first.

    One token is exchanged of each of some sequences, given by their tokens' places among the allowed ones; then one of
    the most promising of all these, and so on, until eight times as many as there are positions have been exchanged.
    """
    expected: dict[Ids, float] = {}
    exchanged: set[Ids] = set()
    ranked = parents = list(map(tuple, places.tolist()))
    while parents and len(exchanged) < _PARENTS * state.config.length:
        for parent, rewards in zip(parents, process.exchanged(np.array(parents)), strict=True):
            best = np.argpartition(-rewards, min(_TOKENS, rewards.shape[1]) - 1)[:, :_TOKENS]
            for position, token in np.ndindex(best.shape):
                place = int(best[position, token])
                expected[(*parent[:position], place, *parent[position + 1 :])] = float(rewards[position, place])
        exchanged.update(parents)
        ranked = sorted(expected, key=expected.__getitem__, reverse=True)
        parents = [ids for ids in ranked[:_PARENTS] if ids not in exchanged]
    ids = map(tuple, state.allowed[np.array(ranked)].tolist())
    fresh = [sequence for sequence in ids if sequence not in state.values]
    passing: list[Ids] = []
    while fresh and len(passing) < _PROPOSED:
        passing += state.filter(fresh[:_PROPOSED])
        del fresh[:_PROPOSED]
    return passing[:_PROPOSED]


def random_search(state: SearchState) -> None:
    """Uniformly random sequences of allowed tokens."""
    scored = -1
    while state.scored > scored:  # until nothing that is not scored yet is drawn
        scored = state.scored
        state.score(state.random(state.config.width))


METHODS = {"surrogate": surrogate_search, "random": random_search}
