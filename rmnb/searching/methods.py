"""The methods of a search: greedy coordinate gradient, and the baselines that it is measured against.

A method draws and scores through a `SearchState` until that raises `Finished`, or until it has nothing left to try.
"""

import itertools
import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from rmnb.errors import InputError
from rmnb.plans import Work
from rmnb.searching.config import Ids, SearchConfig
from rmnb.searching.result import SearchResult
from rmnb.visible import visible

if TYPE_CHECKING:
    from rmnb.searching.rewards import RewardObjective

_ATTEMPTS = 50
_ROUNDS = 8
_SWEEP = 1024  # candidates scored between two records of a sweep over one position
_MIXED_FROM = 64  # best tokens that are mixed
_TRIES = 100


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
    work
        Where rewards are kept on disk. What an earlier run kept there is looked up, not scored again: the same seed
        makes the same proposals, so a search that was cut off ends as if it had not been.
    progress
        Show a line with the best reward and its text.
    earlier
        A result with fewer steps, from which the search goes on.

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

    @property
    def fraction(self) -> float:
        """How much of the steps or of the budget is spent, 0 to 1."""
        return max(self.steps / self.config.steps, self.scored / self.budget)

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
            Steps or budget are spent: as much as the budget allows has been scored.
        """
        config = self.config
        values = self.values
        known = self._known
        fresh = [ids for ids in dict.fromkeys(sequences) if ids not in values]
        fresh = fresh[: self.budget - self.scored]
        if unknown := [ids for ids in fresh if ids not in known]:
            measured = list(zip(unknown, self.objective.measure(unknown, parent).tolist(), strict=True))
            known.update(measured)
            self.work.write(len(self.work.pieces()), json.dumps(measured).encode())  # floats come back bit for bit
        for ids in fresh:
            values[ids] = config.sign * known[ids]
        self.scored += len(fresh)
        whole = [ids for ids in fresh if len(ids) == config.length]
        self.best = self.rank(self.best + whole)[: config.keep]
        if self.best:
            best = self.best[0]
            reward = config.sign * values[best]
            self.history.append({"scored": self.scored, "best_reward": reward})
            self.bar.set_postfix_str(f"{reward:+.3f} {visible(self.objective.texts([best])[0])}", refresh=False)
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
            raise InputError("no sequence of allowed tokens keeps its ids as text: allow more tokens, or every")
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


def greedy_coordinate_gradient(state: SearchState) -> None:
    """Expand the best sequences along their one-hot gradient, all initial strings in turn.

    After each quarter of the search the worse half of the strings is dropped.

    After Zou et al. (2023), *Universal and Transferable Adversarial Attacks on Aligned Language Models*, algorithm 1;
    the gradient is that of the reward itself.
    """
    config = state.config
    most_swaps = min(config.swaps or max(1, config.length // 2), config.length)
    # Of each initial string the sequences in play, and how often their neighbours have been tried.
    populations = [{ids: 0} for ids in initial_strings(state)]
    quarter = 1
    for step in itertools.count():
        if state.fraction >= quarter / 4:
            quarter += 1
            populations.sort(key=lambda expansions: max(state.values[ids] for ids in expansions), reverse=True)
            del populations[math.ceil(len(populations) / 2) :]
        expansions = populations[step % len(populations)]
        # The best one, unless it was expanded oftener than its lead over others in rank.
        ranked = state.rank(expansions)
        handicaps = [rank + expansions[ids] for rank, ids in enumerate(ranked)]
        parent = ranked[int(np.argmin(handicaps))]
        topk = config.topk * 2 ** min(expansions[parent], 16)  # so that no parent runs out of neighbours
        swaps = round(most_swaps + (1 - most_swaps) * state.fraction)
        sequences = neighbours(state, parent, swaps, topk)
        expansions[parent] += 1
        state.score(sequences, parent)
        expansions.update(dict.fromkeys(sequences, 0))
        for ids in state.rank(expansions)[config.buffer :]:
            del expansions[ids]


def random_search(state: SearchState) -> None:
    """Uniformly random sequences of allowed tokens."""
    while True:
        state.score(state.random(state.config.width))


def coordinate_search(state: SearchState) -> None:
    """Every allowed token at one position, the best one kept, then the next position, until nothing improves.

    For one token it is the scan's own optimum. The initial strings are taken one after the other.
    """
    for ids in initial_strings(state):
        unimproved = 0
        for position in itertools.cycle(range(state.config.length)):
            parent = ids
            candidates = [(*ids[:position], token, *ids[position + 1 :]) for token in state.allowed.tolist()]
            for start in range(0, len(candidates), _SWEEP):
                sequences = state.filter(candidates[start : start + _SWEEP])
                state.score(sequences, parent, ends_step=start + _SWEEP >= len(candidates))
                ids = state.rank([ids, *sequences])[0]
            unimproved = unimproved + 1 if ids == parent else 1  # the position just swept cannot improve at once again
            if unimproved >= state.config.length:
                break


def beam(state: SearchState) -> None:
    """Grow responses from the left, each step by the best single tokens, keeping the best `buffer`."""
    top = best_tokens(state)[: state.config.topk]
    beams: list[Ids] = [()]
    for _ in range(state.config.length):
        grown: list[Ids] = []
        for ids in beams:
            longer = state.filter([(*ids, token) for token in top])
            state.score(longer, ids, ends_step=ids == beams[-1])
            grown += longer
        beams = state.rank(grown)[: state.config.buffer]


METHODS = {"gcg": greedy_coordinate_gradient, "random": random_search, "coordinate": coordinate_search, "beam": beam}


def neighbours(state: SearchState, ids: Ids, swaps: int, topk: int) -> list[Ids]:
    """Up to `width` sequences, none of them scored before, all of which pass the filter.

    They differ from `ids` at `swaps` positions or, where most of those have been scored, at more.

    At each position a token is drawn from the `topk` whose one-hot gradient is highest, or (a share `explore` of them)
    from all allowed ones.
    """
    config = state.config
    allowed = state.allowed
    rng = state.rng
    gradient = state.gradient(ids)[:, allowed]
    topk = min(topk, len(allowed))
    steepest = allowed[np.argpartition(-gradient, topk - 1, axis=1)[:, :topk]]
    accepted: list[Ids] = []
    for _ in range(_ROUNDS):
        rows = np.tile(ids, (2 * config.width, 1))
        positions = rng.permuted(np.indices(rows.shape)[1], axis=1)[:, :swaps]
        tokens = steepest[positions, rng.integers(topk, size=positions.shape)]
        anywhere = rng.random(positions.shape) < config.explore
        tokens = np.where(anywhere, rng.choice(allowed, positions.shape), tokens)
        np.put_along_axis(rows, positions, tokens, axis=1)
        drawn = dict.fromkeys(map(tuple, rows.tolist()))
        fresh = [row for row in drawn if row not in state.values and row not in accepted]
        accepted += state.filter(fresh)
        if len(accepted) >= config.width:
            break
        if len(fresh) < config.width:  # the neighbourhood is running dry: a wider one
            swaps = min(swaps + 1, len(ids))
    return accepted[: config.width]


def best_tokens(state: SearchState) -> list[int]:
    """Allowed tokens from the best on, by their reward as the whole response: of the scan, or of a random sample."""
    scan = state.scan
    config = state.config
    if scan is not None:
        ranked = scan.sort_values("score", ascending=config.sign < 0, kind="stable")["token_id"]
        if tokens := ranked[ranked.isin(state.allowed)].tolist():  # none is allowed of some scans of a few ids
            return tokens
    sample = state.rng.permutation(state.allowed)[: config.single_tokens, None]
    single = state.filter(map(tuple, sample.tolist())) or state.random(config.width, 1)
    state.score(single, ends_step=False)
    return [token for (token,) in state.rank(single)]


def initial_strings(state: SearchState) -> Iterator[Ids]:
    """The initial strings, scored: of each the first variant that passes the filter, or else a random one.

    Of a search that goes on, the best sequences that it had found.
    """
    config = state.config
    if state.earlier is not None:
        yield from state.best
        return
    best: list[int] = []
    if "best_repeated" in config.starts or "best_mixed" in config.starts:
        best = best_tokens(state)[:_MIXED_FROM]
    for start in config.starts:
        variants: list[Ids] = []
        if start == "best_repeated":
            variants = [(token,) * config.length for token in best]
        elif start == "best_mixed":
            variants = list(map(tuple, state.rng.choice(best, (_TRIES, config.length)).tolist()))
        elif start != "random":
            ids = state.objective.encode(start)
            if not ids:
                raise InputError(f"search: starts: {start!r} has no token as an answer: give a text, or random", start)
            variants = [tuple(itertools.islice(itertools.cycle(ids), config.length))]
        ids = (state.filter(variants) or state.random(1))[0]
        state.score([ids], ends_step=False)
        yield ids
