"""By how much a number changes from one seed of a training to another: from a few seeds, moderated by known ones.

Two seeds that a user can afford say little of each of fifty numbers. What they say is weighed against five pairs of
seeds of the demo panel, as a moderated variance is in the analysis of gene expression: these pairs are the prior.

References: Smyth (2004), Linear models and empirical Bayes methods for assessing differential expression. Srivastava
(2005), Some tests concerning the covariance matrix in high dimensional data.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd

from rmnb.panels import load_panel
from rmnb.report import numbers

#: Degrees of freedom of the prior. Over all numbers of a report, each pair of seeds of the demo panel is predicted best
#: from the four others by Student's t with four degrees of freedom.
PRIOR = 4


def noise(trainings: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """By how much two seeds of a training differ, number by number.

    Parameters
    ----------
    trainings
        For each training, values of two seeds or more: a column a seed, float64, index `rmnb.report.numbers.KEY`.

    Returns
    -------
    DataFrame
        Index KEY, float64: seeds, the root mean square difference of two seeds as they are; noise, the standard
        deviation of that difference as `moderate` gives it; df, its degrees of freedom. NaN where a seed lacks the
        number.
    """
    seeds_beyond_first = sum(training.shape[1] - 1 for training in trainings)
    squares = [training.var(axis=1, ddof=0, skipna=False) * training.shape[1] for training in trainings]
    variance = pd.concat(squares, axis=1).sum(axis=1, skipna=False) / seeds_beyond_first
    moderated, df = moderate(variance, seeds_beyond_first, of_panel().reindex(variance.index))
    # Two draws differ by the root of two times their standard deviation.
    return pd.DataFrame({"seeds": np.sqrt(2 * variance), "noise": np.sqrt(2 * moderated), "df": df})


def moderate(variance: pd.Series, degrees: int, prior: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """The variance of each number between seeds, from few of them and from what is known.

    It is the mean of three: the number's prior, which counts for `PRIOR` degrees of freedom; its own among these seeds,
    for theirs; and, in units of their priors, the mean of all numbers of its name, for as many times theirs as there
    are independent numbers of that name beside it.

    Parameters
    ----------
    variance
        Of these seeds, index KEY.
    degrees
        Degrees of freedom of each.
    prior
        Of `prior_of`, in the same order.

    Returns
    -------
    tuple
        The variances, and their degrees of freedom.
    """
    independent = prior["independent"]
    own = variance / prior["variance"]
    family = own.groupby("name").transform("mean")
    df = PRIOR + degrees * independent
    return prior["variance"] * (PRIOR + degrees * (own + (independent - 1) * family)) / df, df


@cache
def differences() -> pd.DataFrame:
    """Differences of the two seeds of each pair of the demo panel, float64: index KEY, a column a pair."""
    known = numbers.known().query("panel == 'demo'")
    values = known.pivot(index=numbers.KEY, columns="model", values="value")
    pairs = load_panel("demo").seed_pairs
    return pd.concat([values[first] - values[second] for first, second in pairs], axis=1, keys=range(len(pairs)))


@cache
def of_panel() -> pd.DataFrame:
    """`prior_of` the demo panel's pairs of seeds."""
    return prior_of(differences())


def prior_of(differences: pd.DataFrame) -> pd.DataFrame:
    """What pairs of seeds say of each number.

    Parameters
    ----------
    differences
        As `differences` returns them; numbers that a pair lacks are left out.

    Returns
    -------
    DataFrame
        Index KEY, float64: variance between seeds, half the number's own and half the mean of all numbers of its name;
        independent, how many independent numbers of that name there are.
    """
    complete = differences.dropna()
    own = (complete**2).mean(axis=1) / 2
    variance = (own + own.groupby("name").transform("mean")) / 2
    counts = {name: independent(rows.to_numpy()) for name, rows in complete.groupby("name")}
    names = own.index.get_level_values("name")
    return pd.DataFrame({"variance": variance, "independent": names.map(counts)})


def independent(differences: np.ndarray) -> float:
    """How many independent numbers vary as much as these: the participation ratio of their correlations.

    Parameters
    ----------
    differences
        (numbers, pairs) float64 with mean zero over pairs.

    Returns
    -------
    float
        From 1, where all rise and fall together, to the count of numbers, where each goes its own way. The squared
        eigenvalues of a correlation matrix from few pairs are corrected for that (Srivastava 2005).
    """
    count, n = differences.shape
    standardised = differences / np.sqrt((differences**2).mean(axis=1, keepdims=True))
    shares = (standardised.T @ standardised) / (count * n)
    concentration = n**2 / ((n - 1) * (n + 2)) * (np.sum(shares**2) - 1 / n)
    return float(1 / np.clip(concentration, 1 / count, 1))
