"""Does a finding survive? The same estimate under every combination of reasonable choices: a specification curve.

After Simonsohn, Simmons and Nelson (2020): choices that nobody is forced to make as we did are made in all ways, and
all results are shown, sorted, above a chart of what was chosen.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from rmnb.errors import InputError
from rmnb.stats.estimate import Estimate


def specification_curve(
    choices: Mapping[str, Sequence[str]], estimate: Callable[..., Estimate | None], **fixed
) -> pd.DataFrame:
    """An estimate under every combination of choices.

    Parameters
    ----------
    choices
        For each choice its options, the one taken in the chapter first.
    estimate
        Called with one option of each choice by name (and with `fixed`); returns an `Estimate`, or None where the
        combination makes no sense or its data cannot be had.

    Returns
    -------
    DataFrame
        One row a combination that gave an estimate, sorted by value: a column (str) for each choice, value, ci_low,
        ci_high (float64), n (int64), and headline (bool): made of the first options.

    Raises
    ------
    InputError
        No combination gave an estimate.
    """
    rows = []
    first = tuple(options[0] for options in choices.values())
    for chosen in itertools.product(*choices.values()):
        found = estimate(**dict(zip(choices, chosen, strict=True)), **fixed)
        if found is not None:
            rows.append((*chosen, found.value, found.ci_low, found.ci_high, found.n, chosen == first))
    if not rows:
        raise InputError("no combination of choices gave an estimate")
    table = pd.DataFrame(rows, columns=[*choices, "value", "ci_low", "ci_high", "n", "headline"])
    return table.sort_values("value", kind="stable", ignore_index=True)


def survival(table: pd.DataFrame) -> dict[str, int]:
    """How many specifications point the way of the headline, and how many of those with an interval clear of zero.

    Returns
    -------
    dict
        specifications, same_sign, clear (same sign, and the interval does not hold zero).
    """
    headline = table.loc[table["headline"], "value"]
    sign = 1 if (headline.iloc[0] if len(headline) else table["value"].median()) >= 0 else -1
    same = sign * table["value"] > 0
    edge = table["ci_low"] if sign > 0 else -table["ci_high"]
    return {
        "specifications": len(table),
        "same_sign": int(same.sum()),
        "clear": int((same & (edge > 0)).sum()),
    }
