"""How far the models of a panel agree, what agreement goes with, and how much of the rest is noise.

`measure` gives the rows of the finding. Its pairs of models are in `rmnb.findings.model_pairs`, other choices than the
ones made here in `rmnb.findings.heterogeneity_choices`, the tables of tokens in `rmnb.findings.token_tables`.
"""

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rmnb import stats
from rmnb.errors import InputError
from rmnb.findings.align import align
from rmnb.findings.counts import sign_counts
from rmnb.findings.model_pairs import matrix, measure_pairs
from rmnb.findings.results import Results
from rmnb.panels import Panel
from rmnb.training.runs import leaderboard


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

    Beside these the counts of models by the side of their skewness, and `rmnb.findings.model_pairs.measure_pairs`.

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
    results.extend(sign_counts(results.frame(), "skewness"))
    results.extend(measure_pairs(results.frame(), properties))
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
