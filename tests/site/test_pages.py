"""Every page of the built book: complete without a network, light, at home on a telephone, open to all readers."""

import json
import math
import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from book import BOOK
from rmnb.panels import load_panel
from rmnb.scoring.store import read_scores

PAGES = sorted(
    str(page.relative_to(BOOK))
    for page in BOOK.rglob("*.html")
    if not {"_static", "_sources", "_downloads"} & set(page.relative_to(BOOK).parts)
)
HEAVIEST = 1_500_000  # bytes as a plain server sends them, the explorer's data left out
WEIGHT = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
    .filter(entry => !entry.name.includes("/explorer/data/"))
    .reduce((sum, entry) => sum + entry.encodedBodySize, 0)"""

FETCHED = """() => performance.getEntriesByType("resource").filter(entry => entry.name.includes("/explorer/")).length"""

FAINT = """() => {
    const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
    const luminance = colour => colour.slice(0, 3).map(value => value / 255)
        .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
        .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
    const ground = element => {
        const colour = element ? numbers(getComputedStyle(element).backgroundColor) : [255, 255, 255];
        const opacity = colour[3] ?? 1;
        if (opacity === 1) return colour;
        const behind = ground(element.parentElement);
        return behind.map((value, at) => opacity * colour[at] + (1 - opacity) * value).slice(0, 3);
    };
    const text = ".bd-article :is(code.token, figcaption, .cell_output td, .cell_output th)";
    return [...document.querySelectorAll(text)].filter(element => {
        const both = [luminance(numbers(getComputedStyle(element).color)), luminance(ground(element))];
        return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05) < 4.5;
    }).slice(0, 5).map(element => element.outerHTML.slice(0, 150));
}"""

DRAWINGS = """() => Promise.all([...document.querySelectorAll("img[loading=lazy]")].map(image => new Promise(done => {
    image.onload = image.onerror = done;
    image.loading = "eager";
    if (image.complete) done();
})))"""


QUIET = """() => {
    const came = performance.getEntriesByType("resource").length;
    if (window.came !== came) [window.came, window.since] = [came, performance.now()];
    return document.readyState === "complete" && performance.now() - window.since > 500;
}"""


def settle(page) -> None:
    """Wait until nothing has come for half a second (the browser's own word for that, networkidle, may never come)."""
    page.wait_for_function(QUIET)
    if "explorer.html" in page.url:
        page.wait_for_selector("#token-explorer[data-ready]")


def violations(page, *rules: str) -> list[str]:
    """What axe-core finds serious or critical, by these rules or all: rule, where, why."""
    only = {"runOnly": list(rules)} if rules else {}
    options = {"resultTypes": ["violations"], "preload": False, **only}
    found = Axe().run(page, options=options).response["violations"]
    return [
        f"{rule['id']}: {node['target']}: {node['html'][:160]}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("name", PAGES)
def test_page(name, site, page):
    page.goto(f"{site}/{name}")
    settle(page)
    page.evaluate(DRAWINGS)
    assert page.evaluate(WEIGHT) <= HEAVIEST
    assert page.title().strip()
    assert "```{" not in page.inner_text("body")  # a directive that was taken for text
    assert not violations(page)

    assert not faint(page)
    assert not widest(page)

    page.evaluate("() => { document.documentElement.dataset.theme = 'dark' }")
    page.wait_for_timeout(400)  # the theme lets colours fade into one another
    ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).map(Number)")
    assert max(ground[:3]) < 80
    assert not violations(page, "color-contrast")
    assert not faint(page)
    assert not widest(page)

    page.set_viewport_size({"width": 390, "height": 844})
    for theme in ("dark", "light"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        page.wait_for_timeout(300)
        assert not widest(page)


def faint(page) -> list[str]:
    """Tokens, captions and cells of tables whose colour is below 4.5:1 on what lies behind them.

    Axe leaves out what it cannot decide, such as text that stands outside of the window.
    """
    return page.evaluate(FAINT)


def widest(page) -> list[str]:
    """The elements that reach beyond a screen wider than which the page is, and are in no container that scrolls."""
    return page.evaluate(
        """() => {
            if (document.documentElement.scrollWidth <= innerWidth) return [];
            const found = [...document.body.querySelectorAll("*")].filter(element => {
                if (element.getBoundingClientRect().right <= innerWidth + 1) return false;
                for (let up = element.parentElement; up; up = up.parentElement)
                    if (up !== document.body && getComputedStyle(up).overflowX !== "visible") return false;
                return true;
            });
            const width = `${document.documentElement.scrollWidth} px`;
            return [width, ...found.slice(0, 5).map(one => one.outerHTML.slice(0, 150))];
        }"""
    )


def test_a_figures_number_begins_with_its_chapter_or_with_the_letter_of_its_page():
    pages = {}
    for name in PAGES:
        text = (BOOK / name).read_text(encoding="utf-8")
        for begin in re.findall(r'caption-number">(?:Fig\.|Table) (\w+\.?)', text):
            pages.setdefault(begin, set()).add(name)
    assert all(begin.endswith(".") and len(found) == 1 for begin, found in pages.items())


def test_a_word_typed_on_the_first_page_becomes_a_pin_at_its_reward(site, page):
    page.goto(f"{site}/book/index.html")
    settle(page)
    assert page.evaluate(FETCHED) == 0  # before the first key
    assert page.input_value("#word-box input") == "love" and "love has rank" in page.inner_text(".word-answer")
    scan = read_scores(load_panel("demo"), "smollm2-values", "greatest").set_index("token")["score"]
    pin, drawing = page.locator("#word-pin"), page.locator("#fig-vocabulary img")
    low, high = (float(pin.get_attribute(f"data-{end}")) for end in ("low", "high"))
    for word in ("noise", "music"):  # the second's name stands to the left of its pin
        page.fill("#word-box input", word)
        page.wait_for_selector(f"#word-pin:has-text('{word}')")
        page.wait_for_timeout(500)  # it slides
        share = (scan[f" {word}"] - low) / (high - low)
        box, ground = pin.bounding_box(), drawing.bounding_box()
        place = box["x"] + (box["width"] if word == "music" else 0)
        assert abs(place - ground["x"] - share * ground["width"]) < 2
    page.click("#word-all summary")
    assert page.locator("#word-ranks tbody tr").count() == len(load_panel("demo").models)
    page.fill("#word-box input", "<img src=x onerror=alert(1)>")
    page.wait_for_selector("#word-ranks:empty", state="attached")
    assert "No single token" in page.inner_text(".word-answer") and pin.is_hidden()


def test_the_first_figure_stands_without_scripts_and_fits_a_telephone(site, browser):
    context = browser.new_context(viewport={"width": 390, "height": 844}, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}/book/index.html")
    drawing = page.locator("#fig-vocabulary img")
    drawing.scroll_into_view_if_needed()
    box = drawing.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert "love has rank" in page.inner_text(".word-answer") and page.locator("#word-box").is_hidden()
    assert 'srcset="../_images/vocabulary-narrow.svg"' in page.inner_html("#fig-vocabulary")
    context.close()


def test_search_finds_the_books_own_word(site, page):
    page.goto(f"{site}/search.html?q=pessimal")
    page.wait_for_selector("#search-results li a")
    assert page.locator("#search-results li a").count() >= 2


@pytest.fixture(params=["mouse", "touch"])
def hand(request, browser, site):
    """A fresh page of a laptop or of a telephone, and how one points there."""
    is_touch = request.param == "touch"
    context = browser.new_context(viewport={"width": 390 if is_touch else 1280, "height": 844}, has_touch=is_touch)
    page = context.new_page()
    yield page, page.touchscreen.tap if is_touch else page.mouse.move
    context.close()


def test_the_dots_of_figure_1_1_say_which_models_they_are(hand, site):
    page, point = hand
    page.goto(f"{site}/book/_executed/01_heterogeneity.html")
    stage = page.locator(".dots-stage")
    stage.scroll_into_view_if_needed()
    dots = json.loads(page.get_attribute(".dots", "data-dots"))
    assert len(dots) == math.comb(len(load_panel("demo").models), 2)
    box = stage.bounding_box()
    left, bottom, *first = min(dots)  # the leftmost is on a telephone's screen, too
    point(box["x"] + left * box["width"], box["y"] + (1 - bottom) * box["height"])
    said = page.inner_text(".dots")
    assert all(str(word) in said for word in first[:2] + first[3:5])
    stage.focus()
    page.keyboard.press("ArrowRight")
    chosen = int(stage.get_attribute("data-chosen"))
    assert dots[chosen][0] > left and dots[chosen][2] in page.inner_text(".dots")


def test_the_slider_of_chapter_10_is_its_figure(hand, site):
    page, _ = hand
    page.goto(f"{site}/book/_executed/10_policy.html")
    shown = page.locator(".policy-live")
    assert "8.0 nats" in shown.inner_text() and page.locator("#fig-policy-said img").count() == 0
    favourites = ".policy-bars tr:has-text('smollm2-mixed') td span:first-child"
    assert page.locator(favourites).all_inner_texts() == ["joy", "colors"]  # the finding is in sight: two seeds part
    page.focus(".policy-live input")
    for _ in range(12):
        page.keyboard.press("ArrowLeft")
    assert page.locator(favourites).all_inner_texts() == ["love", "love"] and "2.0 nats" in shown.inner_text()
    page.keyboard.press("End")
    assert "9.0 nats" in shown.inner_text()
    slider = page.locator(".policy-live input").bounding_box()
    page.mouse.click(slider["x"] + 3, slider["y"] + slider["height"] / 2)
    assert "0.0 nats" in shown.inner_text() and len({*page.locator(favourites).all_inner_texts()}) == 1


def test_figures_stand_without_scripts(site, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    for chapter, figure in (("01_heterogeneity", "fig-ceiling"), ("10_policy", "fig-policy-said")):
        page.goto(f"{site}/book/_executed/{chapter}.html")
        drawing = page.locator(f"#{figure} img")
        drawing.scroll_into_view_if_needed()
        assert drawing.bounding_box()["height"] > 200
    context.close()
