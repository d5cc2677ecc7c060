"""Pages without what nobody sees on them: icons that are not shown, a search index where nothing is searched.

Drawings are fetched when the reader comes near them, and say their size beforehand, so that nothing moves then. And
with what is not seen but heard: a name for the arrows that open a part of the contents, and no list that, by the roles
of its entries, is none.

The theme ships all of Font Awesome in one script of 1.5 MB, again as rules of its style sheet and again as fonts, and
every page loads them and the index of the whole book. When the book is built, each icon that no page and no script
names is taken out, only the page that searches (to which the search field of every page leads) keeps the index, and
drawings lose what Matplotlib writes and nobody sees.
"""

import re
from pathlib import Path

import pydata_sphinx_theme
from fontTools import subset
from light_drawings import tightened
from sphinx.util import logging

_logger = logging.getLogger(__name__)
_SCRIPT = Path("_static/scripts/fontawesome.js")
_STYLES = Path("_static/styles/pydata-sphinx-theme.css")
_FONTS = Path("_static/vendor/fontawesome/webfonts")
#: Where the theme keeps them whole: what an earlier build left out may be used in this one.
_THEME = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
_SEARCH = re.compile(r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"></script>')
#: What screen readers stumble over, and what stands there instead.
_HEARD = {
    '<summary><span class="toctree-toggle"': '<summary aria-label="pages of this part"><span class="toctree-toggle"',
    '<div role="list" class="citation-list">': '<div class="citation-list">',
}
_USED = re.compile(r"\bfa-([a-z0-9-]+)")
#: name:[width, height, [aliases], "code", "drawing" or ["drawing", "drawing"]], and the comma after it
_ICON = re.compile(r'"?([\w-]+)"?:\[\d+,\d+,\[([^\]]*)\],"[0-9a-f]+",(?:"[^"]*"|\[[^\]]*\])\],?')
#: One rule for an icon's names: .fa-name:before,.fa-alias:before{content:"code"}
_RULE = re.compile(r'(?:\.fa-[\w-]+:before,?)+\{content:"[^"]*"\}')
#: A font as two files, of which one is needed; and its characters, by code or as they are.
_FONT = re.compile(r'url\(([^()]*)\.woff2\) format\("woff2"\),url\(\1\.ttf\) format\("truetype"\)')
_CODE = re.compile(r'"\\([0-9a-f]+)"')
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_DRAWING = re.compile(r'<img (?P<rest>[^>]*\bsrc="(?P<file>[^":]*_images/[^"]+\.svg)"[^>]*>)')
_SIZE = re.compile(r'<svg [^>]*?\bwidth="([0-9.]+)pt" height="([0-9.]+)pt"')  # as Matplotlib writes it


def lazily(text: str, page: Path) -> str:
    """A page's HTML with each drawing of the book to be fetched when it comes near; `page` is the page's file."""

    def marked(tag: re.Match[str]) -> str:
        size = _SIZE.search((page.parent / tag["file"]).read_text(encoding="utf-8"))
        room = 'width="{:.0f}" height="{:.0f}" '.format(*(float(pt) * 4 / 3 for pt in size.groups())) if size else ""
        return f'<img loading="lazy" {room}{tag["rest"]}'

    return _DRAWING.sub(marked, text)


def without_unused(text: str, used: set[str]) -> str:
    """Font Awesome's script, or the theme's styles, without each icon that is not `used` under its name or an alias."""

    def kept(icon: re.Match[str]) -> str:
        names = {icon[1], *re.findall(r'"([\w-]+)"', icon[2])}
        return icon[0] if names & used else ""

    return _RULE.sub(lambda rule: rule[0] if used & set(_USED.findall(rule[0])) else "", _ICON.sub(kept, text))


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


def lighten(app, error) -> None:
    """Rewrite the pages and the script of a finished HTML build."""
    output = Path(app.outdir)
    path = output / _SCRIPT
    if error is not None or app.builder.format != "html" or not path.exists():
        return
    used: set[str] = set()
    for page in output.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        used.update(_USED.findall(text))
        lighter = text if page.name == "search.html" else _SEARCH.sub("", text)
        if app.builder.name != "singlehtml":  # that page is for printing
            lighter = lazily(lighter, page)
        for written, instead in _HEARD.items():
            lighter = lighter.replace(written, instead)
        page.write_text(lighter, encoding="utf-8")
    for script in (output / "_static").rglob("*.js"):
        if script != path:
            used.update(_USED.findall(script.read_text(encoding="utf-8", errors="ignore")))
    for icons in (_SCRIPT, _STYLES):
        before = (_THEME / icons.relative_to("_static")).read_text(encoding="utf-8")
        after = _FONT.sub(r'url(\1.woff) format("woff")', without_unused(before, used))
        (output / icons).write_text(after, encoding="utf-8")
        _logger.info("%s: %d kB of %d kB kept", icons.name, len(after) // 1000, len(before) // 1000)
    sheets = "".join(sheet.read_text(encoding="utf-8") for sheet in (output / "_static").rglob("*.css"))
    codes = {int(code, 16) for code in _CODE.findall(sheets)} | {ord(sign) for sign in _PRIVATE.findall(sheets)}
    for font in (_THEME / _FONTS.relative_to("_static")).glob("*.ttf"):
        write_font(font, output / _FONTS / f"{font.stem}.woff", codes)
    for drawing in (output / "_images").glob("*.svg"):
        drawing.write_text(tightened(drawing.read_text(encoding="utf-8")), encoding="utf-8")


def setup(app) -> dict:
    """Rewrite after everything is written."""
    app.connect("build-finished", lighten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
