"""Figures of whole rankings: how rewards are distributed, and how far models agree."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from numpy.typing import ArrayLike

from rmnb import stats
from rmnb.book.figures.style import INK, plain_text

#: Of `Axes.hexbin`: hundreds of hexagons as an image, without shades at their edges, so that it is small and sharp.
HEXAGONS = {
    "gridsize": 28,
    "cmap": "cividis",
    "mincnt": 1,
    "linewidths": 0.1,
    "antialiaseds": False,
    "rasterized": True,
}


def violins(
    axes: Axes, scores: Mapping[str, ArrayLike], colour: Mapping[str, str], unit: str = "standard deviations"
) -> Axes:
    """One horizontal violin a model, of scores less their mean over their standard deviation, the first model on top.

    Standardised, because the rewards of two models share neither zero nor scale. Inside each, the white line is the
    median, the bar the middle half, and the thin line goes on for one and a half times its length.

    Parameters
    ----------
    axes
        Where to draw.
    scores
        For each model its scores, (n,) of any length.
    colour
        For each model its colour.
    """
    long = pd.concat(
        {name: pd.Series(stats.standardise(values)) for name, values in scores.items()}, names=["model", ""]
    )
    long = long.rename("z").reset_index("model")
    look = {"cut": 0, "density_norm": "width", "width": 0.85, "linewidth": 0.6, "gridsize": 80, "legend": False}
    look["saturation"] = 1  # the colour that the model has in every other figure
    sns.violinplot(long, x="z", y="model", hue="model", palette=dict(colour), ax=axes, **look)
    axes.set_yticks(range(len(scores)), [plain_text(name) for name in scores])
    axes.set(xlabel=f"score, in {unit} from the mean", ylabel="")
    axes.tick_params(axis="y", length=0)
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
    axes.boxplot(
        [scores[kind_of == kind] for kind in order],
        positions=range(len(order)),
        orientation="horizontal",
        whis=(5, 95),
        widths=0.4,
        showfliers=False,
        showcaps=False,
        manage_ticks=False,
        patch_artist=True,
        boxprops={"facecolor": colour, "edgecolor": INK, "linewidth": 0.6},
        whiskerprops={"color": colour, "linewidth": 1.2},
        medianprops={"color": "white", "linewidth": 2, "solid_capstyle": "butt"},
    )
    axes.set_yticks(range(len(order)), [plain_text(kind).replace("_", " ") for kind in order])
    axes.set_ylim(len(order) - 0.4, -0.6)
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
    text = np.array([[f"{value:z.2f}" for value in row] for row in matrix], dtype=object)  # z: no minus before 0.00
    if low is not None and high is not None:
        ends = np.stack([np.asarray(low), np.asarray(high)], axis=-1)
        for at in zip(*np.where(~np.eye(len(matrix), dtype=bool)), strict=True):
            text[at] += "\n{:.3f} to {:.3f}".format(*ends[at])
    size = {"size": 10 if len(matrix) <= 5 and low is None else 8.5}
    scale = dict(zip(("vmin", "vmax"), limits, strict=True))
    sns.heatmap(matrix, annot=text, fmt="", annot_kws=size, cmap="cividis", cbar=False, ax=axes, **scale)
    shown = [plain_text(label) for label in labels]
    axes.set_xticks(axes.get_xticks(), shown, rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(axes.get_yticks(), shown, rotation=0)
    axes.tick_params(length=0)
    axes.set_title(meaning)
    return axes


def gaps_by_axis(axes: Axes, gaps: pd.DataFrame, order: Sequence[str]) -> Axes:
    """Gaps as coloured cells with what is written in them: one line a model, one column an axis, red below zero.

    Parameters
    ----------
    gaps
        Columns model, other (the axis), value and shown (str).
    order
        The models; those without a gap are left out.
    """
    wide, text = (gaps.pivot(index="model", columns="other", values=of) for of in ("value", "shown"))
    order = [name for name in order if name in wide.index]
    look = {"center": 0, "vmin": -3, "vmax": 3, "cmap": "RdBu", "cbar": False, "annot_kws": {"size": 9}}
    sns.heatmap(wide.loc[order], annot=text.loc[order].fillna(""), fmt="", yticklabels=True, ax=axes, **look)
    axes.set(xlabel="", ylabel="")
    axes.tick_params(axis="x", labelsize=8.5)
    return axes


def joint_density(axes: Axes, x: ArrayLike, y: ArrayLike, names: tuple[str, str], of: str = "words") -> Axes:
    """Two models' percentiles of the same words against each other, as hexagons of how many words they hold.

    Parameters
    ----------
    x, y
        (n,) scores of the same words; they are shown by rank, as a share of all.
    names
        The two models, for the axes.
    of
        What is counted.
    """
    across, up = (100 * stats.mid_ranks(values) / np.size(values) for values in (x, y))
    hexagons = axes.hexbin(across, up, norm=LogNorm(), **HEXAGONS)
    axes.plot([0, 100], [0, 100], color="white", linewidth=1, linestyle=(0, (4, 4)))
    axes.set_xlabel(f"percentile in {plain_text(names[0])}")
    axes.set_ylabel(f"percentile in {plain_text(names[1])}")
    axes.set_aspect("equal", anchor="W")  # in a figure wider than it is, the square stands where reading begins
    scale = axes.inset_axes((1.06, 0.1, 0.04, 0.8))
    axes.figure.colorbar(hexagons, cax=scale, label=f"{of} in a hexagon")
    return axes
