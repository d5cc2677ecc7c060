"""Scores in one shape: a table a model, a row a token, a column a question.

Columns token_id, token, kind and word (folded) name a row; every other column holds the scores of a question.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons
from rmnb.errors import InputError, LackError
from rmnb.files import cached_sha256, data_dir
from rmnb.models.bases import BASES, base_sha256
from rmnb.models.checkpoint_files import ADAPTER
from rmnb.models.vocabulary import script_of
from rmnb.panels import Panel, load_panel
from rmnb.scoring.list_scores import list_path, read_list
from rmnb.scoring.store import panel_directory, read_scores, refuse_other_weights
from rmnb.training.runs import trajectory_path

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
    tables: dict[str, pd.DataFrame] = {}
    for model in panel.model_names:
        scans = {question: read_scores(panel, model, question, protocol) for question in questions}
        tables[model] = as_table(scans, tables.values())
    return tables


def as_table(scans: Mapping[str, pd.DataFrame], others: Iterable[pd.DataFrame] = ()) -> pd.DataFrame:
    """Scans of one model, by question, as one table with the ids of the first.

    Parameters
    ----------
    scans
        Question to a scan: token_id, token, kind, score.
    others
        Tables of other models: words are taken from one that has the same tokens, which is faster than folding again.

    Returns
    -------
    DataFrame
        As of `load_tables`; NaN where a later scan lacks an id of the first.
    """
    first_scan = next(iter(scans.values()))
    tokens = first_scan[["token_id", "token", "kind"]].reset_index(drop=True)
    for other in others:
        if other["token"].equals(tokens["token"]):
            word = other["word"]
            break
    else:
        word = tokens["token"].str.removeprefix("##").str.strip().str.casefold()
    table = tokens.assign(word=word)
    for question, scan in scans.items():
        scores = scan.set_index("token_id")["score"].reindex(tokens["token_id"])
        table[question] = scores.to_numpy(np.float64)
    return table


def standardise(table: pd.DataFrame, questions: Sequence[str], scale: str = "score") -> pd.DataFrame:
    """The table with its scores in standard deviations from their mean, over all of its rows.

    Parameters
    ----------
    questions
        The columns to standardise.
    scale : {"score", "rank"}
        rank: standard deviations of average ranks, so that only the order counts.

    Raises
    ------
    InputError
        Another `scale`, or scores that are missing or all equal.
    """
    if scale not in ("score", "rank"):
        raise InputError(f"unknown scale {scale!r}: choose score or rank")
    columns = {}
    for question in questions:
        values = table[question] if scale == "score" else stats.mid_ranks(table[question])
        columns[question] = stats.standardise(values)
    return table.assign(**columns)


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
    if how not in ("token", "word"):
        raise InputError(f"cannot match vocabularies by {how!r}: choose token or word")
    names = [questions] if isinstance(questions, str) else list(questions)
    tables = load_tables(panel, names, protocol)
    match = by_token if how == "token" else by_word
    parts = []
    for models in _by_vocabulary(tables):
        scores = pd.concat({model: tables[model][names] for model in models}, axis=1)
        parts.append(match(tables[models[0]], scores.swaplevel(axis=1)))
    shared = pd.concat(parts, axis=1, join="inner")
    if shared.empty:
        raise InputError(f"the vocabularies of {', '.join(tables)} share nothing ({how})")
    shared = shared[[(question, model) for question in names for model in tables]]
    shared.columns.names = ["question", "model"]
    return shared[questions] if isinstance(questions, str) else shared


def _by_vocabulary(tables: Mapping[str, pd.DataFrame]) -> list[list[str]]:
    """The models that share a vocabulary, whose strings need to be matched only once."""
    groups: list[list[str]] = []
    for model, table in tables.items():
        for group in groups:
            if tables[group[0]]["token"].equals(table["token"]):
                group.append(model)
                break
        else:
            groups.append([model])
    return groups


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


def afinn(edition: str = "111") -> pd.Series:
    """Word (folded, unique) to valence, -5 to 5, without words rated 0: AFINN-111 (Nielsen, 2011) or edition 165.

    Parameters
    ----------
    edition : {"111", "165"}
        165 has more words.
    """
    if edition == "111":
        table = lexicons.afinn()
    else:
        with resources.files("afinn").joinpath(f"data/AFINN-en-{edition}.txt").open(encoding="utf-8") as file:
            table = pd.read_csv(file, sep="\t", names=["word", "valence"], keep_default_na=False, quoting=3)
    table = table.assign(word=table["word"].str.casefold()).drop_duplicates("word")
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


def load_rated(panel: str | Path | Panel, questions: Sequence[str], lexicon: pd.Series | None = None) -> pd.DataFrame:
    """Tokens that spell a rated word, of all models, scores in standard deviations over each whole vocabulary.

    Parameters
    ----------
    lexicon
        Word to valence; `afinn` unless given.

    Returns
    -------
    DataFrame
        model, word, valence, one float64 column a question; a row a token.
    """
    ratings = afinn() if lexicon is None else lexicon
    parts = []
    for model, table in load_tables(panel, questions).items():
        rated = rated_tokens(standardise(table, questions), ratings)
        parts.append(rated[["word", "valence", *questions]].assign(model=model))
    return pd.concat(parts, ignore_index=True)[["model", "word", "valence", *questions]]


def load_list(panel: str | Path | Panel, name: str) -> dict[str, pd.DataFrame]:
    """Scores of a list of texts (words, elo, identity_pairs) by every model that has scored it.

    Returns
    -------
    dict
        Model to DataFrame: part, text, one float32 column a question.

    Raises
    ------
    InputError
        No model of the panel has scored the list, or a file is damaged or of other texts.
    """
    panel = load_panel(panel)
    tables = _read_lists(panel, name)
    if not tables:
        raise LackError(
            f"no model of panel {panel.name} has scored the list {name}: run `rmnb book lists MODEL {name}`"
        )
    return tables


def _read_lists(panel: Panel, name: str) -> dict[str, pd.DataFrame]:
    """The list as scored by each model that has scored it; empty where none has."""
    tables = {}
    for model in panel.model_names:
        path = list_path(panel, model, name)
        if path.exists():
            tables[model], _ = read_list(path)
    return tables


def load_nouns(panel: str | Path | Panel) -> dict[str, pd.DataFrame]:
    """Scores of the project's nouns of agency and communion by every model that has scored the list `words`.

    Returns
    -------
    dict
        Model to DataFrame: word, category, one column a prompt. In a panel without the list the scans of whole
        vocabularies are used instead: nouns that all of them spell in one token, spellings averaged, scanned prompts
        only.

    Raises
    ------
    InputError
        Neither the list nor the scans are there, or a file is damaged or of other texts.
    """
    panel = load_panel(panel)
    nouns = lexicons.agency_communion()
    scores = {}
    for model, table in _read_lists(panel, "words").items():
        part = table[table["part"] == "agency_communion"].drop(columns="part")
        scores[model] = part.rename(columns={"text": "word"})
    if not scores:
        keys = [prompt.key for prompt in panel.scanned_prompts]
        scores = {model: by_word(table, table[keys]) for model, table in load_tables(panel, keys).items()}
        shared = set.intersection(*(set(table.index) for table in scores.values()))
        nouns = nouns[nouns["word"].isin(shared)]
    return {model: nouns.merge(table, on="word") for model, table in scores.items()}


def load_logprobs(panel: str | Path | Panel) -> dict[tuple[str, str], pd.DataFrame]:
    """Log-probabilities that the answers of the panel's bases begin with the nouns of agency and communion.

    Returns
    -------
    dict
        (base, wrapping: how it was asked) to DataFrame: word, category, and one column a prompt, the natural logarithm
        of the probability that the first token of the answer spells the noun (with or without a space, capital or not).
        Nouns that all bases asked in that way spell in one token; empty where no base was asked.
    """
    panel = load_panel(panel)
    logprobs: dict[tuple[str, str], pd.DataFrame] = {}
    for spec, wrapping in product(panel.bases, ("chat", "bare", "user_assistant")):
        base = spec.name
        path = panel_directory(panel, "logprobs") / f"{base}.{wrapping}.parquet"
        if path.exists():
            rows, provenance = read_list(path)
            here = not spec.adapter and (spec.source in BASES or Path(spec.source).is_dir())
            refuse_other_weights(path, provenance.get("weights_sha256"), base_sha256(spec.source) if here else None)
            rows = rows[rows["part"] == "agency_communion"].drop(columns=["part", "spelling"])
            spellings = rows.groupby("text")
            logprobs[base, wrapping] = spellings.agg(lambda logs: np.logaddexp.reduce(logs.to_numpy(float)))
    nouns = lexicons.agency_communion()
    tables = {}
    for (base, wrapping), table in logprobs.items():
        words = [set(other.index) for (_, asked), other in logprobs.items() if asked == wrapping]
        shared = nouns[nouns["word"].isin(set.intersection(*words))]
        tables[base, wrapping] = shared.merge(table, left_on="word", right_index=True)
    return tables


def load_trajectories(panel: str | Path | Panel) -> dict[str, pd.DataFrame]:
    """Scores of a panel's training runs at the checkpoints kept: the runs of its models, and those only watched.

    Returns
    -------
    dict
        Run to DataFrame: part (of the list `training`), word, then one float32 column a checkpoint, named after its
        step, in order. A word of two parts has two rows.

    Raises
    ------
    InputError
        No run has been followed, or a file is damaged or of other texts.
    """
    panel = load_panel(panel)
    runs = {}
    for spec in (*panel.models, *panel.watched):
        path = trajectory_path(panel, spec.name)
        if path.exists():
            rows, provenance = read_list(path)
            adapter = data_dir() / (spec.adapter or "-") / ADAPTER
            if adapter.exists():
                last = [None, *provenance.get("weights_sha256", {}).values()][-1]
                refuse_other_weights(path, last, cached_sha256(adapter))
            runs[spec.name] = rows.rename(columns={"text": "word"})
    if not runs:
        raise LackError(f"no training run of panel {panel.name} has been followed: run `rmnb book train`")
    return runs
