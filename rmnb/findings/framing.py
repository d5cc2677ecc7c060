"""What changes when a question asks for the worst instead of the best, or for the same in other words.

Source: Christian et al. (2025), section 4 and figures 3 and 4; of the wordings Christian et al. (2026).
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.findings.tables import rated_tokens
from rmnb.stats.concordance import kendall_influence
from rmnb.stats.estimate import Estimate, influence_interval

#: Weights of the slopes over valence among good and bad words, asked for something good, then for something bad; each
#: slope signed so that following the question is positive.
CONTRASTS = {
    "bad words weigh more": {"good, best": -0.5, "bad, best": 0.5, "good, worst": -0.5, "bad, worst": 0.5},
    "answers weigh more": {"good, best": 0.5, "bad, best": -0.5, "good, worst": -0.5, "bad, worst": 0.5},
    "best is followed more": {"good, best": 0.5, "bad, best": 0.5, "good, worst": -0.5, "bad, worst": -0.5},
}

#: What two wordings of a question may differ in, all else the same; adjectives are of one framing.
CHANGES = ("style", "scope", "adjective", "framing")


def tau_between(table: pd.DataFrame, question: str, other: str) -> dict[str, Estimate]:
    """Kendall's tau of one model's rewards under two questions: 1 if the ranking stays, -1 if it is reversed.

    Returns
    -------
    dict
        tau, with its interval by word.
    """
    return {"tau": stats.kendall_interval(table[question], table[other], table["word"].to_numpy())}


def beyond_mirror(table: pd.DataFrame, best: str, worst: str, same: str) -> dict[str, Estimate]:
    """How far a model is from reversing its ranking when the question is reversed, in units of Kendall's tau.

    Even two questions that ask for the same thing rank tokens differently. So a mirror is a model whose ranking of the
    worst is as near to its ranking of the best, turned round, as its ranking under another name of the best is.

    Parameters
    ----------
    best, worst, same
        Two opposite questions, and one that asks for the same as the first.

    Returns
    -------
    dict
        beyond mirror, tau of best and worst plus tau of best and same: 0 for a mirror, with its interval by word.
    """
    turned, influence = kendall_influence(table[best], table[worst])
    unturned, influence_of_same = kendall_influence(table[best], table[same])
    estimate = influence_interval(turned + unturned, influence + influence_of_same, table["word"].to_numpy())
    return {"beyond mirror": estimate}


def value_share(table: pd.DataFrame, best: str, worst: str, n_draws: int = 200) -> dict[str, Estimate]:
    """Share of the variance of two standardised columns of rewards that lies along their difference: (1 - r) / 2.

    Parameters
    ----------
    n_draws
        Of the bootstrap over words.

    Returns
    -------
    dict
        share, from 0 to 1, with its bootstrap interval by word.
    """

    def share(x: np.ndarray, y: np.ndarray) -> float:
        return (1 - np.corrcoef(x, y)[0, 1]) / 2

    first, second = table[best].to_numpy(), table[worst].to_numpy()
    words = table["word"].to_numpy()
    return {"share": stats.bootstrap(share, first, second, clusters=words, n_draws=n_draws)}


def contrasts(table: pd.DataFrame, best: str, worst: str, ratings: pd.Series) -> dict[str, Estimate]:
    """`CONTRASTS` of a model's four slopes over valence, from one fit with errors clustered by word.

    Each token is in the fit twice, once a question, and its word counts as one independent unit all the same.

    Parameters
    ----------
    table
        One model's scores, in standard deviations or in the model's own unit.
    best, worst
        A question for something good and one for something bad.
    ratings
        Word to valence, without words rated zero.

    Returns
    -------
    dict
        Name of the contrast to its estimate, in units of the scores per point of valence, errors clustered by word.
    """
    rated = rated_tokens(table, ratings)
    good = rated["valence"] > 0
    blocks = []
    for asked, sign in (("best", 1), ("worst", -1)):
        followed = sign * rated["valence"]  # following the question is positive
        block = {}
        for name, side in (("good", good), ("bad", ~good)):
            block[f"{name} words, {asked}"] = side.astype(float)
            block[f"{name}, {asked}"] = side * followed
        blocks.append(pd.DataFrame(block))
    predictors = pd.concat(blocks).fillna(0.0)
    rewards = pd.concat([rated[best], rated[worst]])
    fit = stats.fit_clustered(rewards, predictors, clusters=pd.concat([rated["word"]] * 2))
    return {name: fit.estimate(weights) for name, weights in CONTRASTS.items()}


def rewording(table: pd.DataFrame, change: str, framings: Mapping[str, str]) -> dict[str, Estimate]:
    """Spearman's rho of a model's rewards under two wordings of a question that differ in one thing alone.

    Parameters
    ----------
    table
        Rewards of a list: a row a text, a column a wording, its key ``adjective_scope_style``.
    change : one of `CHANGES`
        What differs. adjective: another adjective of the same framing; framing: an adjective of the other framing.
    framings
        Key of a wording to ``positive`` or ``negative``; keys that are no column are left out.

    Returns
    -------
    dict
        spearman: the median over pairs of wordings, without an interval; n counts the pairs. Empty where no two
        wordings differ in this alone.
    """
    keys = [key for key in framings if key in table]
    if not keys:
        return {}
    parts = np.array([key.split("_") for key in keys])
    differs = parts[:, None] != parts  # [wording, wording, part of the key]
    part = {"adjective": 0, "framing": 0, "scope": 1, "style": 2}[change]
    chosen = np.triu(differs[:, :, part] & (differs.sum(axis=2) == 1))
    framing = np.array([framings[key] for key in keys])
    same_framing = framing[:, None] == framing
    if change == "adjective":
        chosen &= same_framing
    elif change == "framing":
        chosen &= ~same_framing
    if not chosen.any():
        return {}
    rho = table[keys].corr(method="spearman").to_numpy()[chosen]
    return {"spearman": Estimate(float(np.median(rho)), len(rho), len(rho))}
