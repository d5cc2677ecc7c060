"""Does it travel: rewards of words alone, of the same words inside sentences, and of answers that hold them.

A carrier is a sentence with a place for a word. In a table of carriers the column ``greatest`` is of the words alone as
answers to that question, ``greatest.plain`` of the words in its carrier ``plain``.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from rmnb.errors import LackError
from rmnb.findings.tables import as_table
from rmnb.models.origin import hashes_now
from rmnb.panels import Panel, load_panel
from rmnb.panels.specs import PANELS
from rmnb.plans import refuse_other
from rmnb.scoring.store import panel_directory, read_scores, read_table, refuse_stale
from rmnb.stats.estimate import Estimate, estimate_from_error


def sentences() -> pd.DataFrame:
    """The book's carriers: question, key, kind (asserts, denies or quotes), text with a ``{}``; index column."""
    written = yaml.safe_load((PANELS / "carriers/demo.yml").read_text(encoding="utf-8"))
    rows = {f"{asked}.{each['key']}": {"question": asked, **each} for asked in written for each in written[asked]}
    return pd.DataFrame.from_dict(rows, orient="index")


def load_carriers(panel: str | Path | Panel) -> dict[str, pd.DataFrame]:
    """Rewards of the same words alone and in carriers, of every model of a panel that has such a table.

    The tables (``workflow/carriers.py`` writes them) hold numbers of 16 bits, each column on its own scale.

    Returns
    -------
    dict
        Model to DataFrame: token_id, token, kind, word (folded), then float64 columns in the model's own unit: one a
        question, from its scan, and one a carrier.

    Raises
    ------
    InputError
        A table or scan is damaged or stale: of another sentence, or as of `rmnb.scoring.store.read_scores`.
    LackError
        No model has a table.
    """
    panel = load_panel(panel)
    carriers = sentences()
    tables = {}
    for spec in panel.models:
        path = panel_directory(panel, "carriers") / f"{spec.name}.parquet"
        if not path.exists():
            continue
        numbers, provenance = read_table(path)
        alone = {question: read_scores(panel, spec.name, question) for question in carriers["question"].unique()}
        table = as_table(alone).merge(numbers, on="token_id")
        for name, scanned in provenance["rewards"].items():
            question = panel.prompt(name.partition(".")[0])
            asked = {"answer": carriers["text"].get(name), "protocol": "exact"}
            refuse_stale(path, {**provenance, **scanned}, panel, spec, question, **asked)
            table[name] = scanned["low"] + scanned["step"] * table[name]
        tables[spec.name] = table
    if not tables:
        raise LackError(
            f"no model of panel {panel.name} has scored words in carriers: run `python workflow/carriers.py scan MODEL`"
        )
    return tables


def answers_path(panel: Panel, name: str) -> Path:
    """Where a model's rewards of held-out answers are, and, as ``contents``, what words the answers hold."""
    return panel_directory(panel, "carriers") / "answers" / f"{name}.parquet"


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
    contents, described = read_table(answers_path(panel, "contents"))
    tables = {}
    for spec in panel.models:
        path = answers_path(panel, spec.name)
        if path.exists():
            rewards, provenance = read_table(path)
            refuse_other(path, provenance, {**hashes_now(spec), "texts_sha256": described["texts_sha256"]})
            tables[spec.name] = contents.assign(reward=rewards["reward"])
    return tables


def word_slopes(answers: pd.DataFrame, alone: pd.Series) -> tuple[Estimate, pd.Series]:
    """Whether a word moves the reward of the answers that hold it as its own reward says, within prompts.

    One regression: of the differences between answers to the same prompt, on those of the log of their length, of how
    many of the words they hold, of the sum of these words' own rewards, and of each word's presence. The slopes of the
    last are shrunk to zero, as far as the data say; the first three are not.

    Parameters
    ----------
    answers
        As of `load_answers`; the reward in any unit.
    alone
        Each word's own reward, in standard deviations of these words. Its index are columns of `answers`.

    Returns
    -------
    Estimate
        By how much the slope of a word's presence rises with its own reward: units of the answers' reward per standard
        deviation. The interval takes words and prompts as drawn.
    Series
        Word to the slope of its presence, shrunk to what its own reward lets expect.

    References
    ----------
    MacKay (1992), Bayesian interpolation. Helmert's contrasts make independent differences of three answers or more.
    """
    from scipy.linalg import helmert
    from sklearn.linear_model import BayesianRidge

    holds = answers[alone.index].to_numpy(float)
    fixed = np.column_stack([np.log(answers["length"].clip(lower=1)), holds.sum(axis=1), holds @ alone])
    flat = 1e3  # columns so much larger are hardly shrunk
    columns = np.column_stack([answers["reward"], flat * fixed, holds])
    prompts = answers.groupby("prompt").indices.values()
    differences = np.concatenate([helmert(len(rows)) @ columns[rows] for rows in prompts])
    fit = BayesianRidge(fit_intercept=False, max_iter=1000).fit(differences[:, 1:], differences[:, 0])
    _, of_any, of_reward, *own = flat * fit.coef_
    error = flat * fit.sigma_[2, 2] ** 0.5
    estimate = estimate_from_error(of_reward, error, len(answers), len(alone), df=len(alone) - 2)
    return estimate, of_any + of_reward * alone + np.divide(own, flat)
