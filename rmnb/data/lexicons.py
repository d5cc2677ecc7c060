"""Words with meanings attached: valence, frequency, agency and communion, moral foundations, identity.

Three origins: packages (AFINN, wordfreq), the project's own lists in ``rmnb/data/lists`` (see its README), and lists of
others that are read from `rmnb.data.sources` and never redistributed; those raise `rmnb.data.sources.UnreachableError`
where they cannot be had.
"""

import re
from collections.abc import Iterable
from importlib import resources
from typing import Literal

import numpy as np
import pandas as pd

from rmnb.data import sources

_CORPORA = "iclr2026/data/corpora/"
RAREST = 1.0  # the lowest Zipf frequency that wordfreq distinguishes from zero
BNC = "facct2025/data/corpora/1_1_all_alpha.txt"
BNC_WORDS = 300_000  # frequent words among which it is looked for


def afinn() -> pd.DataFrame:
    """AFINN-111 (Nielsen, 2011): word (str, lower case, unique), valence (int64, -5 to 5). 2,477 rows."""
    path = resources.files("afinn") / "data/AFINN-111.txt"
    return pd.read_csv(str(path), sep="\t", names=["word", "valence"], keep_default_na=False, quoting=3)


def zipf(words: Iterable[str]) -> np.ndarray:
    """Frequency of English words, log10 of occurrences in a thousand million words; 0 for unknown ones.

    From `wordfreq` (Speer, 2022), which folds case. A phrase is estimated from its words. Returns float64, one a word.
    """
    from wordfreq import zipf_frequency  # of the extra report: scoring does without

    return np.array([zipf_frequency(word, "en") for word in words], dtype=np.float64)


def frequent_words(count: int) -> list[str]:
    """The most frequent English words by the same counts, the first ones first."""
    from wordfreq import top_n_list

    return top_n_list("en", count)


def bnc_lemmas() -> pd.DataFrame:
    """Words of the British National Corpus (Leech, Rayson and Wilson, 2001) as Christian et al. (2025) joined them.

    Where the file cannot be reached, the shipped counts of its words of lower-case letters stand in.

    Returns
    -------
    DataFrame
        word (str, a dictionary form; several rows for several parts of speech), part_of_speech (str), per_million
        (int64, occurrences of all its forms in a million words).
    """
    try:
        text = sources.locate(BNC).read_text(encoding="latin-1")
    except sources.UnreachableError:
        table = pd.read_csv(sources.stand_in("bnc.csv"), keep_default_na=False)
        words = frequent_words(BNC_WORDS)
        return table.assign(word=[words[place] for place in table["word"]])
    # Some lines lack the leading tab, "*" and "#" mark footnotes, and "@" is a form of the word above.
    row = r"(?m)^\t*+(?!@\t)(?P<word>[^\t\n]*?)\**\t(?P<part_of_speech>[^\t\n]*)\t[^\t\n]*\t(?P<per_million>\d+)"
    entries = pd.DataFrame(match.groupdict() for match in re.finditer(row, text))
    return entries.astype({"per_million": "int64"})


def big_two(forms: Literal["nouns", "expanded"]) -> pd.DataFrame:
    """Words of agency and of communion, the corpora of Christian et al. (2026): word (str), category (str, lower case).

    nouns: 263 rows. expanded: 936 rows, some words more than once.
    """
    table = pd.read_csv(sources.locate(f"{_CORPORA}dict_big2_{forms}.csv"), keep_default_na=False)
    if forms == "nouns":
        return pd.DataFrame({"word": table["token_decoded"], "category": table["Category"].str.lower()})
    return pd.DataFrame({"word": table["DicTerm"], "category": np.where(table["Agency"] == "X", "agency", "communion")})


def moral_foundations() -> pd.DataFrame:
    """The moral foundations dictionary 2.0 (Frimer et al., 2019).

    Returns
    -------
    DataFrame
        2,040 rows: word, foundation (care, fairness, loyalty, authority, sanctity), side (virtue or vice).
    """
    table = pd.read_csv(sources.locate(_CORPORA + "moral-foundations-dictionary-20.dicx"), keep_default_na=False)
    marked = table.melt(id_vars="DicTerm").query("value == 'X'")
    rows = marked["variable"].str.lower().str.extract("(?P<foundation>.*)_(?P<side>.*)")
    rows.insert(0, "word", marked["DicTerm"])
    return rows.sort_values("word", ignore_index=True)


def agency_communion() -> pd.DataFrame:
    """The project's own nouns: word (str, unique), category (agency or communion), 60 each, balanced pair by pair.

    Row k of agency and row k of communion are a pair close in frequency and length.
    """
    return sources.own_list("agency_communion.tsv").rename(columns={"noun": "word"})


def identity_terms() -> pd.DataFrame:
    """The project's own identity terms, each with a neutral control matched in form, capitals, frequency and length.

    Returns
    -------
    DataFrame
        axis (religion, ethnicity, nationality, gender, orientation, disability, age, politics), group, form
        (plural_noun, singular_noun, adjective), term, control; no two rows share axis, group and form.
    """
    return sources.own_list("identity_terms.tsv")
