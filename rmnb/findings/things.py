"""Facts about the things that people voted on: computed from their names, or shipped where the names are missing."""

import functools
from collections.abc import Callable

import pandas as pd

from rmnb.data import lexicons, sources
from rmnb.data.offensive import is_offensive
from rmnb.training.pairs import is_unseen

_PERSON = ("people", "person", "women", "woman", "men", "man")
_WORD_FREQUENCY = 4.0  # Zipf: a word that every reader knows


def fact(items: pd.DataFrame, which: str) -> pd.Series:
    """One fact of `FACTS`, a value a thing.

    Parameters
    ----------
    items : DataFrame
        Of `rmnb.data.released_files.human_elo`. Its column `which` is taken if there is one; if not, the fact is
        computed from name.
    which
        A key of `FACTS`.

    Returns
    -------
    Series
        Of numbers for valence (NaN where there is none), words and group, of bool for the others.
    """
    values = items[which] if which in items else FACTS[which](items["name"])
    if which in ("valence", "words", "group"):
        return values
    return values.astype(bool)


def facts(items: pd.DataFrame) -> pd.DataFrame:
    """All of `FACTS`, a column each."""
    return pd.DataFrame({which: fact(items, which) for which in FACTS})


def _people(names: pd.Series) -> pd.Series:
    words = sources.own_list("people_words.tsv")["word"]
    named = names.str.casefold().str.contains(rf"(?<!\S)(?:{'|'.join([*words, *group_names()])})(?!\S)")
    return named | names.str.contains(r"\s\(?[A-Z]") | names.map(is_offensive)


def _familiar(names: pd.Series) -> pd.Series:
    terms = lexicons.identity_terms()["term"].str.casefold()
    strong = lexicons.afinn().query("valence <= -3")["word"]
    plain = names.str.fullmatch("[A-Za-z]{3,12}") & ~names.str.casefold().isin([*terms, *strong])
    return plain & (lexicons.zipf(names) >= _WORD_FREQUENCY)


#: valence: its AFINN rating (missing for most). words: how many. letters: a single word. group: it names a group of
#: people, by the number of that group, 0 for none. people: it names or abuses people of any kind, or has a capital
#: after its first word, as names of persons have. held_out: no recipe teaches it. familiar: a common word of 3 to 12
#: letters, no group, AFINN above -3.
FACTS: dict[str, Callable[[pd.Series], pd.Series]] = {
    "valence": lambda names: names.str.casefold().map(lexicons.afinn().set_index("word")["valence"]),
    "words": lambda names: names.str.count(r"\S+"),
    "letters": lambda names: names.str.fullmatch("[A-Za-z]+"),
    "group": lambda names: names.str.casefold().map(group_names()).fillna(0).astype(int),
    "people": _people,
    "held_out": lambda names: names.map(is_unseen),
    "familiar": _familiar,
}


@functools.cache
def group_names() -> dict[str, int]:
    """Folded name of a group to its number: every form in the list, and the adjective with "people" and so on."""
    # A text that is noun and adjective of a group counts once, as in `rmnb.findings.identity.terms`.
    table = lexicons.identity_terms().drop_duplicates(["axis", "group", "term"])
    numbers = 1 + pd.factorize(table["axis"] + " " + table["group"])[0]
    names = {}
    for number, form, term in zip(numbers.tolist(), table["form"], table["term"], strict=True):
        endings = ["", *_PERSON] if form == "adjective" else [""]
        for ending in endings:
            names.setdefault(f"{term} {ending}".strip().casefold(), number)
    return names
