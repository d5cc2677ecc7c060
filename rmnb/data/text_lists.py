"""Lists of texts that models score under many questions: rated things, words with meanings, words to watch in training.

A list is made of parts, and a part's texts are known by their place in it: scores can be shipped where the texts may
not. When scores are read, a text that cannot be reached goes by its part and place: ``big_two 17``.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from rmnb.data import lexicons, preferences, released_files
from rmnb.data.sources import UnreachableError
from rmnb.errors import InputError


@dataclass(frozen=True)
class TextList:
    """A list, by the names of its parts, and the keys of the prompts it is scored with; a prompt set's name counts."""

    name: str
    parts: tuple[str, ...]
    prompts: tuple[str, ...]


#: The things that people voted on, in a list: all, or for a quick report some, from best to worst.
THINGS = {"elo": slice(None), "elo_sample": slice(None, None, 12)}
_PARTS: dict[str, Callable[[], Iterable[str]]] = {
    "elo": lambda: preferences.elo_items()["name"],
    "elo_sample": lambda: preferences.elo_items()["name"][THINGS["elo_sample"]],
    "agency_communion": lambda: lexicons.agency_communion()["word"],
    "identity": lambda: lexicons.identity_terms().melt(value_vars=["term", "control"])["value"],
    "afinn": lambda: lexicons.afinn()["word"],
    "big_two": lambda: lexicons.big_two("expanded")["word"],
}
LISTS = (
    TextList("elo", ("elo",), ("elo_greatest", "elo_prefer", "greatest")),
    TextList("elo_sample", ("elo_sample",), ("elo_greatest",)),
    TextList("words", ("agency_communion", "identity"), ("iclr2026",)),
    TextList("training", ("afinn", "agency_communion", "big_two"), ("greatest_ever_one",)),
)


def text_list(name: str) -> TextList:
    """The list of that name; InputError names the lists if there is none."""
    lists = {texts.name: texts for texts in LISTS}
    if name not in lists:
        raise InputError(f"no list of texts called {name!r}: choose one of {', '.join(lists)}")
    return lists[name]


def part_texts(part: str) -> list[str]:
    """The distinct texts of a part, in order.

    Raises
    ------
    UnreachableError
        They belong to others and cannot be had here.
    """
    return list(dict.fromkeys(_PARTS[part]()))


def can_be_read(part: str) -> bool:
    """Whether the texts of a part are here, and not names that stand in for them."""
    try:
        part_texts(part)
    except UnreachableError:
        return False
    return True


def described_parts(parts: dict[str, list[str]]) -> dict[str, dict]:
    """For provenance: how many texts each part has, and the checksum that tells whether scores belong to them."""
    return {
        part: {"texts": len(texts), "sha256": hashlib.sha256("\0".join(texts).encode()).hexdigest()}
        for part, texts in parts.items()
    }


def named_parts(described: Mapping[str, Mapping]) -> dict[str, list[str]]:
    """What the texts of parts are called, by part: the texts, or, where they cannot be reached, names that stand in.

    Parameters
    ----------
    described
        As `described_parts` gave it when they were scored.

    Raises
    ------
    InputError
        The texts are others now.
    """
    named = {}
    for part, known in described.items():
        try:
            named[part] = part_texts(part)
        except UnreachableError:
            named[part] = [f"{part} {place}" for place in range(known["texts"])]
            if part in THINGS:
                named[part] = released_files.human_elo()["name"][THINGS[part]].tolist()
        else:
            if described_parts({part: named[part]})[part] != known:
                raise InputError(f"the texts of {part} have changed since they were scored: score them again")
    return named
