"""Token text is hostile: none of it may steer a page, a formula or a figure, or hide from the reader."""

import html
import re
import unicodedata

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from planted_site import HOSTILE

from rmnb.book import display
from rmnb.data import lexicons
from rmnb.visible import visible

MARKUP = ["</code></bdi></td>", '" onmouseover="x', r"\(x\)", "**b**", "[a](b)", "![a](b)", "`c`", "|", "&lt;", "&#60;"]
MARKUP += ["<!--", "{ref}`x`", "\n\n# h", "\u0301", "\u3164", "\U000e0041", "\ud800", "漢字", "\\$"]
pieces = st.sampled_from([*HOSTILE, *MARKUP])
tokens = st.text(st.characters(), max_size=60) | pieces | st.lists(pieces).map("".join)


def seen(source: str) -> tuple[list[str], str]:
    """The tags and the text that a browser would see."""
    page = BeautifulSoup(source, "html.parser")
    return [tag.name for tag in page(True)], page.get_text()


@given(tokens)
def test_nothing_invisible_remains(token):
    shown = visible(token)
    assert shown and len(shown) < 600
    for character in shown.replace("\U0001f469\u200d\U0001f680", ""):  # an emoji that is joined of two
        assert unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (" love", "␣love"),
        ("\n\t", "␊␉"),
        ("\u0301", "◌\u0301"),
        ("\U0001f469\u200d\U0001f680", "\U0001f469\u200d\U0001f680"),
        ("a\u200d\U0001f680\u200d", "a⟨U+200D⟩\U0001f680⟨U+200D⟩"),
        ("", "∅"),
        ("ab" * 30, "ab" * 20 + "…(+20)"),
    ],
)
def test_what_a_reader_sees(token, shown):
    assert visible(token) == shown


@given(tokens)
def test_neither_html_nor_markdown_with_dollar_math_finds_markup_in_a_token(token):
    element = display.token_html(token)
    assert seen(element) == (["code", "bdi"], visible(token))
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table").use(dollarmath_plugin)
    page = markdown.render(f"The token {element} was first.")
    assert seen(page) == (["p", "code", "bdi"], f"The token {visible(token)} was first.\n")


@given(st.lists(tokens, min_size=1, max_size=5))
def test_tables_escape_every_cell(column):
    frame = pd.DataFrame({"token": pd.Series(column, dtype=object), "<b>score": 0.5})
    tags, text = seen(display.table_html(frame, tokens=["token"]))
    row = ["tr", "td", "code", "bdi", "td", "span"]
    assert tags == ["div", "table", "thead", "tr", "th", "th", "tbody"] + row * len(column)
    assert "".join(text.split()) == "token<b>score" + "".join(visible(token) + "0.500" for token in column)


def test_numbers_gaps_and_heads_that_are_words():
    heads = ["same_sign", "same_sign", "$x$", "kendall_tau"]
    frame = pd.DataFrame([[1234, None, 0.5, 0], [float("nan"), True, pd.NA, -0.04]], columns=heads, dtype=object)
    shown = display.table_html(frame, digits=1)
    cells = [re.sub("<.*?>", "", cell) for cell in re.findall("<td>.*?</td>", shown)]
    assert cells == ["1,234", "", "0.5", "0", "", "True", "", "0.0"], "zero has no minus"
    heads = re.findall("<th>(.*?)</th>", html.unescape(shown))
    assert heads == ["same sign", "same sign", "$x$", "Kendall's τ"] and "$" not in shown


def test_words_that_are_known_to_offend_wait_for_a_click_without_being_named():
    word = lexicons.afinn().sort_values("valence", kind="stable")["word"].iloc[0].capitalize()
    shown = display.table_html(pd.DataFrame({"token": [f" {word}", "Fine"]}), tokens=["token"])
    assert shown.count("<details") == 1
    assert shown.index("<details") < shown.index(word) < shown.index("</details>") < shown.index("Fine")
