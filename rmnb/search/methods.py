"""Which sequences are tried next: greedy coordinate gradient, and the baselines that it is measured against.

A method draws and scores through a `SearchState` until that raises `Finished`, or until it has nothing left to try.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rmnb.search.state import Ids, SearchState

_ROUNDS = 8
_SWEEP = 1024  # candidates scored between two records of a sweep over one position
_MIXED_FROM = 64  # best tokens that are mixed
_TRIES = 100


@dataclass
class Member:
    """A sequence in play, what it is worth, and how often its neighbours have been tried."""

    ids: Ids
    value: float
    expansions: int = 0


def greedy_coordinate_gradient(state: SearchState) -> None:
    """Expand the best sequences along their one-hot gradient, all initial strings in turn, the worse half dropped
    after each quarter of the search.

    After Zou et al. (2023), *Universal and Transferable Adversarial Attacks on Aligned Language Models*, algorithm 1;
    the gradient is that of the reward itself.
    """
    config = state.config
    populations = [[Member(ids, float(state.score([ids], ends_step=False)[0]))] for ids in initial_strings(state)]
    quarter = 1
    for step in itertools.count():
        if state.fraction >= quarter / 4:
            quarter += 1
            populations.sort(key=lambda members: -members[0].value)
            del populations[(len(populations) + 1) // 2 :]
        members = populations[step % len(populations)]
        # The best one, unless it was expanded oftener than its lead over others in rank.
        turns = [rank + member.expansions for rank, member in enumerate(members)]
        parent = members[turns.index(min(turns))]
        topk = config.topk * 2 ** min(parent.expansions, 16)  # so that no parent runs out of neighbours
        sequences = neighbours(state, parent.ids, config.swaps_at(state.fraction), topk)
        parent.expansions += 1
        members += map(Member, sequences, state.score(sequences, parent.ids).tolist())
        members.sort(key=lambda member: -member.value)
        del members[config.buffer :]


def random_search(state: SearchState) -> None:
    """Uniformly random sequences of allowed tokens."""
    while True:
        state.score(state.random(state.config.width))


def coordinate_search(state: SearchState) -> None:
    """Every allowed token at one position, the best one kept, then the next position, until nothing improves.

    For one token it is the scan's own optimum. The initial strings are taken one after the other.
    """
    for ids in initial_strings(state):
        value = float(state.score([ids], ends_step=False)[0])
        unimproved = 0
        for position in itertools.cycle(range(state.config.length)):
            parent = ids
            candidates = [(*parent[:position], token, *parent[position + 1 :]) for token in state.allowed.tolist()]
            for start in range(0, len(candidates), _SWEEP):
                sequences = state.filter(candidates[start : start + _SWEEP])
                values = state.score(sequences, parent, ends_step=start + _SWEEP >= len(candidates))
                if len(values) and values.max() > value:
                    ids, value = sequences[int(values.argmax())], float(values.max())
            unimproved = unimproved + 1 if ids == parent else 1  # the position just swept cannot improve at once again
            if unimproved >= state.config.length:
                break


def beam(state: SearchState) -> None:
    """Grow responses from the left, each step by the best single tokens, keeping the best `buffer`."""
    top = best_tokens(state)[: state.config.topk]
    beams: list[Ids] = [()]
    for _ in range(state.config.length):
        grown: dict[Ids, float] = {}
        for ids in beams:
            longer = state.filter([(*ids, token) for token in top])
            values = state.score(longer, ids, ends_step=ids == beams[-1])
            grown.update(zip(longer, values.tolist(), strict=True))
        beams = sorted(grown, key=lambda ids: -grown[ids])[: state.config.buffer]


METHODS = {"gcg": greedy_coordinate_gradient, "random": random_search, "coordinate": coordinate_search, "beam": beam}


def neighbours(state: SearchState, ids: Ids, swaps: int, topk: int) -> list[Ids]:
    """Up to `width` sequences, none of them scored before, all of which pass the filter.

    They differ from `ids` at `swaps` positions or, where most of those have been scored, at more.

    At each position a token is drawn from the `topk` whose one-hot gradient is highest, or (a share `explore` of them)
    from all allowed ones.
    """
    config, allowed, rng = state.config, state.allowed, state.rng
    gradient = state.gradient(ids)[:, allowed]
    topk = min(topk, len(allowed))
    steepest = allowed[np.argpartition(-gradient, topk - 1, axis=1)[:, :topk]]
    found: dict[Ids, None] = {}
    for _ in range(_ROUNDS):
        count = 2 * config.width
        positions = rng.permuted(np.tile(np.arange(len(ids)), (count, 1)), axis=1)[:, :swaps]
        tokens = steepest[positions, rng.integers(topk, size=positions.shape)]
        anywhere = rng.random(positions.shape) < config.explore
        tokens = np.where(anywhere, rng.choice(allowed, positions.shape), tokens)
        rows = np.tile(np.array(ids), (count, 1))
        np.put_along_axis(rows, positions, tokens, axis=1)
        fresh = [
            row for row in dict.fromkeys(map(tuple, rows.tolist())) if row not in state.rewards and row not in found
        ]
        found.update(dict.fromkeys(state.filter(fresh)))
        if len(found) >= config.width:
            break
        if len(fresh) < config.width:  # the neighbourhood is running dry: a wider one
            swaps = min(swaps + 1, len(ids))
    return list(found)[: config.width]


def best_tokens(state: SearchState) -> list[int]:
    """Allowed tokens from the best on, by their reward as the whole response: of the scan, or of a random sample."""
    if state.scanned is not None:
        return state.scanned
    config = state.config
    chosen = state.rng.permutation(state.allowed)[: config.single_tokens]
    single = state.filter([(int(i),) for i in chosen]) or state.random(config.width, 1)
    return [single[i][0] for i in np.argsort(-state.score(single, ends_step=False), kind="stable")]


def initial_strings(state: SearchState) -> Iterator[Ids]:
    """The initial strings: of each the first variant that passes the filter, or else a random one."""
    config = state.config
    best = best_tokens(state)[:_MIXED_FROM] if any(start.startswith("best_") for start in config.starts) else []
    allowed = set(state.allowed.tolist())
    for start in config.starts:
        variants: list[Ids] = []
        if start == "best_repeated":
            variants = [(token,) * config.length for token in best]
        elif start == "best_mixed":
            variants = [tuple(map(int, state.rng.choice(best, config.length))) for _ in range(_TRIES)]
        elif start != "random":
            variants = [tuple(itertools.islice(itertools.cycle(state.objective.encode(start)), config.length))]
        passed = state.filter([ids for ids in variants if allowed.issuperset(ids)])
        yield (passed or state.random(1))[0]
