"""The tokens of a scan that spell an English word, with what their reward may depend on."""

import functools
import itertools
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons
from rmnb.errors import InputError
from rmnb.findings import scan_tables
from rmnb.panels import Panel
from rmnb.scoring.store import read_scores, scores_path
from rmnb.truth.planted import RAREST

WORD_KINDS = ("word_start", "word_continuation")


@functools.cache
def frequency_list() -> pd.DataFrame:
    """How often English words occur: word (str, unique, a to z), log_frequency (float64, natural log per million).

    The list of wordfreq (Speer, 2022), of many kinds of modern text, which comes with the package.
    """
    from wordfreq import get_frequency_dict

    rarest = 10 ** (RAREST - 9)
    counts = {word: share * 1e6 for word, share in get_frequency_dict("en").items() if share >= rarest}
    table = pd.DataFrame({"word": list(counts), "per_million": list(counts.values())})
    table = table.loc[table["word"].str.fullmatch("[a-z]+")]
    return pd.DataFrame({"word": table["word"], "log_frequency": np.log(table["per_million"].to_numpy(float))})


def word_tokens(scan: pd.DataFrame) -> pd.DataFrame:
    """The tokens of a scan that spell an English word.

    A string of letters counts as a word if `frequency_list` has it and a token of this vocabulary begins a word with
    it; most fragments of words fail the second.

    Returns
    -------
    DataFrame
        Index: place in `scan`. word (str, folded), valence (float64, NaN for words absent from AFINN), length
        (letters), spelling (category: kind and case), log_id (natural log of 1 + id), log_frequency (natural log of
        frequency per million), score, z (standard deviations of the whole scan above its mean), rank (share of the
        whole scan at or below it); float64.
    """
    tokens = scan.loc[scan["kind"].isin(WORD_KINDS), ["token_id", "token", "kind"]]
    text = tokens["token"].str.removeprefix("##").str.strip()
    tokens = tokens.assign(text=text).loc[text.str.fullmatch("[A-Za-z]+").to_numpy(bool)]
    tokens["word"] = tokens["text"].str.lower()
    begin = tokens.loc[tokens["kind"] == "word_start", "word"].unique()
    tokens = tokens.loc[tokens["word"].isin(begin)]
    tokens["log_frequency"] = tokens["word"].map(frequency_list().set_index("word")["log_frequency"])
    tokens = tokens.dropna(subset="log_frequency")
    case = np.select([tokens["text"].str.islower(), tokens["text"].str.isupper()], ["lower", "upper"], "capital")
    frame = pd.DataFrame(
        {
            "word": tokens["word"].to_numpy(object),
            "valence": tokens["word"].map(lexicons.afinn().set_index("word")["valence"]).to_numpy(float),
            "length": tokens["word"].str.len().to_numpy(float),
            "spelling": pd.Categorical(tokens["kind"].astype(str) + " " + case),
            "log_id": np.log1p(tokens["token_id"].to_numpy(float)),
            "log_frequency": tokens["log_frequency"].to_numpy(float),
        },
        index=tokens.index,
    )
    return with_scores(frame, scan)


def with_scores(tokens: pd.DataFrame, scan: pd.DataFrame) -> pd.DataFrame:
    """The same tokens with the scores of another scan of the same vocabulary: columns score, z and rank."""
    score = scan["score"].to_numpy(float)
    rank = stats.mid_ranks(score) / len(score)
    place = tokens.index.to_numpy()
    return tokens.assign(score=score[place], z=stats.standardise(score)[place], rank=rank[place])


def load_tables(panel: Panel, protocol: str = "exact") -> tuple[dict[str, pd.DataFrame], list[tuple[str, str]]]:
    """Model → table of all scans that the panel has of it, and the (prompt, model) of those that it has not."""
    scans: dict[str, dict[str, pd.DataFrame]] = {}
    missing = []
    for prompt, model in itertools.product([prompt.key for prompt in panel.scanned_prompts], panel.model_names):
        if scores_path(panel, model, prompt, protocol).exists():
            scans.setdefault(model, {})[prompt] = read_scores(panel, model, prompt, protocol)
        else:
            missing.append((prompt, model))
    return {model: scan_tables.as_table(scans[model]) for model in panel.model_names if model in scans}, missing


def of_tables(tables: Mapping[str, pd.DataFrame], prompts: Iterable[str]) -> dict[str, dict[str, pd.DataFrame]]:
    """Prompt → model → `word_tokens`, for every column that a table (`rmnb.findings.scan_tables`) has of `prompts`."""
    found: dict[str, dict[str, pd.DataFrame]] = {}
    known: list[tuple[pd.Series, pd.DataFrame]] = []  # models of one base share their vocabulary
    for prompt in prompts:
        for model, table in tables.items():
            if prompt not in table:
                continue
            scan = table.assign(score=table[prompt])
            tokens = next((tokens for texts, tokens in known if texts.equals(table["token"])), None)
            if tokens is None:
                tokens = word_tokens(scan)
                known.append((table["token"], tokens))
            found.setdefault(prompt, {})[model] = with_scores(tokens, scan)
    return found


def choose(tokens: pd.DataFrame, words: str = "AFINN", unit: str = "token") -> pd.DataFrame:
    """The rows of a regression, with valence in two parts, _above and _below zero.

    Parameters
    ----------
    tokens
        From `word_tokens`.
    words : {"AFINN", "others", "all"}
        Words with a valence, words absent from AFINN, or both (valence 0 where there is none).
    unit : {"token", "word"}
        word: the mean over a word's spellings, and the lowest id among them.
    """
    if words not in ("AFINN", "others", "all"):
        raise InputError(f"no words called {words!r}: choose AFINN, others or all")
    rows = tokens
    if words != "all":
        rows = tokens.loc[tokens["valence"].notna() == (words == "AFINN")]
    spelling = rows["spelling"].cat.remove_unused_categories()
    rows = rows.assign(valence=rows["valence"].fillna(0), spelling=spelling)
    if unit == "word":
        how = dict.fromkeys(("valence", "length", "log_frequency", "score", "z", "rank"), "mean")
        rows = rows.groupby("word", as_index=False).agg(how | {"log_id": "min"}).assign(spelling="any")
    return rows.assign(valence_above=rows["valence"].clip(lower=0), valence_below=rows["valence"].clip(upper=0))


def counts(tokens: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Of each model how many words its tokens spell, by how many tokens, and the Spearman of token id and frequency."""
    lines = [
        (name, of["word"].nunique(), len(of), stats.spearman(of["log_id"], of["log_frequency"]))
        for name, of in tokens.items()
    ]
    return pd.DataFrame(
        lines, columns=["model", "words", "tokens that spell them", "Spearman of token id and frequency"]
    )
