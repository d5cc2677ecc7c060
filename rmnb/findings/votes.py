"""How sure the votes of people are: the error of Elo ratings, their reliability, correlations without that error."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rmnb import stats
from rmnb.errors import InputError
from rmnb.findings import things
from rmnb.findings.results import Results

SCALE = 400 / math.log(10)  # Elo points to one unit of log odds
#: How votes make ratings err: as little as can be, or by updates of at most K points (see `error_variance`).
ASSUMED = {"bound": None, "K 16": 16.0, "K 32": 32.0}
ENOUGH = 10  # words or things for a correlation


def measure(items: pd.DataFrame, *, panel: str = "", n_boot: int = 200, seed: int = 0) -> pd.DataFrame:
    """Rows elo_items, elo_lowest and elo_highest; elo_reliability under each of `ASSUMED`; elo_valence_spearman.

    Parameters
    ----------
    items : name, elo_score, elo_matches, a row a thing
    n_boot, seed
        Bootstrap draws for the intervals of the reliability.
    """
    results, human = Results("elo", panel), items["elo_score"]
    for statistic, value in (("items", len(human)), ("lowest", human.min()), ("highest", human.max())):
        results.add("released", f"elo_{statistic}", value, protocol="published")
    rated = things.fact(items, "valence").dropna()
    if len(rated) >= ENOUGH:
        results.add("released", "elo_valence_spearman", stats.spearman_interval(human[rated.index], rated))
    pairs = items[["elo_score", "elo_matches"]].to_numpy(float)
    for name, k in ASSUMED.items():
        drawn = stats.bootstrap(
            lambda rows, k=k: reliability(rows[:, 0], rows[:, 1], k), pairs, n_draws=n_boot, seed=seed
        )
        results.add("released", "elo_reliability", drawn, other=name)
    return results.frame()


def error_variance(matches: ArrayLike, k: float | None = None) -> NDArray[np.float64]:
    """Variance of an Elo rating around the true one, in squared points.

    Parameters
    ----------
    matches : (things,) number of votes.
    k : float, optional
        Without it, the least that any unbiased estimate from that many even matches can have (Cramér–Rao):
        ``SCALE² / (n · ¼)``. With it, where a rating that moves by at most `k` points a match settles:
        ``k · SCALE / (2 - k / (4 SCALE))``, however many matches there are.

    References
    ----------
    Elo (1978), The Rating of Chessplayers, chapter 8; the update is linearised at even matches.
    """
    matches = np.asarray(matches, dtype=float)
    if (matches < 1).any():
        raise InputError("a rating needs a match at least")
    least = 4 * SCALE**2 / matches
    return least if k is None else np.maximum(least, k * SCALE / (2 - k / (4 * SCALE)))


def reliability(human: ArrayLike, matches: ArrayLike, k: float | None = None) -> float:
    """Share of the variance of ratings that is not error: 1 - mean error variance / variance, at least 0."""
    return max(0.0, 1 - float(error_variance(matches, k).mean() / np.var(np.asarray(human, dtype=float), ddof=1)))


def corrected(found: stats.Estimate, reliable: float) -> stats.Estimate:
    """Correlation with error-free ratings (Spearman, 1904): divided by the square root of their reliability."""
    if not 0 < reliable <= 1:
        raise InputError(f"a reliability lies above 0 and at most at 1, got {reliable}")
    ends = np.array([found.value, found.ci_low, found.ci_high])
    value, low, high = np.clip(ends / math.sqrt(reliable), -1, 1).tolist()
    return replace(found, value=value, ci_low=low, ci_high=high)


def planted_things(
    correlations: Mapping[str, float], matches: ArrayLike, spread: float = 120.0, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Things whose true worth is known, rated with the error of their votes, and models that follow the true worth.

    Parameters
    ----------
    correlations : model → Spearman correlation of its scores with the true worth (normal)
    matches : (things,)
    spread : float, standard deviation of the true worth, in Elo points

    Returns
    -------
    items : DataFrame with name, elo_score, elo_matches
    scores : DataFrame, one column a model
    """
    rng = np.random.default_rng(seed)
    matches = np.asarray(matches)
    worth = rng.normal(size=len(matches))
    rated = 1200 + spread * worth + np.sqrt(error_variance(matches)) * rng.normal(size=len(matches))
    scores = {}
    for model, rho in correlations.items():
        r = 2 * math.sin(math.pi * rho / 6)  # Pearson's r of two normal variables whose Spearman correlation is rho
        scores[model] = r * worth + math.sqrt(1 - r**2) * rng.normal(size=len(matches))
    names = [f"thing {place}" for place in range(len(matches))]
    return pd.DataFrame({"name": names, "elo_score": rated, "elo_matches": matches}), pd.DataFrame(scores)
