"""What the token explorer needs beside its own scripts: its data, and two libraries from the wheels that carry them."""

import gzip
import json
import shutil
from importlib import resources
from pathlib import Path

from bokeh.embed import json_item
from bokeh.models import BoxZoomTool, ColumnDataSource, HoverTool, PanTool, Range1d, ResetTool, TapTool, WheelZoomTool
from bokeh.plotting import figure
from sphinx.util import logging

_logger = logging.getLogger(__name__)
_DATA = Path("book/_executed/explorer")
_LIBRARIES = {
    "datatables.bin": ("itables", "html/dt_bundle.js"),
    "bokeh.bin": ("bokeh", "server/static/js/bokeh.min.js"),
}


def scatter() -> dict:
    """The plot of rewards under two questions, without points: the page puts them in."""
    hover = HoverTool(tooltips=[("token", "@token"), ("across", "@x"), ("up", "@y")])
    zoom = BoxZoomTool()
    plot = figure(
        height=430,
        sizing_mode="stretch_width",
        x_range=Range1d(0, 1, name="x range"),
        y_range=Range1d(0, 1, name="y range"),
        tools=[zoom, PanTool(), WheelZoomTool(), TapTool(), ResetTool(), hover],
        active_drag=zoom,
        active_scroll=None,  # the page goes on scrolling when the pointer is over the plot
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
    )
    plot.toolbar.logo = None
    plot.xaxis.name, plot.yaxis.name = "x axis", "y axis"
    looks = {
        "all": {"size": 4, "color": "#0072B2", "alpha": 0.35, "line_color": None},
        "found": {"size": 7, "color": "#E69F00", "line_color": "#222222", "line_width": 0.5},
        "chosen": {"size": 16, "fill_color": None, "line_color": "#D55E00", "line_width": 3},
    }
    for name, look in looks.items():
        source = ColumnDataSource({"x": [], "y": [], "token": [], "row": []}, name=name)
        plot.scatter("x", "y", source=source, nonselection_alpha=look.get("alpha", 1.0), **look)
    return json_item(plot)


def add(app, error) -> None:
    """Put data, libraries and plot beside the explorer's scripts, once the pages are written."""
    if error or app.builder.format != "html":
        return
    directory = Path(app.outdir) / "_static" / "explorer"
    data = Path(app.srcdir) / _DATA
    if not (data / "manifest.json").exists():
        _logger.warning("no data for the token explorer: run `rmnb book explorer %s`", data)
        return
    shutil.rmtree(directory / "data", ignore_errors=True)
    shutil.copytree(data, directory / "data")
    for name, (package, path) in _LIBRARIES.items():
        script = resources.files(package).joinpath(path).read_bytes()
        (directory / name).write_bytes(gzip.compress(script, mtime=0))  # book/static/explorer/data.js unpacks it
    (directory / "scatter.json").write_text(json.dumps(scatter()), encoding="utf-8")


def setup(app) -> dict:
    app.connect("build-finished", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
