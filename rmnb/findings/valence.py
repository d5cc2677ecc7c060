"""What the rewards of one model make of the valence of words: slopes, order alone, and spread level by level.

Words are a table with word, valence and score, as `rmnb.findings.scan_tables.rated` gives them.
"""

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons
from rmnb.stats.estimate import Estimate, estimate_from_error

#: Whole numbers of AFINN, with the rare extremes joined to their neighbours.
LEVELS = (-4, -3, -2, -1, 1, 2, 3, 4)
PARTS = ("positive", "negative", "difference")


def slopes(words: pd.DataFrame, hold_frequency: bool = False) -> dict[str, Estimate]:
    """Slopes over valence: positive (among good words), negative (among bad ones) and their difference.

    Parameters
    ----------
    words : word, valence, score, as `rmnb.findings.scan_tables.rated` gives them
    hold_frequency : bool
        With log frequency and length held constant.
    """
    held = {"zipf": lexicons.zipf(words["word"]), "length": words["word"].str.len()} if hold_frequency else {}
    table = words.assign(side=np.where(words["valence"] > 0, "good", "bad"), **held)
    fit = stats.ols(" + ".join(["score ~ 0 + side + side:valence", *held]), table, clusters="word")
    good, bad = "side[good]:valence", "side[bad]:valence"
    return dict(zip(PARTS, (fit[good], fit[bad], fit.contrast({good: 1, bad: -1})), strict=True))


def slope_difference(words: pd.DataFrame, hold_frequency: bool = False) -> float:
    """The difference of `slopes` without its interval, which costs far less: enough where models are the unit."""
    valence = words["valence"].to_numpy(float)[:, None]
    side = np.hstack([valence > 0, valence < 0]).astype(float)
    held = [lexicons.zipf(words["word"]), words["word"].str.len()] if hold_frequency else []
    design = np.column_stack([side * valence, side, *held])
    good, bad = np.linalg.lstsq(design, words["score"].to_numpy(float))[0][:2]
    return float(good - bad)


def agreement(words: pd.DataFrame) -> dict[str, Estimate]:
    """Kendall's tau-b of score and valence, likewise positive, negative and difference: ranks alone count.

    Good and bad words are different words, so the errors of the two add up.
    """
    good = (words["valence"] > 0).to_numpy()
    parts = [
        stats.kendall_interval(half["score"], half["valence"], half["word"].to_numpy())
        for half in (words[good], words[~good])
    ]
    error = float(np.hypot(parts[0].standard_error, parts[1].standard_error))
    clusters = parts[0].n_clusters + parts[1].n_clusters
    gap = estimate_from_error(parts[0].value - parts[1].value, error, len(words), clusters, df=clusters - 2)
    return dict(zip(PARTS, (*parts, gap), strict=True))


def by_level(words: pd.DataFrame) -> dict[int, dict[str, Estimate]]:
    """What happens to the words of each level of valence that has three words or more, spellings averaged first.

    Returns
    -------
    dict
        For each level mean (score), spread (mean distance of two words' scores) and entropy (of the words' places among
        all rated words, `rmnb.stats.place_entropy`), with intervals over words.
    """
    single = words.groupby("word")[["valence", "score"]].mean()
    level = single["valence"].clip(LEVELS[0], LEVELS[-1]).round()
    place = (stats.mid_ranks(single["score"]) - 0.5) / len(single)
    found = {}
    for chosen in LEVELS:
        scores, places = single.loc[level == chosen, "score"].to_numpy(), place[level == chosen]
        if len(scores) >= 3 and scores.std() > 0:
            found[chosen] = {
                "mean": stats.moments(scores).mean,
                "spread": stats.mean_difference(scores),
                "entropy": stats.place_entropy(places),
            }
    return found
