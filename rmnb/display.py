"""Token text made safe and legible: for HTML, for Markdown, for figures.

A vocabulary holds markup, LaTeX, control and right-to-left characters, blanks of every kind. Nothing that renders a
token may be steered by it, and a reader must see that a token is `" love"` and not `"love"`.
"""

import functools
import itertools
import unicodedata
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import regex

from rmnb.offensive import is_offensive

#: Shown for the ordinary blank, which is invisible at the edges of a token and collapses in HTML.
BLANK = "␣"
_LONGEST = 40  # characters shown of one token
_LONGEST_RUN = 7  # equal characters shown one by one
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"}
# Characters that leave no ink although their category says letter, mark or symbol.
_INKLESS = set("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5") | {chr(code) for code in range(0xFE00, 0xFE10)}
# Emoji that joiners make one: the joiners in it are ink, elsewhere they are not.
_UNITS = regex.compile(
    r"\p{Extended_Pictographic}[\p{EMod}\uFE0F]*(?:\u200D\p{Extended_Pictographic}[\p{EMod}\uFE0F]*)+|.",
    regex.DOTALL,
)


def _visible_unit(unit: str) -> str:
    joined = len(unit) > 1 and all(unicodedata.category(character) != "Cn" for character in unit)
    return unit if joined else "".join(map(_visible_character, unit))


def _visible_character(character: str) -> str:
    if character == " ":
        return BLANK
    if character < " ":
        return chr(0x2400 + ord(character))  # the pictures of control characters: a newline is ␊, a tab ␉
    if character == "\x7f":
        return "␡"
    if unicodedata.category(character) in _HIDDEN or character in _INKLESS:
        return f"⟨U+{ord(character):04X}⟩"
    return character


def visible(token: str) -> str:
    """The token as one line of text in which everything invisible is seen.

    Blanks become ␣, control characters their pictures, other formatting, unassigned and space characters their code
    point in ⟨ ⟩, but emoji that are joined stay one; an accent without a letter gets a dotted circle to stand on; long
    runs of one character are counted (``␣×12``) and what exceeds forty characters is cut, with the number left out. The
    empty token is ∅.
    """
    if not token:
        return "∅"
    pieces = ["◌"] if unicodedata.category(token[0]).startswith("M") and token[0] not in _INKLESS else []
    for unit, run in itertools.groupby(_UNITS.findall(token)):
        shown, length = _visible_unit(unit), sum(1 for _ in run)
        pieces += [f"{shown}×{length}"] if length > _LONGEST_RUN else [shown] * length
    if len(pieces) > _LONGEST:
        pieces[_LONGEST:] = [f"…(+{len(pieces) - _LONGEST})"]
    return "".join(pieces)


def inline(text: str) -> str:
    """Plain text as characters that neither HTML nor Markdown nor a TeX extension of either can take for markup."""
    return "".join(c if c.isalnum() or c == " " or ord(c) > 127 else f"&#{ord(c)};" for c in text)


def token_html(token: str) -> str:
    """A token as an HTML element, safe inside HTML and inside Markdown.

    ``code`` keeps MathJax away, ``bdi`` keeps right-to-left letters from reordering their surroundings.
    """
    return f'<code class="token"><bdi>{inline(visible(token))}</bdi></code>'


def behind_a_click(content: str, warning: str) -> str:
    """HTML that shows `warning` and, when clicked, `content` (trusted HTML, as the functions here make it)."""
    return f'<details class="content-warning"><summary>{inline(warning)}</summary>{content}</details>'


def notice(text: str) -> str:
    """HTML of a note that stands out, such as that some data could not be had; what is between backticks is code."""
    parts = text.split("`")
    shown = "".join(f"<code>{inline(part)}</code>" if place % 2 else inline(part) for place, part in enumerate(parts))
    return f'<div class="admonition note"><p class="admonition-title">Note</p><p>{shown}</p></div>'


def table_html(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    tokens: Iterable[str] = (),
    hidden: Collection[str] = (),
    digits: int = 3,
) -> str:
    """An HTML table in which all text is escaped.

    Parameters
    ----------
    columns
        The heads; two columns may share one.
    rows
        One value a column. Floats are written with `digits` decimals, NaN and None as an empty cell.
    tokens
        The columns that hold token text.
    hidden
        Words, in lower case, that are shown only after a click, in columns of tokens; so are those that
        `rmnb.offensive` knows.
    """
    token_columns = set(tokens)

    def cell(column: str, value: object) -> str:
        if column in token_columns:
            shown = token_html(str(value))
            if str(value).strip().casefold() in hidden or is_offensive(str(value)):
                shown = behind_a_click(shown, "offensive")
            return f"<td>{shown}</td>"
        if value is None or value != value:
            return "<td></td>"
        if isinstance(value, (float, np.floating)):
            return f'<td class="number">{value:.{digits}f}</td>'
        if isinstance(value, (int, np.integer)):
            return f'<td class="number">{value:,}</td>'
        return f"<td>{inline(str(value))}</td>"

    head = "".join(f"<th>{inline(column)}</th>" for column in columns)
    body = "".join(
        f"<tr>{''.join(cell(column, value) for column, value in zip(columns, row, strict=True))}</tr>" for row in rows
    )
    # tabindex: a keyboard, too, can scroll what is wider than the page.
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="table-scroll" tabindex="0">{table}</div>'


@functools.cache
def _drawable() -> frozenset[int]:
    from matplotlib import font_manager, ft2font

    return frozenset(ft2font.FT2Font(font_manager.findfont(font_manager.FontProperties())).get_charmap())


def figure_text(token: str) -> str:
    r"""A token as matplotlib text: ``$`` starts no formula and a character the font lacks is written ``\uXXXX``."""

    def drawn(character: str) -> str:
        code = ord(character)
        if code in _drawable() and unicodedata.category(character) not in _HIDDEN:  # fonts draw joiners, as nothing
            return character
        code -= 0x2400 if 0x2400 <= code < 0x2420 else 0  # the picture of a control character stands for that one
        return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"

    return "".join(map(drawn, visible(token))).replace("$", r"\$")
