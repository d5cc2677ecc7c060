"""Does a finding survive? The same estimate under every combination of reasonable choices: a specification curve.

After Simonsohn, Simmons and Nelson (2020): choices that nobody is forced to make as we did are made in all ways, and
all results are shown, sorted, above a chart of what was chosen.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from rmnb.errors import InputError
from rmnb.findings.results import Results
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


def survival(table: pd.DataFrame, sign: int | None = None) -> dict[str, int]:
    """How many specifications point the way of the headline, and how many of those with an interval clear of zero.

    Parameters
    ----------
    sign : {1, -1}, optional
        The way that counts, where it is not that of the table's own headline.

    Returns
    -------
    dict
        specifications, same_sign, clear (same sign, and the interval does not hold zero).
    """
    sign = sign or _sign(table)
    same = sign * table["value"] > 0
    edge = table["ci_low"] if sign > 0 else -table["ci_high"]
    return {
        "specifications": len(table),
        "same_sign": int(same.sum()),
        "clear": int((same & (edge > 0)).sum()),
    }


def one_option_dropped(table: pd.DataFrame) -> pd.DataFrame:
    """Does one option carry the result? `survival` of the whole curve, then without each option that has another.

    Returns
    -------
    DataFrame
        dropped (str, first ``none``), median (float64), specifications, same_sign, clear (int).
    """
    parts = {"none": table}
    for choice in table.columns[: table.columns.get_loc("value")]:
        options = list(dict.fromkeys(table[choice]))
        parts |= {f"{choice}: {option}": table[table[choice] != option] for option in options if len(options) > 1}
    sign = _sign(table)
    return pd.DataFrame(
        {"dropped": name, "median": part["value"].median(), **survival(part, sign)} for name, part in parts.items()
    )


def _sign(table: pd.DataFrame) -> int:
    headline = table.loc[table["headline"], "value"]
    return 1 if (headline.iloc[0] if len(headline) else table["value"].median()) >= 0 else -1


def survival_rows(curve: pd.DataFrame, finding: str, panel: str, what: str = "", source: str = "panel") -> pd.DataFrame:
    """`survival` of a curve as results rows specifications_same_sign and specifications_clear.

    `other` names the question where a chapter has several; `n` is the number of specifications.
    """
    results, survived = Results(finding, panel), survival(curve)
    for name in ("same_sign", "clear"):
        results.add(source, f"specifications_{name}", survived[name], other=what, n=survived["specifications"])
    return results.frame()
