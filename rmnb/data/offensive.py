"""Which tokens a page shows only after a click: slurs and obscene words, by two lists of English words.

No list is complete, and these know no other language: a page that shows tokens nobody has looked through says so.
"""

import functools
import re
from importlib import resources

from rmnb.data import lexicons

_STRONG = -4  # AFINN's insults and obscenities have valence -4 or -5


@functools.cache
def _offensive() -> re.Pattern[str]:
    text = resources.files("rmnb.data").joinpath("lists", "offensive.txt").read_text(encoding="utf-8")
    own = [line for line in text.split("\n") if line and not line.startswith("#")]
    rated = lexicons.afinn().query("valence <= @_STRONG")["word"]
    patterns = [re.escape(word).replace(r"\*", r"\w*") for word in (*rated, *own)]
    return re.compile("|".join(sorted(set(patterns))))


def is_offensive(token: str) -> bool:
    """Whether a token, its blanks, case and surrounding punctuation left aside, is an offensive English word."""
    word = re.sub(r"^[\W_]+|[\W_]+$", "", token).casefold()
    return bool(word) and _offensive().fullmatch(word) is not None
