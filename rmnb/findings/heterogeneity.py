"""How far the models of a panel agree, what agreement goes with, and how much of the rest is noise."""

from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from rmnb import stats
from rmnb.errors import InputError
from rmnb.panels import ModelSpec, Panel
from rmnb.training.runs import leaderboard

KINDS = ("same base and recipe, other seed", "same base, other recipe", "same recipe, other base", "neither")


def pairwise_tau(shared: pd.DataFrame, clusters: np.ndarray) -> pd.DataFrame:
    """Kendall's tau-b of every two models with its interval.

    Parameters
    ----------
    shared
        Scores, one column a model.
    clusters
        (rows,) the unit of the interval: the word that a token spells.

    Returns
    -------
    DataFrame
        model, other, value, ci_low, ci_high, n: one row a pair.
    """
    rows = []
    for one, other in combinations(shared, 2):
        tau = stats.kendall_interval(shared[one], shared[other], clusters=clusters)
        rows.append((one, other, tau.value, tau.ci_low, tau.ci_high, tau.n))
    return pd.DataFrame(rows, columns=["model", "other", "value", "ci_low", "ci_high", "n"])


def as_matrix(pairs: pd.DataFrame, names: list[str], column: str = "value", diagonal: float = 1.0) -> NDArray:
    """A column of `pairwise_tau` as a symmetric matrix, (models, models) float64, in the order of `names`."""
    place = {name: index for index, name in enumerate(names)}
    matrix = np.full((len(names), len(names)), np.nan)
    np.fill_diagonal(matrix, diagonal)
    for one, other, value in pairs[["model", "other", column]].itertuples(index=False):
        matrix[place[one], place[other]] = matrix[place[other], place[one]] = value
    return matrix


def clustered(tau: NDArray, names: list[str]) -> list[str]:
    """The models ordered so that alike ones stand together: average linkage of 1 − tau, leaves ordered optimally."""
    if len(names) < 3:
        return list(names)
    distance = squareform(np.clip(1 - tau, 0, None), checks=False)
    return [names[leaf] for leaf in leaves_list(linkage(distance, "average", optimal_ordering=True))]


def tau_draws(words: pd.DataFrame, n_draws: int, seed: int) -> NDArray:
    """Tau matrices of resampled words, (draws, models, models) float64; one row of `words` a word."""

    def matrix(rows: NDArray) -> NDArray:
        return stats.kendall_matrix(rows.T)

    return stats.bootstrap(matrix, words.to_numpy(), n_draws=n_draws, seed=seed).draws


def model_map(tau: NDArray, draws: NDArray) -> tuple[NDArray, NDArray]:
    """A map of the models by multidimensional scaling of 1 − tau, and the same of every draw, turned onto it.

    Returns
    -------
    tuple of array
        Points (models, 2) and clouds (draws, models, 2).
    """
    points = stats.embed(1 - tau).points
    again = [stats.embed(np.clip(1 - draw, 0, None), start=points).points for draw in draws]
    return points, np.array([stats.align(moved, points).points for moved in again])


def relations(panel: Panel) -> dict[str, NDArray]:
    """What models can be alike in: a similarity matrix (models, models) for each property the panel tells apart.

    base family, recipe and developer: 1 where equal. parameters (thousand millions) and rank (the panel's own, else by
    `rmnb.training.runs.leaderboard`): 1 / (1 + difference). A property that is unknown for a model, or the same or
    different for all pairs, is left out.
    """
    ranks = leaderboard(panel)
    found = {
        "base": [model.family or "" for model in panel.models],
        "recipe": [model.recipe_family for model in panel.models],
        "developer": [model.developer or "" for model in panel.models],
    }
    numbers = {
        "parameters": [model.parameters for model in panel.models],
        "rank": [model.rank or ranks.get(model.name) for model in panel.models],
    }
    matrices = {name: stats.same(labels) for name, labels in found.items() if all(labels)}
    matrices |= {name: stats.closeness(values) for name, values in numbers.items() if None not in values}
    upper = np.triu_indices(len(panel.models), 1)
    return {name: matrix for name, matrix in matrices.items() if len(upper[0]) and np.ptp(matrix[upper]) > 1e-12}


def rsa(tau: NDArray, alike: dict[str, NDArray], n_permutations: int, seed: int) -> pd.DataFrame:
    """Mantel's test of tau with each similarity alone, and all of them in one matrix regression.

    Properties that no pair tells apart from others (in a panel of two bases of two sizes, base and size) share a test;
    of those only the first enters the regression.

    Returns
    -------
    DataFrame
        other (the property), rsa_spearman, rsa_p, rsa_coefficient, rsa_coefficient_p (NaN where it is not in the
        regression). Empty for fewer than four models.
    """
    columns = ["other", "rsa_spearman", "rsa_p", "rsa_coefficient", "rsa_coefficient_p"]
    if len(tau) < 4:
        return pd.DataFrame(columns=columns)
    joint: dict[str, NDArray] = {}
    for name, matrix in alike.items():
        try:
            stats.matrix_regression(tau, {**joint, name: matrix}, n_permutations=1)
        except InputError:
            continue  # a combination of those before it
        joint[name] = matrix
    fit = stats.matrix_regression(tau, joint, n_permutations=n_permutations, seed=seed) if joint else None
    together = {}
    if fit is not None:
        together = dict(zip(fit.names, zip(fit.coefficients, fit.p_values, strict=True), strict=True))
    rows = []
    for name, matrix in alike.items():
        alone = stats.mantel(tau, matrix, n_permutations=n_permutations, seed=seed)
        rows.append((name, alone.correlation, alone.p_value, *together.get(name, (np.nan, np.nan))))
    return pd.DataFrame(rows, columns=columns)


def kinds_of_pairs(pairs: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    """`pairs` with a column kind, what the two models share (`KINDS`), sorted by it; needs families and recipes."""

    def kind(one: ModelSpec, other: ModelSpec) -> str:
        base = bool(one.family) and one.family == other.family
        recipe = bool(one.recipe_family) and one.recipe_family == other.recipe_family
        return KINDS[(0 if recipe else 1) if base else (2 if recipe else 3)]

    named = [
        kind(panel.model(one), panel.model(other)) for one, other in pairs[["model", "other"]].itertuples(index=False)
    ]
    found = pairs.assign(kind=pd.Categorical(named, KINDS, ordered=True))
    return found.sort_values(["kind", "value"], ascending=[True, False], kind="stable", ignore_index=True)


def seeds_agree_most(kinds: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    """For each base: do two seeds of one recipe agree more than any two recipes?

    Returns
    -------
    DataFrame
        base, seeds (tau of the two seeds; the lowest of several), recipes (the highest tau of two recipes), holds.
    """
    base = [panel.model(model).family or "" for model in kinds["model"]]
    rows = []
    for family, part in kinds.assign(base=base).groupby("base", sort=False):
        seeds, recipes = (part.loc[part["kind"] == kind, "value"] for kind in KINDS[:2])
        if len(seeds) and len(recipes):
            rows.append((family, seeds.min(), recipes.max(), bool(seeds.min() > recipes.max())))
    return pd.DataFrame(rows, columns=["base", "seeds", "recipes", "holds"])


def disputed(words: pd.DataFrame, count: int) -> pd.DataFrame:
    """The words on which models differ most: the widest spread of percentile ranks over the models.

    Returns
    -------
    DataFrame
        Index word; spread (standard deviation of the percentile, in points), lowest and highest (percentiles),
        lowest_in and highest_in (models).
    """
    percentile = 100 * words.rank(pct=True)
    table = pd.DataFrame(
        {
            "spread": percentile.std(axis=1, ddof=0),
            "lowest": percentile.min(axis=1),
            "lowest_in": percentile.idxmin(axis=1),
            "highest": percentile.max(axis=1),
            "highest_in": percentile.idxmax(axis=1),
        }
    )
    return table.sort_values("spread", ascending=False, kind="stable").head(count)
