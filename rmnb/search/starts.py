"""Initial strings of a search."""

import itertools
from collections.abc import Generator

import numpy as np

from rmnb.search.problem import Ids, Problem, Proposal

_BLANKS = (" .", " !", ".", "!", " x", " a", " the", " ")
_MIXED_FROM = 64  # best tokens that are mixed
_TRIES = 100


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
