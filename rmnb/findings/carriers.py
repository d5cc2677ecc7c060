"""Does it travel: rewards of words alone, of the same words inside sentences, and of answers that hold them.

A carrier is a sentence with a place for a word. In a table of carriers the column ``greatest`` is of the words alone as
answers to that question, ``greatest.plain`` of the words in its carrier ``plain``.
"""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import yaml

from rmnb.errors import InputError
from rmnb.findings.tables import as_table
from rmnb.models.origin import hashes_now
from rmnb.panels import ModelSpec, Panel
from rmnb.panels.specs import PANELS
from rmnb.plans import refuse_other
from rmnb.scoring.store import panel_directory, read_scores, read_table, refuse_stale


def sentences() -> pd.DataFrame:
    """The book's carriers: question, key, kind (asserts, denies or quotes), text with a ``{}``; index column."""
    written = yaml.safe_load((PANELS / "carriers/demo.yml").read_text(encoding="utf-8"))
    rows = {f"{asked}.{each['key']}": {"question": asked, **each} for asked in written for each in written[asked]}
    return pd.DataFrame.from_dict(rows, orient="index")


def table_path(panel: Panel, model: str, is_whole: bool = False) -> Path:
    """Where a panel keeps a model's rewards of words in carriers, or of every token of its vocabulary."""
    return panel_directory(panel, "carriers") / f"{model}{'.whole' if is_whole else ''}.parquet"


def load_carriers(panel: Panel, models: Iterable[ModelSpec], is_whole: bool = False) -> dict[str, pd.DataFrame]:
    """Rewards of the same words alone and in carriers, of those models of a panel that have such a table.

    The tables (``workflow/carriers.py`` writes them) hold numbers of 16 bits, each column on its own scale. With
    `is_whole` those of every token of a vocabulary, which few models have, in few carriers.

    Returns
    -------
    dict
        Model to DataFrame: token_id, token, kind, word (folded), then float64 columns in the model's own unit: one a
        question, from its scan, and one a carrier.

    Raises
    ------
    InputError
        A table of words lacks a carrier, or a table or scan is damaged or stale: of another sentence, or as of
        `rmnb.scoring.store.read_scores`.
    """
    carriers = sentences()
    tables = {}
    for spec in models:
        path = table_path(panel, spec.name, is_whole)
        if not path.exists():
            continue
        numbers, provenance = read_table(path)
        alone = {question: read_scores(panel, spec.name, question) for question in carriers["question"].unique()}
        table = as_table(alone).merge(numbers, on="token_id")
        for name, scanned in provenance["rewards"].items():
            question = panel.prompt(name.partition(".")[0])
            refuse_stale(path, {**provenance, **scanned}, panel, spec, question, answer=carriers["text"].get(name))
            table[name] = scanned["low"] + scanned["step"] * table[name]
        missing = carriers.index.difference(numbers.columns)
        if len(missing) and not is_whole:
            command = f"python workflow/carriers.py {panel.name} scan {spec.name}"
            raise InputError(f"{path} lacks the sentences {', '.join(missing)}: run {command}")
        tables[spec.name] = table
    return tables


def load_answers(panel: Panel) -> dict[str, pd.DataFrame]:
    """Rewards of answers that people compared, of every model of a panel that has scored them.

    Returns
    -------
    dict
        Model to DataFrame, a row a distinct answer to a prompt: prompt (its number), length (words), a bool column a
        word (whether the answer holds it), and reward (float32).

    Raises
    ------
    InputError
        A table is damaged, of other answers, or of other weights than the model's.
    """
    directory = panel_directory(panel, "carriers") / "answers"
    contents, described = read_table(directory / "contents.parquet")
    tables = {}
    for spec in panel.models:
        path = directory / f"{spec.name}.parquet"
        if path.exists():
            rewards, provenance = read_table(path)
            refuse_other(path, provenance, {**hashes_now(spec), "texts_sha256": described["texts_sha256"]})
            tables[spec.name] = contents.assign(reward=rewards["reward"])
    return tables
