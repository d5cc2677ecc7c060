"""Figures of the built book: as wide as the column, their text and their ink legible, in both themes."""

import io
import re
from pathlib import Path

import pytest
from PIL import Image

from book import BOOK

PAGES = [page for page in sorted((BOOK / "book" / "_executed").glob("*.html")) if "_images/" in page.read_text("utf-8")]
_DRAWING = re.compile(r'src="[./]*(_images/[0-9a-f]{64}\.svg)"')
_LINE = re.compile(r'style="fill: ?none;[^"]*?stroke: ?(#[0-9a-f]{6})([^"]*)"')
_GLYPHS = re.compile(r'<g style="fill: ?(#[0-9a-f]{6})([^"]*)" transform="translate')
_MARKER = re.compile(r'<use [^>]*style="fill: ?(#[0-9a-f]{6})([^"]*)"')
_TEXT_SIZE = re.compile(r"scale\((0\.\d+) -\1\)")
_DARK = re.compile(r'\[style\*="[a-z]+: ?(#[0-9a-f]{6})"\]\{[a-z]+:(#[0-9a-f]{6})!important\}')
WHITE, BLACK = "#ffffff", "#14181e"  # the grounds of the two themes
DENSITY = 0.4  # what is less opaque is a band or a cloud of points, whose edge or heap is what is seen


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))


def luminance(colour: list[float]) -> float:
    shares = [value / 255 for value in colour]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(ink: str, opacity: float, ground: str) -> float:
    below = rgb(ground)
    over = [opacity * value + (1 - opacity) * under for value, under in zip(rgb(ink), below, strict=True)]
    dark, light = sorted((luminance(over), luminance(below)))
    return (light + 0.05) / (dark + 0.05)


def inks(drawing: Path) -> set[tuple[str, float]]:
    """Colours of lines, markers and letters, less white, which is drawn on other inks; with their opacity."""
    text = drawing.read_text(encoding="utf-8")
    found = [match for pattern in (_LINE, _GLYPHS, _MARKER) for match in pattern.findall(text)]
    seen = [re.search(r"(?:^|[ ;])(?:stroke-|fill-)?opacity: ?([0-9.]+)", rest) for _, rest in found]
    opaque = {(ink, float(part[1]) if part else 1.0) for (ink, _), part in zip(found, seen, strict=True)}
    return {(ink, opacity) for ink, opacity in opaque if ink != WHITE and opacity >= DENSITY}


def drawings(page: Path) -> list[Path]:
    return [BOOK / name for name in dict.fromkeys(_DRAWING.findall(page.read_text(encoding="utf-8")))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_figures_fill_the_column_and_can_be_read(page, site, watched):
    browser = watched.page
    browser.goto(f"{site}/book/_executed/{page.name}")
    images = browser.locator('.cell_output img[src$=".svg"]')
    shares = images.evaluate_all(
        "all => all.map(img => img.width / img.closest('.cell_output').getBoundingClientRect().width)"
    )
    assert not [share for share in shares if not 0.95 <= share <= 1.0]
    browser.evaluate("() => { document.documentElement.dataset.theme = 'dark' }")
    browser.wait_for_timeout(300)
    corner = Image.open(io.BytesIO(images.first.screenshot())).convert("RGB").getpixel((8, 8))
    assert corner == rgb(BLACK)
    for drawing in drawings(page):
        text = drawing.read_text(encoding="utf-8")
        small = min((float(scale) * 100 * 4 / 3 for scale in _TEXT_SIZE.findall(text)), default=11.0)
        assert small >= 11, f"{drawing.name}: letters of {small:.1f} px"
        in_the_dark = dict(_DARK.findall(text))
        themes = [(ink, in_the_dark[ink], opacity) for ink, opacity in inks(drawing)]
        faint = [(ink, a) for ink, _, a in themes if contrast(ink, a, WHITE) < 3]
        faint += [(dark, a) for _, dark, a in themes if contrast(dark, a, BLACK) < 3]
        assert not faint, f"{drawing.name}: {faint}"
