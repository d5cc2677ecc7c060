"""Figures of the built book: as wide as the column, their text and their ink legible, in both themes."""

import re
from pathlib import Path

import pytest

from book import BOOK

PAGES = [page for page in sorted((BOOK / "book" / "_executed").glob("*.html")) if "_images/" in page.read_text("utf-8")]
_DRAWING = re.compile(r'src="[./]*(_images/[0-9a-f]{64}\.svg)"')
_LINE = re.compile(r'style="fill: ?none;[^"]*?stroke: ?(#[0-9a-f]{6})([^"]*)"')
_GLYPHS = re.compile(r'<g style="fill: ?(#[0-9a-f]{6})([^"]*)" transform="translate')
_MARKER = re.compile(r'<use [^>]*style="fill: ?(#[0-9a-f]{6})([^"]*)"')
_TEXT_SIZE = re.compile(r"scale\((0\.\d+) -\1\)")
WHITE = "#ffffff"
DENSITY = 0.4  # what is less opaque is a band or a cloud of points, whose edge or heap is what is seen


def luminance(colour: tuple[float, ...]) -> float:
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(ink: str, opacity: float, brightness: float) -> float:
    """Of an ink on the figure's white ground, both dimmed by the theme's filter."""
    over = [opacity * int(ink[at : at + 2], 16) / 255 + 1 - opacity for at in (1, 3, 5)]
    light, dark = luminance((brightness,) * 3), luminance(tuple(brightness * value for value in over))
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
    looks = images.evaluate_all("all => all.map(img => getComputedStyle(img)).map(a => a.backgroundColor + a.filter)")
    assert set(looks) <= {"rgb(255, 255, 255)brightness(0.9)"}
    for drawing in drawings(page):
        text = drawing.read_text(encoding="utf-8")
        small = min((float(scale) * 100 * 4 / 3 for scale in _TEXT_SIZE.findall(text)), default=11.0)
        faint = [(ink, a) for ink, a in inks(drawing) if min(contrast(ink, a, 1), contrast(ink, a, 0.9)) < 3]
        assert small >= 11, f"{drawing.name}: letters of {small:.1f} px"
        assert not faint, f"{drawing.name}: {faint}"
