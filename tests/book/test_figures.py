"""What a chart draws is what its rows say, in a place where the reader looks for it."""

import io

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from seaborn.utils import relative_luminance

from rmnb.book import figures
from rmnb.panels import load_panel

matplotlib.use("Agg")
ROWS = pd.DataFrame(
    [("one", "best", 0.2, 0.1, 0.3), ("one", "worst", 0.4, np.nan, np.nan), ("two", "best", -0.3, -0.5, -0.1)],
    columns=["model", "question", "value", "low", "high"],
)


def chart(rows, **options):
    with plt.rc_context():
        figures.use_style()
        return figures.dot_chart(rows, "question", {"one": "red", "two": "blue"}, "tau", **options)


def dots(figure):
    """Value, line and marker of what was drawn as one point."""
    drawn = [(line.get_xdata(), line.get_ydata(), line.get_marker()) for line in figure.axes[0].lines]
    return {(x[0], round(y[0]), mark) for x, y, mark in drawn if len(x) == 1}


def test_each_row_stands_in_its_line_with_the_marker_of_its_level():
    figure = chart(ROWS)
    (axes,) = figure.axes
    bottom, top = axes.get_ylim()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["one", "two"] and bottom > top
    assert dots(figure) == {(0.2, 0, "o"), (0.4, 0, "s"), (-0.3, 1, "o")}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["best", "worst"]
    assert dots(chart(ROWS, order=["two"])) == {(-0.3, 0, "o")}
    plt.close("all")


def test_equal_figures_are_equal_files():
    with plt.rc_context():
        figures.use_style()
        files = io.BytesIO(), io.BytesIO()
        for file in files:
            chart(ROWS).savefig(file, format="svg", metadata={"Date": None})
    assert files[0].getvalue() == files[1].getvalue()


def test_every_ink_stands_out_on_white():
    for ink in (*figures.PALETTE, figures.INK, figures.FAINT, *figures.colours(load_panel("facct2025")).values()):
        assert 1.05 / (relative_luminance(ink) + 0.05) >= 3, ink


def test_each_number_of_a_heat_map_stands_out_from_its_cell():
    values = np.ma.masked_less(np.linspace(-2, 1, 13), -1.6)
    axes = sns.heatmap(values[None], mask=values[None].mask, cmap="RdBu", center=0, annot=True)
    figures.legible_numbers(axes)
    cells = axes.collections[0].get_facecolors()[2:]
    for number, cell in zip(axes.texts, cells, strict=True):
        low, high = sorted(map(relative_luminance, (number.get_color(), cell)))
        assert (high + 0.05) / (low + 0.05) > 3.9, number
    plt.close(axes.figure)
