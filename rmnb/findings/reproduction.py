"""What became of each published number: reproduced from the authors' data, different, or out of reach, and why."""

import numpy as np
import pandas as pd

from rmnb.findings import released_rows
from rmnb.findings.names import in_words
from rmnb.findings.results import published, side_by_side

REPRODUCED, DIFFERS, OUT_OF_REACH = "reproduced", "differs", "not reproducible here"
NAMES = {REPRODUCED: "reproduced", DIFFERS: "differs", OUT_OF_REACH: "out_of_reach"}  # in the results table

_TABLES = "needs the ten tables of scores over full vocabularies"
_LOG_PROBABILITIES = "needs the base models' log-probabilities"
_REASONS = {
    **dict.fromkeys(("mean", "variance", "skewness", "kendall_tau"), _TABLES),
    **dict.fromkeys(("slope_positive", "slope_negative", "slope_log_frequency", "positive_frequency_slopes"), _TABLES),
    **dict.fromkeys(("anova_f", "mwlr_positive_pairs"), _LOG_PROBABILITIES),
}
#: In the order of the papers.
FINDINGS = ("heterogeneity", "asymmetry", "frequency", "elo", "agency_communion", "moral_foundations")


def collect() -> dict[str, pd.DataFrame]:
    """Published and released rows of every finding (`rmnb.findings.released_rows.rows`)."""
    return {finding: released_rows.rows(finding) for finding in FINDINGS}


def verdicts(rows: pd.DataFrame) -> pd.DataFrame:
    """Each published number with the released one and what follows.

    Parameters
    ----------
    rows : DataFrame
        Rows of the results table on one finding.

    Returns
    -------
    DataFrame
        finding, statistic, prompt, model, other (str), published, released, difference, tolerance (float64), decimals
        (int64, of the published number), verdict and reason (str; why a number is not reproducible here). The tolerance
        is the published number's precision: 0 for numbers in the authors' data, the error of reading for numbers read
        off a figure.
    """
    key = ["finding", "statistic", "prompt", "model", "other"]
    table = side_by_side(rows)[["published", "released"]].dropna(subset="published").reset_index()
    table.insert(0, "finding", rows["finding"].iloc[0] if len(rows) else "")
    printed = published().set_index(key)[["tolerance", "decimals"]]
    printed = printed.reindex(pd.MultiIndex.from_frame(table[key])).reset_index(drop=True)
    tolerance = printed["tolerance"].fillna(0.0).to_numpy()
    digits = table["published"].map(lambda value: len(f"{value:.10g}".partition(".")[2]))
    difference = table["released"] - table["published"]
    close = difference.abs().to_numpy() <= tolerance + 1e-9
    verdict = np.where(difference.isna(), OUT_OF_REACH, np.where(close, REPRODUCED, DIFFERS))
    reason = table["statistic"].map(_REASONS).fillna("needs a file that cannot be reached from here")
    return table.assign(
        difference=difference,
        tolerance=tolerance,
        decimals=printed["decimals"].fillna(digits).astype(int),
        verdict=verdict,
        reason=reason.where(verdict == OUT_OF_REACH, ""),
    )


def counts(judged: pd.DataFrame) -> pd.DataFrame:
    """How many numbers of each finding got each verdict: a line a finding, a column a verdict."""
    kinds = [REPRODUCED, DIFFERS, OUT_OF_REACH]
    table = pd.crosstab(judged["finding"], judged["verdict"])
    return table.reindex(index=judged["finding"].unique(), columns=kinds, fill_value=0)


def described(judged: pd.DataFrame) -> pd.DataFrame:
    """Verdicts to be shown: a line a number, called by what tells it from the others; the rest is the first head.

    Both numbers have the decimals of the published one, which stands with how far off it may have been read.
    """
    about = judged[["statistic", "model", "other", "prompt"]].map(in_words)
    differ = [column for column in about if about[column].nunique() > 1] or ["statistic"]
    common = ", ".join(about[column].iloc[0] for column in about if column not in differ and about[column].iloc[0])
    numbers = judged[["published", "released", "tolerance", "decimals"]].itertuples(index=False)
    said = [(_said(one, digits, off), _said(other, digits)) for one, other, off, digits in numbers]
    return pd.DataFrame(
        {
            common or "number": about[differ].agg(lambda parts: ", ".join(filter(None, parts)), axis=1),
            "published": [one for one, _ in said],
            "released": [other for _, other in said],
            "verdict": judged["verdict"],
        }
    )


def _said(value: float, decimals: int, tolerance: float = 0.0) -> str:
    if value != value:
        return ""
    text = f"{value:,.{decimals}f}".replace("-", "−")
    return f"{text} ± {tolerance:g}" if tolerance else text
