"""A page from a notebook reads without a network, runs nothing, and a reader finds every part of it."""

import json
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_markdown_cell
from notebook_files import code, write_notebook

from rmnb.book.notebook import run_notebook
from rmnb.book.standalone import write_page
from rmnb.report import comparison, record
from rmnb.visible import visible

TOKENS = ["<script>alert(1)</script>", '"><img src=https://x.example/a.png>', " love", "\u202eevil"]
ALT = 'One dot for each "model" & its interval.'


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> BeautifulSoup:
    """The page of a small notebook that was run; its title is as hostile as its tokens."""
    figure = {"image": {"alt": ALT}, "figure": {"caption": "What it *prefers*.", "name": "fig-own"}}
    cells = [
        new_markdown_cell("# Of any model\n\nWhat it [values](https://example.org/values)."),
        code('name = "demo"', "parameters"),
        code(
            "import sys\nimport pandas as pd\nfrom rmnb import book\nfrom rmnb.book import figures\n"
            "import matplotlib.pyplot as plt\nfigures.use_style()\nprint('warned', file=sys.stderr)",
            "remove-stderr",
        ),
        code('book.show("<p>Its best token is ten times the worst.</p>")'),
        new_markdown_cell("## Tokens\n\n## Tokens"),
        code(f'book.table(pd.DataFrame({{"token": {TOKENS!r}, "z": 1.5}}), tokens=["token"])'),
        code('pd.DataFrame({"plain": [1]})'),
        code("fig, axes = plt.subplots(figsize=(figures.WIDTH, 2))\naxes.plot([1, 2], [1, 2]);", mystnb=figure),
        code("from tqdm.auto import tqdm\nfor _ in tqdm(range(2)):\n    pass", "remove-stderr"),
        code('from IPython.display import HTML\nHTML("<script src=https://x.example/a.js></script>kept")'),
        code("'never shown'", "remove-cell"),
        code('book.show(f"made of {name}")', "footer"),
    ]
    directory = tmp_path_factory.mktemp("page")
    source = write_notebook(directory / "source.ipynb", *cells)
    executed = run_notebook(source, directory / "executed.ipynb", {"name": "mine"})
    write_page(executed, directory / "page.html", title="a </title><script>b</script>")
    return BeautifulSoup((directory / "page.html").read_text("utf-8"), "html.parser")


def test_nothing_is_fetched_and_nothing_runs(page):
    loads = [element[name] for name in ("src", "href", "data", "srcset") for element in page(attrs={name: True})]
    assert [address for address in loads if not address.startswith(("#", "data:"))] == ["https://example.org/values"]
    assert not page(["script", "iframe", "object", "embed"]) and not re.search(r"@import|url\(", str(page))
    assert not [name for element in page(True) for name in element.attrs if name.startswith("on")]
    assert "default-src 'none'" in page.find("meta", attrs={"http-equiv": "Content-Security-Policy"})["content"]
    assert page.title.text == page.h1.text == "a </title><script>b</script>"
    assert [token.text for token in page("code", class_="token")] == list(map(visible, TOKENS))


def test_results_are_shown_and_code_is_not(page):
    text = page.get_text()
    absent = ["import", "warned", "never shown", "it/s", "HBox", "Of any model", "In [", "Out["]
    assert not [word for word in absent if word in text]
    assert "Its best token is ten times the worst." in text and "kept" in text and "What it values." in text
    assert page.footer.text.strip() == "made of mine" and "made of" not in page.main.text
    image = page.img
    assert image["src"].startswith("data:image/svg+xml;base64,") and image["alt"] == ALT
    assert image.find_parent("figure")["id"] == "fig-own"
    assert image.find_parent("figure").figcaption.em.text == "prefers"
    assert all(table.find_parent(class_="table-scroll").get("tabindex") == "0" for table in page("table"))


def test_the_contents_lead_to_every_section(page):
    links = [link["href"].removeprefix("#") for link in page.nav("a")]
    assert [page.find(id=anchor).text for anchor in links] == ["Tokens", "Tokens"]
    ids = [element["id"] for element in page(id=True)]
    assert len(ids) == len(set(ids)) and page.html["lang"] == "en"
    assert [heading.name for heading in page(re.compile("^h[1-6]$"))] == ["h1", "h2", "h2"]


def test_a_comparison_shows_names_and_words_of_models_as_text(tmp_path):
    """Names of models and words come from strangers' files: nothing of them may act on the page."""
    hostile = TOKENS[0]
    side = {"model": hostile, "provenance": {"model": hostile, "source": TOKENS[1]}}
    number = dict.fromkeys(["a", "b", "change", "low", "high"], 0.5) | {"part": "p", "label": hostile, "seeds": None}
    moved = [{"question": "worst", "word": word, "a": 0.0, "b": 1.0, "change": 1.0} for word in TOKENS]
    said = [{"nats": 0, "word": word, "probability": 0.1, "reward": 1.0, "answers": 2.0} for word in TOKENS]
    said = [row | {"language_model": hostile} for row in said]
    limits = [{"limit": hostile, "question": "", "other": "", "broken": True, "value": 0.5, "bound": 0.1}]
    content = {"a": side, "b": side, "read_differently": ["label"], "numbers": [number], "moved": moved}
    content |= {"policies": [said, None], "limits": limits}
    (tmp_path / "compare.json").write_text(json.dumps(content))
    notebook = Path(record.__file__).with_name("compare.ipynb")
    executed = run_notebook(notebook, tmp_path / "compare.ipynb", {"directory": str(tmp_path)})
    write_page(executed, tmp_path / "compare.html", f"{hostile} and {hostile}")
    page = BeautifulSoup((tmp_path / "compare.html").read_text("utf-8"), "html.parser")
    assert not page(["script", "img", "iframe"]) and not [
        name for e in page(True) for name in e.attrs if name[:2] == "on"
    ]
    assert [token.text for token in page("code", class_="token")] == 2 * list(map(visible, TOKENS))
    headings = [heading.text for heading in page("h2")]
    assert headings[0] == "Limits" and f"if it were trained on {hostile}" in headings[3]
    assert [link.text for link in page.nav("a")] == headings
    assert page.text.count(hostile) >= 6 and "not read alike (label differ)" in page.text
    assert comparison.SEEDS_UNKNOWN.capitalize() in page.text and page.h2.find_next("td", string="broken")
