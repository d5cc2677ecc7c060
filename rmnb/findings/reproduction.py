"""What became of each published number: reproduced from the authors' data, different, or out of reach, and why."""

import numpy as np
import pandas as pd

from rmnb.data import sources
from rmnb.findings import released
from rmnb.findings.results import COLUMNS, Results, published, side_by_side

REPRODUCED, DIFFERS, OUT_OF_REACH = "reproduced", "differs", "not reproducible here"

_TABLES = "needs the ten tables of scores over full vocabularies"
_LOG_PROBABILITIES = "needs the base models' log-probabilities"
_REASONS = {
    **dict.fromkeys(("mean", "variance", "skewness", "kendall_tau"), _TABLES),
    **dict.fromkeys(("slope_positive", "slope_negative", "slope_log_frequency", "positive_frequency_slopes"), _TABLES),
    **dict.fromkeys(("anova_f", "mwlr_positive_pairs"), _LOG_PROBABILITIES),
}
#: In the order of the papers.
FINDINGS = ("heterogeneity", "asymmetry", "frequency", "elo", "agency_communion", "moral_foundations")


def collect(finding: str, tables: dict[str, pd.DataFrame] | None) -> tuple[pd.DataFrame, str]:
    """Published and released rows of a finding, as far as the authors' files can be reached.

    Parameters
    ----------
    finding : str
        One of `FINDINGS`.
    tables : dict of DataFrame or None
        The full vocabularies, as `rmnb.data.released_files.vocabularies` gives them.

    Returns
    -------
    (DataFrame, str)
        Rows of the results table, and why released rows are missing (empty if none is).
    """
    printed, missing = published().query("finding == @finding").reindex(columns=list(COLUMNS)), ""
    try:
        found = released.measure(finding, tables)
    except sources.UnreachableError as error:
        found, missing = printed.iloc[:0], str(error)
    results = Results(finding)
    results.extend(pd.concat([rows for rows in (printed, found) if len(rows)] or [printed]))
    return results.frame(), missing


def verdicts(rows: pd.DataFrame) -> pd.DataFrame:
    """Each published number with the released one and what follows.

    Parameters
    ----------
    rows : DataFrame
        Rows of the results table on one finding.

    Returns
    -------
    DataFrame
        finding, statistic, prompt, model, other (str), published, released, difference, tolerance (float64), verdict
        and reason (str; why a number is not reproducible here). The tolerance is the published number's precision: 0
        for numbers in the authors' data, the error of reading for numbers read off a figure.
    """
    key = ["finding", "statistic", "prompt", "model", "other"]
    table = side_by_side(rows)[["published", "released"]].dropna(subset="published").reset_index()
    table.insert(0, "finding", rows["finding"].iloc[0] if len(rows) else "")
    precision = published().set_index(key)["tolerance"]
    tolerance = precision.reindex(pd.MultiIndex.from_frame(table[key])).fillna(0.0).to_numpy()
    difference = table["released"] - table["published"]
    close = difference.abs().to_numpy() <= tolerance + 1e-9
    verdict = np.where(difference.isna(), OUT_OF_REACH, np.where(close, REPRODUCED, DIFFERS))
    reason = table["statistic"].map(_REASONS).fillna("needs a file that cannot be reached from here")
    return table.assign(
        difference=difference, tolerance=tolerance, verdict=verdict, reason=reason.where(verdict == OUT_OF_REACH, "")
    )


def counts(judged: pd.DataFrame) -> pd.DataFrame:
    """How many numbers of each finding got each verdict: a line a finding, a column a verdict."""
    kinds = [REPRODUCED, DIFFERS, OUT_OF_REACH]
    table = pd.crosstab(judged["finding"], judged["verdict"])
    return table.reindex(index=judged["finding"].unique(), columns=kinds, fill_value=0)


def described(judged: pd.DataFrame, digits: int = 2) -> pd.DataFrame:
    """Verdicts to be shown: a line a number, called by what tells it from the others; the rest is the first head."""
    about = judged[["statistic", "model", "other", "prompt"]].apply(lambda column: column.str.replace("_", " "))
    differ = [column for column in about if about[column].nunique() > 1] or ["statistic"]
    common = ", ".join(about[column].iloc[0] for column in about if column not in differ and about[column].iloc[0])
    return pd.DataFrame(
        {
            common or "number": about[differ].agg(lambda parts: ", ".join(filter(None, parts)), axis=1),
            "published": judged["published"],
            "released": judged["released"],
            "difference": judged["difference"].round(digits) + 0.0,  # no -0.00
            "verdict": judged["verdict"],
        }
    )
