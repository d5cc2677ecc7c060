"""What rows on the agreement with people say together: over models, over questions, beside votes and print."""

from typing import Any

import pandas as pd

from rmnb import stats
from rmnb.findings.counts import sign_counts
from rmnb.findings.people import QUESTION
from rmnb.findings.results import Results

_SUMMED = ("human_spearman", "human_spearman_words", "human_spearman_corrected", "afinn_spearman")


def over_models(rows: pd.DataFrame) -> pd.DataFrame:
    """What rows of the finding say together, by source and prompt.

    Parameters
    ----------
    rows
        Of `rmnb.findings.people.measure` and `rmnb.findings.votes.measure`, with the published ones.

    Returns
    -------
    DataFrame
        human_spearman and afinn_spearman without a model: mean and interval over models; the counts of
        `rmnb.findings.counts.sign_counts`; median_over_models; question_spread; votes_explain; as_near_as_valence; and
        published_range.
    """
    results = Results("elo")
    of_models = rows[(rows["model"] != "") & rows["source"].isin(["released", "panel"])]
    for (statistic, other), of_statistic in of_models.groupby(["statistic", "other"], sort=False):
        if statistic not in _SUMMED:
            continue
        for _, of in of_statistic.groupby(["source", "panel", "prompt", "protocol"], sort=False):
            source, about = _about(of)
            name = f"{statistic} {other}".strip()
            results.add(source, "median_over_models", of["value"].median(), other=name, n=len(of), **about)
            if statistic in ("human_spearman", "afinn_spearman"):
                results.extend(sign_counts(of, str(statistic)))
                if len(of) > 1:
                    results.add(source, str(statistic), stats.mean_over_models(of["value"]), **about)
    agreement = of_models[of_models["statistic"] == "human_spearman"]
    for _, of in agreement.groupby(["source", "panel", "protocol"], sort=False):
        source, about = _about(of)
        wide = of.pivot(index="model", columns="prompt", values="value").dropna()
        if wide.shape[1] > 1 and len(wide):
            spread = (wide.max(axis=1) - wide.min(axis=1)).median()
            results.add(source, "question_spread", spread, n=len(wide), **{**about, "prompt": ""})
    results.extend(_beside(rows, agreement[agreement["prompt"] == QUESTION]))
    return results.frame()


def _beside(rows: pd.DataFrame, agreement: pd.DataFrame) -> pd.DataFrame:
    """Rows that hold models against the error of the votes, against the rated words, and against what is printed."""
    results = Results("elo")
    rated = rows.loc[rows["statistic"] == "elo_valence_spearman", "value"]
    printed = rows.loc[(rows["statistic"] == "human_spearman") & (rows["source"] == "published"), "value"]
    for _, of in agreement.groupby("source", sort=False):
        source, about = _about(of)
        here = rows[(rows["source"] == source) & (rows["prompt"] == QUESTION) & (rows["model"] != "")]
        raw = of["value"].median()
        after = here[here["statistic"] == "human_spearman_corrected"].groupby("other", sort=False)["value"].median()
        for assumed, value in after.items():
            share = (value - raw) / (1 - raw)
            results.add(source, "votes_explain", share, other=str(assumed), n=len(of), **about)
        words = here.loc[here["statistic"] == "human_spearman_words", "value"]
        if len(words) and len(rated):
            near = int((words >= rated.iloc[0]).sum())
            results.add(source, "as_near_as_valence", near, n=len(words), **about)
        if source == "panel" and len(printed):
            within = int(of["value"].between(printed.min(), printed.max()).sum())
            results.add(source, "published_range", within, other="within", n=len(of), **about)
            above = int((of["value"] > printed.max()).sum())
            results.add(source, "published_range", above, other="above", n=len(of), **about)
    return results.frame()


def _about(rows: pd.DataFrame) -> tuple[str, dict[str, Any]]:
    first = rows.iloc[0]
    return first["source"], {column: first[column] for column in ("panel", "prompt", "protocol")}
