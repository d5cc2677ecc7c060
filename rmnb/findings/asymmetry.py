"""Does a model distinguish good words more finely than bad ones? Slopes over valence, order alone, two seeds.

Source of the question: Christian et al. (2025), section 4 and figure 3.
"""

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons
from rmnb.errors import InputError
from rmnb.findings.tables import rated_tokens
from rmnb.stats.estimate import Estimate, estimate_from_error


def slopes(table: pd.DataFrame, question: str, ratings: pd.Series, hold_frequency: bool = False) -> dict[str, Estimate]:
    """Slope of the reward over valence among good words, among bad words, and their difference.

    Parameters
    ----------
    table
        One model's scores, in standard deviations or in the model's own unit.
    question
        The column of scores.
    ratings
        Word to valence, without words rated zero.
    hold_frequency
        Hold log frequency and length of the word constant.

    Returns
    -------
    dict
        good, bad, difference: units of the scores per point of valence. Errors are clustered by word, because the
        spellings of a word are not independent observations.
    """
    rated = rated_tokens(table, ratings)
    good = (rated["valence"] > 0).astype(float)
    predictors = pd.DataFrame({"good words": good, "bad words": 1 - good})
    predictors["good"] = good * rated["valence"]
    predictors["bad"] = (1 - good) * rated["valence"]
    if hold_frequency:
        predictors["frequency"] = lexicons.zipf(rated["word"])
        predictors["length"] = rated["word"].str.len()
    fit = stats.fit_clustered(rated[question], predictors, clusters=rated["word"])
    return {
        "good": fit.estimate({"good": 1}),
        "bad": fit.estimate({"bad": 1}),
        "difference": fit.estimate({"good": 1, "bad": -1}),
    }


def order(table: pd.DataFrame, question: str, ratings: pd.Series) -> dict[str, Estimate]:
    """Kendall's tau of reward and valence among good words, among bad words, and the difference: ranks alone count.

    Good and bad words are different words, so the errors of the two add up. Tau is not defined where all words of one
    side are rated alike.

    Returns
    -------
    dict
        good, bad (each from -1 to 1) and difference, with intervals by word.

    Raises
    ------
    InputError
        Fewer than three tokens of a side, or all of a side rated or scored alike.
    """
    rated = rated_tokens(table, ratings)
    estimates = {}
    for side, chosen in (("good", rated["valence"] > 0), ("bad", rated["valence"] < 0)):
        tokens = rated[chosen]
        estimates[side] = stats.kendall_interval(tokens[question], tokens["valence"], tokens["word"].to_numpy())
    good, bad = estimates["good"], estimates["bad"]
    error = float(np.hypot(good.standard_error, bad.standard_error))
    n_words = good.n_clusters + bad.n_clusters
    estimates["difference"] = estimate_from_error(good.value - bad.value, error, len(rated), n_words, df=n_words - 2)
    return estimates


def seed_agreement(table: pd.DataFrame, other: pd.DataFrame, question: str, share: float = 0.2) -> dict[str, Estimate]:
    """Kendall's tau of two seeds of one recipe among the tokens at the top of the ranking, and at the bottom.

    The tokens are chosen by one seed, then by the other, and the two values of tau averaged: a choice by the sum of
    both rankings would make them look opposed. The interval takes the two values for perfectly dependent, so it errs on
    the long side.

    Parameters
    ----------
    table, other
        Two models of one vocabulary.
    share
        How much of the vocabulary is the top, and the bottom.

    Returns
    -------
    dict
        top, bottom: tau with an interval by word; n is the number of tokens that the first seed chooses.

    Raises
    ------
    InputError
        The vocabularies differ.
    """
    if len(table) != len(other) or not (table["token"].to_numpy() == other["token"].to_numpy()).all():
        raise InputError("two seeds are compared token by token: these vocabularies differ")
    scores = [model[question].to_numpy(float) for model in (table, other)]
    places = [stats.mid_ranks(values) / len(values) for values in scores]
    words = table["word"].to_numpy()
    estimates = {}
    for end in ("top", "bottom"):
        taus = []
        for place in places:
            chosen = place > 1 - share if end == "top" else place <= share
            taus.append(stats.kendall_interval(scores[0][chosen], scores[1][chosen], words[chosen]))
        value = np.mean([tau.value for tau in taus])
        error = np.mean([tau.standard_error for tau in taus])
        n_words = min(tau.n_clusters for tau in taus)
        estimates[end] = estimate_from_error(float(value), float(error), taus[0].n, n_words, df=n_words - 1)
    return estimates
