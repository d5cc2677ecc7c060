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
from rmnb.searching.surrogate import SequenceProcess, unit_vectors
from rmnb.visible import visible

if TYPE_CHECKING:
    from rmnb.searching.rewards import RewardObjective

_ATTEMPTS = 50
_BY_SLOPE = 0.75  # share of a step that is drawn along the gradient
_STEEPEST = 128  # tokens a position among which that is drawn
_PARENTS = 8  # sequences that are changed at once
_TOKENS = 32  # tokens that are put at each of their positions
_REMEMBERED = 1024  # sequences that the process is given at most, the best
_PATIENCE = 32  # steps without gain before the search begins anew


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

    def places(self, sequences: Sequence[Ids]) -> np.ndarray:
        """Where among the allowed tokens those of each sequence stand, int64 [sequences, length]."""
        return np.searchsorted(self.allowed, sequences)

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

    def fresh(self, sequences: Iterable[Ids], count: int) -> list[Ids]:
        """The first so many that are not scored yet and pass the filter, or fewer if there are no more."""
        sequences = [ids for ids in sequences if ids not in self.values]
        passing: list[Ids] = []
        while sequences and (missing := count - len(passing)):
            passing += self.filter(sequences[:missing])
            del sequences[:missing]
        return passing

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
    """Score what the gradient points at and what a Gaussian process promises; where that brings nothing, begin anew.

    Each beginning scores random sequences that hold more or fewer of the tokens before the answer: the question's own
    words help where the best answer is sought, others where the worst is. Each step goes on from the best sequence of
    the one before it, even if that is no gain: none is scored twice, so it leaves where it has been
    (Glover 1989, *Tabu Search*).
    """
    vectors = unit_vectors(state.objective.vectors[state.allowed])
    width = state.config.width
    found = state.best  # by a search that goes on
    scored = -1
    while state.scored > scored:  # until a beginning finds nothing that is not scored yet
        scored = state.scored
        known = state.random(state.config.sample, before=True)
        state.score(known)
        known = state.rank(dict.fromkeys([*found, *known]))
        found = []
        current = known[0]
        idle = 0
        while idle < _PATIENCE and len(known) > 1:
            best = known[0]
            process = SequenceProcess(vectors, state.places(known), np.array([state.values[ids] for ids in known]))
            chosen = steepest(state, current, round(_BY_SLOPE * width))
            chosen += promising(state, process, known[:_PARENTS], width - len(chosen))
            chosen = list(dict.fromkeys(chosen))  # both may propose the same
            if not chosen:
                break
            state.score(chosen, current)
            current = state.rank(chosen)[0]
            known = state.rank([*known, *chosen])[:_REMEMBERED]
            idle = idle + 1 if known[0] == best else 0


def steepest(state: SearchState, ids: Ids, count: int) -> list[Ids]:
    """Sequences with another token at one position of `ids`, drawn from those along which the reward rises fastest.

    They pass the filter and are not scored yet; fewer if few are left. After Zou et al. (2023), *Universal and
    Transferable Adversarial Attacks on Aligned Language Models*, algorithm 1.
    """
    slopes = state.objective.slopes(ids)
    if slopes is None:
        return []
    steep = list(exchanges(state, ids, state.config.sign * slopes[:, state.allowed], _STEEPEST))
    return state.fresh([steep[i] for i in state.rng.permutation(len(steep))], count)


def promising(state: SearchState, process: SequenceProcess, parents: Sequence[Ids], count: int) -> list[Ids]:
    """Sequences with another token at one position of a parent, those of which the process expects most.

    They pass the filter and are not scored yet; fewer if few are left.
    """
    expected: dict[Ids, float] = {}
    for parent, rewards in zip(parents, process.exchanged(state.places(parents)), strict=True):
        expected |= exchanges(state, parent, rewards, _TOKENS)
    return state.fresh(sorted(expected, key=expected.__getitem__, reverse=True), count)


def exchanges(state: SearchState, ids: Ids, values: np.ndarray, count: int) -> dict[Ids, float]:
    """The sequence with each of the tokens that have the highest values at a position, and these values.

    `values` are of each position and allowed token, [length, allowed].
    """
    best = np.argpartition(-values, min(count, values.shape[1]) - 1)[:, :count]
    return {
        (*ids[:position], int(state.allowed[place]), *ids[position + 1 :]): float(values[position, place])
        for position, places in enumerate(best)
        for place in places
    }


def random_search(state: SearchState) -> None:
    """Uniformly random sequences of allowed tokens."""
    scored = -1
    while state.scored > scored:  # until nothing that is not scored yet is drawn
        scored = state.scored
        state.score(state.random(state.config.width))


METHODS = {"surrogate": surrogate_search, "random": random_search}
