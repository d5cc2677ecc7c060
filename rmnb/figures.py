"""The figures of the chapters: each function draws on a matplotlib axes that it is given, and returns it.

Colours are told apart by readers with any of the common colour blindnesses, and a model keeps its colour everywhere.
"""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, to_rgb
from numpy.typing import ArrayLike

from rmnb.panel import Panel
from rmnb.stats import mid_ranks

#: In panel order: the palette of Okabe and Ito (2008), then two of Tol's muted scheme (2021) for panels of ten.
PALETTE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#000000",
    "#882255",
    "#999933",
)
INK, FAINT = "#222222", "#8a8a8a"
WIDTH = 4.6  # inches: the text stays legible when a telephone shrinks the figure to its screen


def use_style() -> None:
    """Set the book's style for this process: small plain figures, and SVG in notebooks."""
    mpl.rcParams.update(
        {
            "figure.figsize": (WIDTH, 3.2),
            "figure.constrained_layout.use": True,
            "font.size": 10,
            "axes.titlesize": 10,
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": INK,
            "legend.frameon": False,
            "svg.hashsalt": "rmnb",  # equal figures are equal files
        }
    )
    try:
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:  # outside notebooks
        return
    set_matplotlib_formats("svg", metadata={"Date": None})


def colours(panel: Panel) -> dict[str, str]:
    """The colour of each model: its own where the panel gives one, else the palette's, in panel order."""
    return {model.name: model.colour or PALETTE[position % len(PALETTE)] for position, model in enumerate(panel.models)}


def violins(
    axes: Axes, scores: Mapping[str, ArrayLike], colour: Mapping[str, str], unit: str = "standard deviations"
) -> Axes:
    """One horizontal violin a model, of scores less their mean over their standard deviation, the first model on top.

    Standardised, because the rewards of two models share neither zero nor scale. The white line is the median,
    the bar the middle half, the thin line the whole range.

    Parameters
    ----------
    axes
        Where to draw.
    scores
        For each model its scores, (n,) of any length.
    colour
        For each model its colour.
    """
    names = list(scores)
    places = np.arange(len(names))[::-1]
    for place, name in zip(places, names, strict=True):
        z = np.asarray(scores[name], dtype=float)
        z = (z - z.mean()) / z.std()
        axes.violinplot([z], [place], orientation="horizontal", widths=0.85, showextrema=False, points=400)
        axes.collections[-1].set(facecolor=colour[name], edgecolor=INK, alpha=0.75, linewidth=0.6)
        low, median, high = np.quantile(z, [0.25, 0.5, 0.75])
        axes.plot([z.min(), z.max()], [place, place], color=INK, linewidth=0.6)
        axes.plot([low, high], [place, place], color=INK, linewidth=4, solid_capstyle="butt")
        axes.plot([median, median], [place - 0.06, place + 0.06], color="white", linewidth=1.5)
    axes.set_yticks(places, [_label(name) for name in names])
    axes.set_xlabel(f"score, in {unit} from the mean")
    axes.tick_params(axis="y", length=0)
    return axes


def heat_map(
    axes: Axes,
    matrix: ArrayLike,
    labels: Sequence[str],
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    meaning: str = "",
    limits: tuple[float, float] = (0.0, 1.0),
) -> Axes:
    """A matrix of agreement with its values, and beneath each its interval where `low` and `high` are given.

    Parameters
    ----------
    matrix, low, high
        (models, models); NaN leaves a cell empty.
    labels
        One a model, written along both axes.
    meaning
        What the numbers are, for the title; the cells hold their values, so there is no colour bar.
    limits
        The values at the ends of the colour scale.
    """
    matrix = np.asarray(matrix, dtype=float)
    image = axes.imshow(matrix, cmap="cividis", vmin=limits[0], vmax=limits[1])
    shown = [_label(label) for label in labels]
    axes.set_xticks(range(len(shown)), shown, rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(shown)), shown)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    size = 10 if len(matrix) <= 5 else 7
    for row, column in np.argwhere(np.isfinite(matrix)):
        value = float(matrix[row, column])
        text = f"{value:.2f}"
        if low is not None and high is not None and row != column:
            text += f"\n{np.asarray(low)[row, column]:.3f} to {np.asarray(high)[row, column]:.3f}"
        axes.text(column, row, text, ha="center", va="center", size=size, color=_readable_on(image, value))
    axes.set_title(meaning)
    return axes


def _label(text: str) -> str:
    return text.replace("$", r"\$")  # a dollar sign would begin a formula


def _readable_on(image, value: float) -> str:
    red, green, blue = to_rgb(image.cmap(image.norm(value)))
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


def joint_density(axes: Axes, x: ArrayLike, y: ArrayLike, names: tuple[str, str]) -> Axes:
    """Two models' percentiles of the same words against each other, as hexagons of how many words they hold.

    Parameters
    ----------
    x, y
        (n,) scores of the same words; they are shown by rank, as a share of all.
    names
        The two models, for the axes.
    """
    across, up = (100 * mid_ranks(values) / np.size(values) for values in (x, y))
    hexagons = axes.hexbin(across, up, gridsize=28, cmap="cividis", norm=LogNorm(), mincnt=1, linewidths=0.1)
    axes.plot([0, 100], [0, 100], color="white", linewidth=1, linestyle=(0, (4, 4)))
    axes.set_xlabel(f"percentile in {_label(names[0])}")
    axes.set_ylabel(f"percentile in {_label(names[1])}")
    axes.set_aspect("equal")
    axes.figure.colorbar(hexagons, ax=axes, shrink=0.8, label="words in a hexagon")
    return axes


def intervals(
    axes: Axes,
    labels: Sequence[str],
    values: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    colour: Sequence[str],
    meaning: str,
) -> Axes:
    """Estimates as dots with their intervals, one a line, the first on top; a NaN interval leaves the dot alone.

    Parameters
    ----------
    labels, colour
        One an estimate.
    values, low, high
        (n,) estimates and the ends of their intervals.
    meaning
        What the numbers are, for the axis.
    """
    places = np.arange(len(labels))[::-1]
    for place, value, bottom, top, ink in zip(places, *map(np.asarray, (values, low, high)), colour, strict=True):
        axes.plot([bottom, top], [place, place], color=ink, linewidth=2)
        axes.plot([value], [place], "o", color=ink, markersize=6)
    axes.set_yticks(places, [_label(label) for label in labels])
    axes.set_ylim(-0.7, len(places) - 0.3)
    axes.tick_params(axis="y", length=0)
    axes.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
    axes.margins(x=0.08)
    axes.set_xlabel(meaning)
    return axes


def by_kind(axes: Axes, scores: ArrayLike, kinds: Sequence[str], order: Sequence[str], colour: str) -> Axes:
    """For each kind of token the median, the middle half and the middle nine tenths of its scores.

    Parameters
    ----------
    scores, kinds
        (n,) a score and a kind for each token.
    order
        The kinds from top to bottom.
    """
    scores, kind_of = np.asarray(scores, dtype=float), np.asarray(kinds)
    for place, kind in zip(np.arange(len(order))[::-1], order, strict=True):
        of_kind = scores[kind_of == kind]
        if len(of_kind):
            bottom, low, median, high, top = np.quantile(of_kind, [0.05, 0.25, 0.5, 0.75, 0.95])
            axes.plot([bottom, top], [place, place], color=colour, linewidth=1.2)
            axes.plot([low, high], [place, place], color=colour, linewidth=6, solid_capstyle="butt")
            axes.plot([median], [place], "o", color="white", markeredgecolor=INK, markersize=5)
    axes.set_yticks(np.arange(len(order))[::-1], [_label(kind).replace("_", " ") for kind in order])
    axes.tick_params(axis="y", length=0)
    return axes


def specification_curve(upper: Axes, lower: Axes, table: pd.DataFrame, meaning: str) -> tuple[Axes, Axes]:
    """All estimates of `rmnb.specifications.specification_curve`, sorted, above a chart of the choices behind each.

    Parameters
    ----------
    upper, lower
        Axes one above the other that share x: ``plt.subplots(2, 1, sharex=True, height_ratios=…)``.
    table
        What `specification_curve` returned.
    meaning
        What the estimate is, for the upper axis.
    """
    places = np.arange(len(table))
    ink = np.where(table["headline"], "#D55E00", INK)
    upper.vlines(places, table["ci_low"], table["ci_high"], color=ink, linewidth=1, alpha=0.6)
    upper.scatter(places, table["value"], color=ink, s=14, zorder=3)
    upper.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
    upper.set_ylabel(meaning)
    choices = list(table.columns[: table.columns.get_loc("value")])
    rows = [(choice, option) for choice in choices for option in dict.fromkeys(table[choice])]
    for height, (choice, option) in enumerate(reversed(rows)):
        chosen = (table[choice] == option).to_numpy()
        lower.scatter(places[chosen], np.full(chosen.sum(), height), color=ink[chosen], marker="|", s=30)
    lower.set_yticks(range(len(rows)), [_label(f"{choice}: {option}") for choice, option in reversed(rows)], size=8)
    lower.set_ylim(-0.6, len(rows) - 0.4)
    lower.set_xticks([])
    lower.tick_params(axis="y", length=0)
    lower.spines[["left", "bottom"]].set_visible(False)
    return upper, lower


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
        axes.plot(line["step"], line["value"], color=colour[name], marker="o", markersize=3, label=_label(name))
    axes.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
    if log:
        axes.set_xscale("symlog", linthresh=1, linscale=0.5)
        axes.set_xticks([0, 1, 4, 16, 64, 256], ["0", "1", "4", "16", "64", "256"])
        axes.minorticks_off()
    return axes
