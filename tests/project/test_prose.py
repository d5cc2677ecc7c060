"""Pages: no result is typed by hand, every public module has its entry, what a published book needs is there."""

import csv
import re
from pathlib import Path
from types import SimpleNamespace

import light_drawings
import light_icons
import light_pages
import pandas as pd
import prose_numbers
import public_names
import publishing
import pytest
import table_heads
import yaml
from docutils import nodes
from fontTools.ttLib import TTFont

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "book").rglob("*.md") if "_executed" not in path.parts)
_CODE = ("bash", "python", "yaml", "text", "{csv-table}", "{include}", "{eval-rst}", "{bibliography}")
_NOT_PROSE = (
    re.compile(r"</?[a-z][^<>]*>", re.DOTALL),  # elements of HTML with their attributes
    re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL),  # formulas
    re.compile(r"\{[\w:]+\}`[^`]*`|`[^`]*`"),  # roles and code
    re.compile(r"https?://\S+|\]\([^)]*\)"),  # addresses
    re.compile(r"^:{1,2}[\w-]+:.*$", re.MULTILINE),  # options of a directive
    re.compile(r"^\*\*\d+\.\*\*", re.MULTILINE),  # questions are numbered
)
# A numeral of two digits or more, or with decimals, thousands or a percent sign; not in a name such as SmolLM2-135M.
_NUMERAL = re.compile(r"(?<![\w.,#-])[-−]?(?:\d+(?:[.,]\d+)+|\d{2,}|\d(?=\s?%))(?:\s?%)?(?![\w])")
_YEAR = re.compile(r"(19|20)\d\d")


def prose(text: str) -> str:
    """What a reader reads as sentences: no code, formulas, roles, options of directives, addresses."""
    kept, fence = [], None
    for line in text.splitlines():
        opened = re.match(r"\s*(`{3,}|:{3,})\s*(\S*)", line)
        if opened and fence is None and opened[2] in _CODE:
            fence = opened[1]
        elif opened and fence is not None and opened[1] == fence and not opened[2]:
            fence = None
        elif fence is None and not opened:
            kept.append(line)
    left = "\n".join(kept)
    for pattern in _NOT_PROSE:
        left = pattern.sub(" ", left)
    return left


def typed(text: str, allowed: list[str]) -> list[str]:
    """Numbers in the prose of a page that no allowed phrase covers."""
    left = prose(text)
    covered = [match.span() for phrase in allowed for match in re.finditer(phrase, left, re.MULTILINE)]
    found = [match for match in _NUMERAL.finditer(left) if not _YEAR.fullmatch(match[0])]
    return [each[0] for each in found if not any(a <= each.start() and each.end() <= b for a, b in covered)]


def exceptions() -> list[dict[str, str]]:
    with (ROOT / "tests" / "numbers_in_prose.tsv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT / "book")))
def test_no_number_is_typed_by_hand(page):
    name = str(page.relative_to(ROOT / "book"))
    allowed = [row["text"] for row in exceptions() if row["page"] == name]
    assert not typed(page.read_text(encoding="utf-8"), allowed), "use {number} or {result}, or give a reason"


def test_every_exception_has_a_reason_and_is_needed():
    for row in exceptions():
        left = prose((ROOT / "book" / row["page"]).read_text(encoding="utf-8"))
        assert row["reason"] and re.search(row["text"], left, re.MULTILINE), row


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("They agree with a tau of 0.62.", ["0.62"]),
        ("In 49,152 tokens, 7 % of them words", ["49,152", "7 %"]),
        ("rewards from −30 to 12", ["−30", "12"]),
        (":::{admonition} Note\n:class: warning\nabout 18 minutes\n:::", ["18"]),
        ("| a | 0.9968 |", ["0.9968"]),
        ("SmolLM2-135M in 2025, `0.5`, $x^{12}$, {number}`models`, three models", []),
        ("```bash\nrmnb scan --first 3000\n```", []),
    ],
)
def test_a_typed_number_is_found(text, found):
    assert typed(text, []) == found


def rows(*values: float) -> pd.DataFrame:
    table = pd.DataFrame({"model": [f"m{place}" for place in range(len(values))], "value": values})
    return table.assign(chapter="x", source="panel", quantity="tau", question="greatest", other="")


def test_a_result_is_what_the_table_says():
    result = prose_numbers.result
    table = rows(0.25, -0.5, 0.75)
    assert result("x tau model=m1", table) == "−0.50"
    assert result("x tau question=greatest of=median digits=3", table) == "0.250"
    assert result("x tau of=count", table) == "3"
    assert result("x tau model=m9 else=…", table) == "…"
    for wrong in ("x tau", "x tau model=m9", "x tau modle=m1", "x tau of=most"):
        with pytest.raises(ValueError, match=r"rows of the results|no column|choose one"):
            result(wrong, table)


def test_every_fact_can_be_written(monkeypatch):
    monkeypatch.chdir(ROOT)
    facts = prose_numbers.FACTS
    used = {name for page in PAGES for name in re.findall(r"\{number\}`(.*?)`", page.read_text(encoding="utf-8"))}
    assert used == set(facts)
    assert all(re.fullmatch(r"[a-z]+|[\d.,]+( %)?", write()) for write in facts.values())


def test_every_public_module_has_an_entry():
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "rmnb").rglob("*.py")
        if not path.stem.startswith("__") and path.parent.name != "cli"
    }
    surfaces = public_names.PACKAGES
    listed = {
        name
        for page in (ROOT / "book" / "api").glob("*.md")
        for name in re.findall(r"automodule:: (\S+)", page.read_text(encoding="utf-8"))
    }
    missing = {name for name in modules - listed if not name.startswith(tuple(f"{each}." for each in surfaces))}
    assert not missing and listed - modules == set(surfaces)


def test_the_address_of_the_book_follows_from_what_is_known(tmp_path, monkeypatch):
    assert publishing.book_url(None, None) is None
    assert publishing.book_url(None, "https://github.com/Some-One/book") == "https://some-one.github.io/book/"
    assert publishing.book_url("https://x.org/y", "https://github.com/a/b") == "https://x.org/y/"
    assert publishing.book_url(None, "https://codeberg.org/a/b") is None
    monkeypatch.delenv("RMNB_BOOK_URL", raising=False)
    (tmp_path / "_config.yml").write_text("title: x\n")
    loaded = []
    app = SimpleNamespace(confdir=tmp_path, setup_extension=loaded.append, connect=lambda *_, **__: None)
    publishing.setup(app)
    assert loaded == ["notfound.extension"]
    (tmp_path / "_config.yml").write_text("repository:\n  url: https://github.com/a/b\n")
    loaded.clear()
    publishing.setup(app)
    assert loaded == ["notfound.extension", "sphinx_sitemap", "sphinxext.opengraph", "colab"]
    config = SimpleNamespace(html_theme_options={})
    publishing.configure(app, config)
    assert (config.html_baseurl, config.notfound_urls_prefix) == ("https://a.github.io/b/", "/b/")
    assert (
        config.ogp_image.startswith(config.html_baseurl) and "colab_url" in config.html_theme_options["launch_buttons"]
    )


def test_the_single_page_keeps_the_handlers_of_pages():
    handlers = {"html": {"card": "a", "link": "b"}, "singlehtml": {"link": "c"}}
    publishing.single_page_as_pages(SimpleNamespace(registry=SimpleNamespace(translation_handlers=handlers)))
    assert handlers["singlehtml"] == {"card": "a", "link": "c"}


def test_icons_that_are_not_used_are_left_out_and_pages_lose_their_index(tmp_path):
    script = (
        'x={sun:[512,512,[9728],"f185","M1"],"turn-up":[3,5,["level-up"],"f3bf","M2"],moon:[3,5,[],"f1",["M3","M4"]]}'
    )
    without_moon = script.replace('moon:[3,5,[],"f1",["M3","M4"]]', "")
    assert light_icons.without_unused(script, {"sun", "level-up"}) == without_moon
    static, images = tmp_path / "_static", tmp_path / "_images"
    fonts = static / light_icons.FONTS
    for folder in (static / light_icons.SCRIPT.parent, static / light_icons.STYLES.parent, fonts, images):
        folder.mkdir(parents=True)
    (static / light_icons.SCRIPT).touch()
    (fonts / "fa-solid-900.woff2").touch()
    (images / "a.svg").write_text('<svg width="1">\n  <path d="M 1 2\nL 3 4"/>\n</svg>')
    index = '<script src="../searchindex.js"></script>'
    for name in ("page.html", "search.html"):
        (tmp_path / name).write_text(f'<i class="fa-solid fa-moon"></i>{index}<script src="a.js"></script>')
    light_pages.lighten(SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html", name="html")), None)
    icons, styles = ((static / file).read_text() for file in (light_icons.SCRIPT, light_icons.STYLES))
    assert "moon:[" in icons and "sun:[" not in icons and 70_000 < len(icons) < 80_000
    assert ".fa-moon:before{" in styles and ".fa-sun:before" not in styles
    solid, brands = (TTFont(fonts / f"fa-{name}.woff") for name in ("solid-900", "brands-400"))
    assert 0xF186 in solid.getBestCmap() and 0xF185 not in solid.getBestCmap()  # the moon, the sun
    assert 'fa-solid-900.woff) format("woff")}' in styles and not (fonts / "fa-solid-900.woff2").exists()
    signs = {ord(sign) for sign in re.findall('pst-icon-[a-z-]+:"(.)"', styles)}  # of notes, warnings and links
    assert len(signs) > 10 and signs <= {*solid.getBestCmap(), *brands.getBestCmap()}
    assert 0xF09B in brands.getBestCmap() and 0xF392 not in brands.getBestCmap()  # of GitHub, of Discord
    assert (images / "a.svg").read_text() == '<svg width="1"><path d="M 1 2 L 3 4"/></svg>'
    assert index in (tmp_path / "search.html").read_text()
    assert index not in (tmp_path / "page.html").read_text() and "a.js" in (tmp_path / "page.html").read_text()


def test_a_tightened_drawing_has_the_same_shapes_at_the_same_places():
    drawing = """<svg><!-- by --><metadata>M</metadata><g id="axes_1"><defs>
      <path id="DejaVuSans-41" d="M 2188.25 -0.001 L 1.23456 2" transform="scale(0.015625)"/></defs>
      <g clip-path="url(#p1)"><use xlink:href="#DejaVuSans-41" transform="translate(63.623047 0)"/></g>
      <clipPath id="p1"><rect x="7.125678" y="9"/></clipPath></g><text>a &gt; b</text></svg>"""
    assert light_drawings.tightened(drawing) == (
        '<svg><g><defs><path id="n1" d="M 2188.25 0 L 1.23 2" transform="scale(0.015625)"/></defs>'
        '<g clip-path="url(#n0)"><use xlink:href="#n1" x="63.62"/></g>'
        '<clipPath id="n0"><rect x="7.13" y="9"/></clipPath></g><text>a &gt; b</text></svg>'
    )


def test_drawings_are_fetched_when_they_come_near_and_keep_their_place_until_then(tmp_path):
    (tmp_path / "_images").mkdir()
    (tmp_path / "_images" / "a.svg").write_text('<svg xmlns:x="y" width="349.5pt" height="30pt" viewBox="0 0 1 1">')
    (tmp_path / "_images" / "b.svg").write_text('<svg viewBox="0 0 1 1">')
    page = tmp_path / "chapters" / "one.html"
    page.parent.mkdir()
    drawing, other = '<img alt="one\ntwo" src="../_images/a.svg" />', '<img src="https://a.b/_images/a.svg" />'
    assert (
        light_pages.lazily(drawing + other, page)
        == drawing.replace("<img", '<img loading="lazy" width="466" height="40"') + other
    )
    assert light_pages.lazily('<img src="../_images/b.svg"/>', page) == '<img loading="lazy" src="../_images/b.svg"/>'


def test_signatures_and_attributes_read_as_they_are_written():
    array = "~numpy.ndarray[tuple[~typing.Any, ...], ~numpy.dtype[~numpy.float64]]"
    assert (
        public_names.as_written(f"(x: {array}, y: {array})")
        == "(x: NDArray[~numpy.float64], y: NDArray[~numpy.float64])"
    )
    assert public_names.as_written("(x: int)") == "(x: int)" and public_names.as_written(None) is None
    option = "~typing.Annotated[list[str] | None, <typer.models.OptionInfo object at 0x7f9dbd924610>]"
    assert public_names.as_written(f"(a: {option} = None, b: {option} = ())") == (
        "(a: list[str] | None = None, b: list[str] | None = ())"
    )
    text = ["A pair.", "", "Attributes", "----------", "a, b : float", "    In metres.", "n : int", "", "More."]
    assert public_names.one_each(text) == [*text[:4], "a : float", text[5], "b : float", *text[5:]]
    assert public_names.one_each(text[:2]) == text[:2]


def test_heads_of_tables_are_words_and_code_stays():
    row = nodes.row("", *(nodes.entry("", part) for part in (nodes.Text("kendall_tau"), nodes.literal(text="a_b"))))
    page = nodes.container("", nodes.thead("", row), nodes.paragraph(text="kendall_tau"))
    table_heads.heads_in_words(None, page)
    assert page.astext().split() == ["Kendall's", "τ", "a_b", "kendall_tau"]


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_what_is_there(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow[True]  # YAML reads the key `on` as a boolean
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] and job["runs-on"], name
        needed = job.get("needs", [])
        assert set([needed] if isinstance(needed, str) else needed) <= set(workflow["jobs"])
        ids = {step["id"] for step in job["steps"] if "id" in step}
        assert set(re.findall(r"steps\.(\w+)\.", yaml.safe_dump(job))) <= ids
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step.get("uses", "actions/x@v1"))
            for command in step.get("run", "").splitlines():
                program, *words = command.split()
                assert set(words) <= targets if program == "make" else (ROOT / program).is_file(), command
