"""Figures of results rows: what is drawn is what the rows say, in a place where the reader looks for it."""

import io

import matplotlib
import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from rmnb.book import figures
from rmnb.panels import load_panel

matplotlib.use("Agg")
NAN = float("nan")
ROWS = pd.DataFrame(
    [("one", "best", 0.2, 0.1, 0.3), ("one", "worst", 0.4, NAN, NAN), ("$two$", "best", -0.3, -0.5, -0.1)],
    columns=["model", "prompt", "value", "ci_low", "ci_high"],
)


@pytest.fixture
def axes():
    fig, axes = plt.subplots()
    yield axes
    plt.close(fig)


def dots(axes):
    """Value, height and marker of what was drawn as one point."""
    drawn = [(line.get_xdata(), line.get_ydata(), line.get_marker()) for line in axes.lines]
    return [(x[0], float(y[0]), mark) for x, y, mark in drawn if len(x) == 1]


def test_each_row_stands_in_its_line_with_the_marker_of_its_level(axes):
    figures.estimates(axes, ROWS, mark="prompt", colour={"one": "red"}, meaning="tau")
    labels = [label.get_text() for label in axes.get_yticklabels()]
    bottom, top = axes.get_ylim()
    assert labels == ["one", r"\$two\$"] and bottom > top  # the first on top, and no dollar begins a formula
    drawn = {(value, round(height), mark) for value, height, mark in dots(axes)}
    assert drawn == {(0.2, 0, "o"), (0.4, 0, "s"), (-0.3, 1, "o")}
    assert axes.get_legend_handles_labels()[1] == ["best", "worst"]


def test_rows_of_a_line_do_not_cover_each_other_and_those_out_of_order_are_left_out(axes):
    figures.estimates(axes, ROWS, order=["one"])
    (low, lower, _), (high, upper, _) = dots(axes)
    assert (low, high) == (0.2, 0.4) and lower > upper  # the higher value stands higher


def test_nothing_to_draw_is_no_error(axes):
    figures.estimates(axes, ROWS.iloc[:0], mark="prompt", order=["one"])
    figures.estimates(axes, ROWS.iloc[:0])


def test_equal_figures_are_equal_files():
    def drawn():
        with plt.rc_context():
            figures.use_style()
            fig, axes = plt.subplots()
            figures.estimates(axes, ROWS)
            content = io.BytesIO()
            fig.savefig(content, format="svg", metadata={"Date": None})
            plt.close(fig)
            return content.getvalue()

    assert drawn() == drawn()


def test_every_ink_stands_out_on_white():
    for ink in (*figures.PALETTE, figures.INK, figures.FAINT, *figures.colours(load_panel("facct2025")).values()):
        linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in to_rgb(ink)]
        luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        assert 1.05 / (luminance + 0.05) >= 3, ink


def test_a_chart_has_a_pane_for_each_level_and_one_key():
    fig = figures.dot_chart(ROWS.assign(source=["panel", "panel", "$new$"]), mark="prompt", col="source", meaning="tau")
    assert [axes.get_title(loc="left") or axes.get_title() for axes in fig.axes] == ["this panel", r"\$new\$"]
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["best", "worst"]
    assert [len(dots(axes)) for axes in fig.axes] == [2, 1]
    plt.close(fig)
    plt.close(figures.dot_chart(ROWS.iloc[:0], mark="prompt", col="model"))
