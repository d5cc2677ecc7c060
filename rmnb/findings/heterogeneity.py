"""How far the models of a panel agree, what agreement goes with, and how much of the rest is noise.

`measure` gives the rows of the finding; the other functions arrange these rows, or the scans, for a figure or a table.
"""

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from rmnb import stats
from rmnb.errors import InputError
from rmnb.findings.align import align
from rmnb.findings.results import Results
from rmnb.findings.specifications import specification_curve
from rmnb.panels import Panel
from rmnb.training.runs import leaderboard

KINDS = ("same base and recipe, other seed", "same base, other recipe", "same recipe, other base", "neither")
_MATRICES = {"tau-b": stats.kendall_matrix, "rho": stats.spearman_matrix, "overlap at the top": stats.overlap_matrix}


def measure(
    scans: Mapping[str, pd.DataFrame],
    prompt: str,
    *,
    properties: pd.DataFrame | None = None,
    n_permutations: int = 5000,
    seed: int = 0,
    panel: str = "",
    source: str = "panel",
    protocol: str = "exact",
) -> pd.DataFrame:
    """Rows vocabulary_size, skewed_positively, moments by model, agreement by pair, and what agreement goes with.

    Everything is measured on the tokens that all vocabularies share. Intervals take the word that a token spells as
    their unit. Rows that need several models (agreement from two on, what it goes with from four on) are left out
    where there are fewer.

    Parameters
    ----------
    scans : mapping of str to DataFrame
        One scan a model under the same prompt, as `rmnb.findings.align.align` takes them.
    prompt : str
        The prompt's key, for the rows.
    properties : DataFrame, optional
        What models can be alike in, as `properties` gives it; without it there is nothing agreement could go with.
    n_permutations, seed : int
        Shuffles of the models in each Mantel test.
    panel, source, protocol : str
        Where the scans are from, as the results table has it.
    """
    results = Results("heterogeneity", panel)
    about: dict = {"prompt": prompt, "protocol": protocol}
    shared, models = align(scans), list(scans)
    words = shared.index.str.strip().str.casefold().to_numpy()
    moments = {model: vars(stats.moments(shared[model], clusters=words)) for model in models}
    for model, found in moments.items():
        for statistic, estimate in found.items():
            results.add(source, statistic, estimate, model=model, **about)
    skewed = sum(found["skewness"].value > 0 for found in moments.values())
    results.add(source, "vocabulary_size", len(shared), protocol=protocol)
    results.add(source, "skewed_positively", skewed, n=len(models), **about)
    scores = shared.to_numpy().T
    rho, overlap = stats.spearman_matrix(scores), stats.overlap_matrix(scores)
    for (i, one), (j, other) in combinations(enumerate(models), 2):
        pair: dict = {"model": one, "other": other, **about}
        results.add(source, "kendall_tau", stats.kendall_interval(shared[one], shared[other], clusters=words), **pair)
        results.add(source, "spearman", rho[i, j], n=len(shared), **pair)
        results.add(source, "rbo", overlap[i, j], n=len(shared), **pair)
    if properties is not None:
        tau, alike = matrix(results.frame(), models), relations(properties.loc[models])
        origin: dict = {"panel": panel, "source": source, "protocol": protocol}
        results.extend(measure_geometry(tau, alike, prompt, n_permutations=n_permutations, seed=seed, **origin))
    return results.frame()


def measure_geometry(
    tau: pd.DataFrame,
    alike: Mapping[str, NDArray],
    prompt: str,
    *,
    n_permutations: int = 10_000,
    seed: int = 0,
    panel: str = "",
    source: str = "panel",
    protocol: str = "exact",
) -> pd.DataFrame:
    """Rows mds_stress_1, and for each similarity rsa_spearman, rsa_p, rsa_coefficient and rsa_coefficient_p.

    Mantel's test of tau with each similarity alone, and all of them in one matrix regression. Properties that no pair
    tells apart from others (in a panel of two bases of two sizes, base and size) share a test; of those only the first
    enters the regression. No rows for fewer than four models.

    Parameters
    ----------
    tau : DataFrame
        (models, models), as `matrix` gives it.
    alike : mapping of str to array
        Similarities (models, models) in the same order, as `relations` gives them.
    """
    results = Results("heterogeneity", panel)
    if len(tau) < 4:
        return results.frame()
    agreement = tau.to_numpy()
    about: dict = {"prompt": prompt, "protocol": protocol, "n": len(tau)}
    results.add(source, "mds_stress_1", stats.embed(1 - agreement).stress_1, **about)
    joint: dict[str, NDArray] = {}
    for name, similarity in alike.items():
        alone = stats.mantel(agreement, similarity, n_permutations=n_permutations, seed=seed)
        results.add(source, "rsa_spearman", alone.correlation, other=name, **about)
        results.add(source, "rsa_p", alone.p_value, other=name, **about)
        try:
            stats.matrix_regression(agreement, {**joint, name: similarity}, n_permutations=1)
        except InputError:
            continue  # a combination of those before it
        joint[name] = similarity
    if joint:
        fit = stats.matrix_regression(agreement, joint, n_permutations=n_permutations, seed=seed)
        for name, coefficient, p_value in zip(fit.names, fit.coefficients, fit.p_values, strict=True):
            results.add(source, "rsa_coefficient", coefficient, other=name, **about)
            results.add(source, "rsa_coefficient_p", p_value, other=name, **about)
    return results.frame()


def measure_protocols(
    exact: Mapping[str, pd.DataFrame], published: Mapping[str, pd.DataFrame], prompt: str, *, panel: str = ""
) -> pd.DataFrame:
    """Rows protocol_kendall of each model that was scanned by both protocols: over its whole vocabulary, and (`other`)
    over the tokens without a blank at either end, which no template can trim.
    """
    results = Results("heterogeneity", panel)
    for model, typed in published.items():
        both = pd.DataFrame({"exact": exact[model]["score"], "published": typed["score"]})
        bare = both[typed["token"].str.strip() == typed["token"]]
        for other, rows in (("", both), ("tokens without a blank at either end", bare)):
            tau = stats.kendall_tau(rows["exact"], rows["published"])
            results.add("panel", "protocol_kendall", tau, model=model, other=other, prompt=prompt, n=len(rows))
    return results.frame()


def measure_planted(prompt: str, seed: int = 0, n: int = 20_000, *, panel: str = "") -> pd.DataFrame:
    """Rows of what `measure` finds where the truth is known, and the truth as rows planted_effect.

    Two models whose rewards correlate by a known tau, one of them on a stretched scale, and one with a known skewness.

    Parameters
    ----------
    n : int
        How many words the rewards are of.
    """
    truth = {"kendall_tau": 0.4, "skewness": 1.0}
    rng = np.random.default_rng(seed)
    rho = np.sin(np.pi / 2 * truth["kendall_tau"])  # of jointly normal rewards
    first, second = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=n).T
    skewed = rng.gamma(4 / truth["skewness"] ** 2, size=n)  # of shape k it has skewness 2 / sqrt(k)
    found = {
        "kendall_tau": stats.kendall_interval(np.exp(first), second),
        "skewness": stats.moments(skewed).skewness,
    }
    results = Results("heterogeneity", panel)
    about: dict = {"model": "planted", "prompt": prompt, "protocol": "exact"}
    for statistic, estimate in found.items():
        results.add("planted", statistic, estimate, other="estimate", **about)
        results.add("planted", "planted_effect", truth[statistic], other=statistic, **about)
    return results.frame()


def properties(panel: Panel) -> pd.DataFrame:
    """What models can be alike in, as far as the panel knows.

    Returns
    -------
    DataFrame
        Index model; base, recipe (without its seed) and developer (str, empty where unknown), parameters (thousand
        millions) and rank (the panel's own, else by `rmnb.training.runs.leaderboard`; float64, NaN where unknown).
    """
    ranks, models = leaderboard(panel), panel.models
    known = {
        "base": [spec.family or "" for spec in models],
        "recipe": [spec.recipe_family for spec in models],
        "developer": [spec.developer or "" for spec in models],
        "parameters": np.array([spec.parameters for spec in models], dtype=float),
        "rank": np.array([spec.rank or ranks.get(spec.name) for spec in models], dtype=float),
    }
    return pd.DataFrame(known, index=pd.Index(panel.model_names, name="model"))


def relations(properties: pd.DataFrame) -> dict[str, NDArray]:
    """A similarity matrix (models, models) for each property that tells models apart.

    Of text: 1 where equal. Of numbers: 1 / (1 + difference). A property that is unknown for a model, or the same or
    different for all pairs, is left out.
    """
    numbers = properties.select_dtypes("number")
    known = {name: stats.same(labels) for name, labels in properties.drop(columns=numbers).items() if all(labels)}
    known |= {name: stats.closeness(values) for name, values in numbers.items() if values.notna().all()}
    upper = np.triu_indices(len(properties), 1)
    return {str(name): alike for name, alike in known.items() if len(upper[0]) and np.ptp(alike[upper]) > 1e-12}


def matrix(
    rows: pd.DataFrame, models: list[str], statistic: str = "kendall_tau", column: str = "value"
) -> pd.DataFrame:
    """A statistic of pairs as a symmetric table (models, models), in the order of `models`, with 1 on its diagonal."""
    pairs = rows[rows["statistic"] == statistic].pivot(index="model", columns="other", values=column)
    half = pairs.reindex(index=models, columns=models).astype("float64")
    return half.fillna(half.T).mask(np.eye(len(models), dtype=bool), 1.0)


def clustered(tau: pd.DataFrame) -> list[str]:
    """The models ordered so that alike ones stand together: average linkage of 1 − tau, leaves ordered optimally."""
    if len(tau) < 3:
        return list(map(str, tau))
    distance = squareform(np.clip(1 - tau.to_numpy(), 0, None), checks=False)
    return [str(tau.columns[leaf]) for leaf in leaves_list(linkage(distance, "average", optimal_ordering=True))]


def model_map(tau: pd.DataFrame, words: pd.DataFrame, n_draws: int, seed: int) -> tuple[NDArray, NDArray]:
    """A map of the models by multidimensional scaling of 1 − tau, and maps of resampled words, turned onto it.

    Parameters
    ----------
    words
        Scores, one row a word, one column a model in the order of `tau`.

    Returns
    -------
    tuple of array
        Points (models, 2) and clouds (draws, models, 2).
    """
    points = stats.embed(1 - tau.to_numpy()).points
    drawn = stats.bootstrap(lambda rows: stats.kendall_matrix(rows.T), words.to_numpy(), n_draws=n_draws, seed=seed)
    again = [stats.embed(np.clip(1 - draw, 0, None), start=points).points for draw in drawn.draws]
    return points, np.array([stats.align(moved, points).points for moved in again])


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


def extremes(scans: Mapping[str, pd.DataFrame], count: int, best: bool) -> pd.DataFrame:
    """The first (or last) tokens of several scans side by side: rank, and for each model a column of tokens, and one of
    their scores in standard deviations from the model's mean, all headed z.
    """
    sides = [pd.Series(range(1, count + 1), name="rank")]
    for model, scan in scans.items():
        z = pd.Series(stats.standardise(scan["score"]), scan.index, name="z")
        z = z.sort_values(ascending=not best, kind="stable").head(count)
        sides += [scan.loc[z.index, "token"].rename(model).reset_index(drop=True), z.reset_index(drop=True)]
    return pd.concat(sides, axis=1)


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


def specifications(exact: Mapping[str, pd.DataFrame], published: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Agreement of the median pair under every choice of rows, statistic and protocol: a specification curve.

    Parameters
    ----------
    exact, published
        Scans of two models or more by either protocol; of the second, those that there are.

    Returns
    -------
    DataFrame
        As `specification_curve` gives it; ci_low and ci_high are the lowest and the highest pair.
    """
    names, shared = list(exact), align(exact)
    first = exact[names[0]]
    kind_of = first.drop_duplicates("token").set_index("token")["kind"]
    tables = {
        ("shared tokens", "exact"): shared,
        ("beginnings of words", "exact"): shared[(kind_of.reindex(shared.index) == "word_start").to_numpy()],
        ("words", "exact"): align(exact, how="word"),
    }
    if set(published) == set(names):
        tables["shared tokens", "published"] = align({name: published[name] for name in names})

    def agreement(rows: str, statistic: str, protocol: str) -> stats.Estimate | None:
        table = tables.get((rows, protocol), shared[:0])
        if len(table) < 10:
            return None
        values = _MATRICES[statistic](table.to_numpy().T)[np.triu_indices(len(names), 1)]
        return stats.Estimate(np.median(values), values.min(), values.max(), np.nan, np.nan, len(table), len(values))

    rows = list(dict.fromkeys(name for name, _ in tables))
    choices = {"rows": rows, "statistic": list(_MATRICES), "protocol": ["exact", "published"]}
    return specification_curve(choices, agreement)
