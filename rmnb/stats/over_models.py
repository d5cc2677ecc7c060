"""Claims about many models: the mean over models, and one group of them against another."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from rmnb.errors import InputError
from rmnb.stats.estimate import Estimate, as_vector, check_same_length, estimate_from_error


def mean_over_models(values: ArrayLike, confidence: float = 0.95) -> Estimate:
    """Mean of one number a model (a slope, a gap, a correlation) with its t interval over models.

    The interval speaks of models like these, not of these models' words: models differ by far more than words scatter.
    """
    x = as_vector(values, "values", minimum=2)
    error = x.std(ddof=1) / np.sqrt(len(x))
    return estimate_from_error(x.mean(), error, len(x), len(x), df=len(x) - 1, confidence=confidence)


def over_models(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of one estimate a model, with its interval over models; of a single model that model's own estimate."""
    if not estimates:
        raise InputError("no model has this estimate: there is no mean")
    return mean_over_models([one.value for one in estimates]) if len(estimates) > 1 else estimates[0]


def jackknife_over_models(statistic: Callable[[np.ndarray], float], n: int, confidence: float = 0.95) -> Estimate:
    """A number of all models together, such as a mean over their pairs, with the interval of leaving out one at a time.

    Parameters
    ----------
    statistic
        Of the models at these places, an array of int.
    n
        How many models there are.

    References
    ----------
    Arvesen (1969), Jackknifing U-statistics.
    """
    everyone = np.arange(n)
    without = as_vector([statistic(np.delete(everyone, place)) for place in everyone], "values", minimum=3)
    error = float(np.sqrt((n - 1) * without.var()))
    return estimate_from_error(statistic(everyone), error, n, n, df=n - 1, confidence=confidence)


def difference_between_groups(values: ArrayLike, in_first: ArrayLike, confidence: float = 0.95) -> Estimate:
    """Mean of the first group of models less mean of the second, one number a model, with Welch's t interval.

    Raises
    ------
    InputError
        Fewer than two models in a group, different lengths, values that are not finite.

    References
    ----------
    Welch (1947), The generalization of Student's problem when several different population variances are involved.
    """
    x = as_vector(values, "values", minimum=4)
    first = np.asarray(in_first, dtype=bool)
    check_same_length(values=x, in_first=first)
    groups = x[first], x[~first]
    if min(map(len, groups)) < 2:
        raise InputError(f"an interval needs two models in each group, got {len(groups[0])} and {len(groups[1])}")
    parts = np.array([group.var(ddof=1) / len(group) for group in groups])
    variance = parts.sum()
    sizes = np.array([len(group) for group in groups])
    df = variance**2 / np.sum(parts**2 / (sizes - 1)) if variance > 0 else len(x) - 2
    value = groups[0].mean() - groups[1].mean()
    return estimate_from_error(value, float(np.sqrt(variance)), len(x), len(x), df=float(df), confidence=confidence)
