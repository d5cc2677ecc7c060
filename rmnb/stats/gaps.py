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
        Two-sided, of the exchange test: within each set, any word could have been the identity term.
    exact : bool
        Whether every arrangement was counted; if not, random ones were.
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
    n_permutations, seed
        Random arrangements of an axis that has more than 200,000 distinct ones.

    Raises
    ------
    InputError
        A set without a term, without a control or on two axes; an axis with fewer than two sets; arrays of different
        length; scores that are not finite.

    References
    ----------
    Rosenbaum (2002), Observational Studies, section 2.4 (permutation within matched sets).
    """
    x = as_vector(scores, "scores", minimum=4)
    term = np.asarray(is_term, dtype=bool)
    sets = np.asarray(matched_set).astype(str)
    axes = np.asarray(axis).astype(str)
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
        values, n_terms, differences = [], [], []
        for members in groups:
            is_term_here = term[members]
            values.append(x[members])
            n_terms.append(int(is_term_here.sum()))
            differences.append(x[members][is_term_here].mean() - x[members][~is_term_here].mean())
        differences = np.array(differences)
        error = differences.std(ddof=1) / np.sqrt(len(groups))
        n_words = sum(len(members) for members in groups)
        estimate = estimate_from_error(differences.mean(), error, n_words, len(groups), df=len(groups) - 1)
        null, exact = _null_means(values, n_terms, n_permutations, rng)
        # Sums of one set of numbers in another order differ in their last bits; they are ties all the same.
        extreme = np.count_nonzero(np.abs(null) >= abs(estimate.value) - 1e-10 * np.abs(null).max())
        p_value = extreme / len(null) if exact else (1 + extreme) / (1 + len(null))
        gaps.append(Gap(name, estimate, p_value, exact))
    return tuple(gaps)


def _null_means(
    values: list[np.ndarray], n_terms: list[int], n_permutations: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], bool]:
    """The mean difference under every arrangement within the sets, or under random ones if there are too many."""
    arrangements = [math.comb(len(scores), k) for scores, k in zip(values, n_terms, strict=True)]
    exact = math.prod(arrangements) <= EXACT_LIMIT
    sums = np.zeros(1 if exact else n_permutations)
    for scores, k, count in zip(values, n_terms, arrangements, strict=True):
        if exact:
            sums = np.add.outer(sums, _all_differences(scores, k)).ravel()
        elif count <= n_permutations:
            sums += rng.choice(_all_differences(scores, k), size=n_permutations)
        else:
            order = np.argsort(rng.random((n_permutations, len(scores))), axis=1)
            sums += scores[order[:, :k]].mean(axis=1) - scores[order[:, k:]].mean(axis=1)
    return sums / len(values), exact


def _all_differences(scores: np.ndarray, k: int) -> NDArray[np.float64]:
    """Mean of `k` scores less the mean of the others, for every choice of `k`."""
    chosen = np.array(list(itertools.combinations(range(len(scores)), k)))
    sums = scores[chosen].sum(axis=1)
    return sums / k - (scores.sum() - sums) / (len(scores) - k)
