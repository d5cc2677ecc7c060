"""The figures of the chapters: each function draws on a matplotlib axes that it is given, and returns it."""

from rmnb.book.figures.beside import beside, key_of_beside
from rmnb.book.figures.rankings import HEXAGONS, by_kind, gaps_by_axis, heat_map, joint_density, violins
from rmnb.book.figures.results import (
    courses,
    dot_chart,
    estimates,
    partial_residuals,
    specification_curve,
    specification_curves,
)
from rmnb.book.figures.style import (
    FAINT,
    INK,
    PALETTE,
    WIDTH,
    colours,
    key_of_looks,
    looks,
    markers,
    two_columns,
    use_style,
)

__all__ = [
    "FAINT",
    "HEXAGONS",
    "INK",
    "PALETTE",
    "WIDTH",
    "beside",
    "by_kind",
    "colours",
    "courses",
    "dot_chart",
    "estimates",
    "gaps_by_axis",
    "heat_map",
    "joint_density",
    "key_of_beside",
    "key_of_looks",
    "looks",
    "markers",
    "partial_residuals",
    "specification_curve",
    "specification_curves",
    "two_columns",
    "use_style",
    "violins",
]
