"""Agreement of rankings: Kendall's tau-b, Spearman's rho, rank-biased overlap, with ties treated as ties.

Half-precision rewards tie by the thousand, so a statistic that breaks ties by position would measure the order of the
vocabulary.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import as_vector, check_same_length


def dense_ranks(values: ArrayLike, name: str = "values") -> NDArray[np.integer]:
    """Ranks 0, 1, … from the lowest value up; equal values share a rank and no rank is skipped.

    As uint16 if they fit, because NumPy sorts 16-bit integers many times faster, otherwise as int32.
    """
    levels, codes = np.unique(as_vector(values, name), return_inverse=True)
    return codes.astype(np.uint16 if len(levels) <= 1 << 16 else np.int32)


def mid_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Ranks 1, …, n from the lowest value up; equal values share the mean of the ranks they cover."""
    from scipy.stats import rankdata  # here, because importing scipy.stats takes most of a second

    return rankdata(as_vector(values, "values"))


def kendall_tau(x: ArrayLike, y: ArrayLike) -> float:
    """Kendall's tau-b of two score vectors of one length, n ≥ 2; NaN if either is constant.

    Concordant less discordant pairs over the geometric mean of the pairs not tied in `x` and in `y`; O(n log n)
    (Knight's algorithm, by SciPy).

    References
    ----------
    Kendall (1945), The treatment of ties in ranking problems. FAccT25 figure 2A.
    """
    from scipy.stats import kendalltau

    x, y = dense_ranks(x, "x"), dense_ranks(y, "y")
    check_same_length(x=x, y=y)
    return float(kendalltau(x, y, method="asymptotic").statistic)  # skips an exact p-value that nobody reads  # pyright: ignore[reportAttributeAccessIssue]


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rho: Pearson's correlation of the mid-ranks; NaN if either vector is constant."""
    x, y = as_vector(x, "x", minimum=2), as_vector(y, "y", minimum=2)
    check_same_length(x=x, y=y)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(np.corrcoef(mid_ranks(x), mid_ranks(y))[0, 1])


def rank_biased_overlap(x: ArrayLike, y: ArrayLike, p: float = 0.9) -> float:
    """Rank-biased overlap of two rankings of the same items, by score, the highest first.

    The agreement A_d of the first d places, averaged over depths with weights (1 − p) p^(d−1), extrapolated beyond the
    last depth, and over all ways to break the ties: ties hide an order, such as rounding does.

    Parameters
    ----------
    x, y : (n,) scores of the same n items.
    p : float
        Persistence in (0, 1): the larger, the deeper it looks; the first 10 places weigh 86 % at 0.9.

    Raises
    ------
    InputError
        `p` outside (0, 1), scores that are not finite or differ in length.

    References
    ----------
    Webber, Moffat, Zobel (2010), A similarity measure for indefinite rankings, equations 4 and 30.
    Corsi, Urbano (2024), The treatment of ties in rank-biased overlap.
    """
    from scipy.stats import rankdata

    x, y = as_vector(x, "x"), as_vector(y, "y")
    check_same_length(x=x, y=y)
    if not 0 < p < 1:
        raise InputError(f"p must lie between 0 and 1, got {p}")
    depth = min(len(x), int(np.ceil(np.log(1e-18) / np.log(p))) + 1)  # beyond it weights are below a float's last bit
    d = np.arange(1, depth + 1)
    first = [rankdata(-scores, "min") for scores in (x, y)]
    last = [rankdata(-scores, "max") for scores in (x, y)]
    near = (first[0] <= depth) & (first[1] <= depth)
    # The share of an item's tie group that the first d places hold: 1 once the whole group is in.
    shares = [
        np.clip((d[:, None] - begin[near] + 1) / (end[near] - begin[near] + 1), 0, 1)
        for begin, end in zip(first, last, strict=True)
    ]
    agreement = (shares[0] * shares[1]).sum(axis=1) / d
    return float((1 - p) * np.sum(agreement * p ** (d - 1.0)) + agreement[-1] * p**depth)
