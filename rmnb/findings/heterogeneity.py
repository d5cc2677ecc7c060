"""How far models agree, and what their agreement goes with: moments, pairs of models, similarities of models.

Source of the question: Christian et al. (2025), sections 3 and 4, figures 2 and A1.
"""

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.panels import Panel
from rmnb.stats.estimate import Estimate
from rmnb.training.runs import overview


def moments(table: pd.DataFrame, question: str) -> dict[str, Estimate]:
    """Mean, variance and skewness of a model's rewards, with intervals by word."""
    return dict(vars(stats.moments(table[question], table["word"].to_numpy())))


def agreement(table: pd.DataFrame, other: pd.DataFrame, question: str) -> dict[str, Estimate]:
    """How alike two models rank the same tokens.

    Parameters
    ----------
    table, other
        Two models' scores of the same tokens in the same order (`rmnb.findings.tables.shared_tables`).

    Returns
    -------
    dict
        tau (Kendall, with its interval by word), spearman, overlap (rank-biased, of the top alone: the first ten places
        weigh 86 %), these two without intervals.

    References
    ----------
    Christian et al. (2025), figures 2A and A1. Webber, Moffat and Zobel (2010).
    """
    x, y = table[question], other[question]
    return {
        "tau": stats.kendall_interval(x, y, table["word"].to_numpy()),
        "spearman": point(stats.spearman(x, y), len(x)),
        "overlap": point(stats.rank_biased_overlap(x, y), len(x)),
    }


def point(value: float, n: int) -> Estimate:
    """A value without an interval."""
    return Estimate(float(value), np.nan, np.nan, np.nan, np.nan, n, n)


def properties(panel: Panel) -> pd.DataFrame:
    """What models can be alike in, as far as the panel knows.

    Returns
    -------
    DataFrame
        Index model; base, recipe (without its seed) and developer (str, empty where unknown), parameters (thousand
        millions) and rank (the panel's own, else by held-out accuracy; float64, NaN where unknown).
    """
    accuracies = overview(panel).set_index("model")["RM-Bench"].dropna()
    ranks = accuracies.rank(ascending=False, method="min").to_dict()
    rows = [
        (
            spec.family or "",
            spec.recipe_family,
            spec.developer or "",
            float(spec.parameters or np.nan),
            float(spec.rank or ranks.get(spec.name, np.nan)),
        )
        for spec in panel.models
    ]
    columns = ["base", "recipe", "developer", "parameters", "rank"]
    return pd.DataFrame(rows, columns=columns, index=pd.Index(panel.model_names, name="model"))


def similarities(properties: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """How alike every two models are in each property: a square table each.

    Of text: 1 where equal, else 0. Of numbers: 1 / (1 + difference). A property that is unknown for a model, or the
    same or different for all pairs, is left out.

    References
    ----------
    Christian et al. (2025), section 3: the theoretical matrices of the representational similarity analysis.
    """
    tables = {}
    pairs = np.triu_indices(len(properties), 1)
    for name, values in properties.items():
        if pd.api.types.is_numeric_dtype(values):
            complete = values.notna().all()
            similarity = 1 / (1 + np.abs(np.subtract.outer(values.to_numpy(), values.to_numpy())))
        else:
            complete = (values != "").all()
            similarity = np.equal.outer(values.to_numpy(object), values.to_numpy(object)).astype(float)
        if complete and len(properties) > 1 and np.ptp(similarity[pairs]) > 0:
            tables[str(name)] = pd.DataFrame(similarity, properties.index, properties.index)
    return tables


def mantel_tests(
    tau: pd.DataFrame, similarities: dict[str, pd.DataFrame], n_permutations: int = 5000, seed: int = 0
) -> pd.DataFrame:
    """Mantel's test of agreement with each similarity: models are shuffled, because pairs are not independent.

    Parameters
    ----------
    tau
        Models × models.
    similarities
        Name to a table of the same shape, at least four models.

    Returns
    -------
    DataFrame
        Index name; rho (Spearman's correlation over pairs) and p (one-sided: alike models agree more).

    References
    ----------
    Mantel (1967), The detection of disease clustering and a generalized regression approach.
    """
    rows = {}
    for name, alike in similarities.items():
        test = stats.mantel(tau.to_numpy(), alike.to_numpy(), n_permutations=n_permutations, seed=seed)
        rows[name] = {"rho": test.correlation, "p": test.p_value}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["rho", "p"])
