"""Where the built book is."""

from pathlib import Path

BOOK = Path(__file__).parents[2] / "_build" / "html"
