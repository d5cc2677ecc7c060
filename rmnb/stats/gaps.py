"""Identity gaps: scores of identity terms against neutral words matched to them, axis by axis."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import Estimate, as_vector, check_same_length, estimate_from_error
from rmnb.stats.over_models import EXACT_LIMIT


@dataclass(frozen=True)
class Gap:
    """Mean difference over matched sets, term less control, on one axis.

    Attributes
    ----------
    axis : str
    gap : Estimate
        t interval over sets; ``gap.n_clusters`` is the number of sets and ``gap.p_value`` that of the t test.
    p_value : float
        Exchange test: within each set, any word could have been the identity term; two-sided.
    exact : bool
        Every arrangement was counted.
    """

    axis: str
    gap: Estimate
    p_value: float
    exact: bool


def identity_gaps(
    scores: ArrayLike,
    is_term: ArrayLike,
    matched_set: ArrayLike,
    axis: ArrayLike,
    n_permutations: int = 10_000,
    seed: int | np.random.Generator = 0,
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
    x, term = as_vector(scores, "scores", minimum=4), np.asarray(is_term, dtype=bool)
    sets, axes = np.asarray(matched_set).astype(str), np.asarray(axis).astype(str)
    check_same_length(scores=x, is_term=term, matched_set=sets, axis=axes)
    rng = np.random.default_rng(seed)
    sets_of_axis: dict[str, list[np.ndarray]] = {}
    for label in dict.fromkeys(sets.tolist()):
        members = np.flatnonzero(sets == label)
        if len(set(axes[members])) > 1:
            raise InputError(f"matched set {label!r} lies on two axes: {', '.join(sorted(set(axes[members])))}")
        if term[members].all() or not term[members].any():
            raise InputError(f"matched set {label!r} needs both an identity term and a control word")
        sets_of_axis.setdefault(str(axes[members[0]]), []).append(members)
    gaps = []
    for name, groups in sets_of_axis.items():
        if len(groups) < 2:
            raise InputError(f"axis {name!r} has one matched set only: an interval needs two or more")
        differences = np.array([x[m][term[m]].mean() - x[m][~term[m]].mean() for m in groups])
        error = differences.std(ddof=1) / np.sqrt(len(groups))
        size = sum(len(members) for members in groups)
        estimate = estimate_from_error(differences.mean(), error, size, len(groups), df=len(groups) - 1)
        null, exact = _null_means([x[m] for m in groups], [int(term[m].sum()) for m in groups], n_permutations, rng)
        # Sums of one set of numbers in another order differ in their last bits; they are ties all the same.
        extreme = np.count_nonzero(np.abs(null) >= abs(estimate.value) - 1e-10 * np.abs(null).max())
        p_value = extreme / len(null) if exact else (1 + extreme) / (1 + len(null))
        gaps.append(Gap(name, estimate, p_value, exact))
    return tuple(gaps)


def _null_means(
    values: list[np.ndarray], n_terms: list[int], n_permutations: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], bool]:
    """The mean difference under every arrangement within the sets, or under random ones if there are too many."""
    arrangements = [math.comb(len(v), k) for v, k in zip(values, n_terms, strict=True)]
    exact = math.prod(arrangements) <= EXACT_LIMIT
    sums = np.zeros(1 if exact else n_permutations)
    for v, k, count in zip(values, n_terms, arrangements, strict=True):
        if exact:
            sums = np.add.outer(sums, _all_differences(v, k)).ravel()
        elif count <= n_permutations:
            sums += rng.choice(_all_differences(v, k), size=n_permutations)
        else:
            order = np.argsort(rng.random((n_permutations, len(v))), axis=1)
            sums += v[order[:, :k]].mean(axis=1) - v[order[:, k:]].mean(axis=1)
    return sums / len(values), exact


def _all_differences(values: np.ndarray, k: int) -> NDArray[np.float64]:
    chosen = np.array(list(itertools.combinations(range(len(values)), k)))
    sums = values[chosen].sum(axis=1)
    return sums / k - (values.sum() - sums) / (len(values) - k)
