"""Effects of chapter 4: how a word's reward depends on how frequent the word is.

Source of the question: Christian et al. (2025), section 4 and figure 3D.
"""

import functools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons
from rmnb.errors import InputError, TooFewError
from rmnb.findings.tables import WORD_KINDS, afinn
from rmnb.stats.estimate import Estimate

#: The steps of the ladder, and what each adds to a regression of the reward on log frequency.
LADDER = {
    "frequency alone": (),
    "valence": ("good_valence", "bad_valence"),
    "length": ("length",),
    "spelling": ("spelling",),
    "token id": ("log_id",),
}


@functools.cache
def log_frequencies() -> pd.Series:
    """English word (a to z, folded) to the natural log of its frequency per million: wordfreq's list (Speer, 2022)."""
    from wordfreq import get_frequency_dict

    rarest = 10 ** (lexicons.RAREST - 9)
    per_million = {word: share * 1e6 for word, share in get_frequency_dict("en").items() if share >= rarest}
    frequencies = pd.Series(per_million, dtype=float)
    return np.log(frequencies[frequencies.index.str.fullmatch("[a-z]+")])  # pyright: ignore[reportReturnType]


def word_tokens(table: pd.DataFrame) -> pd.DataFrame:
    """The tokens of a table that spell an English word, with what their reward may depend on.

    A string of letters counts as a word if `log_frequencies` has it and a token of the vocabulary begins a word with
    it; most fragments of words fail the second.

    Returns
    -------
    DataFrame
        The rows of `table` that are words, its columns, and log_frequency (natural log per million), length (letters),
        spelling (kind of token, and case: lower, upper or capital, which mixed case counts as), log_id (natural log of
        1 + id), rated (bool: `rmnb.findings.tables.afinn` has the word), good_valence and bad_valence (the valence
        above and below zero, 0 where there is none).
    """
    words = table[table["kind"].isin(WORD_KINDS)]
    words = words.assign(log_frequency=words["word"].map(log_frequencies())).dropna(subset="log_frequency")
    words = words[words["kind"].eq("word_start").groupby(words["word"]).transform("any")]
    text = words["token"].str.removeprefix("##").str.strip()
    is_ascii = text.str.isascii()  # ſ folds to s
    words, text = words[is_ascii], text[is_ascii]
    case = np.select([text.str.islower(), text.str.isupper()], ["lower", "upper"], "capital")
    valence = words["word"].map(afinn())
    return words.assign(
        length=text.str.len().astype(float),
        spelling=words["kind"].astype(str) + " " + case,
        log_id=np.log1p(words["token_id"].astype(float)),
        rated=valence.notna(),
        good_valence=valence.clip(lower=0).fillna(0.0),
        bad_valence=valence.clip(upper=0).fillna(0.0),
    )


def slope(words: pd.DataFrame, question: str, step: str = "token id", which: str = "rated") -> dict[str, Estimate]:
    """Slope of the reward over log frequency at one step of the ladder, with an interval by word.

    Parameters
    ----------
    words
        Of `word_tokens`.
    question
        The column of rewards.
    step
        Of `LADDER`: what this step and the steps before it add is held constant.
    which : {"rated", "unrated"}
        Words that AFINN rates, or the others.

    Returns
    -------
    dict
        slope over log frequency: units of the rewards per unit of natural log frequency, errors clustered by word.

    Raises
    ------
    InputError
        Another `which`, no such word, or predictors that determine one another.
    """
    if which not in ("rated", "unrated"):
        raise InputError(f"no words called {which!r}: choose rated or unrated")
    words = words[words["rated"] == (which == "rated")]
    if words.empty:
        raise TooFewError(f"the vocabulary spells no {which} word")
    steps = list(LADDER)[: list(LADDER).index(step) + 1]
    held = [column for name in steps for column in LADDER[name]]
    return {"slope over log frequency": _slope(words, question, held)}


def ladder(words: pd.DataFrame, question: str) -> dict[str, Estimate]:
    """Slope of the reward over log frequency among rated words at every step of `LADDER`, by the step's name."""
    return {step: slope(words, question, step)["slope over log frequency"] for step in LADDER}


def published_slope(table: pd.DataFrame, question: str) -> dict[str, Estimate]:
    """Slope of the reward over log frequency with valence held constant, as the paper has it, intervals by word.

    References
    ----------
    Christian et al. (2025), figure 3D; their intervals take every token for an observation of its own.
    """
    return {"slope as published": _slope(published_words(table), question, ["valence"])}


def published_words(table: pd.DataFrame) -> pd.DataFrame:
    """The tokens that are words of AFINN in lower case, joined with the paper's own list of frequencies.

    A token with a space in front is no word here. The list (`rmnb.data.lexicons.bnc_lemmas`) is of dictionary forms; a
    word that is noun and verb there has two rows.

    Returns
    -------
    DataFrame
        The columns of `table`, with word (the token in lower case), valence, log_frequency (natural log per million).
    """
    listed = lexicons.bnc_lemmas().query("per_million > 0")
    rated = lexicons.afinn().merge(listed, on="word")
    rated = rated.assign(log_frequency=np.log(rated["per_million"].astype(float)))
    return table.assign(word=table["token"].str.lower()).merge(rated[["word", "valence", "log_frequency"]], on="word")


def by_question(words: pd.DataFrame, good: str, bad: str, which: str = "rated") -> dict[str, Estimate]:
    """The frequency slope in two parts: one that both questions share, one that changes sign with the question.

    Parameters
    ----------
    words
        Of `word_tokens`, in standard deviations.
    good, bad
        A question for something good, and one for something bad.
    which
        As in `slope`.

    Returns
    -------
    dict
        common, the slope of half the sum of the scores; turned, of half the difference.
    """
    halves = words.assign(common=(words[good] + words[bad]) / 2, turned=(words[good] - words[bad]) / 2)
    common = slope(halves, "common", which=which)
    turned = slope(halves, "turned", which=which)
    return {"common": common["slope over log frequency"], "turned": turned["slope over log frequency"]}


def _slope(words: pd.DataFrame, question: str, held: Sequence[str]) -> Estimate:
    """Slope over log frequency, the columns of `held` that vary held constant, of spelling a column a level."""
    varying = [column for column in ("log_frequency", *held) if words[column].nunique() > 1]
    predictors = pd.get_dummies(words[varying], drop_first=True, dtype=float).assign(constant=1.0)
    return stats.fit_clustered(words[question], predictors, words["word"])["log_frequency"]
