"""How far rankings turn with the question, under every combination of choices that nobody is forced to make."""

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.findings import scan_tables
from rmnb.findings.specifications import specification_curve, survival_rows
from rmnb.stats.estimate import Estimate

_CORRELATIONS = {
    "kendall": stats.kendall_tau,
    "spearman": stats.spearman,
    "pearson": lambda x, y: np.corrcoef(x, y)[0, 1],
}


def curves(
    tables: Mapping[str, Mapping[str, pd.DataFrame]], framings: Mapping[str, str], models: Collection[str]
) -> dict[str, pd.DataFrame]:
    """For each good question its correlation with the first bad one, mean over `models`, under all choices.

    Parameters
    ----------
    tables
        Protocol → model → table of `rmnb.findings.scan_tables`; the chapter's protocol first.
    framings
        Prompt → ``positive`` or ``negative``.
    models
        Over which the mean is: those that turn, or those that do not (`rmnb.findings.reading_question`).

    Returns
    -------
    dict
        ``greatest and worst`` → table of `rmnb.findings.specifications.specification_curve`, without intervals for a
        single model. Empty without models or without questions of both framings.
    """
    good = [prompt for prompt, framing in framings.items() if framing == "positive"]
    bad = [prompt for prompt, framing in framings.items() if framing == "negative"]
    chosen = {
        protocol: {model: table for model, table in of.items() if model in models} for protocol, of in tables.items()
    }
    return {f"{prompt} and {bad[0]}": curve(chosen, (prompt, bad[0])) for prompt in good if bad and models}


def curve(tables: Mapping[str, Mapping[str, pd.DataFrame]], pair: tuple[str, str]) -> pd.DataFrame:
    """The curve of one pair of questions, over all the models of `tables` (see `curves`); a single option is none."""

    def turn(tokens: str, correlation: str, protocol: str) -> Estimate | None:
        halves = [_chosen(table, tokens, list(pair)).to_numpy().T for table in tables[protocol].values()]
        values = [float(_CORRELATIONS[correlation](*half)) for half in halves]
        if len(values) > 1:
            return stats.mean_over_models(values)
        return Estimate(values[0], np.nan, np.nan, np.nan, np.nan, 1, 1)

    choices = {
        "tokens": ["all", "beginnings of words", "words with a valence", "words, spellings averaged"],
        "correlation": list(_CORRELATIONS),
        "protocol": [
            protocol for protocol, of in tables.items() if all(set(pair) <= set(table) for table in of.values())
        ],
    }
    table = specification_curve(choices, turn)
    return table.drop(columns=[choice for choice, options in choices.items() if len(options) == 1])


def measure(found: Mapping[str, pd.DataFrame], group: str, panel: str) -> pd.DataFrame:
    """Rows specifications_same_sign and specifications_clear of `curves`, `other` the questions and `group`."""
    counts = [survival_rows(table, "framing", panel, f"{pair}, {group}") for pair, table in found.items()]
    return pd.concat(counts, ignore_index=True) if counts else pd.DataFrame()


def _chosen(table: pd.DataFrame, tokens: str, prompts: list[str]) -> pd.DataFrame:
    if tokens == "words, spellings averaged":
        return table[table["kind"].isin(["word_start", "word_continuation"])].groupby("word")[prompts].mean()
    if tokens == "beginnings of words":
        return table.loc[table["kind"] == "word_start", prompts]
    return table.loc[table["word"].isin(scan_tables.afinn()["word"]), prompts] if tokens != "all" else table[prompts]
