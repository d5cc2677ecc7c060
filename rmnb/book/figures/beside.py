"""One model's numbers, each beside the same number of reference models."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rmnb.book.figures.style import FAINT, INK, PALETTE, plain_text

_KINDS = {"demo": ("|", PALETTE[0], "this project's ten small models"), "": ("x", PALETTE[3], "the papers' ten models")}


def beside(axes: Axes, own: pd.DataFrame, reference: pd.DataFrame, meaning: str, zero: float = 0) -> Axes:
    """A line for each number: the model's with its 95 % interval, the reference models' as small marks below it.

    Parameters
    ----------
    own
        A model's rows of the results table with the column label, one a line, in order.
    reference
        Rows of the other models, labelled likewise; panel ``demo`` or one of the papers'.
    meaning
        What the numbers are, for the axis.
    zero
        Where a thin line stands: the value that means nothing.
    """
    lines = list(own["label"])
    reference = reference[reference["label"].isin(lines)]  # a small vocabulary does not have all numbers
    axes.axvline(zero, color=FAINT, linewidth=0.8, zorder=0)
    for panel, (marker, ink, _) in _KINDS.items():
        of = reference[(reference["panel"] == "demo") == (panel == "demo")]
        height = [lines.index(label) + (0.22 if panel == "demo" else 0.4) for label in of["label"]]
        axes.plot(of["value"], height, marker, color=ink, markersize=6, markeredgewidth=1.2)
    for at, row in enumerate(own.to_dict("records")):
        axes.plot([row["ci_low"], row["ci_high"]], [at, at], color=INK, linewidth=2)
        axes.plot(row["value"], at, "D", color=INK, markersize=6)
    axes.set_yticks(range(len(lines)), [plain_text(label) for label in lines])
    axes.set_ylim(len(lines) - 0.35, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(meaning)
    return axes


def key_of_beside(figure: Figure, reference: pd.DataFrame, model: str) -> None:
    """Below a figure of `beside`, what its marks are."""
    handles = [Line2D([], [], linestyle="-", color=INK, marker="D", label=plain_text(model))]
    for panel, (marker, ink, label) in _KINDS.items():
        if ((reference["panel"] == "demo") == (panel == "demo")).any():
            handles.append(Line2D([], [], linestyle="", color=ink, marker=marker, label=label, markeredgewidth=1.2))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
