"""Figures of estimates with their intervals."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rmnb.book.figures.style import FAINT, INK, MARKERS, PALETTE, WIDTH, plain_text

_PANES = {
    "panel": "this panel",
    "released": "the papers' models",
    "positive": "positive prompts",
    "negative": "negative prompts",
}


def estimates(
    axes: Axes,
    rows: pd.DataFrame,
    y: str = "model",
    mark: str | None = None,
    hue: str = "model",
    colour: Mapping[Any, str] | None = None,
    marker: Mapping[Any, str] | None = None,
    order: Sequence[str] | None = None,
    marks: Sequence[str] | None = None,
    median: bool = False,
    reference: float | None = 0.0,
    meaning: str = "",
) -> Axes:
    """Rows of a results table as dots with their intervals, a line for each level of `y`, the first on top.

    A NaN interval leaves the dot alone. The rows of a line stand below each other: by the levels of `mark`, which
    differ in their marker and are labelled for ``figure.legend(*axes.get_legend_handles_labels(), …)``, or else by
    their values. The line of the n-th level is at n, from 0, if something is to be drawn beside it.

    Parameters
    ----------
    rows
        Columns value, low and high (or ci_low and ci_high), and those that are named.
    y, mark
        Columns whose levels are the lines, and the markers within a line.
    hue, colour, marker
        A column, and for its levels their colours and, without `mark`, their markers; the others are grey. Without
        `colour` all is of one colour. Of models, `rmnb.book.figures.looks` gives both.
    order, marks
        The levels of `y` and of `mark` in their order, by default as they come; rows of others are left out.
    median
        Draw a bar at the median of each line.
    reference
        Where a thin line stands to compare with, or None for none.
    meaning
        What the numbers are, for the axis.
    """
    lines = list(dict.fromkeys(rows[y]) if order is None else order)
    rows = rows[rows[y].isin(lines)].rename(columns={"low": "ci_low", "high": "ci_high"})
    line = np.array([lines.index(level) for level in rows[y]], dtype=float)
    levels = []
    if mark is None:
        of_line = rows.groupby(y)["value"]
        place = of_line.rank(method="first", ascending=False).to_numpy() - 1
        among = of_line.transform("size").to_numpy()
    else:
        levels = list(dict.fromkeys(rows[mark]) if marks is None else marks)
        shown = rows[mark].isin(levels).to_numpy()
        rows, line = rows[shown], line[shown]
        place = np.array([levels.index(level) for level in rows[mark]], dtype=float)
        among = np.full(len(rows), len(levels))
    height = line + 0.7 / np.maximum(among, 3) * (place - (among - 1) / 2)
    crowd = max(among, default=1)
    size = 7 if crowd == 1 else 5.5 if crowd <= 6 else 4
    of_mark = dict(zip(levels, itertools.cycle(MARKERS)))
    for at, row in zip(height, rows.to_dict("records"), strict=True):
        ink = PALETTE[0] if colour is None else colour.get(row[hue], FAINT)
        look = {"color": ink, "markeredgecolor": INK, "markeredgewidth": 0.5, "markersize": size}
        axes.plot([row["ci_low"], row["ci_high"]], [at, at], color=ink, linewidth=size / 3)
        shape = of_mark[row[mark]] if mark else (marker or {}).get(row[hue], "o")
        axes.plot(row["value"], at, shape, **look)
    for level in levels:
        ink = colour.get(level, FAINT) if colour and mark == hue else FAINT
        axes.plot([], [], of_mark[level], color=ink, label=plain_text(str(level)), markersize=5)
    if median:
        for at, line in enumerate(lines):
            middle = rows.loc[rows[y] == line, "value"].median()
            axes.plot([middle, middle], [at - 0.38, at + 0.38], color=PALETTE[5], linewidth=1.5)
    for between in np.arange(0.5, len(lines) - 1) if crowd > 3 else ():
        axes.axhline(between, color=FAINT, linewidth=0.3, zorder=0)
    if reference is not None:
        axes.axvline(reference, color=FAINT, linewidth=0.8, zorder=0)
    axes.set_yticks(range(len(lines)), [plain_text(str(line)) for line in lines])
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(meaning)
    return axes


def dot_chart(
    rows: pd.DataFrame,
    y: str = "model",
    mark: str | None = None,
    col: str | None = None,
    order: Sequence[str] | None = None,
    marks: Sequence[str] | None = None,
    colour: Mapping[Any, str] | None = None,
    meaning: str = "",
    **look: Any,
) -> Figure:
    """`estimates` in a figure of its own: a column wide, as tall as its lines need, the levels of `mark` named above.

    Parameters
    ----------
    rows, y, mark, order, marks, colour, meaning
        As `estimates` takes them.
    col
        A column whose levels stand side by side, each under its name.
    **look
        What else `estimates` takes.
    """
    panes = {"": rows} if col is None or rows.empty else dict(iter(rows.groupby(col, sort=False)))
    levels = list(dict.fromkeys(rows[mark]) if marks is None else marks) if mark else []
    lines = [list(dict.fromkeys(of[y]) if order is None else order) for of in panes.values()]
    height = (0.75 if len(levels) < 2 else 1.0) + (0.18 + 0.02 * min(len(levels), 4)) * max(1, *map(len, lines))
    same = all(names == lines[0] for names in lines)
    fig, grid = plt.subplots(1, len(panes), figsize=(WIDTH, height), sharex=True, sharey=same, squeeze=False)
    for axes, (name, of) in zip(grid[0], panes.items(), strict=True):
        estimates(axes, of, y=y, mark=mark, order=order, marks=levels, colour=colour, meaning=meaning, **look)
        axes.set_title(plain_text(_PANES.get(str(name), str(name))))
    if len(levels) > 1:
        fig.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper left", ncols=len(levels))
    return fig
