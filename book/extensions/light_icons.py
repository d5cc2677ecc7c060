"""The theme's icons, without those that no page shows.

The theme ships all of Font Awesome three times: as a script of 1.5 MB that draws icons, as rules of its style sheet,
and as fonts. Each is read where the theme keeps it whole: what an earlier build left out may be used in this one.
"""

import re
from pathlib import Path

import pydata_sphinx_theme
from fontTools import subset
from sphinx.util import logging

_logger = logging.getLogger(__name__)
_THEME = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
#: In the folder of static files.
SCRIPT = Path("scripts/fontawesome.js")
STYLES = Path("styles/pydata-sphinx-theme.css")
FONTS = Path("vendor/fontawesome/webfonts")
_USED = re.compile(r"\bfa-([a-z0-9-]+)")
#: name:[width, height, [aliases], "code", "drawing" or ["drawing", "drawing"]], and the comma after it
_ICON = re.compile(r'"?([\w-]+)"?:\[\d+,\d+,\[([^\]]*)\],"[0-9a-f]+",(?:"[^"]*"|\[[^\]]*\])\],?')
#: One rule for an icon's names: .fa-name:before,.fa-alias:before{content:"code"}
_RULE = re.compile(r'(?:\.fa-[\w-]+:before,?)+\{content:"[^"]*"\}')
#: A font as two files, of which one is needed.
_FONT = re.compile(r'url\(([^()]*)\.woff2\) format\("woff2"\),url\(\1\.ttf\) format\("truetype"\)')
#: A character of a font in a style sheet: by its code, or as it is.
_CODE, _CHARACTER = re.compile(r'"\\([0-9a-f]+)"'), re.compile("[\ue000-\uf8ff]")


def named(text: str) -> set[str]:
    """The icons that a page or a script names."""
    return set(_USED.findall(text))


def without_unused(text: str, used: set[str]) -> str:
    """Font Awesome's script, or the theme's styles, without each icon that is not `used` under its name or an alias."""

    def kept(icon: re.Match[str]) -> str:
        names = {icon[1], *re.findall(r'"([\w-]+)"', icon[2])}
        return icon[0] if names & used else ""

    return _RULE.sub(lambda rule: rule[0] if used & named(rule[0]) else "", _ICON.sub(kept, text))


def write_font(font: Path, path: Path, codes: set[int]) -> None:
    """Write those characters of a TrueType font that have these codes as WOFF, in place of its files at `path`."""
    options = subset.Options(flavor="woff", notdef_outline=True)
    whole = subset.load_font(font, options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=codes)
    subsetter.subset(whole)
    subset.save_font(whole, path, options)
    for suffix in (".ttf", ".woff2"):
        path.with_suffix(suffix).unlink(missing_ok=True)


def lighten(static: Path, used: set[str]) -> None:
    """Write script, styles and fonts of a built book with the `used` icons alone; `static` is its static folder."""
    for file in (SCRIPT, STYLES):
        before = (_THEME / file).read_text(encoding="utf-8")
        after = _FONT.sub(r'url(\1.woff) format("woff")', without_unused(before, used))
        (static / file).write_text(after, encoding="utf-8")
        _logger.info("%s: %d kB of %d kB kept", file.name, len(after) // 1000, len(before) // 1000)
    sheets = "".join(sheet.read_text(encoding="utf-8") for sheet in static.rglob("*.css"))
    codes = {int(code, 16) for code in _CODE.findall(sheets)} | set(map(ord, _CHARACTER.findall(sheets)))
    for font in (_THEME / FONTS).glob("*.ttf"):
        write_font(font, static / FONTS / f"{font.stem}.woff", codes)
