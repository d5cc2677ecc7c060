"""Vocabularies of different tokenizers on one index, so that their scores can be compared."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb.errors import InputError
from rmnb.models.vocabulary import script_of
from rmnb.panels import Panel, load_panel
from rmnb.scoring.store import read_scores, scores_path

UNSPACED = {"han", "hiragana", "katakana", "thai", "lao", "khmer", "myanmar"}  # scripts written without spaces
_WORD_KINDS = ("word_start", "word_continuation")


def align(scans: Mapping[str, pd.DataFrame], how: str = "exact") -> pd.DataFrame:
    """Scores of several models over what their vocabularies share.

    Parameters
    ----------
    scans : mapping of str to DataFrame
        One scan a model: columns token_id, token, kind, score, one row an id.
    how : {"exact", "word"}
        exact: tokens are the same if their decoded strings are; strings that occur twice in any model are dropped, as
        the papers do (Christian et al. 2025, section 3). word: marker and case are folded first (see `word_scores`).

    Returns
    -------
    DataFrame
        float32, one column a model in the mapping's order; the index, unique and named ``token`` or ``word``, is in the
        order of the first model's ids (exact) or alphabetical (word).

    Raises
    ------
    InputError
        No scan, a scan without the columns it needs, an unknown `how`, or nothing shared.
    """
    if how not in _INDEXED:
        raise InputError(f"cannot align by {how!r}: choose exact or word")
    if not scans:
        raise InputError("nothing to align: give at least one scan")
    columns = []
    for model, scan in scans.items():
        missing = {"token", "kind", "score"} - set(scan.columns)
        if missing:
            raise InputError(f"the scan of {model} has no column {', '.join(sorted(missing))}")
        columns.append(_INDEXED[how](scan).rename(model))
    shared = columns[0].index
    for column in columns[1:]:
        shared = shared[shared.isin(column.index)]
    if shared.empty:
        raise InputError(f"the vocabularies of {', '.join(scans)} share nothing ({how})")
    return pd.DataFrame({column.name: column.loc[shared] for column in columns}, index=shared)


def word_scores(scan: pd.DataFrame) -> pd.DataFrame:
    """The mean score of each word over the tokens that spell it: with and without a space, in lower and upper case.

    A string of letters counts as a word if one of its tokens begins a word, or if its script is written without spaces;
    fragments that only ever continue words are left out.

    Returns
    -------
    DataFrame
        word (str, unique, sorted), score (float32), variants (int32, how many tokens the mean is over).
    """
    tokens = scan.loc[scan["kind"].isin(_WORD_KINDS), ["token", "kind", "score"]]
    words = tokens["token"].str.removeprefix("##").str.strip().str.casefold()
    grouped = (
        pd.DataFrame(
            {"word": words, "score": tokens["score"].astype(np.float64), "starts": tokens["kind"] == "word_start"}
        )
        .groupby("word", sort=True)
        .agg(score=("score", "mean"), variants=("score", "size"), starts=("starts", "any"))
        .reset_index()
    )
    whole = grouped["starts"] | grouped["word"].map(lambda word: script_of(str(word)) in UNSPACED)
    kept = grouped.loc[whole].reset_index(drop=True)
    return pd.DataFrame(
        {
            "word": kept["word"],
            "score": kept["score"].to_numpy(np.float32),
            "variants": kept["variants"].to_numpy(np.int32),
        }
    )


def load_scans(panel: str | Path | Panel, prompt: str, protocol: str = "exact") -> dict[str, pd.DataFrame]:
    """The scans of a panel's models for one prompt (its key), in the panel's order; see
    `rmnb.scoring.store.read_scores`.

    Raises
    ------
    InputError
        The panel or prompt is unknown, or a model has not been scanned.
    """
    panel = panel if isinstance(panel, Panel) else load_panel(panel)
    return {model.name: read_scores(panel, model.name, prompt, protocol) for model in panel.models}


def available_scans(panel: Panel, prompt: str, protocol: str = "exact") -> dict[str, pd.DataFrame]:
    """As `load_scans`, of those models that have been scanned with the prompt: none, some or all."""
    return {
        model: read_scores(panel, model, prompt, protocol)
        for model in panel.model_names
        if scores_path(panel, model, prompt, protocol).exists()
    }


def load_scores(panel: str | Path | Panel, prompt: str, protocol: str = "exact", how: str = "exact") -> pd.DataFrame:
    """Scores of a panel's models on what their vocabularies share, one column a model; see `load_scans` and `align`."""
    return align(load_scans(panel, prompt, protocol), how)


def _by_string(scan: pd.DataFrame) -> pd.Series:
    tokens = scan.loc[~((scan["kind"] == "unused") & (scan["token"] == ""))]  # ids beyond the tokenizer have no string
    once = tokens.loc[~tokens["token"].duplicated(keep=False)]
    return pd.Series(once["score"].to_numpy(np.float32), index=pd.Index(once["token"], name="token"))


def _by_word(scan: pd.DataFrame) -> pd.Series:
    words = word_scores(scan)
    return pd.Series(words["score"].to_numpy(), index=pd.Index(words["word"], name="word"))


_INDEXED: dict[str, Callable[[pd.DataFrame], pd.Series]] = {"exact": _by_string, "word": _by_word}
