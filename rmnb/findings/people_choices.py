"""Does the agreement with people survive? Its mean over models under every combination of choices."""

import functools
from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rmnb import stats
from rmnb.findings import people, votes
from rmnb.findings.specifications import specification_curve
from rmnb.findings.things import fact

_INTERVAL = {"Spearman": stats.spearman_interval, "Kendall": stats.kendall_interval}


def specifications(
    items: pd.DataFrame, scores: pd.DataFrame, judged: Mapping[str, NDArray[np.bool_]] = {}
) -> pd.DataFrame:
    """Mean agreement with people under every combination of choices, of one question's scores of the things."""
    choices = {
        "statistic": list(_INTERVAL),
        "things": ["all", "many votes", "single words"],
        "ratings": ["as voted", "error removed"],
    }

    return specification_curve(choices, functools.partial(mean_agreement, items, scores, judged))


def mean_agreement(
    items: pd.DataFrame,
    scores: pd.DataFrame,
    judged: Mapping[str, NDArray[np.bool_]] = {},
    *,
    statistic: str,
    things: str,
    ratings: str,
) -> stats.Estimate | None:
    """Mean agreement over models, with its interval over models, under one set of choices (of one model: over things).

    `statistic` Spearman or Kendall; `things` all, "many votes" (the half with most) or "single words"; `ratings` "as
    voted" or "error removed" (Spearman only; by the bound).
    """
    if statistic != "Spearman" and ratings != "as voted":
        return None
    kept = np.ones(len(items), dtype=bool)
    if things == "many votes":
        kept = (items["elo_matches"] >= items["elo_matches"].median()).to_numpy()
    elif things == "single words":
        kept = fact(items, "letters").to_numpy()
    found = []
    for model in map(str, scores.columns):
        rows = items[people.judging(items, model, judged) & kept]
        if len(rows) < votes.ENOUGH:
            return None
        estimate = _INTERVAL[statistic](rows["elo_score"], scores[model].loc[rows.index])
        if ratings != "as voted":
            estimate = votes.corrected(estimate, votes.reliability(rows["elo_score"], rows["elo_matches"]))
        found.append(estimate)
    return stats.over_models(found)
