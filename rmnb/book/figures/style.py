"""One look for all figures: colours, sizes, and how a model is labelled.

Colours are told apart by readers with any of the common colour blindnesses, and a model keeps its colour everywhere.
"""

import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rmnb.panels import Panel

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
#: Hundreds of hexagons are drawn as an image, without shades at their edges: so they are small, and sharp as well.
HEXAGONS = {"linewidths": 0.1, "antialiaseds": False, "rasterized": True}
INK, FAINT = "#222222", "#8a8a8a"
WIDTH = 4.6  # inches: the text stays legible when a telephone shrinks the figure to its screen


def use_style() -> None:
    """Set the book's style for this process: small plain figures, and SVG in notebooks."""
    sns.set_theme(
        context={},  # matplotlib's own sizes
        style="ticks",
        palette=PALETTE,
        font="DejaVu Sans",  # comes with matplotlib: figures are the same everywhere
        rc={
            "figure.figsize": (WIDTH, 3.2),
            "figure.constrained_layout.use": True,
            "figure.dpi": 160,  # of the layers that are images: sharp on a dense screen
            "axes.titlelocation": "left",
            "axes.titlesize": "medium",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": INK,
            "legend.frameon": False,
            "svg.hashsalt": "rmnb",  # equal figures are equal files
        },
    )
    try:
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:  # outside notebooks
        return
    set_matplotlib_formats("svg", metadata={"Date": None})


def colours(panel: Panel) -> dict[str, str]:
    """The colour of each model: its own where the panel gives one, else the palette's, in panel order."""
    return {model.name: model.colour or PALETTE[position % len(PALETTE)] for position, model in enumerate(panel.models)}


def two_columns(
    count: int, height: float, width: float = WIDTH, sharex: bool = False, sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels in two columns, each row `height` inches tall; a single panel fills the width.

    The last panel of each column shows a scale that is shared, whether or not it stands in the last row.
    """
    columns = min(count, 2)
    rows = -(-count // columns)
    size = (width, 0.8 + height * rows)
    fig, grid = plt.subplots(rows, columns, figsize=size, sharex=sharex, sharey=sharey, squeeze=False)
    panels = list(grid.flat)
    for surplus in panels[count:]:
        surplus.remove()
    for last in panels[max(count - columns, 0) : count]:
        last.tick_params(labelbottom=True)
    return fig, panels[:count]


def plain_text(text: str) -> str:
    return text.replace("$", r"\$")  # a dollar sign would begin a formula
