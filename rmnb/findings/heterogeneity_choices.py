"""Agreement of models, and what it goes with, under other choices than those of the chapter: specification curves."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rmnb import stats
from rmnb.findings.align import align
from rmnb.findings.specifications import specification_curve

_MATRICES = {"tau-b": stats.kendall_matrix, "rho": stats.spearman_matrix, "overlap at the top": stats.overlap_matrix}
Matrices = Mapping[tuple[str, str, str], NDArray[np.float64]]


def matrices(exact: Mapping[str, pd.DataFrame], published: Mapping[str, pd.DataFrame]) -> Matrices:
    """Agreement of every two models (models, models) by each choice of rows, statistic and protocol.

    Parameters
    ----------
    exact, published
        Scans of two models or more by either protocol; the second counts where it has all models.
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
    return {
        (rows, statistic, protocol): of(table.to_numpy().T)
        for (rows, protocol), table in tables.items()
        if len(table) >= 10
        for statistic, of in _MATRICES.items()
    }


def curves(
    exact: Mapping[str, pd.DataFrame], published: Mapping[str, pd.DataFrame], alike: Mapping[str, NDArray]
) -> dict[str, pd.DataFrame]:
    """The specification curves that there are: of the median pair (of two models or more), and of what agreement goes
    with, by the names of the similarities.
    """
    if len(exact) < 2:
        return {}
    found = matrices(exact, published)
    tested = {name: goes_with(found, similarity) for name, similarity in alike.items()}
    return {"median pair": median_agreement(found)} | {name: of for name, of in tested.items() if of is not None}


def median_agreement(found: Matrices) -> pd.DataFrame:
    """Agreement of the median pair, a specification curve; ci_low and ci_high are the lowest and the highest pair."""

    def median(**chosen: str) -> stats.Estimate | None:
        if (agreement := found.get(_key(**chosen))) is None:
            return None
        values = stats.upper(agreement)
        ends = values.min(), values.max()
        return stats.Estimate(np.median(values), *ends, np.nan, np.nan, len(values), len(agreement))

    return specification_curve(_choices(found), median)


def goes_with(found: Matrices, alike: NDArray) -> pd.DataFrame | None:
    """Spearman's rho over pairs of agreement and a similarity, a specification curve; intervals leave out one model at
    a time. None for fewer than five models, or where without one of them all pairs are equally alike.

    Parameters
    ----------
    alike
        (models, models), one of `rmnb.findings.heterogeneity.relations`.
    """
    left = [np.delete(np.delete(alike, place, 0), place, 1) for place in range(len(alike))]
    if len(alike) < 5 or any(np.ptp(stats.upper(matrix)) < 1e-12 for matrix in left):
        return None

    def correlation(**chosen: str) -> stats.Estimate | None:
        if (agreement := found.get(_key(**chosen))) is None:
            return None
        return stats.jackknife_over_models(
            lambda of: stats.spearman(*(stats.upper(matrix[np.ix_(of, of)]) for matrix in (agreement, alike))),
            len(alike),
        )

    return specification_curve(_choices(found), correlation)


def _key(rows: str, statistic: str, protocol: str) -> tuple[str, str, str]:
    return rows, statistic, protocol


def _choices(found: Matrices) -> dict[str, list[str]]:
    names = ("rows", "statistic", "protocol")
    return {name: list(dict.fromkeys(key[at] for key in found)) for at, name in enumerate(names)}
