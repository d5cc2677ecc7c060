"""Identity gaps: scores of identity terms against neutral words matched to them, axis by axis."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import Estimate, as_vector, check_same_length, estimate_from_error
from rmnb.stats.permutation import EXACT_LIMIT, tail_probability

Seed = int | np.random.Generator


@dataclass(frozen=True)
class Gap:
    """Mean difference over matched sets, term less control, on one axis.

    Attributes
    ----------
    axis : str
    gap : Estimate
        t interval over sets; ``gap.n_clusters`` is the number of sets and ``gap.p_value`` that of the t test.
    p_value : float
        Permutation test: within each set, any word could have been the identity term.
    p_adjusted : float
        Benjamini and Hochberg's, over the axes of one call.
    exact : bool
        Every arrangement was counted.
    """

    axis: str
    gap: Estimate
    p_value: float
    p_adjusted: float
    exact: bool


def identity_gaps(
    scores: ArrayLike,
    is_term: ArrayLike,
    matched_set: ArrayLike,
    axis: ArrayLike,
    n_permutations: int = 10_000,
    seed: Seed = 0,
    confidence: float = 0.95,
) -> tuple[Gap, ...]:
    """Matched-set gaps of all axes, in the order in which the axes appear.

    Parameters
    ----------
    scores : (n,) rewards, standardised to compare models (`standardise`)
    is_term : (n,) bool, True for an identity term, False for its control words
    matched_set : (n,) labels; a set holds one or more terms and one or more controls of like frequency and length
    axis : (n,) labels, constant within a set: religion, gender, …

    Raises
    ------
    InputError
        A set without term or control or on two axes; an axis with fewer than two sets; lengths, values not finite.

    References
    ----------
    Rosenbaum (2002), Observational Studies, section 2.4 (permutation within matched sets).
    """
    from scipy.stats import false_discovery_control  # here, because importing scipy.stats takes most of a second

    x = as_vector(scores, "scores", minimum=4)
    term = np.asarray(is_term, dtype=bool)
    sets, axes = np.asarray(matched_set).astype(str), np.asarray(axis).astype(str)
    check_same_length(scores=x, is_term=term, matched_set=sets, axis=axes)
    rng = np.random.default_rng(seed)
    found: list[tuple[str, Estimate, float, bool]] = []
    members_of: dict[str, list[np.ndarray]] = {}
    for label in dict.fromkeys(sets.tolist()):
        members = np.flatnonzero(sets == label)
        if len(set(axes[members])) > 1:
            raise InputError(f"matched set {label!r} lies on two axes: {', '.join(sorted(set(axes[members])))}")
        if term[members].all() or not term[members].any():
            raise InputError(f"matched set {label!r} needs both an identity term and a control word")
        members_of.setdefault(str(axes[members[0]]), []).append(members)
    for name, groups in members_of.items():
        if len(groups) < 2:
            raise InputError(f"axis {name!r} has one matched set only: an interval needs two or more")
        differences = np.array([_difference(x[members], term[members]) for members in groups])
        null, exact = _null_means([x[m] for m in groups], [term[m].sum() for m in groups], n_permutations, rng)
        error = differences.std(ddof=1) / np.sqrt(len(groups))
        size = sum(len(members) for members in groups)
        estimate = estimate_from_error(
            differences.mean(), error, size, len(groups), df=len(groups) - 1, confidence=confidence
        )
        found.append((name, estimate, tail_probability(estimate.value, null, "two-sided", exact), exact))
    adjusted = false_discovery_control([p for _, _, p, _ in found])
    return tuple(
        Gap(name, estimate, p, float(q), exact) for (name, estimate, p, exact), q in zip(found, adjusted, strict=True)
    )


def _difference(values: np.ndarray, term: np.ndarray) -> float:
    return values[term].mean() - values[~term].mean()


def _null_means(
    values: list[np.ndarray], n_terms: list[int], n_permutations: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], bool]:
    """The mean difference under every arrangement within the sets, or under random ones if there are too many."""
    arrangements = [math.comb(len(v), k) for v, k in zip(values, n_terms, strict=True)]
    total = math.prod(arrangements)
    if total <= EXACT_LIMIT:
        sums = np.zeros(1)
        for v, k in zip(values, n_terms, strict=True):
            sums = (sums[:, None] + _all_differences(v, k)[None, :]).ravel()
        return sums / len(values), True
    sums = np.zeros(n_permutations)
    for v, k, count in zip(values, n_terms, arrangements, strict=True):
        if count <= n_permutations:
            sums += rng.choice(_all_differences(v, k), size=n_permutations)
        else:
            order = np.argsort(rng.random((n_permutations, len(v))), axis=1)
            sums += v[order[:, :k]].mean(axis=1) - v[order[:, k:]].mean(axis=1)
    return sums / len(values), False


def _all_differences(values: np.ndarray, k: int) -> NDArray[np.float64]:
    chosen = np.array(list(itertools.combinations(range(len(values)), k)))
    sums = values[chosen].sum(axis=1)
    return sums / k - (values.sum() - sums) / (len(values) - k)
