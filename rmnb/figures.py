"""The figures of the chapters: each function draws on a matplotlib axes that it is given, and returns it.

Colours are told apart by readers with any of the common colour blindnesses, and a model keeps its colour everywhere.
"""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.patches import Ellipse
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


def model_map(
    axes: Axes, points: ArrayLike, clouds: ArrayLike, names: Sequence[str], colour: Mapping[str, str]
) -> Axes:
    """Models on a map, each with the ellipse that holds 95 % of its bootstrap points if they are normal.

    Parameters
    ----------
    points
        (models, 2).
    clouds
        (draws, models, 2), aligned with `points`.
    """
    points, clouds = np.asarray(points, dtype=float), np.asarray(clouds, dtype=float)
    for place, (name, point) in enumerate(zip(names, points, strict=True)):
        variances, directions = np.linalg.eigh(np.cov(clouds[:, place].T))
        width, height = 2 * np.sqrt(5.991 * np.maximum(variances[::-1], 0))  # 95 % quantile of chi-squared, df 2
        angle = np.degrees(np.arctan2(*directions[::-1, 1]))
        axes.add_patch(Ellipse(point, width, height, angle=angle, facecolor=colour[name], alpha=0.35, linewidth=0))
        axes.plot(*point, "o", color=colour[name], markersize=6)
    low, high = points.min(axis=0), points.max(axis=0)
    for name, point in zip(names, points, strict=True):
        left = point[0] < (low[0] + high[0]) / 2  # labels point inwards, so that none runs out of the figure
        axes.annotate(
            _label(name),
            point,
            xytext=(7 if left else -7, 5),
            textcoords="offset points",
            size=8,
            ha="left" if left else "right",
        )
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.15)
    axes.set_xlabel("distance: 1 − tau")
    return axes


def grouped_dots(
    axes: Axes,
    groups: Sequence[str],
    values: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    order: Sequence[str],
    meaning: str,
) -> Axes:
    """Estimates with intervals, one row a group from top to bottom, side by side within it; the bar is its median.

    Parameters
    ----------
    groups
        (n,) the group of each estimate.
    order
        The groups from top to bottom; one without estimates is left out.
    """
    groups, (values, low, high) = np.asarray(groups), map(np.asarray, (values, low, high))
    present = [group for group in order if (groups == group).any()]
    for place, group in zip(np.arange(len(present))[::-1], present, strict=True):
        chosen = np.flatnonzero(groups == group)
        offset = np.linspace(-0.3, 0.3, len(chosen)) if len(chosen) > 1 else np.zeros(1)
        heights = place + offset[np.argsort(np.argsort(values[chosen], kind="stable"))]
        axes.hlines(heights, low[chosen], high[chosen], color=INK, linewidth=1)
        axes.plot(values[chosen], heights, "o", color=PALETTE[0], markersize=4)
        axes.plot([np.median(values[chosen])] * 2, [place - 0.38, place + 0.38], color="#D55E00", linewidth=1.5)
    axes.set_yticks(np.arange(len(present))[::-1], [_label(group) for group in present])
    axes.set_ylim(-0.6, len(present) - 0.4)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(meaning)
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


def by_model(
    axes: Axes,
    table: pd.DataFrame,
    models: Sequence[str],
    groups: Sequence[str],
    colour: Mapping[str, str],
    meaning: str,
) -> Axes:
    """Estimates with their intervals, a line a model, the first on top; a marker tells the groups of a model apart.

    The markers are labelled for ``figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left")``.

    Parameters
    ----------
    table
        Columns model, group, value, ci_low, ci_high.
    models, groups
        In the order of lines, and of the markers within a line; groups share an axis, so keep to six.
    colour
        For each model its colour.
    meaning
        What the numbers are, for the axis.
    """
    step = 0.6 / max(len(groups), 2)
    for mark, (place, group) in zip("osD^vP", enumerate(groups), strict=False):
        of_group = table[table["group"] == group]
        numbers = of_group[["value", "ci_low", "ci_high"]].to_numpy(float)
        found = dict(zip(of_group["model"], numbers, strict=True))
        for line, model in enumerate(reversed(list(models))):
            if model in found:
                value, low, high = found[model]
                height = line + step * ((len(groups) - 1) / 2 - place)
                axes.plot([low, high], [height] * 2, color=colour[model], linewidth=1.5)
                axes.plot([value], [height], mark, color=colour[model], markersize=5, mec=INK, mew=0.5)
        axes.plot([], [], mark, color=FAINT, label=_label(group), markersize=5)
    axes.set_yticks(range(len(models)), [_label(model) for model in reversed(list(models))])
    axes.set_ylim(-0.6, len(models) - 0.4)
    axes.tick_params(axis="y", length=0)
    axes.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
    axes.set_xlabel(meaning)
    return axes
