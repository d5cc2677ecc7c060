"""One look for all figures: a base by its colour, a recipe by its marker, one width, one set of sizes."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from seaborn.utils import relative_luminance

from rmnb.panels import Panel

#: Each has a contrast of 3:1 or more on white; readers with any of the common colour blindnesses can distinguish them.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#7700DD", "#333300", "#770055", "#003399", "#997799")
MARKERS = "osD^vP<>Xp"
INK, FAINT = "#222222", "#808080"
WIDTH = 688 / 96  # inches: a full column of the book


def use_style() -> None:
    """Set the book's style for this process: small plain figures, and SVG in notebooks."""
    sns.set_theme(
        context={},  # matplotlib's own sizes
        style="ticks",
        palette=PALETTE,
        font="DejaVu Sans",  # comes with matplotlib: figures are the same everywhere
        rc={
            "figure.figsize": (WIDTH, 3.6),
            "font.size": 9.5,  # points; at full width 8.5 of them are 11 pixels
            "xtick.labelsize": 9,
            "ytick.labelsize": 9,
            "legend.fontsize": 9,
            "figure.constrained_layout.use": True,
            "figure.dpi": 160,  # of the layers that are images: sharp on a dense screen
            "axes.titlelocation": "left",
            "axes.titlesize": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": INK,
            "hatch.color": FAINT,
            "legend.frameon": False,
            "svg.hashsalt": "rmnb",  # equal figures are equal files
        },
    )
    try:
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:  # outside notebooks
        return
    set_matplotlib_formats("svg", metadata={"Date": None}, bbox_inches=None)  # as wide as asked for


def legible_numbers(axes: Axes) -> None:
    """Write each number of an annotated heat map in black or white, whichever stands out more from its cell."""
    mesh = axes.collections[0]
    cells = mesh.get_facecolors()[~np.ma.getmaskarray(mesh.get_array()).ravel()]  # pyright: ignore[reportArgumentType, reportAttributeAccessIssue, reportCallIssue]
    for number, cell in zip(axes.texts, cells, strict=True):
        number.set_color(INK if relative_luminance(cell) > 0.21 else "white")


def colours(panel: Panel) -> dict[str, str]:
    """The colour of each model: its own if the panel gives one, else that of its base, in the order of the bases."""
    families = list(dict.fromkeys(model.family or model.name for model in panel.models))
    return {
        model.name: model.colour or PALETTE[families.index(model.family or model.name) % len(PALETTE)]
        for model in panel.models
    }


def markers(panel: Panel) -> dict[str, str]:
    """The marker of each model: one for each recipe, whatever the seed, and for each model without one."""
    recipes = {model.name: model.recipe_family if model.recipe else model.name for model in panel.models}
    order = list(dict.fromkeys(recipes.values()))
    return {name: MARKERS[order.index(recipe) % len(MARKERS)] for name, recipe in recipes.items()}


def dot_chart(
    rows: pd.DataFrame, mark: str, colour: Mapping[str, str], meaning: str, order: Sequence[str] | None = None
) -> Figure:
    """Dots with intervals: a line for each model, the first on top, with its rows one below the other.

    Parameters
    ----------
    rows
        Columns model, value, low, high and `mark`. A NaN interval leaves the dot alone.
    mark
        The column whose levels have a marker each, ten at most, and are named above the axes.
    colour
        Of each model; see `colours`.
    meaning
        What the numbers are, for the axis.
    order
        The models in their order, by default as they come; rows of other models are left out.
    """
    lines = list(rows["model"].unique() if order is None else order)
    levels = list(rows[mark].unique())
    line_height = 0.18 + 0.02 * min(len(levels), 4)  # inches
    fig, axes = plt.subplots(figsize=(WIDTH, 1 + line_height * max(1, len(lines))))
    gap = 0.7 / max(len(levels), 3)  # between the dots of one line, whose height is 1
    for row in rows[rows["model"].isin(lines)].to_dict("records"):
        place = levels.index(row[mark])
        height = lines.index(row["model"]) + gap * (place - (len(levels) - 1) / 2)
        ink = colour[row["model"]]
        axes.plot([row["low"], row["high"]], [height, height], color=ink)
        axes.plot(
            row["value"], height, MARKERS[place], color=ink, markeredgecolor=INK, markeredgewidth=0.5, markersize=5
        )
    for marker, level in zip(MARKERS, levels, strict=False):
        axes.plot([], [], marker, color=FAINT, label=level, markersize=5)
    axes.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
    axes.set_yticks(range(len(lines)), lines)
    axes.set(ylim=(len(lines) - 0.4, -0.6), xlabel=meaning)
    axes.tick_params(axis="y", length=0)
    fig.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=len(levels))
    return fig
