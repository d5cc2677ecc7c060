"""Which sequences are tried next: greedy coordinate gradient, and the baselines that it is measured against.

A method draws and scores through a `SearchState` until that raises `Finished`, or until it has nothing left to try.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from rmnb.search.state import Ids, SearchState

_ROUNDS = 8
_SWEEP = 1024  # candidates scored between two records of a sweep over one position
_MIXED_FROM = 64  # best tokens that are mixed
_TRIES = 100


def greedy_coordinate_gradient(state: SearchState) -> None:
    """Expand the best sequences along their one-hot gradient, all initial strings in turn, the worse half dropped
    after each quarter of the search.

    After Zou et al. (2023), *Universal and Transferable Adversarial Attacks on Aligned Language Models*, algorithm 1;
    the gradient is that of the reward itself.
    """
    config = state.config
    first = min(config.swaps or config.length // 2 or 1, config.length)
    # Of each initial string the sequences in play, and how often their neighbours have been tried.
    populations = [{ids: 0} for ids in initial_strings(state)]
    quarter = 1
    for step in itertools.count():
        if state.fraction >= quarter / 4:
            quarter += 1
            populations.sort(key=lambda expansions: max(map(state.values.__getitem__, expansions)), reverse=True)
            del populations[(len(populations) + 1) // 2 :]
        expansions = populations[step % len(populations)]
        # The best one, unless it was expanded oftener than its lead over others in rank.
        ranked = state.rank(expansions)
        parent = min(ranked, key=lambda ids: ranked.index(ids) + expansions[ids])
        topk = config.topk * 2 ** min(expansions[parent], 16)  # so that no parent runs out of neighbours
        sequences = neighbours(state, parent, round(first + (1 - first) * state.fraction), topk)
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
    config, allowed, rng = state.config, state.allowed, state.rng
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
    scan, config = state.scan, state.config
    if scan is not None:
        ranked = scan.sort_values("score", ascending=config.sign < 0, kind="stable")["token_id"]
        return ranked[ranked.isin(state.allowed)].tolist()
    sample = state.rng.permutation(state.allowed)[: config.single_tokens, None]
    single = state.filter(map(tuple, sample.tolist())) or state.random(config.width, 1)
    state.score(single, ends_step=False)
    return [token for (token,) in state.rank(single)]


def initial_strings(state: SearchState) -> Iterator[Ids]:
    """The initial strings, scored: of each the first variant that passes the filter, or else a random one."""
    config = state.config
    best = best_tokens(state)[:_MIXED_FROM] if {"best_repeated", "best_mixed"} & set(config.starts) else []
    for start in config.starts:
        variants: list[Ids] = []
        if start == "best_repeated":
            variants = [(token,) * config.length for token in best]
        elif start == "best_mixed":
            variants = list(map(tuple, state.rng.choice(best, (_TRIES, config.length)).tolist()))
        elif start != "random":
            variants = [tuple(itertools.islice(itertools.cycle(state.objective.encode(start)), config.length))]
        ids = (state.filter(variants) or state.random(1))[0]
        state.score([ids], ends_step=False)
        yield ids
