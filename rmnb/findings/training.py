"""Training: which of two kinds of word a checkpoint prefers, and how far two runs differ in this.

A table of a run has a row a noun: word, category (agency or communion), and one column a checkpoint, named after its
step.
"""

import numpy as np
import pandas as pd

from rmnb.errors import InputError
from rmnb.stats.estimate import Estimate, check_count


def gap(table: pd.DataFrame, question: str, n_draws: int = 500, seed: int = 0) -> dict[str, Estimate]:
    """Median rank of agency minus that of communion at one checkpoint, in percent of the nouns; below 0, agency leads.

    Parameters
    ----------
    table
        The nouns of one run.
    question
        A column: a step.
    n_draws, seed
        Of the bootstrap over the nouns of each kind.

    Returns
    -------
    dict
        agency_less_communion, with a 95 % percentile interval over nouns: it says nothing of another training run.

    Raises
    ------
    InputError
        Fewer than two draws.
    """
    return {"agency_less_communion": _gap(table["category"], table[[question]], n_draws, seed)}


def gap_between(
    table: pd.DataFrame, other: pd.DataFrame, question: str, n_draws: int = 500, seed: int = 0
) -> dict[str, Estimate]:
    """The `gap` of one run minus that of another, with an interval over the nouns, the same ones for both.

    Parameters
    ----------
    table, other
        The same nouns of two runs, in one order.
    question, n_draws, seed
        As in `gap`.

    Returns
    -------
    dict
        base_gap, in percent of the nouns.

    Raises
    ------
    InputError
        The runs hold different nouns; fewer than two draws.
    """
    if not table["word"].equals(other["word"]):
        raise InputError("the two runs hold other nouns: take those that both have, in one order")
    both = pd.concat([table[question], other[question]], axis="columns")
    return {"base_gap": _gap(table["category"], both, n_draws, seed)}


def _gap(category: pd.Series, scores: pd.DataFrame, n_draws: int, seed: int) -> Estimate:
    """Gap of the first column, less that of the second if there is one; the bootstrap draws nouns of each kind."""
    check_count(n_draws, "n_draws", minimum=2)
    ranks = 100 * scores.rank(ascending=False, pct=True)
    signs = np.array([1, -1])[: scores.shape[1]]
    rng = np.random.default_rng(seed)
    medians, drawn_medians = [], []
    for kind in ("agency", "communion"):
        group = ranks[category == kind].to_numpy()
        medians.append(np.median(group, axis=0) @ signs)
        places = rng.integers(len(group), size=(n_draws, len(group)))
        drawn_medians.append(np.median(group[places], axis=1) @ signs)
    draws = drawn_medians[0] - drawn_medians[1]
    low, high = np.quantile(draws, [0.025, 0.975]).tolist()
    gap = float(medians[0] - medians[1])
    n = len(scores)
    return Estimate(gap, n, n, low, high, float(draws.std()))
