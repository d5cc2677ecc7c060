"""How far models agree, and which similarities of models their agreement follows: moments, pairs, Mantel's test.

Source of the question: Christian et al. (2025), sections 3 and 4, figures 2 and A1.
"""

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.panels import Panel
from rmnb.stats.estimate import Estimate
from rmnb.training.runs import overview


def moments(table: pd.DataFrame, question: str) -> dict[str, Estimate]:
    """Mean, variance (divided by n) and skewness of a model's rewards, with intervals by word."""
    return stats.moments(table[question], table["word"].to_numpy())


def agreement(table: pd.DataFrame, other: pd.DataFrame, question: str) -> dict[str, Estimate]:
    """Three correlations of two models' rankings of the same tokens.

    Parameters
    ----------
    table, other
        Two models' scores of the same tokens in the same order, with a column word.

    Returns
    -------
    dict
        tau (Kendall's, with its interval by word); spearman and overlap (rank-biased, mostly of the top: the first ten
        places weigh 86 %), both without intervals.

    References
    ----------
    Christian et al. (2025), figures 2A and A1. Webber, Moffat and Zobel (2010).
    """
    x, y = (model[question].reset_index(drop=True) for model in (table, other))
    return {
        "tau": stats.kendall_interval(x, y, table["word"].to_numpy()),
        "spearman": Estimate(x.corr(y, method="spearman"), len(x), len(x)),
        "overlap": Estimate(stats.rank_biased_overlap(x, y), len(x), len(x)),
    }


def properties(panel: Panel) -> pd.DataFrame:
    """What models can be alike in, as far as the panel knows.

    Returns
    -------
    DataFrame
        Index model; base, recipe (without its seed) and developer (str, empty where unknown), parameters (thousand
        millions) and rank (the panel's own, else by held-out accuracy, 1 is best; both float64, NaN where unknown).
    """
    accuracies = overview(panel).set_index("model")["RM-Bench"].dropna()
    ranks = accuracies.rank(ascending=False, method="min").to_dict()
    rows = []
    for spec in panel.models:
        row = {
            "model": spec.name,
            "base": spec.base_family or spec.family or "",
            "recipe": spec.recipe_family,
            "developer": spec.developer or "",
            "parameters": float(spec.parameters or np.nan),
            "rank": float(spec.rank or ranks.get(spec.name, np.nan)),
        }
        rows.append(row)
    return pd.DataFrame(rows).set_index("model")


def similarities(properties: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Similarity of every two models in each property: name of the property to a float64 table, models × models.

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
            similarity = 1 / (1 + np.abs(np.subtract.outer(values.to_numpy(), values.to_numpy())))
        else:
            codes, _ = pd.factorize(values)
            similarity = np.equal.outer(codes, codes).astype(float)
        is_known = values.notna() & (values != "")
        if is_known.all() and len(properties) > 1 and np.ptp(similarity[pairs]) > 0:
            tables[str(name)] = pd.DataFrame(similarity, properties.index, properties.index)
    return tables
