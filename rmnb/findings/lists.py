"""Scores of lists of texts, of nouns, and of words at the checkpoints of a training run: a table a model."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb.data import lexicons
from rmnb.data.list_scores import list_path, read_list
from rmnb.errors import LackError
from rmnb.files import cached_sha256, data_dir
from rmnb.findings.tables import by_word, load_tables
from rmnb.models.bases import BASES
from rmnb.models.checkpoint_files import ADAPTER
from rmnb.models.origin import base_sha256
from rmnb.panels import BaseSpec, Panel, load_panel
from rmnb.scoring.store import panel_directory, refuse_other_weights
from rmnb.training.runs import trajectory_path


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
    tables = {}
    for model in panel.model_names:
        path = list_path(panel, model, name)
        if path.exists():
            tables[model], _ = read_list(path)
    if not tables:
        raise LackError(
            f"no model of panel {panel.name} has scored the list {name}: run `rmnb book lists MODEL {name}`"
        )
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
    try:
        scores = {}
        for model, table in load_list(panel, "words").items():
            scores[model] = table[table["part"] == "agency_communion"].set_index("text").drop(columns="part")
    except LackError:
        keys = [prompt.key for prompt in panel.scanned_prompts]
        scores = {model: by_word(table, table[keys]) for model, table in load_tables(panel, keys).items()}
        shared = set.intersection(*(set(table.index) for table in scores.values()))
        nouns = nouns[nouns["word"].isin(shared)]
    return {model: nouns.merge(table, left_on="word", right_index=True) for model, table in scores.items()}


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
        path = panel_directory(panel, "logprobs") / f"{spec.name}.{wrapping}.parquet"
        if path.exists():
            logprobs[spec.name, wrapping] = _noun_logprobs(path, spec)
    nouns = lexicons.agency_communion()
    tables = {}
    for (base, wrapping), table in logprobs.items():
        words = [set(other.index) for (_, asked), other in logprobs.items() if asked == wrapping]
        shared = nouns[nouns["word"].isin(set.intersection(*words))]
        tables[base, wrapping] = shared.merge(table, left_on="word", right_index=True)
    return tables


def _noun_logprobs(path: Path, spec: BaseSpec) -> pd.DataFrame:
    """Log-probabilities of a base's first words, spellings added up: index text, one column a prompt."""
    rows, provenance = read_list(path)
    is_here = not spec.adapter and (spec.source in BASES or Path(spec.source).is_dir())
    refuse_other_weights(path, provenance.get("weights_sha256"), base_sha256(spec.source) if is_here else None)
    rows = rows[rows["part"] == "agency_communion"].drop(columns=["part", "spelling"])
    return rows.groupby("text").agg(lambda logs: np.logaddexp.reduce(logs.to_numpy(float)))


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
