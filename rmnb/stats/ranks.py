"""Standard scores, ranks and the overlap of rankings, with ties treated as ties.

Half-precision rewards tie by the thousand, so a statistic that breaks ties by position would measure the order of the
vocabulary.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import as_vector, check_same_length


def standardise(scores: ArrayLike) -> NDArray[np.float64]:
    """Scores with mean 0 and standard deviation 1, so that slopes of models on different scales compare.

    Give the scores of the whole vocabulary, then select words: the unit is the model's spread over its vocabulary.

    Parameters
    ----------
    scores : (n,) finite numbers, n ≥ 2

    Returns
    -------
    ndarray
        (n,) float64; the standard deviation divides by n.

    Raises
    ------
    InputError
        Too few, equal or not finite scores.
    """
    x = as_vector(scores, "scores", minimum=2)
    if x.std() == 0 or np.ptp(x) == 0:  # the standard deviation of equal numbers need not be exactly 0
        raise InputError("scores are all equal and cannot be standardised")
    return (x - x.mean()) / x.std()


def mid_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Ranks 1, …, n from the lowest value up; equal values share the mean of the ranks they cover."""
    from scipy.stats import rankdata  # here, because importing scipy.stats takes most of a second

    return rankdata(as_vector(values, "values"))


def rank_biased_overlap(x: ArrayLike, y: ArrayLike, p: float = 0.9) -> float:
    """Rank-biased overlap of two rankings of the same items, by score, the highest first.

    The agreement A_d of the first d places, averaged over depths with weights (1 − p) p^(d−1), extrapolated beyond the
    last depth, and over all ways to break the ties: a tie hides an order, as rounding does.

    Parameters
    ----------
    x, y : (n,) scores of the same n items.
    p : float
        Persistence in (0, 1): the larger, the more the later places weigh; the first 10 weigh 86 % at 0.9.

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

    x = as_vector(x, "x")
    y = as_vector(y, "y")
    check_same_length(x=x, y=y)
    if not 0 < p < 1:
        raise InputError(f"p must lie between 0 and 1, got {p}")
    depth = min(len(x), int(np.ceil(np.log(1e-18) / np.log(p))) + 1)  # beyond it weights are below a float's last bit
    depths = np.arange(1, depth + 1)
    first_x, last_x = rankdata(-x, "min"), rankdata(-x, "max")
    first_y, last_y = rankdata(-y, "min"), rankdata(-y, "max")
    near = (first_x <= depth) & (first_y <= depth)

    def share_included(first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """The share of each item's tie group that the first places of each depth hold: 1 once the group is in."""
        return np.clip((depths[:, None] - first + 1) / (last - first + 1), 0, 1)

    shares = share_included(first_x[near], last_x[near]) * share_included(first_y[near], last_y[near])
    agreement = shares.sum(axis=1) / depths
    return float((1 - p) * np.sum(agreement * p ** (depths - 1.0)) + agreement[-1] * p**depth)
