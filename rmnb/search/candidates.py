"""Which neighbours of a sequence greedy coordinate gradient tries."""

from collections.abc import Container
from dataclasses import dataclass, field

import numpy as np

from rmnb.search.problem import Ids, Problem

_ROUNDS = 8


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
