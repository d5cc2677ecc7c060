"""What the chapter on sequences found, in sentences whose numbers are rows."""

import pandas as pd

from rmnb.findings.quoting import find, quote, side

CLAIM = (
    "The paper goes on from single tokens to sequences that a gradient finds, and reports that they reach farther; "
    "neither it nor its data hold a number that could be computed again."
)
NAMES = {"gcg": "GCG", "random": "random search", "exhaustive": "exhaustive search", "beam": "a beam"}
_WAYS = {"max": "above the best", "min": "below the worst"}
_TOWARD = {"max": "upwards", "min": "downwards"}


def sentences(rows: pd.DataFrame) -> list[str]:
    """Three to five sentences on a results table of `rmnb.findings.sequences`, for any panel.

    Parameters
    ----------
    rows
        Of one panel; rows specifications_* have the method that GCG is held against as `other`.
    """
    of = rows[rows["source"] == "panel"]
    if not (of["statistic"] == "best_gain").any():
        return [CLAIM, "No model of this panel has been searched, so nothing is said here of sequences."]
    said = [CLAIM, *gain_sentences(of), method_sentence(of), natural_sentence(of)]
    return [sentence for sentence in said if sentence]


def gain_sentences(rows: pd.DataFrame) -> list[str]:
    """How far sequences get beyond single tokens in these models, and whether that can be said of models like these."""
    found, counts, means = [], [], []
    for direction, way in _WAYS.items():
        count = find(rows, "models_above", other=f"best_gain {direction}")
        if count is None:
            continue
        of = rows[(rows["statistic"] == "best_gain") & (rows["other"] == direction) & (rows["model"] != "")]
        least, most = (of.loc[at].to_dict() for at in (of["value"].idxmin(), of["value"].idxmax()))
        by = quote(least) if len(of) == 1 else f"{quote(least)} to {quote(most)}"
        models = f"{quote(count, '{:.0f}')} of {quote(count, '{:.0f}', 'n')} models searched"
        found.append(f"{way} single token in {models}, by {by} standard deviations")
        counts.append(count)
        means.append((direction, find(rows, "best_gain", other=direction, model="")))
    verdict = "In part here"
    if all(count["value"] == count["n"] for count in counts):
        verdict = "So it is here"
    elif all(count["value"] == 0 for count in counts):
        verdict = "Not so here"
    return [f"{verdict}: the best sequence found lies {'; and '.join(found)}.", _over_models(means)]


def _over_models(means: list[tuple[str, dict | None]]) -> str:
    """Whether the gain is clear of zero over models; nothing of one model."""
    rows = [(_TOWARD[direction], mean) for direction, mean in means if mean is not None]
    if not rows:
        return ""
    told = [f"{quote(mean, '{:+.2f}')} {toward} ({_interval(mean)})" for toward, mean in rows]
    sides = {side(mean) for _, mean in rows}
    known = "cannot be told for models like these" if sides == {0} else "is clear of zero in part"
    if 0 not in sides and len(sides) == 1:
        known = "is clear of zero" if sides == {1} else "is clearly negative"
    return f"Over models the mean gain {known}: {_listed(told)}, {quote(rows[0][1], '{:.0f}', 'n')} models."


def _interval(row: dict) -> str:
    return f"{quote(row, '{:+.2f}', 'ci_low')} to {quote(row, '{:+.2f}', 'ci_high')}"


def method_sentence(rows: pd.DataFrame) -> str:
    """Which method got farthest, and against whom that survives."""
    cases = rows[rows["statistic"] == "farthest"].sort_values("value", ascending=False, kind="stable")
    if cases.empty:
        return ""
    counts = [f"{NAMES[row['other']]} in {quote(row, '{:.0f}')}" for row in cases.to_dict("records")]
    among = quote(cases.iloc[0].to_dict(), "{:.0f}", "n")
    text = f"With equal effort the farthest is {_listed(counts)} of {among} cases"
    return f"{text}: what one run of one method finds is not the best there is."


def natural_sentence(rows: pd.DataFrame) -> str:
    """How much text that people judged gets more than anything found, under this question and under its own."""
    parts = {
        name: rows[(rows["statistic"] == name) & (rows["other"] == "max")]
        for name in ("natural_beyond", "natural_beyond_here")
    }
    own, here = parts.values()
    if own.empty or here.empty:
        return ""
    shares = [f"{quote(row, '{:.0%}')} in {row['model']}" for row in own.to_dict("records")]
    most = here.loc[here["value"].idxmax()].to_dict()
    reach = "none gets" if most["value"] == 0 else f"at most {quote(most, '{:.0%}')} get"
    return (
        f"Of held-out answers that people judged, put to this question, {reach} more than the best that was found; "
        f"put to their own questions, {_listed(shares)} do, but rewards of two questions share no zero."
    )


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
