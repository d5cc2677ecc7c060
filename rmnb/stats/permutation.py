"""Permutation tests whose unit is the model: exact where the arrangements can be counted, Monte Carlo beyond.

Ten models are ten observations, whatever the number of prompts and tokens: a claim about kinds of models must be tested
against the ways in which the models could have been of those kinds.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import as_vector, check_same_length

Alternative = Literal["two-sided", "greater", "less"]
EXACT_LIMIT = 200_000  # arrangements; at most about a second


@dataclass(frozen=True)
class PermutationTest:
    """The observed statistic, its p-value, the number of arrangements compared, and whether these were all."""

    statistic: float
    p_value: float
    n_arrangements: int
    exact: bool


def two_group_test(
    values: ArrayLike,
    in_first: ArrayLike,
    alternative: Alternative = "two-sided",
    n_permutations: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> PermutationTest:
    """Test whether two groups of models differ in mean: mean of the first less mean of the second.

    Parameters
    ----------
    values : (models,) one number a model, for instance the median over its prompts.
    in_first : (models,) bool
    alternative : {"two-sided", "greater", "less"}
        Two-sided compares absolute differences.
    n_permutations : int
        Random arrangements, used only if there are more than 200,000 distinct ones (4 against 6 models: 210).

    Raises
    ------
    InputError
        An empty group, different lengths, values that are not finite.

    References
    ----------
    Fisher (1935), The Design of Experiments, section 21. Phipson, Smyth (2010) for Monte-Carlo p-values.
    """
    x = as_vector(values, "values", minimum=2)
    first = np.asarray(in_first, dtype=bool)
    check_same_length(values=x, in_first=first)
    size, n = int(first.sum()), len(x)
    if not 0 < size < n:
        raise InputError(f"both groups need a model: {size} in the first, {n - size} in the second")
    total = math.comb(n, size)
    exact = total <= EXACT_LIMIT
    if exact:
        members = np.array(list(itertools.combinations(range(n), size)))
    else:
        rng = np.random.default_rng(seed)
        members = np.argsort(rng.random((n_permutations, n)), axis=1)[:, :size]
    sums = x[members].sum(axis=1)
    null = sums / size - (x.sum() - sums) / (n - size)
    observed = x[first].mean() - x[~first].mean()
    return _compare(observed, null, alternative, exact)


def sign_flip_test(
    values: ArrayLike,
    alternative: Alternative = "two-sided",
    n_permutations: int = 10_000,
    seed: int | np.random.Generator = 0,
) -> PermutationTest:
    """Test whether models' values (differences, slopes) are centred on zero, by flipping their signs.

    Exact for up to 17 models (2^17 patterns), Monte Carlo beyond. Assumes a symmetric distribution under the null.

    References
    ----------
    Fisher (1935), The Design of Experiments, section 21.
    """
    x = as_vector(values, "values", minimum=2)
    exact = len(x) < 64 and 2 ** len(x) <= EXACT_LIMIT
    if exact:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=len(x))))
    else:
        signs = np.random.default_rng(seed).choice((1.0, -1.0), size=(n_permutations, len(x)))
    return _compare(x.mean(), (signs * x).mean(axis=1), alternative, exact)


def _compare(observed: float, null: np.ndarray, alternative: str, exact: bool) -> PermutationTest:
    p_value = tail_probability(observed, null, alternative, exact)
    return PermutationTest(float(observed), p_value, len(null), exact)


def tail_probability(observed: float, null: NDArray[np.float64], alternative: str, exact: bool) -> float:
    """Share of arrangements at least as extreme as the observed one, which itself counts as one."""
    if alternative not in ("two-sided", "greater", "less"):
        raise InputError(f"alternative must be 'two-sided', 'greater' or 'less', got {alternative!r}")
    if alternative == "two-sided":
        observed, null = abs(observed), np.abs(null)
    elif alternative == "less":
        observed, null = -observed, -null
    # Sums of one set of numbers in another order differ in their last bits; they are ties all the same.
    slack = 1e-10 * max(abs(observed), float(np.max(np.abs(null))))
    extreme = int(np.count_nonzero(null >= observed - slack))
    return extreme / len(null) if exact else (1 + extreme) / (1 + len(null))
