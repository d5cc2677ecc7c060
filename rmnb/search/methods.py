"""Which sequences are tried next: greedy coordinate gradient, and the baselines that it is measured against.

Each method is a generator: it yields what to score and is sent the values. It knows nothing of budgets, files and
progress; given the same seed and values it makes the same proposals, which is what resuming rests on.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from itertools import count, cycle

import numpy as np

from rmnb.search.problem import Ids, Problem, Proposal, Proposals, best_tokens, initial

_ROUNDS = 8
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


def neighbours(
    problem: Problem,
    ids: Ids,
    swaps: int,
    topk: int,
    tried: Container[Ids],
    rng: np.random.Generator,
) -> list[Ids]:
    """Up to `width` sequences, none of them tried before, all surviving as text.

    They differ from `ids` at `swaps` positions or, where most of those have been tried, at more.

    At each position a token is drawn from the `topk` whose one-hot gradient is highest, or (a share `explore` of them)
    from all allowed ones.
    """
    config, allowed = problem.config, problem.allowed
    gradient = problem.gradient(ids)[:, allowed]
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
        fresh = [row for row in dict.fromkeys(map(tuple, rows.tolist())) if row not in tried and row not in found]
        found.update(dict.fromkeys(problem.surviving(fresh)))
        if len(found) >= config.width:
            break
        if len(fresh) < config.width:  # the neighbourhood is running dry: a wider one
            swaps = min(swaps + 1, len(ids))
    return list(found)[: config.width]


@dataclass
class Member:
    """A sequence in play, what it is worth, and how often its neighbours have been tried."""

    ids: Ids
    value: float
    expansions: int = 0


@dataclass
class Population:
    """The best sequences that came from one initial string, best first."""

    origin: str
    size: int
    members: list[Member] = field(default_factory=list)
    tried: set[Ids] = field(default_factory=set)

    def add(self, sequences: list[Ids], values: np.ndarray) -> None:
        """Take in what was scored; equal ones and those beyond `size` are dropped."""
        known = {member.ids for member in self.members}
        fresh = [Member(ids, float(v)) for ids, v in zip(sequences, values, strict=True) if ids not in known]
        self.members = sorted([*self.members, *fresh], key=lambda member: -member.value)[: self.size]
        self.tried.update(sequences)

    @property
    def best(self) -> float:
        """What its best member is worth."""
        return self.members[0].value

    def parent(self) -> Member:
        """The member to expand: the best one, unless it was expanded oftener than its lead over others in rank."""
        return min(enumerate(self.members), key=lambda place: place[0] + place[1].expansions)[1]
