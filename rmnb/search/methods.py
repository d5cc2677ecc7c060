"""Which sequences are tried next: greedy coordinate gradient, and the baselines that it is measured against.

Each method is a generator: it yields what to score and is sent the values. It knows nothing of budgets, files and
progress; given the same seed and values it makes the same proposals, which is what resuming rests on.
"""

from collections.abc import Callable
from itertools import count, cycle

import numpy as np

from rmnb.search.candidates import Population, neighbours
from rmnb.search.problem import Ids, Problem, Proposal, Proposals
from rmnb.search.starts import best_tokens, initial

_SWEEP = 1024  # candidates scored between two records of an exhaustive sweep


def greedy_coordinate_gradient(problem: Problem, rng: np.random.Generator, fraction: Callable[[], float]) -> Proposals:
    """Expand the best sequences along their one-hot gradient, all initial strings in turn, the worse half dropped
    after each quarter of the search.

    After Zou et al. (2023), *Universal and Transferable Adversarial Attacks on Aligned Language Models*, algorithm 1;
    the gradient is that of the reward itself.
    """
    config = problem.config
    populations = []
    best = (yield from best_tokens(problem, rng)) if _needs_best(config.starts) else []
    for origin in config.starts:
        ids = initial(problem, origin, best, rng)
        population = Population(origin, config.buffer)
        population.add([ids], (yield Proposal([ids], origin=origin, ends_step=False)))
        populations.append(population)
    quarter = 1
    for step in count():
        if fraction() >= quarter / 4:
            quarter += 1
            populations.sort(key=lambda population: -population.best)
            del populations[(len(populations) + 1) // 2 :]
        population = populations[step % len(populations)]
        parent = population.parent()
        topk = config.topk << min(parent.expansions, 16)
        swaps = config.swaps_at(fraction())
        sequences = neighbours(problem, parent.ids, swaps, topk, population.tried, rng)
        parent.expansions += 1
        values = yield Proposal(sequences, parent.ids, population.origin)
        population.add(sequences, values)


def random_search(problem: Problem, rng: np.random.Generator, fraction: Callable[[], float]) -> Proposals:
    """Uniformly random sequences of allowed tokens."""
    while True:
        yield Proposal(problem.random(problem.config.width, rng), origin="random")


def coordinate_exhaustive(problem: Problem, rng: np.random.Generator, fraction: Callable[[], float]) -> Proposals:
    """Every allowed token at one position, the best one kept, then the next position, until nothing improves.

    For one token it is the scan's own optimum. The initial strings are taken one after the other.
    """
    config = problem.config
    best = (yield from best_tokens(problem, rng)) if _needs_best(config.starts) else []
    for origin in config.starts:
        ids = initial(problem, origin, best, rng)
        value = float((yield Proposal([ids], origin=origin, ends_step=False))[0])
        unimproved = 0
        for position in cycle(range(config.length)):
            parent = ids
            everything = [(*parent[:position], token, *parent[position + 1 :]) for token in problem.allowed.tolist()]
            for start in range(0, len(everything), _SWEEP):
                sequences = problem.surviving(everything[start : start + _SWEEP])
                values = yield Proposal(sequences, parent, origin, start + _SWEEP >= len(everything))
                if len(values) and values.max() > value:
                    ids, value = sequences[int(values.argmax())], float(values.max())
            unimproved = unimproved + 1 if ids == parent else 1  # the position just swept cannot improve at once again
            if unimproved >= config.length:
                break


def beam(problem: Problem, rng: np.random.Generator, fraction: Callable[[], float]) -> Proposals:
    """Grow responses from the left, each step by the best single tokens, keeping the best `buffer`."""
    config = problem.config
    top = (yield from best_tokens(problem, rng))[: config.topk]
    beams: list[Ids] = [()]
    for _ in range(config.length):
        sequences: list[Ids] = []
        values: list[float] = []
        for ids in beams:
            longer = problem.surviving([(*ids, token) for token in top])
            sequences += longer
            values += (yield Proposal(longer, ids, "beam", ids == beams[-1])).tolist()
        order = np.argsort(-np.array(values), kind="stable")[: config.buffer]
        beams = [sequences[i] for i in order]


METHODS = {
    "gcg": greedy_coordinate_gradient,
    "random": random_search,
    "exhaustive": coordinate_exhaustive,
    "beam": beam,
}


def _needs_best(starts: tuple[str, ...]) -> bool:
    return any(origin.startswith("best") for origin in starts)
