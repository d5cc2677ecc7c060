"""Pages without what they do not use: a second set of icons, a search index where nothing is searched.

Drawings are loaded when the reader comes near them, and give their size beforehand, so that nothing moves then. Of one
that has a narrow form beside it (``NAME-narrow.svg``), telephones load that. For
screen readers, the arrows that open a part of the contents get a name, and the list of citations loses a role that does
not fit its entries.

Every page of the theme loads the index of the whole book, and its icons twice: as fonts, and as a script of 1.5 MB that
draws them (a page may have as much). When the book is built, only the page that searches (to which the search field of
every page leads) keeps the index, the script is left out, and style sheets lose their comments and indents.
"""

import re
import shutil
from pathlib import Path

_SEARCH = re.compile(r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"></script>')
_ICONS = re.compile(r'\s*<script defer src="[^"]*/fontawesome\.js[^"]*"></script>')
#: What screen readers stumble over, and what stands there instead.
_HEARD = {
    '<summary><span class="toctree-toggle"': '<summary aria-label="pages of this part"><span class="toctree-toggle"',
    '<div role="list" class="citation-list">': '<div class="citation-list">',
}
_DRAWING = re.compile(r'<img (?P<rest>[^>]*\bsrc="(?P<file>[^":]*_images/[^"]+\.svg)"[^>]*>)')
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SIZE = re.compile(r'<svg [^>]*?\bwidth="([0-9.]+)pt" height="([0-9.]+)pt"')  # as Matplotlib writes it


def _narrow(drawing: str) -> str:
    """The name of a drawing's narrow form."""
    return drawing.removesuffix(".svg") + "-narrow.svg"


def lazily(text: str, page: Path) -> str:
    """A page's HTML in which browsers load each drawing only when it comes near; `page` is the page's file."""

    def marked(tag: re.Match[str]) -> str:
        size = _SIZE.search((page.parent / tag["file"]).read_text(encoding="utf-8"))
        room = ""
        if size:
            width, height = (float(points) * 4 / 3 for points in size.groups())  # pixels
            room = f'width="{width:.0f}" height="{height:.0f}" '
        image = f'<img loading="lazy" {room}{tag["rest"]}'
        narrow = _narrow(tag["file"])
        if not (page.parent / narrow).exists():
            return image
        return f'<picture><source media="(max-width: 600px)" srcset="{narrow}">{image}</picture>'

    return _DRAWING.sub(marked, text)


def lighten(app, error) -> None:
    """Rewrite the pages and style sheets of a finished HTML build."""
    if error is not None or app.builder.format != "html":
        return
    output = Path(app.outdir)
    for source, (_, name) in app.env.images.items():
        narrow = Path(app.srcdir, _narrow(source))
        if narrow.exists():
            shutil.copyfile(narrow, output / "_images" / _narrow(name))
    for page in output.rglob("*.html"):
        lighter = _ICONS.sub("", page.read_text(encoding="utf-8"))
        if page.name != "search.html":
            lighter = _SEARCH.sub("", lighter)
        if app.builder.name != "singlehtml":  # that page is for printing
            lighter = lazily(lighter, page)
        for written, instead in _HEARD.items():
            lighter = lighter.replace(written, instead)
        page.write_text(lighter, encoding="utf-8")
    for style in (output / "_static").rglob("*.css"):
        style.write_text(" ".join(_COMMENT.sub("", style.read_text(encoding="utf-8")).split()), encoding="utf-8")


def setup(app) -> dict:
    """Rewrite after everything is written."""
    app.connect("build-finished", lighten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
