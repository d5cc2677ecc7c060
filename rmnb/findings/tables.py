"""Scores in one shape: a table a model, a row a token, a column a question.

Columns token_id, token, kind and word (folded) name a row; every other column holds the scores of a question.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons
from rmnb.errors import InputError
from rmnb.models.vocabulary import script_of
from rmnb.panels import Panel, load_panel
from rmnb.scoring.store import read_scores

WORD_KINDS = ["word_start", "word_continuation"]
UNSPACED = {"han", "hiragana", "katakana", "thai", "lao", "khmer", "myanmar"}  # scripts written without spaces


def load_tables(
    panel: str | Path | Panel, questions: Sequence[str], protocol: str = "exact"
) -> dict[str, pd.DataFrame]:
    """Every model's scores of its whole vocabulary.

    Parameters
    ----------
    questions
        Keys of the panel's prompts, one or more.
    protocol
        Of `rmnb.scoring.store.read_scores`.

    Returns
    -------
    dict
        Model to DataFrame: token_id, token, kind, word (folded), then one float64 column a question, in the model's
        own unit.

    Raises
    ------
    InputError
        No question, an unknown panel or question, or a model that has not been scanned.
    """
    if not questions:
        raise InputError("no question: name at least one that the panel's models have been scanned with")
    panel = load_panel(panel)
    tables = {}
    for model in panel.model_names:
        scans = {question: read_scores(panel, model, question, protocol) for question in questions}
        tables[model] = as_table(scans)
    return tables


def as_table(scans: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Scans of one model, by question, as one table with the ids of the first.

    Parameters
    ----------
    scans
        Question to a scan: token_id, token, kind, score.

    Returns
    -------
    DataFrame
        As of `load_tables`; NaN where a later scan lacks an id of the first.
    """
    first_scan = next(iter(scans.values()))
    table = first_scan[["token_id", "token", "kind"]].reset_index(drop=True)
    table["word"] = table["token"].str.removeprefix("##").str.strip().str.casefold()
    for question, scan in scans.items():
        scores = scan.set_index("token_id")["score"].reindex(table["token_id"])
        table[question] = scores.to_numpy(np.float64)
    return table


def standardise(table: pd.DataFrame, questions: Sequence[str]) -> pd.DataFrame:
    """The table with its scores in standard deviations from their mean, over all of its rows.

    Parameters
    ----------
    questions
        The columns to standardise.

    Raises
    ------
    InputError
        Scores that are missing or all equal.
    """
    return table.assign(**{question: stats.standardise(table[question]) for question in questions})


def load_scores(
    panel: str | Path | Panel, questions: str | Sequence[str], protocol: str = "exact", how: str = "token"
) -> pd.DataFrame:
    """Scores of all models over what their vocabularies share.

    Parameters
    ----------
    questions
        Keys of the panel's prompts; a single one may be given as a str.
    how : {"token", "word"}
        token: tokens are the same if their decoded strings are; strings that occur twice in any model are dropped, as
        the papers do (Christian et al. 2025, section 3). word: see `by_word`.

    Returns
    -------
    DataFrame
        float64; index ``token`` (in the order of the first model's ids) or ``word`` (alphabetical); columns
        (question, model), of a single question models.

    Raises
    ------
    InputError
        As `load_tables`, or the vocabularies share nothing.
    """
    matches = {"token": by_token, "word": by_word}
    if how not in matches:
        raise InputError(f"cannot match vocabularies by {how!r}: choose token or word")
    names = [questions] if isinstance(questions, str) else list(questions)
    tables = load_tables(panel, names, protocol)
    matched = {model: matches[how](table, table[names]) for model, table in tables.items()}
    shared = pd.concat(matched, axis=1, join="inner", names=["model", "question"])
    if shared.empty:
        raise InputError(f"the vocabularies of {', '.join(tables)} share nothing ({how})")
    shared = shared.swaplevel(axis=1).reindex(columns=list(product(names, tables)))
    return shared[questions] if isinstance(questions, str) else shared  # pyright: ignore[reportReturnType]


def by_token(tokens: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Scores by decoded string; strings that two ids have are left out, and ids that have none.

    Parameters
    ----------
    tokens
        Columns token, kind, word, as in `load_tables`.
    scores
        The same rows, columns of any names.
    """
    named = ~((tokens["kind"] == "unused") & (tokens["token"] == ""))
    unique = named & ~tokens["token"].duplicated(keep=False)
    return scores[unique].set_index(pd.Index(tokens.loc[unique, "token"]))


def by_word(tokens: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Mean scores of each word over the tokens that spell it: with and without a space, in lower and upper case.

    A string of letters counts as a word if one of its tokens begins a word, or if its script is written without spaces;
    fragments that only ever continue words are left out. Parameters as of `by_token`.
    """
    is_word = tokens["kind"].isin(WORD_KINDS)
    means = scores[is_word].groupby(tokens.loc[is_word, "word"], sort=True).mean()
    starts = set(tokens.loc[tokens["kind"] == "word_start", "word"])
    is_whole = [word in starts or script_of(word) in UNSPACED for word in means.index]
    return means[is_whole]


def afinn() -> pd.Series:
    """Word (folded, unique) to valence, -5 to 5, without words rated 0: AFINN-111 (Nielsen, 2011)."""
    listed = lexicons.afinn()
    table = listed.assign(word=listed["word"].str.casefold()).drop_duplicates("word")
    return table[table["valence"] != 0].set_index("word")["valence"]


def rated_tokens(table: pd.DataFrame, ratings: pd.Series) -> pd.DataFrame:
    """The tokens of a table that spell a rated word, with a column valence.

    Parameters
    ----------
    ratings
        Word (unique, folded) to valence.
    """
    valence = table["word"].map(ratings)
    rated = table["kind"].isin(WORD_KINDS) & valence.notna()
    return table.assign(valence=valence)[rated]


def load_rated(panel: str | Path | Panel, questions: Sequence[str]) -> pd.DataFrame:
    """Tokens that spell a word of `afinn`, of all models, scores in standard deviations over each whole vocabulary.

    Returns
    -------
    DataFrame
        model, word, valence, one float64 column a question; a row a token.
    """
    parts = []
    for model, table in load_tables(panel, questions).items():
        rated = rated_tokens(standardise(table, questions), afinn())
        parts.append(rated[["word", "valence", *questions]].assign(model=model))
    return pd.concat(parts, ignore_index=True)[["model", "word", "valence", *questions]]
