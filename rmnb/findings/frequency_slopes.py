"""Slopes of the reward over a word's frequency, on the rows that `rmnb.findings.word_tokens.choose` gives."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rmnb import stats
from rmnb.errors import InputError
from rmnb.findings.word_tokens import choose
from rmnb.stats.estimate import Estimate

_ADDED = {
    "frequency alone": (),
    "valence": ("valence_above", "valence_below"),
    "length": ("length",),
    "spelling": ("spelling",),
    "token id": ("log_id",),
}
#: What is held constant, step by step; each step keeps the ones before it.
STEPS = tuple(_ADDED)
#: Words that a spline and its partial residuals need.
ENOUGH = 60


def _carried(rows: pd.DataFrame, step: str) -> list[str] | None:
    """What is held constant at a step and is not the same everywhere; None where too few words are to carry it."""
    if step not in STEPS:
        raise InputError(f"no step {step!r}: choose one of {', '.join(STEPS)}")
    reached = STEPS[: STEPS.index(step) + 1]
    held = [column for one in reached for column in _ADDED[one] if rows[column].nunique() > 1]
    size = sum(rows[column].nunique() - 1 if column == "spelling" else 1 for column in held)
    return held if rows["word"].nunique() > 3 * (size + 2) else None


def _design(rows: pd.DataFrame, held: Sequence[str]) -> NDArray[np.float64]:
    """Log frequency, then what is held constant and a column of ones: the design of the formula, without its cost."""
    columns = pd.get_dummies(rows[["log_frequency", *held]], drop_first=True, dtype=float)
    return columns.assign(one=1.0).to_numpy(float)


def _formula(score: str, held: Sequence[str]) -> str:
    return " + ".join([f"{score} ~ log_frequency", *held])


def slope(rows: pd.DataFrame, step: str = STEPS[-1], score: str = "z") -> Estimate | None:
    """Slope of a column of scores over log frequency, errors by word; None where too few words are left.

    Valence has a slope above zero and another below. Columns that are the same everywhere are left out.
    """
    if (held := _carried(rows, step)) is None:
        return None
    return stats.ols(_formula(score, held), rows, clusters="word")["log_frequency"]


def slope_value(rows: pd.DataFrame, step: str = STEPS[-1], score: str = "z") -> float:
    """`slope` without its interval, ten times faster; NaN where too few words are left."""
    if (held := _carried(rows, step)) is None:
        return float("nan")
    return float(np.linalg.lstsq(_design(rows, held), rows[score].to_numpy(float), rcond=None)[0][0])


def lost(rows: pd.DataFrame, before: str = "valence", n_boot: int = 200, seed: int = 0) -> stats.Bootstrap | None:
    """How much smaller the slope becomes when everything after `before` is held constant too; bootstrap by word."""
    held, few = _carried(rows, STEPS[-1]), _carried(rows, before)
    if held is None or few is None:
        return None

    def difference(short: NDArray[np.float64], full: NDArray[np.float64], y: NDArray[np.float64]) -> float:
        return np.linalg.lstsq(short, y, rcond=None)[0][0] - np.linalg.lstsq(full, y, rcond=None)[0][0]

    columns = _design(rows, few), _design(rows, held), rows["z"].to_numpy(float)
    return stats.bootstrap(difference, *columns, clusters=rows["word"].to_numpy(object), n_draws=n_boot, seed=seed)


def within_word(tokens: pd.DataFrame, score: str = "z") -> Estimate | None:
    """Slope of the score over log id among the spellings of one word, space and case held constant.

    What belongs to a word (meaning, valence, length) is the same for all its spellings and drops out. Low ids were
    merged first, that is, were frequent in the text that the tokenizer was made from: preferring frequent *tokens*
    gives a negative slope. None where too few words have several spellings.
    """
    several = tokens.loc[tokens["word"].duplicated(keep=False)]
    if several["word"].nunique() < 30:
        return None
    columns = several[[score, "log_id"]].astype(float)
    others = several["spelling"].value_counts().index[1:]  # compared with the most frequent
    for place, level in enumerate(others):
        columns[f"spelling_{place}"] = (several["spelling"] == level).astype(float)
    inside = columns - columns.groupby(several["word"].to_numpy(object)).transform("mean")
    varying = [name for name in inside.columns[1:] if np.ptp(inside[name].to_numpy()) > 1e-9]
    fit = stats.ols(f"{score} ~ 0 + " + " + ".join(varying), inside.assign(word=several["word"]), clusters="word")
    return fit["log_id"]


def framed(good: pd.DataFrame, bad: pd.DataFrame, words: str = "AFINN") -> dict[str, Estimate]:
    """Split the frequency slope of one model by framing; its `word_tokens` under a good and under a bad question.

    Returns
    -------
    dict
        common, the slope of half the sum of the scores: what does not care which was asked. turned, that of half the
        difference: what changes sign with the question, as meaning does. Empty where too few words are left.
    """
    parts = {"common": (good["z"] + bad["z"]) / 2, "turned": (good["z"] - bad["z"]) / 2}
    found = {part: slope(choose(good.assign(z=half), words)) for part, half in parts.items()}
    return {part: estimate for part, estimate in found.items() if estimate}


def partial_residuals(rows: pd.DataFrame, n_bins: int = 20) -> tuple[pd.DataFrame, stats.Curvature]:
    """What is left of the score when all else is taken out, over log frequency, and a spline through it.

    Returns
    -------
    DataFrame
        `n_bins` bins with equally many words: log_frequency and residual (means over words), error (standard error).
    Curvature
        The spline of `rmnb.stats.curvature`, on the same scale.

    Raises
    ------
    InputError
        Too few words.
    """
    if (held := _carried(rows, STEPS[-1])) is None:
        raise InputError(f"{rows['word'].nunique()} words are too few for partial residuals")
    bend = stats.curvature(_formula("z", held), rows, "log_frequency", clusters="word")
    design, z = _design(rows, held), rows["z"].to_numpy(float)
    fitted = np.linalg.lstsq(design, z, rcond=None)[0]
    line = fitted[0] * (design[:, 0] - design[:, 0].mean())
    left = rows.assign(residual=z.mean() + line + z - design @ fitted)
    left = left.groupby("word")[["log_frequency", "residual"]].mean()
    # by rank, because many words of the BNC list share one frequency
    bins = pd.qcut(left["log_frequency"].rank(method="first"), min(n_bins, len(left) // 5), labels=False)
    grouped = left.groupby(bins)
    table = grouped.mean().assign(error=grouped["residual"].sem())
    return table.reset_index(drop=True), bend
