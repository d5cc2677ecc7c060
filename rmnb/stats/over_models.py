"""Claims about many models, whose unit is the model: means, groups of models, and tests over their arrangements.

Ten models are ten observations, whatever the number of prompts and tokens. Their 45 pairs are not independent: a test
of matrices permutes the models, never the pairs.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError, TooFewError
from rmnb.stats.estimate import Estimate, as_vector, check_count, check_same_length, estimate_from_error
from rmnb.stats.ranks import mid_ranks, standardise

EXACT_LIMIT = 200_000  # arrangements; at most about a second


def mean_over_models(values: ArrayLike) -> Estimate:
    """Mean of one number a model (a slope, a gap, a correlation) with its t interval over models.

    The interval speaks of models like these, not of these models' words: models differ by far more than words scatter.

    Parameters
    ----------
    values : (models,) finite numbers, two or more
    """
    x = as_vector(values, "values", minimum=2)
    error = x.std(ddof=1) / np.sqrt(len(x))
    return estimate_from_error(x.mean(), error, len(x), len(x), df=len(x) - 1)


def jackknife_over_models(statistic: Callable[[np.ndarray], float], n: int) -> Estimate:
    """A number of all models together, such as a mean over their pairs, with the interval of leaving out one at a time.

    Parameters
    ----------
    statistic
        Called with the places of some models, an array of int; returns the number.
    n
        How many models there are, three or more.

    Raises
    ------
    InputError
        Fewer than three models, or a statistic that is not finite without one of them.

    References
    ----------
    Arvesen (1969), Jackknifing U-statistics.
    """
    places = np.arange(n)
    left_out = as_vector([statistic(np.delete(places, place)) for place in places], "values", minimum=3)
    error = float(np.sqrt((n - 1) * left_out.var()))
    return estimate_from_error(statistic(places), error, n, n, df=n - 1)


def difference_between_groups(values: ArrayLike, in_first: ArrayLike) -> Estimate:
    """Mean of the first group of models less mean of the second, one number a model, with Welch's t interval.

    Parameters
    ----------
    values : (models,) finite numbers
    in_first : (models,) bool

    Raises
    ------
    InputError
        Fewer than two models in a group, different lengths, values that are not finite.

    References
    ----------
    Welch (1947), The generalization of Student's problem when several different population variances are involved.
    """
    from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

    first, second = _two_groups(values, in_first, smallest=2)
    n = len(first) + len(second)
    groups = CompareMeans(DescrStatsW(first), DescrStatsW(second))
    difference = first.mean() - second.mean()
    with np.errstate(invalid="ignore"):  # two constant groups
        df = groups.dof_satt()
    return estimate_from_error(difference, float(groups.std_meandiff_separatevar), n, n, df=df)  # pyright: ignore[reportArgumentType]


def two_group_test(
    values: ArrayLike, in_first: ArrayLike, n_permutations: int = 10_000, seed: int | np.random.Generator = 0
) -> Estimate:
    """Test whether two groups of models differ in mean, by the ways in which the models could have been grouped.

    Parameters
    ----------
    values : (models,) one number a model, for instance the median over its prompts.
    in_first : (models,) bool
    n_permutations
        Random arrangements, used only if there are more than 200,000 distinct ones (4 against 6 models: 210).
    seed
        Of the random arrangements.

    Raises
    ------
    InputError
        An empty group, different lengths, values that are not finite, no permutation.

    References
    ----------
    Fisher (1935), The Design of Experiments, section 21. Phipson, Smyth (2010) for Monte-Carlo p-values.
    """
    from scipy.stats import permutation_test

    check_count(n_permutations, "n_permutations")
    first, second = _two_groups(values, in_first, smallest=1)
    unit = np.ptp([*first, *second]) or 1.0

    def distance(group: np.ndarray, other_group: np.ndarray, axis: int) -> np.ndarray:
        """Without the last digits, in which equal arrangements differ by rounding."""
        return np.round(np.abs(group.mean(axis=axis) - other_group.mean(axis=axis)) / unit, 9)

    exact = math.comb(len(first) + len(second), len(first)) <= EXACT_LIMIT
    result = permutation_test(
        (first, second),
        distance,
        vectorized=True,
        n_resamples=EXACT_LIMIT if exact else n_permutations,
        alternative="greater",
        rng=np.random.default_rng(seed),
    )
    n = len(first) + len(second)
    return Estimate(float(first.mean() - second.mean()), n, n, p_value=float(result.pvalue))


def sign_flip_test(values: ArrayLike, n_permutations: int = 10_000, seed: int | np.random.Generator = 0) -> Estimate:
    """Test whether differences or slopes, one a model or a matched set, are centred on zero, by flipping their signs.

    Exact for up to 17 values (2^17 patterns), Monte Carlo beyond. Assumes a symmetric distribution under the null.

    Parameters
    ----------
    values : (n,) finite numbers, two or more
    n_permutations, seed
        Random sign patterns of 18 values or more.

    Raises
    ------
    InputError
        Fewer than two values, values that are not finite, no permutation.

    References
    ----------
    Fisher (1935), The Design of Experiments, section 21. Phipson, Smyth (2010) for Monte-Carlo p-values.
    """
    check_count(n_permutations, "n_permutations")
    x = as_vector(values, "values", minimum=2)
    exact = 2 ** len(x) <= EXACT_LIMIT
    if exact:
        sums = np.zeros(1)
        for value in x:
            sums = np.concatenate([sums + value, sums - value])
    else:
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(n_permutations, len(x)))
        sums = signs @ x
    # Equal sums in another order differ in their last bits.
    extreme = np.count_nonzero(np.abs(sums) >= abs(x.sum()) - 1e-9 * np.abs(x).sum())
    p_value = float(extreme / len(sums)) if exact else (1 + extreme) / (1 + len(sums))
    return Estimate(float(x.mean()), len(x), len(x), p_value=p_value)


def mantel(a: ArrayLike, b: ArrayLike, n_permutations: int = 10_000, seed: int | np.random.Generator = 0) -> Estimate:
    """Mantel's one-sided test that two symmetric matrices over the same models correlate positively.

    Parameters
    ----------
    a, b : (models, models) symmetric, both similarities or both distances; diagonals are not read.
    n_permutations, seed
        Random orders of the models.

    Returns
    -------
    Estimate
        Spearman's correlation of the two upper triangles, without an interval; p is one-sided.

    Raises
    ------
    InputError
        Matrices that are not symmetric, not finite, of different size, of fewer than four models, or constant; no
        permutation.

    References
    ----------
    Mantel (1967), The detection of disease clustering. FAccT25 section on representational similarity.
    """
    check_count(n_permutations, "n_permutations")
    x = _standard_ranks("a", a)
    y = _standard_ranks("b", b)
    if x.shape != y.shape:
        raise InputError("a and b are over different numbers of models")
    pairs = np.triu_indices(len(x), 1)
    observed = float(np.mean(x[pairs] * y[pairs]))
    # A permutation only reorders the pairs, so means, variances and ranks need computing once.
    rng = np.random.default_rng(seed)
    order = np.argsort(rng.random((n_permutations, len(x))), axis=1)
    rows, columns = pairs
    shuffled = x[order[:, rows], order[:, columns]]
    null = shuffled @ y[pairs] / len(rows)
    # Sums in another order differ in their last bits.
    p_value = (1 + np.count_nonzero(null >= observed - 1e-10)) / (1 + n_permutations)
    return Estimate(observed, len(x), len(x), p_value=p_value)


def _standard_ranks(name: str, matrix: ArrayLike) -> NDArray[np.float64]:
    """The checked matrix with the ranks of its upper triangle, standardised, in place of its values."""
    square = np.array(matrix, dtype=float)
    if square.ndim != 2 or square.shape[0] != square.shape[1] or len(square) < 4:
        raise InputError(f"{name} must be square with 4 models or more, got shape {square.shape}")
    pairs = np.triu_indices(len(square), 1)
    values = as_vector(square[pairs], f"{name} above its diagonal")
    if not np.allclose(values, square.T[pairs]):
        raise InputError(f"{name} must be symmetric")
    if np.ptp(values) == 0:
        raise InputError(f"{name} is constant off its diagonal: there is nothing to correlate")
    square[pairs] = square.T[pairs] = standardise(mid_ranks(values))
    return square


def _two_groups(
    values: ArrayLike, in_first: ArrayLike, smallest: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x = as_vector(values, "values", minimum=2)
    is_first = np.asarray(in_first, dtype=bool)
    check_same_length(values=x, in_first=is_first)
    first, second = x[is_first], x[~is_first]
    if min(len(first), len(second)) < smallest:
        raise TooFewError(f"each group needs {smallest} models or more, got {len(first)} and {len(second)}")
    return first, second
