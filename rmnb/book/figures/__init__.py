"""The figures of the chapters: each function draws on a matplotlib axes that it is given, and returns it."""

from rmnb.book.figures.beside import beside, key_of_beside
from rmnb.book.figures.rankings import by_kind, heat_map, joint_density, violins
from rmnb.book.figures.results import courses, estimates, specification_curve
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
    "INK",
    "PALETTE",
    "WIDTH",
    "beside",
    "by_kind",
    "colours",
    "courses",
    "estimates",
    "heat_map",
    "joint_density",
    "key_of_beside",
    "key_of_looks",
    "looks",
    "markers",
    "specification_curve",
    "two_columns",
    "use_style",
    "violins",
]
