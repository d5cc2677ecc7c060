"""Figures of the built book: as wide as the column, their text and their ink legible, in both themes."""

import io
import re

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from PIL import Image
from seaborn.utils import relative_luminance

from book import BOOK

PAGES = [page for page in sorted((BOOK / "book" / "_executed").glob("*.html")) if "_images/" in page.read_text("utf-8")]
_DRAWING = re.compile(r'src="[./]*(_images/[0-9a-f]{64}\.svg)"')
_LINE = re.compile(r'style="fill: ?none;[^"]*?stroke: ?(#[0-9a-f]{6})([^"]*)"')
_GLYPHS = re.compile(r'<g style="fill: ?(#[0-9a-f]{6})([^"]*)" transform="translate')
_MARKER = re.compile(r'<use [^>]*style="fill: ?(#[0-9a-f]{6})([^"]*)"')
_TEXT_SIZE = re.compile(r"scale\((0\.\d+) -\1\)")
_FILTER = re.compile(r"filter: invert\(1\) brightness\((0\.\d+)\) hue-rotate\(180deg\); mix-blend-mode: screen")
_HALF_TURN = np.array([[-0.574, 1.430, 0.144], [0.426, 0.430, 0.144], [0.426, 1.430, -0.856]])  # hue-rotate(180deg)
WHITE = "#ffffff"
_BEHIND = """image => {
    for (let element = image.parentElement; element; element = element.parentElement) {
        const colour = getComputedStyle(element).backgroundColor.match(/[\\d.]+/g).map(Number);
        if ((colour[3] ?? 1) === 1) return colour;
    }
}"""
DENSITY = 0.4  # what is less opaque is a band or a cloud of points, whose edge or heap is what is seen


def on_white(ink: str, opacity: float) -> np.ndarray:
    return opacity * np.array(to_rgb(ink)) + 1 - opacity


def in_the_dark(colour: np.ndarray, ground: np.ndarray) -> np.ndarray:
    """What the style sheet makes of a colour of a drawing on a dark ground."""
    brightness = float(_FILTER.search((BOOK / "_static" / "book.css").read_text(encoding="utf-8"))[1])
    turned = np.clip(_HALF_TURN @ (brightness * (1 - colour)), 0, 1)
    return 1 - (1 - turned) * (1 - ground)


def contrast(colour: np.ndarray, ground: np.ndarray) -> float:
    dark, light = sorted(map(relative_luminance, (colour, ground)))
    return (light + 0.05) / (dark + 0.05)


def inks(text: str) -> set[tuple[str, float]]:
    """Colours of lines, markers and letters, less white, which is drawn on other inks; with their opacity."""
    found = set()
    for pattern in (_LINE, _GLYPHS, _MARKER):
        for ink, rest in pattern.findall(text):
            opacity = re.search(r"(?:^|[ ;])(?:stroke-|fill-)?opacity: ?([0-9.]+)", rest)
            found.add((ink, float(opacity[1]) if opacity else 1.0))
    return {(ink, opacity) for ink, opacity in found if ink != WHITE and opacity >= DENSITY}


@pytest.mark.parametrize("chapter", PAGES, ids=lambda chapter: chapter.stem)
def test_figures_fill_the_column_and_can_be_read(chapter, site, page):
    page.goto(f"{site}/book/_executed/{chapter.name}")
    page.evaluate("() => document.querySelectorAll('details').forEach(answer => { answer.open = true })")
    images = page.locator('.cell_output img[src$=".svg"]')
    shares = images.evaluate_all(
        "all => all.map(img => img.width / img.closest('.cell_output').getBoundingClientRect().width)"
    )
    assert not [share for share in shares if not 0.95 <= share <= 1.0]
    page.evaluate("() => { document.documentElement.dataset.theme = 'dark' }")
    images.first.scroll_into_view_if_needed()
    images.first.evaluate("image => image.decode()")
    page.wait_for_timeout(300)
    corner = Image.open(io.BytesIO(images.first.screenshot())).convert("RGB").getpixel((8, 8))
    ground = images.first.evaluate(_BEHIND)
    assert max(ground) < 80 and corner == tuple(ground)
    black = np.array(ground) / 255
    for name in set(_DRAWING.findall(chapter.read_text(encoding="utf-8"))):
        text = (BOOK / name).read_text(encoding="utf-8")
        sizes = [float(scale) * 100 * 4 / 3 for scale in _TEXT_SIZE.findall(text)]
        assert min(sizes, default=11) >= 11, f"{name}: letters of {min(sizes):.1f} px"
        for ink, opacity in inks(text):
            colour = on_white(ink, opacity)
            assert contrast(colour, np.ones(3)) >= 3, f"{name}: {ink}, {opacity}"
            assert contrast(in_the_dark(colour, black), black) >= 3, f"{name}: {ink} in the dark, {opacity}"
