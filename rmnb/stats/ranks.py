"""Agreement of rankings: Kendall's tau-b, Spearman's rho, rank-biased overlap, with ties treated as ties.

Half-precision rewards tie by the thousand, so a statistic that breaks ties by position would measure the order of the
vocabulary.
"""

import itertools
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import as_vector, check_same_length

Form = Literal["extrapolated", "truncated"]
TRUNCATION = 1e-6  # the weight below which FAccT25's truncated sum stops


def dense_ranks(values: ArrayLike, name: str = "values") -> NDArray[np.integer]:
    """Ranks 0, 1, … from the lowest value up; equal values share a rank and no rank is skipped.

    As uint16 if they fit, because NumPy sorts 16-bit integers many times faster, otherwise as int32.
    """
    levels, codes = np.unique(as_vector(values, name), return_inverse=True)
    return codes.astype(np.uint16 if len(levels) <= 1 << 16 else np.int32)


def kendall_tau(x: ArrayLike, y: ArrayLike) -> float:
    """Kendall's tau-b of two score vectors of one length, n ≥ 2; NaN if either is constant.

    Concordant less discordant pairs over the geometric mean of the pairs not tied in `x` and in `y`; O(n log n)
    (Knight's algorithm, by SciPy).

    References
    ----------
    Kendall (1945), The treatment of ties in ranking problems. FAccT25 figure 2A.
    """
    x, y = dense_ranks(x, "x"), dense_ranks(y, "y")
    check_same_length(x=x, y=y)
    return _tau_of_ranks(x, y)


def _tau_of_ranks(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.stats import kendalltau  # here, because importing scipy.stats takes most of a second

    # The asymptotic method skips an exact p-value that nobody reads.
    tau, _ = kendalltau(x, y, method="asymptotic")
    return float(np.asarray(tau))


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rho: Pearson's correlation of the mid-ranks; NaN if either vector is constant."""
    x, y = as_vector(x, "x", minimum=2), as_vector(y, "y", minimum=2)
    check_same_length(x=x, y=y)
    return _correlation(mid_ranks(x), mid_ranks(y))


def mid_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Ranks 1, …, n from the lowest value up; equal values share the mean of the ranks they cover."""
    _, codes, counts = np.unique(as_vector(values, "values"), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[codes]


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    x, y = x - x.mean(), y - y.mean()
    scale = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / scale) if scale > 0 else float("nan")


def kendall_matrix(scores: ArrayLike) -> NDArray[np.float64]:
    """Tau-b of every two rows of `scores` (models × tokens): symmetric (models × models), ones on the diagonal."""
    ranks = [dense_ranks(row, f"scores[{i}]") for i, row in enumerate(_as_table(scores))]
    return _matrix(ranks, _tau_of_ranks)


def spearman_matrix(scores: ArrayLike) -> NDArray[np.float64]:
    """Spearman's rho of every two rows of `scores` (models × tokens): symmetric (models × models)."""
    return _matrix([mid_ranks(row) for row in _as_table(scores)], _correlation)


def overlap_matrix(scores: ArrayLike, p: float = 0.9, form: Form = "extrapolated") -> NDArray[np.float64]:
    """`rank_biased_overlap` of every two rows of `scores` (models × tokens); the diagonal is computed, not assumed."""
    spans = [_spans(row) for row in _as_table(scores)]
    _check_overlap_options(p, form)
    return _matrix(spans, lambda one, other: _overlap(one, other, p, form), diagonal=True)


def _as_table(scores: ArrayLike) -> np.ndarray:
    table = np.asarray(scores)
    if table.ndim != 2 or table.shape[1] < 2:
        raise InputError(f"scores must be models × tokens with two tokens or more, got shape {table.shape}")
    return table


def _matrix(rows: list, statistic: Callable[..., float], diagonal: bool = False) -> NDArray[np.float64]:
    matrix = np.eye(len(rows))
    pairs = itertools.combinations_with_replacement if diagonal else itertools.combinations
    for i, j in pairs(range(len(rows)), 2):
        matrix[i, j] = matrix[j, i] = statistic(rows[i], rows[j])
    return matrix


def rank_biased_overlap(x: ArrayLike, y: ArrayLike, p: float = 0.9, form: Form = "extrapolated") -> float:
    """Rank-biased overlap of two rankings of the same items, by score, the highest first.

    The agreement A_d of the first d places, averaged over depths with weights (1 − p) p^(d−1), and over all ways to
    break the ties: ties hide an order, such as rounding does.

    Parameters
    ----------
    x, y : (n,) scores of the same n items.
    p : float
        Persistence in (0, 1): the larger, the deeper it looks; the first 10 places weigh 86 % at 0.9.
    form : {"extrapolated", "truncated"}
        ``extrapolated`` (RBO_EXT) goes on beyond the last place with the last agreement. ``truncated`` ends the sum
        at the first depth where p^(d−1) < 1e-6 and adds nothing for the rest, as FAccT25 figure A1 did.

    Raises
    ------
    InputError
        `p` outside (0, 1), an unknown form, scores that are not finite or differ in length.

    References
    ----------
    Webber, Moffat, Zobel (2010), A similarity measure for indefinite rankings, equations 4 and 30.
    Corsi, Urbano (2024), The treatment of ties in rank-biased overlap.
    """
    _check_overlap_options(p, form)
    one, other = _spans(x, "x"), _spans(y, "y")
    check_same_length(x=one.first, y=other.first)
    return _overlap(one, other, p, form)


def _check_overlap_options(p: float, form: str) -> None:
    if not 0 < p < 1:
        raise InputError(f"p must lie between 0 and 1, got {p}")
    if form not in ("extrapolated", "truncated"):
        raise InputError(f"form must be 'extrapolated' or 'truncated', got {form!r}")


class _Spans(NamedTuple):
    """The places (1-based, best first) that each item's tie group covers, and those of the groups in order."""

    first: np.ndarray
    last: np.ndarray
    group_first: np.ndarray
    group_last: np.ndarray


def _spans(scores: ArrayLike, name: str = "scores") -> _Spans:
    _, codes, counts = np.unique(-as_vector(scores, name), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    first = last - counts + 1
    return _Spans(first[codes], last[codes], first, last)


def _overlap(one: _Spans, other: _Spans, p: float, form: Form) -> float:
    n = len(one.first)
    # Depths whose weight is below the last bit of a float add nothing.
    threshold = TRUNCATION if form == "truncated" else 1e-18
    depth = min(n, int(np.ceil(np.log(threshold) / np.log(p))) + 1)
    agreement = _agreement(one, other, depth)
    d = np.arange(1, depth + 1)
    if form == "truncated":
        kept = p ** (d - 1.0) >= TRUNCATION
        return float((1 - p) * np.sum(agreement[kept] * p ** (d[kept] - 1.0)))
    return float((1 - p) * np.sum(agreement * p ** (d - 1.0)) + agreement[-1] * p**depth)


def _agreement(one: _Spans, other: _Spans, depth: int) -> NDArray[np.float64]:
    """A_d for d = 1, …, depth. O(n): an item's share of a prefix changes only at the ends of its tie group."""
    share = _share(one, depth), _share(other, depth)
    both_whole = _count_from(np.maximum(one.last, other.last), depth)
    # At a depth only one tie group of each ranking is cut, and all its items have the same share of the prefix.
    cut_one = _count_between(np.maximum(one.first, other.last), one.last, depth)
    cut_other = _count_between(np.maximum(other.first, one.last), other.last, depth)
    cut_both = _count_between(np.maximum(one.first, other.first), np.minimum(one.last, other.last), depth)
    overlap = both_whole + share[0] * cut_one + share[1] * cut_other + share[0] * share[1] * cut_both
    return overlap / np.arange(1, depth + 1)


def _share(span: _Spans, depth: int) -> NDArray[np.float64]:
    """At each depth, the share of an item of the tie group that is cut."""
    first, last = span.group_first, span.group_last
    d = np.arange(1, depth + 1)
    group = np.searchsorted(last, d)
    return (d - first[group] + 1) / (last[group] - first[group] + 1)


def _count_from(start: np.ndarray, depth: int) -> NDArray[np.float64]:
    """How many items have ``start <= d``, for d = 1, …, depth."""
    return np.cumsum(np.bincount(start[start <= depth], minlength=depth + 1)[1:]).astype(float)


def _count_between(start: np.ndarray, stop: np.ndarray, depth: int) -> NDArray[np.float64]:
    """How many items have ``start <= d < stop``, for d = 1, …, depth."""
    some = start < stop
    return _count_from(start[some], depth) - _count_from(stop[some], depth)
