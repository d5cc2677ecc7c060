"""The figures of the chapters: each function draws on a matplotlib axes that it is given, and returns it."""

from rmnb.book.figures.beside import beside, key_of_beside
from rmnb.book.figures.rankings import HEXAGONS, joint_density
from rmnb.book.figures.results import dot_chart, estimates
from rmnb.book.figures.style import (
    FAINT,
    INK,
    PALETTE,
    WIDTH,
    colours,
    key_of_looks,
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
    "colours",
    "dot_chart",
    "estimates",
    "joint_density",
    "key_of_beside",
    "key_of_looks",
    "markers",
    "two_columns",
    "use_style",
]
