"""One look for all figures: a base by its colour, a recipe by its marker, one width, one set of sizes."""

from collections import Counter

import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rmnb.panels import Panel

#: Each at 3:1 or more on white, and told apart by readers with any of the common colour blindnesses.
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
            "legend.frameon": False,
            "svg.hashsalt": "rmnb",  # equal figures are equal files
        },
    )
    try:
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:  # outside notebooks
        return
    set_matplotlib_formats("svg", metadata={"Date": None}, bbox_inches=None)  # as wide as asked for


def colours(panel: Panel) -> dict[str, str]:
    """The colour of each model: its own where the panel gives one, else one for all of its base, by their order."""
    families = list(dict.fromkeys(model.family or model.name for model in panel.models))
    return {
        model.name: model.colour or PALETTE[families.index(model.family or model.name) % len(PALETTE)]
        for model in panel.models
    }


def markers(panel: Panel) -> dict[str, str]:
    """The marker of each model: one a recipe; where no recipe is known, by its place within the base."""
    recipes = list(dict.fromkeys(model.recipe for model in panel.models if model.recipe))
    colour, of_base = colours(panel), Counter[str]()
    places = {}
    for model in panel.models:
        ink = colour[model.name]
        places[model.name] = recipes.index(model.recipe) if model.recipe else of_base[ink]
        of_base[ink] += 1
    return {name: MARKERS[place % len(MARKERS)] for name, place in places.items()}


def key_of_looks(figure: Figure, panel: Panel) -> None:
    """Below a figure, what colours and markers mean: the bases, then the recipes; models where neither is known."""
    colour, marker = colours(panel), markers(panel)
    known = all(model.family and model.recipe for model in panel.models)
    entries: dict[str, tuple[str, str]] = {}  # colour and marker
    for model in panel.models:
        if known:
            entries.setdefault(str(model.family), (colour[model.name], "s"))
        else:
            entries[model.name] = (colour[model.name], marker[model.name])
    for model in panel.models if known else ():
        entries.setdefault(str(model.recipe), (FAINT, marker[model.name]))
    handles = [
        Line2D([], [], linestyle="", color=ink, marker=shape, label=plain_text(name))
        for name, (ink, shape) in entries.items()
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(len(handles), 7), columnspacing=1.0, handletextpad=0.2
    )


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
