"""Scans of one model under several prompts as one table, and the rated words in it: what several findings take.

A table has the columns token_id, token, kind, word (folded), and a column of scores a prompt.
"""

from collections.abc import Mapping, Sequence
from importlib import resources

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons
from rmnb.errors import InputError
from rmnb.panels import Panel, PromptSpec
from rmnb.scoring.store import read_scores, scores_path

#: Which tokens of a rated word count.
TOKENS = ("every spelling", "first in a word", "as published", "mean of spellings")
_WORDS = ("word_start", "word_continuation")


def scanned(panel: Panel, protocol: str = "exact") -> list[PromptSpec]:
    """The panel's prompts that all of its models have been scanned with."""
    return [
        prompt
        for prompt in panel.scanned_prompts
        if all(scores_path(panel, model, prompt.key, protocol).exists() for model in panel.model_names)
    ]


def load_tables(panel: Panel, prompts: Sequence[str], protocol: str = "exact") -> dict[str, pd.DataFrame]:
    """For each model, in panel order, one table of its scans with `prompts`: token_id, token, kind, word, prompts….

    Raises
    ------
    InputError
        No prompt, or a model that has not been scanned with one of them.
    """
    if not prompts:
        raise InputError(f"no prompt of panel {panel.name!r} has been scanned with all models: run `rmnb scan`")
    return {
        model: as_table({prompt: read_scores(panel, model, prompt, protocol) for prompt in prompts})
        for model in panel.model_names
    }


def load_found(panel: Panel, protocol: str = "exact") -> dict[str, pd.DataFrame]:
    """The same with what scans there are: a model without any is left out, the others have the prompts they have."""
    tables = {}
    for model in panel.model_names:
        keys = [p.key for p in panel.scanned_prompts if scores_path(panel, model, p.key, protocol).exists()]
        if keys:
            tables[model] = as_table({key: read_scores(panel, model, key, protocol) for key in keys})
    return tables


def as_table(scans: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Scans of one model, by prompt, as one table."""
    first = next(iter(scans.values())).reset_index(drop=True)
    word = first["token"].str.removeprefix("##").str.strip().str.casefold()
    scores = {
        prompt: scan.set_index("token_id")["score"].reindex(first["token_id"]).to_numpy(np.float64)
        for prompt, scan in scans.items()
    }
    return first[["token_id", "token", "kind"]].assign(word=word, **scores)


def prompts_of(table: pd.DataFrame) -> list[str]:
    """The keys of a table's prompts, in the order of its columns."""
    return [str(column) for column in table if column not in ("token_id", "token", "kind", "word")]


def on_scale(table: pd.DataFrame, prompts: Sequence[str], scale: str) -> pd.DataFrame:
    """The table with its scores on another scale, over the whole vocabulary.

    Parameters
    ----------
    scale : {"score", "rank"}
        score: in standard deviations from the mean. rank: ranks likewise, so that only the order counts.
    """
    scores = {prompt: table[prompt] if scale == "score" else stats.mid_ranks(table[prompt]) for prompt in prompts}
    return table.assign(**{prompt: stats.standardise(values) for prompt, values in scores.items()})


def afinn(edition: str = "111") -> pd.DataFrame:
    """AFINN-111 (`rmnb.data.lexicons.afinn`) or the longer AFINN-165: word (unique), valence, without words rated 0."""
    if edition == "111":
        table = lexicons.afinn()
    else:
        with resources.files("afinn").joinpath(f"data/AFINN-en-{edition}.txt").open(encoding="utf-8") as file:
            table = pd.read_csv(file, sep="\t", names=["word", "valence"], keep_default_na=False, quoting=3)
    table = table.assign(word=table["word"].str.casefold()).drop_duplicates("word")
    return table[table["valence"] != 0].reset_index(drop=True)


def rated(table: pd.DataFrame, prompt: str, lexicon: pd.DataFrame, tokens: str = "every spelling") -> pd.DataFrame:
    """The tokens of a table that spell a rated word: word, valence, score, one row a token (or a word).

    Parameters
    ----------
    lexicon : word (unique, lower case), valence
    tokens : one of `TOKENS`
        "as published": the lower-cased text is the word, blanks kept, so that " love" does not count.
    """
    if tokens not in TOKENS:
        raise InputError(f"cannot choose tokens by {tokens!r}: choose one of {', '.join(TOKENS)}")
    word, keep = table["word"], table["kind"].isin(_WORDS[:1] if tokens == "first in a word" else _WORDS)
    if tokens == "as published":
        word, keep = table["token"].str.lower(), pd.Series(True, index=table.index)
    valence = word.map(lexicon.set_index("word")["valence"])
    found = pd.DataFrame({"word": word, "valence": valence, "score": table[prompt]})[keep & valence.notna()]
    if tokens == "mean of spellings":
        found = found.groupby("word", as_index=False).mean()
    return found.reset_index(drop=True)
