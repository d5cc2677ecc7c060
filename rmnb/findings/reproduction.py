"""What became of each published number: reproduced from the authors' data, different, or out of reach, and why."""

import numpy as np
import pandas as pd

from rmnb.data import sources
from rmnb.findings import released, released_vocabulary
from rmnb.findings.results import COLUMNS, KEY, Results, published, side_by_side

REPRODUCED, DIFFERS, OUT_OF_REACH = "reproduced", "differs", "not reproducible here"

_TABLES = "needs the ten tables of scores over full vocabularies"
_LOG_PROBABILITIES = "needs the base models' log-probabilities"
_REASONS = {
    **dict.fromkeys(("mean", "variance", "skewness", "kendall_tau"), _TABLES),
    **dict.fromkeys(("slope_positive", "slope_negative", "slope_log_frequency", "positive_frequency_slopes"), _TABLES),
    **dict.fromkeys(("anova_f", "mwlr_positive_pairs"), _LOG_PROBABILITIES),
}
_FROM_SMALL_FILES = ("heterogeneity", "elo", "agency_communion", "moral_foundations")
_FROM_TABLES = {
    "heterogeneity": (released_vocabulary.heterogeneity,),
    "asymmetry": (released_vocabulary.valence_slopes,),
    "frequency": (released_vocabulary.frequency_slopes,),
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
        The full vocabularies, as `rmnb.findings.released_vocabulary.published_tables` gives them.

    Returns
    -------
    (DataFrame, str)
        Rows of the results table, and why released rows are missing (empty if none is).
    """
    parts, missing = [published().query("finding == @finding").reindex(columns=list(COLUMNS))], ""
    if finding in _FROM_SMALL_FILES:
        try:
            parts.append(released.all_rows(finding))
        except sources.UnreachableError as error:
            missing = str(error)
    parts += [function(tables) for function in _FROM_TABLES.get(finding, ()) if tables]
    # The size of the vocabulary comes out of two files.
    rows = pd.concat([part for part in parts if len(part)] or parts[:1]).drop_duplicates(list(KEY))
    results = Results(finding)
    results.extend(rows)
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
        statistic, prompt, model, other (str), published, released, difference, tolerance (float64), verdict and reason
        (str; the reason says why a number is not reproducible here). The tolerance is the published number's precision:
        0 for numbers in the authors' data, the error of reading for numbers read off a figure.
    """
    key = ["statistic", "prompt", "model", "other"]
    table = side_by_side(rows)[["published", "released"]].dropna(subset="published").reset_index()
    precision = published().set_index(["finding", *key])["tolerance"]
    finding = rows["finding"].iloc[0] if len(rows) else ""
    wanted = pd.MultiIndex.from_frame(table[key].assign(finding=finding)[["finding", *key]])
    tolerance = precision.reindex(wanted).fillna(0.0).to_numpy()
    difference = table["released"] - table["published"]
    close = difference.abs().to_numpy() <= tolerance + 1e-9
    verdict = np.where(difference.isna(), OUT_OF_REACH, np.where(close, REPRODUCED, DIFFERS))
    reason = table["statistic"].map(_REASONS).fillna("needs a file that cannot be reached from here")
    return table.assign(
        difference=difference, tolerance=tolerance, verdict=verdict, reason=reason.where(verdict == OUT_OF_REACH, "")
    )
