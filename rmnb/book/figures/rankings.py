"""Figures of whole rankings: how rewards are distributed, and how far models agree."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from numpy.typing import ArrayLike

from rmnb import stats
from rmnb.book.figures.style import plain_text

#: Of `Axes.hexbin`: hundreds of hexagons as an image, without shades at their edges, so that it is small and sharp.
HEXAGONS = {
    "gridsize": 28,
    "cmap": "cividis",
    "mincnt": 1,
    "linewidths": 0.1,
    "antialiaseds": False,
    "rasterized": True,
}


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
