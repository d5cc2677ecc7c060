"""What all pairs of words show, in sentences whose numbers are rows: their parts, the optimum, the searches."""

import pandas as pd

from rmnb.findings.in_short.sequences import NAMES
from rmnb.findings.quoting import Row, find_all, listed, quote, span

_PARTS = ("first", "second", "together")
_ENDS = {"max": "highest", "min": "lowest"}


def share_sentences(rows: pd.DataFrame) -> list[str]:
    """How much of the variance of pairs is the sum of their tokens', over models, one sentence a question."""
    said = []
    for prompt, of in _by_prompt(rows, "pair_share"):
        first, second, together = (span(_sorted(of, "pair_share", part), "{:.0%}") for part in _PARTS)
        pairs = quote(find_all(of, "pair_share")[0], "{:,.0f}", "n")
        said.append(
            f"Question {prompt}, {pairs} pairs: of the variance of their rewards {together} is the sum of what the two "
            f"tokens are worth on average (the first alone {first}, the second {second})."
        )
    return said


def single_sentence(rows: pd.DataFrame) -> str:
    """Whether a token's worth in pairs is what it is worth alone."""
    spans = {part: _sorted(rows, "pair_single_correlation", part) for part in ("first", "second")}
    told = [f"{span(found)} as the {part}" for part, found in spans.items() if found]
    return f"A token's mean in pairs and its reward alone correlate with r {listed(told)}." if told else ""


def negation_sentences(rows: pd.DataFrame) -> list[str]:
    """What a negated word is worth beyond its parts, one sentence a question."""
    said = []
    for prompt, of in _by_prompt(rows, "pair_beyond"):
        told = [f"{quote(row, '{:+.2f}')} in {row['model']}" for row in find_all(of, "pair_beyond")]
        said.append(f"Question {prompt}: beyond its parts the pair “{of['other'].iloc[0]}” is worth {listed(told)}.")
    return said


def gap_sentences(rows: pd.DataFrame) -> list[str]:
    """How far from the exact optimum each method ends, over models and questions, one sentence a direction."""
    budgets = _sorted(rows, "pair_budget")
    if not budgets:
        return []
    most = quote(budgets[-1], "{:,.0f}")
    said = [f"Each search scored at most {most} of {quote(budgets[-1], '{:,.0f}', 'n')} pairs."]
    for direction, word in _ENDS.items():
        found = {name: _sorted(rows, "pair_gap", f"{direction} {method}") for method, name in NAMES.items()}
        told = [f"{name} {span(gaps)}" for name, gaps in found.items() if gaps]
        if told:
            said.append(f"Short of the {word} reward, mean of the runs in standard deviations: {listed(told)}.")
    return said


def certainty_sentences(rows: pd.DataFrame) -> list[str]:
    """What the quick scores' errors leave open about the optima."""
    taus, errors = _sorted(rows, "pair_quick_tau"), _sorted(rows, "pair_quick_error")
    margins = sorted(find_all(rows, "pair_margin"), key=lambda row: row["value"])
    if not margins:
        return []
    least = quote(margins[0])
    certain = "No pair that was not scored again can be the optimum unless its error is larger than any seen"
    if margins[0]["value"] <= 0:
        certain = "In some square a pair that was not scored again could still be the optimum"
    return [
        f"In bfloat16-mixed Kendall's τ to float32 is {span(taus, '{:.3f}')} among random pairs, and the largest error "
        f"{quote(errors[-1])} standard deviations. {certain}: the smallest margin is {least}."
    ]


def _by_prompt(rows: pd.DataFrame, statistic: str):
    return rows[rows["statistic"] == statistic].groupby("prompt", sort=False)


def _sorted(rows: pd.DataFrame, statistic: str, other: str = "") -> list[Row]:
    return sorted(find_all(rows, statistic, other=other), key=lambda row: row["value"])
