"""In how many models a number lies above zero: a count with its own rows, so that a sentence can quote it."""

import pandas as pd

from rmnb.errors import InputError
from rmnb.findings.results import Results


def one_a_model(rows: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """The rows of a statistic that are of a model; InputError where a model has two."""
    of = rows[(rows["statistic"] == statistic) & (rows["model"] != "")]
    if of["model"].duplicated().any():
        raise InputError(f"two rows of {statistic} for one model: choose prompt, source and protocol first")
    return of


def sign_counts(rows: pd.DataFrame, statistic: str, what: str = "") -> pd.DataFrame:
    """In how many models a number is above zero, clearly so, and clearly below: three rows of one finding.

    Parameters
    ----------
    rows
        Rows of a results table that differ in their model alone; those of other statistics or without a model are
        left out.
    statistic
        Which number.
    what
        What tells this count from others of the same statistic, for `other`.

    Returns
    -------
    DataFrame
        Results rows models_above, models_clearly_above and models_clearly_below, `other` the statistic and `what`, `n`
        the models; none where there are no models.
    """
    of = one_a_model(rows, statistic)
    if of.empty:
        return of
    about = {column: of[column].iloc[0] for column in ("panel", "source", "prompt", "protocol")}
    results = Results(of["finding"].iloc[0], about.pop("panel"))
    counts = {
        "models_above": (of["value"] > 0).sum(),
        "models_clearly_above": (of["ci_low"] > 0).sum(),
        "models_clearly_below": (of["ci_high"] < 0).sum(),
    }
    source = about.pop("source")
    for name, value in counts.items():
        results.add(source, name, int(value), other=f"{statistic} {what}".strip(), n=len(of), **about)
    return results.frame()
