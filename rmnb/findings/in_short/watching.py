"""Watching a training in short: what it took, and where each number went."""

import pandas as pd

from rmnb.findings.quoting import find_all, quote


def sentences(rows: pd.DataFrame) -> list[str]:
    """Two sentences or so on each training, for rows of `rmnb.findings.watching.measure`."""
    said = []
    for cost in find_all(rows, "watching_share"):
        model = cost["model"]
        count, share = quote(cost, "{:.0f}", "n"), quote(cost, "{:.1%}")
        agency = _course(rows, "watched_agency_less_communion", model)
        said += [
            f"{model}, {cost['other']}: {count} measurements took {share} of the training's time.",
            f"Valence went from {_course(rows, 'watched_valence', model)}. {_framing(rows, model)} Agency less "
            f"communion went from {agency}, in standard deviations of all words.",
        ]
    return said


def _course(rows: pd.DataFrame, statistic: str, model: str) -> str:
    first, last = find_all(rows, statistic, model=model)
    return f"{quote(first)} ({first['other']}) to {quote(last)} ({last['other']})"


def _framing(rows: pd.DataFrame, model: str) -> str:
    last = find_all(rows, "watched_framing", model=model)[-1]["value"]
    verdict = (
        "the model learned to turn its ranking with the question"
        if last < -0.3
        else "the model ranks words much alike whatever is asked"
        if last > 0.3
        else "the two rankings have little to do with each other"
    )
    return f"Framing went from {_course(rows, 'watched_framing', model)}: {verdict}."
