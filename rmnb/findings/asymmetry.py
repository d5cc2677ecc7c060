"""Do reward models tell good answers apart more finely than bad ones? Tails, slopes over valence, spread and noise.

Scans of one model under several prompts are one *table*: token_id, token, kind, word (folded), and a column a prompt.
Source of the question: Christian et al. (2025), section 4 and figure 3.
"""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons
from rmnb.findings import released
from rmnb.findings.results import Results
from rmnb.findings.scan_tables import afinn, as_table, rated
from rmnb.panels import Panel
from rmnb.stats.estimate import Estimate, estimate_from_error
from rmnb.truth import planted

#: Whole numbers of AFINN, with the rare extremes joined to their neighbours.
LEVELS = (-4, -3, -2, -1, 1, 2, 3, 4)
_ASKED_ALIKE = {"greatest": "greatest_ever_one", "best": "best_ever_one", "worst": "worst_ever_one"}
PLANTED = planted.PlantedEffects(valence_positive=0.30, valence_negative=0.15, word_sd=0.7, noise_sd=0.3)


def slopes(words: pd.DataFrame, hold_frequency: bool = False) -> stats.ValenceSlopes:
    """Slopes over valence among good and among bad words; with log frequency and length held constant, if asked.

    Parameters
    ----------
    words : word, valence, score, as `rated` gives them
    """
    fit = stats.least_squares(
        words["score"], _columns(words, hold_frequency), words["word"].to_numpy(), intercept=False
    )
    return stats.ValenceSlopes(fit["positive"], fit["negative"], fit.contrast({"positive": 1, "negative": -1}))


def slope_difference(words: pd.DataFrame, hold_frequency: bool = False) -> float:
    """The difference of `slopes` without its interval, which costs far less: enough where models are the unit."""
    columns = _columns(words, hold_frequency)
    found = np.linalg.lstsq(np.column_stack(list(columns.values())), words["score"].to_numpy(float))[0]
    coefficients = dict(zip(columns, found, strict=True))
    return float(coefficients["positive"] - coefficients["negative"])


def _columns(words: pd.DataFrame, hold_frequency: bool) -> dict[str, np.ndarray]:
    valence = words["valence"].to_numpy(float)
    high = (valence > 0).astype(float)
    columns = {"good": high, "bad": 1 - high, "positive": high * valence, "negative": (1 - high) * valence}
    if hold_frequency:
        columns["zipf"] = lexicons.zipf(words["word"])
        columns["length"] = words["word"].str.len().to_numpy(float)
    return columns


def agreement(words: pd.DataFrame) -> stats.ValenceSlopes:
    """Kendall's tau-b of score and valence among good and among bad words, and their difference: ranks alone count.

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
    return stats.ValenceSlopes(parts[0], parts[1], gap)


def by_level(words: pd.DataFrame) -> pd.DataFrame:
    """What happens to the words of each level of valence, spellings averaged first.

    Returns
    -------
    DataFrame
        One row a level with three words or more: level (int), n (int, words), and with its interval over words (_low,
        _high; float64) mean (score), spread (mean distance of two words' scores) and entropy (of the words' places
        among all rated words, `rmnb.stats.place_entropy`).
    """
    single = words.groupby("word")[["valence", "score"]].mean()
    level = single["valence"].clip(LEVELS[0], LEVELS[-1]).round()
    place = (stats.mid_ranks(single["score"]) - 0.5) / len(single)
    rows = []
    for chosen in LEVELS:
        scores, places = single.loc[level == chosen, "score"].to_numpy(), place[level == chosen]
        if len(scores) >= 3 and scores.std() > 0:
            found = stats.moments(scores).mean, stats.mean_difference(scores), stats.place_entropy(places)
            rows.append((chosen, len(scores), *(x for e in found for x in (e.value, e.ci_low, e.ci_high))))
    names = [f"{what}{end}" for what in ("mean", "spread", "entropy") for end in ("", "_low", "_high")]
    return pd.DataFrame(rows, columns=["level", "n", *names])


def seed_pairs(panel: Panel) -> list[tuple[str, str]]:
    """Models of one base trained by one recipe from two seeds: (``mixed``, ``mixed-seed2``) by their recipes' names."""
    return [
        (one.name, other.name)
        for one, other in itertools.combinations(panel.models, 2)
        if (one.family, one.base) == (other.family, other.base)
        and one.recipe_family
        and one.recipe_family == other.recipe_family
        and one.recipe != other.recipe
    ]


def seed_reliability(one: pd.Series, other: pd.Series, words: np.ndarray, share: float = 0.2) -> dict[str, Estimate]:
    """Kendall's tau-b of two seeds among the tokens at the top and at the bottom.

    The tokens are chosen by one seed, then by the other, and the two values of tau are averaged: a choice by the sum of
    both rankings would make them look opposed. The interval takes the two values for perfectly dependent, so it is
    rather too long.

    Parameters
    ----------
    one, other : (n,) scores of the same tokens
    words : (n,) the tokens' words, the unit of the intervals
    share : float, how much of the vocabulary is the top, and the bottom
    """
    scores = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    places = [stats.mid_ranks(values) / len(words) for values in scores]
    found = {}
    for end in ("top", "bottom"):
        chosen = [place > 1 - share if end == "top" else place <= share for place in places]
        both = [stats.kendall_interval(scores[0][rows], scores[1][rows], words[rows]) for rows in chosen]
        value, error = (float(np.mean([getattr(e, key) for e in both])) for key in ("value", "standard_error"))
        n, clusters = both[0].n, min(estimate.n_clusters for estimate in both)
        found[end] = estimate_from_error(value, error, n, clusters, df=clusters - 1)
    return found


def released_slopes() -> pd.DataFrame:
    """Rows slope_positive, slope_negative and slope_difference of the ten published models on the words of the moral
    foundations dictionary that AFINN rates: the second paper's data have these under the first one's three questions.

    Raises
    ------
    UnreachableError
        The scores cannot be had.
    """
    results = Results("asymmetry", released.ICLR)
    lexicon = afinn().set_index("word")["valence"]
    scores = {model.code: released.word_scores(model, "dict_MFD_20") for model in released.MODELS}
    for prompt, key in _ASKED_ALIKE.items():
        for suffix in ("", "_standardised"):
            found = []
            for code, table in scores.items():
                known = table.loc[table.index.isin(lexicon.index), key]
                values = stats.standardise(known) if suffix else known
                found.append(stats.valence_slopes(values, lexicon[known.index]))
                _add(results, "released", found[-1], suffix, model=code, other="moral_foundations", prompt=prompt)
            means = (stats.over_models([getattr(one, part) for one in found]) for part in _PARTS)
            mean = stats.ValenceSlopes(*means)
            _add(results, "released", mean, suffix, other="moral_foundations", prompt=prompt)
    return results.frame()


_PARTS = ("positive", "negative", "difference")


def _add(results: Results, source: str, found: stats.ValenceSlopes, suffix: str, **about) -> None:
    for part in _PARTS:
        protocol = "published" if source == "released" else "exact"
        results.add(source, f"slope_{part}{suffix}", getattr(found, part), protocol=protocol, **about)


def add_slopes(
    results: Results, source: str, tables: Mapping[str, pd.DataFrame], prompts: Sequence[str], suffix: str = ""
) -> None:
    """Rows slope_positive, slope_negative and slope_difference by model and prompt, and their means over models."""
    lexicon = afinn()
    for prompt in prompts:
        found = {model: slopes(rated(table, prompt, lexicon)) for model, table in tables.items()}
        for model, one in found.items():
            _add(results, source, one, suffix, model=model, prompt=prompt)
        mean = stats.ValenceSlopes(
            *(stats.over_models([getattr(one, part) for one in found.values()]) for part in _PARTS)
        )
        _add(results, source, mean, suffix, prompt=prompt)


def planted_tables(
    prompts: Mapping[str, planted.Framing],
    models: Sequence[str],
    seed: int,
    effects: planted.PlantedEffects = PLANTED,
) -> dict[str, pd.DataFrame]:
    """Tables of models whose reward has known slopes, over AFINN's words in four spellings."""
    words = [word for word in afinn()["word"] if word.isalpha()]
    panel = planted.planted_panel(planted.spell(words), effects, dict.fromkeys(models, "planted"), prompts, seed)
    return {model: as_table({prompt: panel[prompt][model] for prompt in prompts}) for model in models}
