"""An executed notebook as one HTML file: without code, scripts or anything that would have to be fetched."""

import html
from collections.abc import Iterable
from pathlib import Path

import jinja2
import nbformat
from bs4 import BeautifulSoup
from markupsafe import Markup
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import markdown2html_mistune
from nbconvert.filters.strings import text_base64
from nbformat import NotebookNode
from nbformat.v4 import new_notebook
from traitlets.config import Config

from rmnb.files import atomic_path

_TEMPLATE = Path(__file__).with_name("standalone.html")
_IMAGE = "image/svg+xml"  # what notebooks draw
_SHOWN = ["text/html", "text/markdown", "text/latex", "text/plain"]
_LOADS = ["script", "link", "iframe", "object", "embed", "base", "meta"]


def _figure(data: NotebookNode, metadata: NotebookNode) -> str:
    """HTML of an image with the alternative text, caption and name that the book, too, takes from the cell."""
    options = metadata.get("mystnb", {})
    figure = options.get("figure", {})
    caption = figure.get("caption", "")
    alt = options.get("image", {}).get("alt") or caption or "Figure"
    name = f' id="{html.escape(figure["name"])}"' if "name" in figure else ""
    below = f"<figcaption>{markdown2html_mistune(caption)}</figcaption>" if caption else ""
    # tabindex: a keyboard, too, can scroll what is wider than the screen.
    image = f'<img src="data:{_IMAGE};base64,{text_base64(data[_IMAGE]).strip()}" alt="{html.escape(alt)}">'
    return f'<figure{name}><div class="drawing" tabindex="0">{image}</div>{below}</figure>'


def _prepare(cell: NotebookNode) -> None:
    """Drop what a code cell wrote to standard error, and make figures of its images."""
    cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    for output in cell.outputs:
        if _IMAGE in output.get("data", {}):
            output.data["text/html"] = _figure(output.data, cell.metadata)


def _html(cells: Iterable[NotebookNode]) -> BeautifulSoup:
    """The cells as nbconvert renders them, without what could run or fetch, and every table in a box that scrolls."""
    exporter = HTMLExporter(
        template_name="basic",
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
        config=Config({"NbConvertBase": {"display_data_priority": _SHOWN}}),
    )
    rendered, _ = exporter.from_notebook_node(new_notebook(cells=list(cells)))
    parsed = BeautifulSoup(rendered, "html.parser")
    for element in parsed(_LOADS):
        element.decompose()
    for head in parsed("th"):
        if not head.get_text(strip=True):
            head.name = "td"  # an empty head would be read out as one
    for table in parsed("table"):
        if not table.find_parent(class_="table-scroll"):
            table.wrap(parsed.new_tag("div", attrs={"class": "table-scroll", "tabindex": "0"}))
    return parsed


def _contents(body: BeautifulSoup) -> list[tuple[str, str]]:
    """Anchor and text of every heading of the second level, which gets that anchor as its id."""
    contents = []
    for number, heading in enumerate(body("h2"), start=1):
        heading["id"] = f"section-{number}"
        contents.append((heading["id"], heading.get_text().strip()))
    return contents


def write_page(notebook: Path, page: Path, title: str) -> None:
    """Write an executed notebook as one HTML file that fetches nothing and can be read without a network.

    Code is left out; so are cells tagged ``remove-cell`` and what goes to standard error. Images (SVG) get alternative
    text, caption and name from the cell's metadata, under ``mystnb``, as in the book. What cells tagged ``footer`` show
    stands at the foot. HTML that cells show is trusted: use what `rmnb.book.display` returns. The page forbids browsers
    to run scripts and to fetch anything.

    Parameters
    ----------
    notebook
        As `rmnb.book.notebook.run_notebook` writes it.
    page
        The file to write. It is written whole or not at all.
    title
        Plain text: the page's title and first heading, in the place of the notebook's own.

    Raises
    ------
    InputError
        The page cannot be written.
    """
    cells = [cell for cell in nbformat.read(notebook, 4).cells if "remove-cell" not in cell.metadata.get("tags", [])]
    for cell in cells:
        if cell.cell_type == "code":
            _prepare(cell)
    cells = [cell for cell in cells if cell.cell_type == "markdown" or cell.get("outputs")]
    last = [cell for cell in cells if "footer" in cell.metadata.get("tags", [])]
    body = _html(cell for cell in cells if cell not in last)
    if body.h1:
        body.h1.decompose()
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
        _TEMPLATE.read_text(encoding="utf-8")
    )
    footer = str(_html(last)).strip()
    parts = {"title": title, "contents": _contents(body), "body": Markup(body), "footer": Markup(footer)}
    with atomic_path(page) as temporary:
        temporary.write_text(template.render(parts), encoding="utf-8")
