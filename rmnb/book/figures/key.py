"""The figure on the book's first page: where two models place the same words among all that they share."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from rmnb.book.figures.style import FAINT, INK, PALETTE, plain_text
from rmnb.panels import Panel

#: Words that nobody disputes the meaning of, good, bad and neither.
WORDS = (
    *("love", "peace", "freedom", "music", "health", "chocolate", "money", "power"),
    *("cat", "rain", "Monday", "table", "tax", "noise", "fear", "war", "death"),
)
_GAP = 5.0  # percent of the axis between two labels


def pair_of_models(panel: Panel) -> tuple[str, str]:
    """The panel's first model, and the first of another family that learned by the same recipe (or any other model)."""
    first, *others = panel.models
    apart = [model for model in others if model.family != first.family]
    alike = [model for model in apart if model.recipe == first.recipe]
    return first.name, (alike or apart or others or [first])[0].name


def places(scores: pd.DataFrame, words: Sequence[str] = WORDS) -> pd.DataFrame:
    """Percentile of some words among all words, the highest reward at 100.

    Parameters
    ----------
    scores
        One row a word (lower case), one column a model, as `rmnb.findings.align.load_scores` gives them with
        ``how="word"``.

    Returns
    -------
    DataFrame
        Those of `words` that are there, one column a model; in percent.
    """
    percentile = 100 * scores.rank(pct=True)
    known = [word for word in words if word.casefold() in scores.index]
    return percentile.loc[[word.casefold() for word in known]].set_axis(known)


def spread(places: ArrayLike, gap: float = _GAP, top: float = 104.0) -> np.ndarray:
    """Heights of labels, (n,): near to `places`, none nearer to the next than `gap`, none above `top`."""
    wanted = np.asarray(places, dtype=float)
    order = np.argsort(-wanted, kind="stable")
    heights = wanted.copy()
    ceiling = top
    for at in order:
        heights[at] = min(heights[at], ceiling)
        ceiling = heights[at] - gap
    floor = min(-4.0, top - gap * (len(wanted) - 1))
    for at in order[::-1]:  # what was pushed below the axis pushes back
        heights[at] = max(heights[at], floor)
        floor = heights[at] + gap
    return heights


def slope_chart(axes: Axes, table: pd.DataFrame, titles: Sequence[str], size: float = 9) -> Axes:
    """Two models' percentiles of the same words as two columns, a line a word; steep lines are disagreement.

    Parameters
    ----------
    table
        Two columns, in percent, one row a word; see `places`.
    titles
        One a column.
    """
    left, right = (table.iloc[:, column].to_numpy() for column in (0, 1))
    change = right - left
    ink = np.where(np.abs(change) < 15, FAINT, np.where(change > 0, PALETTE[0], PALETTE[5]))
    for x, side, values in ((0.0, "right", left), (1.0, "left", right)):
        out = -1 if side == "right" else 1
        for word, value, height, colour in zip(table.index, values, spread(values), ink, strict=True):
            axes.plot([x + 0.03 * out, x + 0.13 * out], [value, height], color=colour, linewidth=0.6, clip_on=False)
            text = plain_text(str(word))
            axes.text(x + 0.15 * out, height, text, ha=side, va="center", size=size, color=INK)
    for start, end, colour in zip(left, right, ink, strict=True):
        axes.plot([0, 1], [start, end], "-o", color=colour, linewidth=1.6, markersize=3.5)
    for x, title in enumerate(titles):
        axes.plot([x, x], [0, 100], color=INK, linewidth=1.2, zorder=0)
        axes.text(x, 111, plain_text(title), ha="center", size=size + 1, weight="bold", color=INK)
    axes.set_xlim(-0.62, 1.62)
    axes.set_ylim(-6, 118)
    axes.axis("off")
    return axes
