"""One model's numbers, each beside the same number of reference models."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rmnb.book.figures.style import FAINT, INK, PALETTE, plain_text

_KINDS = {
    "demo": ("|", PALETTE[0], "this project's ten small models"),
    "authors": ("x", PALETTE[3], "the papers' ten models"),
}


def beside(axes: Axes, own: pd.DataFrame, reference: pd.DataFrame, meaning: str, zero: float = 0) -> Axes:
    """A line for each number: the model's with its 95 % interval, the reference models' as small marks below it.

    Parameters
    ----------
    own
        A model's numbers: label, value, low, high, and `rmnb.report.numbers.KEY`; one a line, in order.
    reference
        The same numbers of other models: panel (demo or authors), value, and the key.
    meaning
        What the numbers are, for the axis.
    zero
        Where a thin line stands: the value that means nothing.
    """
    key = ["name", "question", "other"]
    place = {name: line for line, name in enumerate(own[key].itertuples(index=False, name=None))}
    axes.axvline(zero, color=FAINT, linewidth=0.8, zorder=0)
    for panel, (marker, ink, _) in _KINDS.items():
        rows = reference[reference["panel"] == panel]
        rows = rows.assign(line=[place.get(name) for name in rows[key].itertuples(index=False, name=None)])
        rows = rows.dropna(subset="line")
        below = 0.22 if panel == "demo" else 0.4
        axes.plot(rows["value"], rows["line"] + below, marker, color=ink, markersize=6, markeredgewidth=1.2)
    for line, row in enumerate(own.to_dict("records")):
        axes.plot([row["low"], row["high"]], [line, line], color=INK, linewidth=2)
        axes.plot(row["value"], line, "D", color=INK, markersize=6)
    lines = list(own["label"])
    axes.set_yticks(range(len(lines)), [plain_text(label) for label in lines])
    axes.set_ylim(len(lines) - 0.35, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(meaning)
    return axes


def key_of_beside(figure: Figure, reference: pd.DataFrame, model: str) -> None:
    """Below a figure of `beside`, what its marks are."""
    handles = [Line2D([], [], linestyle="-", color=INK, marker="D", label=plain_text(model))]
    for panel, (marker, ink, label) in _KINDS.items():
        if (reference["panel"] == panel).any():
            handles.append(Line2D([], [], linestyle="", color=ink, marker=marker, label=label, markeredgewidth=1.2))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
