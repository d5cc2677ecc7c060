"""Pairs of models: what the two share, how far the pairs of each kind agree, and whether two seeds agree most."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from rmnb import stats
from rmnb.findings.results import Results

KINDS = ("same base and recipe, other seed", "same base, other recipe", "same recipe, other base", "neither")


def measure_pairs(rows: pd.DataFrame, properties: pd.DataFrame | None = None) -> pd.DataFrame:
    """Over all pairs of models, and over those that share something: what becomes of rows kendall_tau, spearman, rbo.

    Parameters
    ----------
    rows
        Rows of a results table, of one source, prompt and protocol, such as `rmnb.findings.heterogeneity.measure` gives
        or a paper prints.
    properties : DataFrame, optional
        Bases and recipes, as `rmnb.findings.heterogeneity.properties` gives them.

    Returns
    -------
    DataFrame
        Results rows kendall_tau_median, spearman_median and rbo_median (n: pairs), kendall_tau_lowest and
        kendall_tau_highest (of which pair), kendall_tau_mean (from four models on with an interval over models), none
        where there is no pair. With properties kendall_tau_median by kind of pair, in `other`, and for each base, in
        `other`, with two seeds of one recipe kendall_tau_seeds, kendall_tau_recipes and pairs_above_seeds.
    """
    pairs = rows[rows["statistic"] == "kendall_tau"]
    if pairs.empty:
        return pairs
    source, panel, prompt, protocol = pairs[["source", "panel", "prompt", "protocol"]].iloc[0].astype(str)
    results = Results(str(pairs["finding"].iloc[0]), panel)
    about: dict = {"prompt": prompt, "protocol": protocol}
    for name in ("kendall_tau", "spearman", "rbo"):
        of = rows.loc[rows["statistic"] == name, "value"]
        if len(of):
            results.add(source, f"{name}_median", of.median(), n=len(of), **about)
    ordered = pairs.sort_values("value", kind="stable")
    for name, pair in (("lowest", ordered.iloc[0]), ("highest", ordered.iloc[-1])):
        two: dict = {"model": pair["model"], "other": pair["other"]}
        results.add(source, f"kendall_tau_{name}", pair["value"], n=len(pairs), **two, **about)
    models = list(dict.fromkeys([*pairs["model"], *pairs["other"]]))
    if len(models) < 4:
        results.add(source, "kendall_tau_mean", pairs["value"].mean(), n=len(models), **about)
    else:
        tau = matrix(pairs, models).to_numpy()
        mean = stats.jackknife_over_models(lambda of: stats.upper(tau[np.ix_(of, of)]).mean(), len(models))
        results.add(source, "kendall_tau_mean", mean, **about)
    if properties is None:
        return results.frame()
    kinds = kinds_of_pairs(pairs, properties)
    for kind, of in kinds.groupby("kind", observed=True)["value"]:
        results.add(source, "kendall_tau_median", of.median(), other=str(kind), n=len(of), **about)
    for row in seeds_agree_most(kinds).to_dict("records"):
        recipes = kinds.loc[(kinds["kind"] == KINDS[1]) & (kinds["base"] == row["base"]), "value"]
        counted: dict = {"other": row["base"], "n": len(recipes), **about}
        results.add(source, "kendall_tau_seeds", row["seeds"], **counted)
        results.add(source, "kendall_tau_recipes", row["recipes"], **counted)
        results.add(source, "pairs_above_seeds", int((recipes > row["seeds"]).sum()), **counted)
    return results.frame()


def matrix(
    rows: pd.DataFrame, models: list[str], statistic: str = "kendall_tau", column: str = "value"
) -> pd.DataFrame:
    """A statistic of pairs as a symmetric table (models, models), in the order of `models`, with 1 on its diagonal."""
    pairs = rows[rows["statistic"] == statistic].pivot(index="model", columns="other", values=column)
    half = pairs.reindex(index=models, columns=models).astype("float64")
    return half.fillna(half.T).mask(np.eye(len(models), dtype=bool), 1.0)


def kinds_of_pairs(rows: pd.DataFrame, properties: pd.DataFrame) -> pd.DataFrame:
    """The rows of kendall_tau with a column kind, what the two models share (`KINDS`), and base, that of the first."""
    pairs = rows[rows["statistic"] == "kendall_tau"]

    def shared(name: str) -> NDArray[np.bool_]:
        one, other = (properties.loc[pairs[side], name].to_numpy() for side in ("model", "other"))
        return (one == other) & (one != "")

    base, recipe = shared("base"), shared("recipe")
    named = np.select([base & recipe, base, recipe], KINDS[:3], KINDS[3])
    of = properties.loc[pairs["model"], "base"].to_numpy()
    found = pairs.assign(kind=pd.Categorical(named, KINDS, ordered=True), base=of)
    return found.sort_values(["kind", "value"], ascending=[True, False], kind="stable", ignore_index=True)


def seeds_agree_most(kinds: pd.DataFrame) -> pd.DataFrame:
    """For each base: do two seeds of one recipe agree more than any two recipes?

    Returns
    -------
    DataFrame
        base, seeds (tau of the two seeds; the lowest of several), recipes (the highest tau of two recipes), holds.
    """
    seeds, recipes = (kinds[kinds["kind"] == kind].groupby("base", sort=False)["value"] for kind in KINDS[:2])
    found = pd.DataFrame({"seeds": seeds.min(), "recipes": recipes.max()}).dropna()
    return found.assign(holds=found["seeds"] > found["recipes"]).rename_axis("base").reset_index()


def clustered(tau: pd.DataFrame) -> list[str]:
    """The models ordered so that alike ones stand together: average linkage of 1 − tau, leaves ordered optimally."""
    if len(tau) < 3:
        return list(map(str, tau))
    distance = squareform(np.clip(1 - tau.to_numpy(), 0, None), checks=False)
    return [str(tau.columns[leaf]) for leaf in leaves_list(linkage(distance, "average", optimal_ordering=True))]
