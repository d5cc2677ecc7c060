"""Does a model distinguish good words more finely than bad ones? Slopes over valence, and order alone.

Source of the question: Christian et al. (2025), section 4 and figure 3.
"""

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons
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
