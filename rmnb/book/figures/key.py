"""The figure on the book's first page: the same words under two questions, in two models of which one reads them."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from rmnb.book.figures.style import FAINT, INK, PALETTE, plain_text
from rmnb.findings.align import word_scores
from rmnb.panels import Panel
from rmnb.scoring.store import read_scores

#: Words that nobody disputes the meaning of, good, bad and neither.
WORDS = (
    *("love", "peace", "freedom", "music", "health", "chocolate", "money", "power"),
    *("cat", "rain", "Monday", "table", "tax", "noise", "fear", "war", "death"),
)
_GAP = 5.0  # percent of the axis between two labels


def turning(panel: Panel, prompts: tuple[str, str]) -> dict[str, float]:
    """Of each model, the rank correlation of its own rewards under two questions, over its whole vocabulary."""
    scans = {name: [read_scores(panel, name, prompt)["score"] for prompt in prompts] for name in panel.model_names}
    return {name: float(one.rank().corr(other.rank())) for name, (one, other) in scans.items()}


def two_kinds(correlation: Mapping[str, float], family: Mapping[str, str | None]) -> tuple[str, str]:
    """The model of the base of the second that turns most with the question, and the model that turns least of all."""
    least = max(correlation, key=lambda name: correlation[name])
    kin = [name for name in correlation if family[name] == family[least]]
    return min(kin, key=lambda name: correlation[name]), least


def places(panel: Panel, model: str, prompts: Sequence[str], words: Sequence[str] = WORDS) -> pd.DataFrame:
    """Percentile of some words among all words of a model, the highest reward at 100; one column a prompt."""
    scans = {prompt: word_scores(read_scores(panel, model, prompt)).set_index("word")["score"] for prompt in prompts}
    percentile = 100 * pd.DataFrame(scans).rank(pct=True)
    known = [word for word in words if word.casefold() in percentile.index]
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


def slope_chart(axes: Axes, table: pd.DataFrame, title: str, size: float = 9) -> Axes:
    """Percentiles of the same words under two questions as two columns, a line a word.

    Parameters
    ----------
    table
        Two columns, in percent, one row a word; see `places`.
    title
        Above both.
    """
    left, right = (table.iloc[:, column].to_numpy() for column in (0, 1))
    change = right - left
    ink = np.where(np.abs(change) < 15, FAINT, np.where(change > 0, PALETTE[1], PALETTE[0]))
    for x, side, values in ((0.0, "right", left), (1.0, "left", right)):
        out = -1 if side == "right" else 1
        for word, value, height, colour in zip(table.index, values, spread(values), ink, strict=True):
            axes.plot([x + 0.03 * out, x + 0.13 * out], [value, height], color=colour, linewidth=0.6, clip_on=False)
            text = plain_text(str(word))
            axes.text(x + 0.15 * out, height, text, ha=side, va="center", size=size, color=INK)
    for start, end, colour in zip(left, right, ink, strict=True):
        axes.plot([0, 1], [start, end], "-o", color=colour, linewidth=1.6, markersize=3.5)
    for x, name in enumerate(table.columns):
        axes.plot([x, x], [0, 100], color=INK, linewidth=1.2, zorder=0)
        axes.text(x, 109, plain_text(f"{name}?"), ha="center", size=size, style="italic", color=INK)
    axes.text(0.5, 118, plain_text(title), ha="center", size=size + 1, weight="bold", color=INK)
    axes.set_xlim(-0.72, 1.72)
    axes.set_ylim(-6, 124)
    axes.axis("off")
    return axes
