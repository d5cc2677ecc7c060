"""Figures of whole rankings: how rewards are distributed, and how far models agree."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.patches import Ellipse
from matplotlib.transforms import Bbox
from numpy.typing import ArrayLike

from rmnb.book.figures.style import HEXAGONS, INK, plain_text, readable_on
from rmnb.stats import mid_ranks


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
        axes.violinplot([z], [place], orientation="horizontal", widths=0.85, showextrema=False, points=200)
        axes.collections[-1].set(facecolor=colour[name], edgecolor=INK, alpha=0.75, linewidth=0.6)
        low, median, high = np.quantile(z, [0.25, 0.5, 0.75])
        axes.plot([z.min(), z.max()], [place, place], color=INK, linewidth=0.6)
        axes.plot([low, high], [place, place], color=INK, linewidth=4, solid_capstyle="butt")
        axes.plot([median, median], [place - 0.06, place + 0.06], color="white", linewidth=1.5)
    axes.set_yticks(places, [plain_text(name) for name in names])
    axes.set_xlabel(f"score, in {unit} from the mean")
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
    for place, kind in zip(np.arange(len(order))[::-1], order, strict=True):
        of_kind = scores[kind_of == kind]
        if len(of_kind):
            bottom, low, median, high, top = np.quantile(of_kind, [0.05, 0.25, 0.5, 0.75, 0.95])
            axes.plot([bottom, top], [place, place], color=colour, linewidth=1.2)
            axes.plot([low, high], [place, place], color=colour, linewidth=6, solid_capstyle="butt")
            axes.plot([median], [place], "o", color="white", markeredgecolor=INK, markersize=5)
    axes.set_yticks(np.arange(len(order))[::-1], [plain_text(kind).replace("_", " ") for kind in order])
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
    shown = [plain_text(label) for label in labels]
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
        axes.text(column, row, text, ha="center", va="center", size=size, color=readable_on(image, value))
    axes.set_title(meaning)
    return axes


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
    hexagons = axes.hexbin(across, up, gridsize=28, cmap="cividis", norm=LogNorm(), mincnt=1, **HEXAGONS)
    axes.plot([0, 100], [0, 100], color="white", linewidth=1, linestyle=(0, (4, 4)))
    axes.set_xlabel(f"percentile in {plain_text(names[0])}")
    axes.set_ylabel(f"percentile in {plain_text(names[1])}")
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
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.15)
    axes.set_xlabel("distance: 1 − tau")
    _label(axes, points, names)
    return axes


def _label(axes: Axes, points: np.ndarray, names: Sequence[str]) -> None:
    """Each point's name beside it, where it meets the fewest points and names and stays within the axes."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # only then is it known where everything stands
    sides = (7, 0, "left", "center"), (-7, 0, "right", "center"), (0, 6, "center", "bottom"), (0, -6, "center", "top")
    frame = axes.get_window_extent()
    taken = [Bbox.from_extents(*(at - 4), *(at + 4)) for at in axes.transData.transform(points)]

    def cost(label) -> int:
        box = label.get_window_extent()
        outside = not (frame.contains(*box.min) and frame.contains(*box.max))
        return box.count_overlaps(taken) + len(points) * outside

    for name, point in zip(names, points, strict=True):
        labels = [
            axes.annotate(plain_text(name), point, (x, y), textcoords="offset points", size=8, ha=across, va=up)
            for x, y, across, up in sides
        ]
        best = min(labels, key=cost)
        taken.append(best.get_window_extent())
        for label in labels:
            if label is not best:
                label.remove()
