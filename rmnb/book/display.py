"""Token text made safe and legible, for HTML and for Markdown.

A vocabulary has markup, LaTeX, control and right-to-left characters, and blanks of every kind. None of it may act on
the page that shows it, and a reader must see that a token is `" love"` and not `"love"`.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rmnb.data.offensive import is_offensive
from rmnb.visible import visible

if TYPE_CHECKING:
    from IPython import display


def inline(text: str) -> str:
    """Plain text with all ASCII punctuation escaped, so that HTML, Markdown and TeX in it are shown and not read.

    Invisible characters stay: token text goes through `rmnb.visible.visible` first, as in `token_html`.
    """
    return "".join(c if c.isalnum() or c == " " or ord(c) > 127 else f"&#{ord(c)};" for c in text)


def token_html(token: str) -> str:
    """A token as an HTML element, safe inside HTML and inside Markdown.

    ``code`` keeps MathJax away, ``bdi`` keeps right-to-left letters from reordering their surroundings.
    """
    return f'<code class="token"><bdi>{inline(visible(token))}</bdi></code>'


def behind_a_click(content: str, warning: str) -> str:
    """HTML that shows `warning` and, when clicked, `content` (trusted HTML, as the functions here make it)."""
    return f'<details class="content-warning"><summary>{inline(warning)}</summary>{content}</details>'


def in_words(name: str) -> str:
    """The head of a column as pages write it: in words, without underscores."""
    return {"kendall_tau": "Kendall's τ", "spearman": "Spearman's ρ"}.get(name) or name.replace("_", " ")


def table(frame: pd.DataFrame, tokens: Iterable[str] = (), digits: int = 3) -> "display.HTML":
    """A data frame as a cell shows it; see `table_html`."""
    return show(table_html(frame, tokens=tokens, digits=digits))


def show(*parts: str) -> "display.HTML":
    """Pieces of HTML one below the other, as a cell shows them; nothing where all are empty."""
    from IPython import display

    return display.HTML("".join(parts))


def table_html(frame: pd.DataFrame, tokens: Iterable[str] = (), digits: int = 3) -> str:
    """A data frame, less its index, as an HTML table in which all text is escaped.

    Parameters
    ----------
    frame
        Two columns may share one head; heads are written in words (`in_words`). Floats have `digits`
        decimals and never a minus before zero, integers groups of three digits, NaN and None an empty cell.
    tokens
        The columns that hold token text; words that `rmnb.data.offensive` lists are shown only after a click.
    digits
        Decimals of floats.
    """
    token_columns = set(tokens)

    def cell(column: str, value: Any) -> str:
        if pd.isna(value):
            return ""
        if column in token_columns:
            shown = token_html(str(value))
            return behind_a_click(shown, "offensive") if is_offensive(str(value)) else shown
        if isinstance(value, (float, np.floating)):
            return f'<span class="number">{value:z.{digits}f}</span>'
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return f'<span class="number">{value:,}</span>'
        return inline(str(value))

    # By place, because two columns may share a head.
    cells = [[cell(head, value) for value in frame.iloc[:, at]] for at, head in enumerate(frame.columns)]
    shown = pd.DataFrame(dict(enumerate(cells)), dtype=object)
    shown.columns = [inline(in_words(str(head))) for head in frame.columns]
    # The style sheet keeps a first column of names without blanks on one line.
    has_names = len(frame.columns) > 0 and not any(" " in str(value) for value in frame.iloc[:, 0])
    classes = "names" if has_names else None
    table = shown.to_html(index=False, escape=False, border=0, justify="inherit", classes=classes)
    # tabindex: a keyboard, too, can scroll what is wider than the page.
    return f'<div class="table-scroll" tabindex="0">{table}</div>'
