"""Which tokens a page shows only after a click: slurs and obscene words, by two lists of English words.

No list is complete, and these know no other language: a page that shows tokens nobody has looked through says so.
"""

import functools
import re

import pandas as pd

from rmnb.data import lexicons, sources


@functools.cache
def _offensive() -> re.Pattern[str]:
    own = pd.read_csv(sources.LISTS / "offensive.txt", comment="#", names=["word"], keep_default_na=False)
    # AFINN's insults and obscenities have valence -4 or -5.
    words = [*lexicons.afinn().query("valence <= -4")["word"], *own["word"]]
    return re.compile("|".join(re.escape(word).replace(r"\*", r"\w*") for word in words))


def is_offensive(token: str) -> bool:
    """Whether a token, its blanks, case and surrounding punctuation left aside, is an offensive English word."""
    word = re.sub(r"^[\W_]+|[\W_]+$", "", token).casefold()
    return bool(word) and _offensive().fullmatch(word) is not None
