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
from rmnb.stats import Curvature

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
        Columns value, ci_low and ci_high, and those that are named.
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
    rows = rows[rows[y].isin(lines)]
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


def specification_curves(curves: Mapping[str, pd.DataFrame], meaning: str) -> Figure:
    """`specification_curve` of several questions, side by side on one scale, each under its name.

    Parameters
    ----------
    curves
        For each question what `rmnb.findings.specifications.specification_curve` returned; of a single one the name
        is left out.
    meaning
        What the estimates are, for the upper axes.
    """
    rows = [_options(curve) for curve in curves.values()]
    columns, lines = max(len(curves), 1), max(map(len, rows), default=1)
    together = len({frozenset(options) for options in rows}) < 2
    size, ratios = (WIDTH, 1.9 + 0.165 * lines), (1.6, 0.165 * lines)
    shared, chart = ("row", rows[0] if rows else None) if together else (False, None)
    fig, grid = plt.subplots(2, columns, figsize=size, sharex="col", sharey=shared, height_ratios=ratios)
    for place, (name, curve) in enumerate(curves.items()):
        upper, lower = grid.reshape(2, -1)[:, place]
        specification_curve(upper, lower, curve, meaning if not place else "", chart)
        upper.set_title(plain_text(name) if len(curves) > 1 else "")
    return fig


def _options(curve: pd.DataFrame) -> list[tuple[str, str]]:
    """Each choice with each of its options, in their order; a choice with one option is none."""
    choices = curve.columns[: curve.columns.get_loc("value")]
    return [(name, option) for name in choices if curve[name].nunique() > 1 for option in dict.fromkeys(curve[name])]


def specification_curve(
    upper: Axes, lower: Axes, table: pd.DataFrame, meaning: str, chart: Sequence[tuple[str, str]] | None = None
) -> tuple[Axes, Axes]:
    """All estimates of `rmnb.findings.specifications.specification_curve`, sorted, above a chart of the choices behind
    each; a choice with one option is none.

    Parameters
    ----------
    upper, lower
        Axes one above the other that share x: ``plt.subplots(2, 1, sharex=True, height_ratios=…)``.
    table
        What `specification_curve` returned.
    meaning
        What the estimate is, for the upper axis.
    chart
        The choices with their options in the order of the chart, by default as the table has them.
    """
    places = np.arange(len(table))
    headline = table["headline"].to_numpy(dtype=bool)
    layers = ((~headline, INK), (headline, PALETTE[1]))
    dense = len(table) > 40  # marks as an image, so that the page stays light
    for layer, ink in layers:
        # One path with gaps for all intervals: a path each would make the page heavy.
        ends = table.loc[layer, ["ci_low", "ci_high"]].assign(gap=np.nan).to_numpy().ravel()
        upper.plot(places[layer].repeat(3), ends, color=ink, linewidth=0.8, rasterized=dense)
        upper.plot(places[layer], table.loc[layer, "value"], "o", color=ink, markersize=3.7, rasterized=dense)
    upper.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
    upper.set_ylabel(meaning)
    rows = _options(table) if chart is None else chart
    for height, (choice, option) in enumerate(reversed(rows)):
        chosen = (table[choice] == option).to_numpy()
        for layer, ink in layers:
            marked = places[chosen & layer]
            lower.plot(marked, [height] * len(marked), "|", color=ink, markersize=5.5, rasterized=dense)
    lower.set_yticks(range(len(rows)), [plain_text(f"{choice}: {option}") for choice, option in reversed(rows)])
    lower.set_ylim(-0.6, len(rows) - 0.4)
    lower.set_xticks([])
    lower.tick_params(axis="y", length=0)
    lower.spines[["left", "bottom"]].set_visible(False)
    return upper, lower


def partial_residuals(axes: Axes, bins: pd.DataFrame, spline: Curvature, colour: str) -> Axes:
    """What `rmnb.findings.frequency_slopes.partial_residuals` gives: means of words as dots, the spline as a line."""
    middle = bins["residual"].mean() - np.interp(bins["log_frequency"], spline.grid, spline.fitted).mean()
    ends = spline.ci_low + middle, spline.ci_high + middle
    axes.fill_between(spline.grid, *ends, color=colour, alpha=0.25, linewidth=0)
    axes.plot(spline.grid, spline.fitted + middle, color=colour)
    axes.errorbar(bins["log_frequency"], bins["residual"], bins["error"], fmt="o", color=INK, markersize=3)
    axes.set(xlabel="log occurrences per million", ylabel="partial residual, sd")
    return axes


def courses(axes: Axes, lines: Mapping[str, pd.DataFrame], colour: Mapping[str, str], log: bool = True) -> Axes:
    """How a measure goes on through training, one line and band for each run.

    Parameters
    ----------
    lines
        For each name a table with step, value, ci_low and ci_high, in the order of the steps.
    colour
        For each name its colour.
    log
        Steps on a logarithmic axis that begins at 0.
    """
    for name, line in lines.items():
        axes.fill_between(line["step"], line["ci_low"], line["ci_high"], color=colour[name], alpha=0.2, linewidth=0)
        axes.plot(line["step"], line["value"], color=colour[name], marker="o", markersize=3, label=plain_text(name))
    axes.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
    if log:
        axes.set_xscale("symlog", linthresh=1, linscale=0.5)
        axes.set_xticks([0, 1, 4, 16, 64, 256], ["0", "1", "4", "16", "64", "256"])
        axes.minorticks_off()
    return axes
