"""Measure every model the same way: what all chapters share.

An *effect* is a function ``effect(table, question, **options)`` that returns named estimates, as
``{"good": Estimate, "bad": Estimate}``. It looks at one model, reads no file and prints nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import product

import numpy as np
import pandas as pd

from rmnb.stats.estimate import Estimate

Effect = Callable[..., Mapping[str, Estimate]]
Question = str | tuple[str, str]
ENDS = ["value", "low", "high"]
NUMBERS = ["quantity", *ENDS, "n"]


def measure_each(
    tables: Mapping[str, pd.DataFrame], effect: Effect, questions: Iterable[Question], **options
) -> pd.DataFrame:
    """Apply an effect to every model under every question, or under every two questions.

    Parameters
    ----------
    tables
        Model to its table: as `rmnb.findings.tables.load_tables` gives them, or as the effect's own docstring says.
    effect
        ``effect(table, question, **options)``, or ``effect(table, question, other, **options)``, returns estimates.
    questions
        Columns of the tables, or pairs of columns.

    Returns
    -------
    DataFrame
        One row an estimate: model, question, other (only with pairs), quantity, value, low, high (float64), n.
    """
    asked_columns = [(question,) if isinstance(question, str) else tuple(question) for question in questions]
    calls = {}
    for (model, table), asked in product(tables.items(), asked_columns):
        calls[model, *asked] = effect(table, *asked, **options)
    labels = ["model", "question", "other"][: 1 + max(map(len, asked_columns), default=1)]
    return _table(calls, labels)


def measure_each_pair(
    tables: Mapping[str, pd.DataFrame],
    effect: Effect,
    pairs: Iterable[tuple[str, str]],
    questions: Iterable[str],
    **options,
) -> pd.DataFrame:
    """Apply an effect of two models, ``effect(table, other_table, question, **options)``, to pairs of models.

    Returns
    -------
    DataFrame
        One row an estimate: model, other, question, quantity, value, low, high (float64), n.
    """
    calls = {}
    for (model, other), question in product(pairs, questions):
        calls[model, other, question] = effect(tables[model], tables[other], question, **options)
    return _table(calls, ["model", "other", "question"])


def _table(calls: Mapping[tuple[str, ...], Mapping[str, Estimate]], labels: list[str]) -> pd.DataFrame:
    """A row an estimate, behind the labels of the call that gave it."""
    rows = []
    for key, estimates in calls.items():
        rows += [(*key, quantity, *numbers(estimate)) for quantity, estimate in estimates.items()]
    return pd.DataFrame(rows, columns=[*labels, *NUMBERS]).astype(dict.fromkeys(ENDS, float))


def interval_text(low: float, high: float) -> str:
    """An interval to two decimals, or to as many, six at most, as show which side of zero its ends are on."""
    if np.isnan(low):
        return ""
    digits = 2
    while digits < 6 and any(end != 0 and round(end, digits) == 0 for end in (low, high)):
        digits += 1
    return f"{low:.{digits}f} to {high:.{digits}f}"


def numbers(estimate: Estimate) -> tuple[float, float, float, int]:
    """What a row holds of an estimate: value, low, high, n."""
    return estimate.value, estimate.ci_low, estimate.ci_high, estimate.n
