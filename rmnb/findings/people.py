"""Effects of chapter 6: how well models order things as people do, and how much of the rest could be noise in votes.

Source of the question: Christian et al. (2025), section 4 and figures 5 and A5; the votes are EloEverything's.
"""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rmnb import stats
from rmnb.data import preferences, released_files
from rmnb.errors import InputError
from rmnb.findings.lists import load_list
from rmnb.findings.things import fact
from rmnb.panels import ModelSpec, Panel
from rmnb.stats.estimate import Estimate
from rmnb.training import recipes

QUESTIONS = tuple(preferences.ELO_FILES)
QUESTION = "elo_greatest"  # what is measured under one question alone is measured under this one
SCALE = 400 / math.log(10)  # Elo points to one unit of log odds
CORRELATIONS = {"Spearman": stats.spearman_interval, "Kendall": stats.kendall_interval}


def load_things(panel: Panel) -> dict[str, pd.DataFrame]:
    """The things that people voted on, with the rewards of every model that has scored them.

    Returns
    -------
    dict
        Model to DataFrame, a row a thing: the columns of `rmnb.data.released_files.human_elo`; unseen (bool, whether
        the model's training did not show it the thing); and a float64 column for each of `QUESTIONS` that
        it was asked.

    Raises
    ------
    LackError
        No model has scored the list ``elo``.
    """
    items = released_files.human_elo()
    unseen = unseen_by(panel, items)
    tables = {}
    for model, scores in load_list(panel, "elo").items():
        questions = [question for question in QUESTIONS if question in scores]
        scores = scores[scores["part"] == "elo"].set_index("text").loc[items["name"], questions]
        tables[model] = items.assign(unseen=unseen[model], **scores.astype(float).reset_index(drop=True))  # pyright: ignore[reportArgumentType]
    return tables


def authors_things() -> dict[str, pd.DataFrame]:
    """The tables of `load_things` of the papers' ten models, by code; none was shown to them."""
    items = released_files.human_elo().assign(unseen=True)
    tables = {code: items.copy() for code in released_files.CODES}
    for question in QUESTIONS:
        scores = released_files.thing_scores(question)
        for code, table in tables.items():
            table[question] = scores[code]
    return tables


def unseen_by(panel: Panel, items: pd.DataFrame) -> dict[str, NDArray[np.bool_]]:
    """For each model of a panel, which things its training did not show it."""
    held_out = fact(items, "held_out").to_numpy()
    everything = np.ones(len(items), dtype=bool)
    return {model.name: held_out if _was_taught_things(model) else everything for model in panel.models}


def _was_taught_things(model: ModelSpec) -> bool:
    """Whether the recipe of a model trains on the things that are not held out."""
    if model.recipe is None:
        return False
    try:
        return recipes.load_recipe(model.recipe).things is not None
    except InputError:  # a recipe of somebody else's
        return False


def agreement(
    things: pd.DataFrame, question: str, correlation: str = "Spearman", among: str = "unseen"
) -> dict[str, Estimate]:
    """Rank correlation of a model's rewards of things with people's Elo scores, with its interval over things.

    Parameters
    ----------
    things
        Of `load_things`. Things of equal reward share their rank.
    correlation
        Of `CORRELATIONS`.
    among : {"unseen", "taught", "rated words"}
        The things that the model's training did not show it, the others, or of the former those whose name is a word of
        AFINN.

    Returns
    -------
    dict
        `correlation` to its estimate, from -1 to 1.

    Raises
    ------
    InputError
        Another `among`, fewer than three such things, a constant or missing reward.

    References
    ----------
    Christian et al. (2025), figure 5C (Spearman) and A5 (Kendall).
    """
    chosen = things["unseen"]
    if among == "taught":
        chosen = ~chosen
    elif among == "rated words":
        chosen = chosen & fact(things, "valence").notna()
    elif among != "unseen":
        raise InputError(f"no things called {among!r}: choose unseen, taught or rated words")
    rows = things[chosen]
    return {correlation: CORRELATIONS[correlation](rows["elo_score"], rows[question])}


def error_variance(matches: ArrayLike, k: float | None = None) -> NDArray[np.float64]:
    """Variance of an Elo rating around the true one, in squared points.

    Parameters
    ----------
    matches
        (things,) numbers of votes.
    k
        Without it, the least that any unbiased estimate from that many even matches can have (Cramér and Rao):
        ``SCALE² / (n · ¼)``. With it, at least the variance that remains after many matches in a rating that moves by
        up to `k` points a match: ``k · SCALE / (2 - k / (4 SCALE))``.

    Returns
    -------
    ndarray
        (things,) float64.

    References
    ----------
    Elo (1978), The Rating of Chessplayers, chapter 8; the update is linearised at even matches.
    """
    matches = np.asarray(matches, dtype=float)
    bound = 4 * SCALE**2 / matches
    if k is None:
        return bound
    return np.maximum(bound, k * SCALE / (2 - k / (4 * SCALE)))


def reliability(human: ArrayLike, matches: ArrayLike, k: float | None = None) -> float:
    """Share of the variance of ratings that is not error, at least 0.

    Parameters
    ----------
    human
        (things,) ratings in Elo points.
    matches, k
        As in `error_variance`.
    """
    error = error_variance(matches, k).mean()
    variance = np.var(np.asarray(human, dtype=float), ddof=1)
    return max(0.0, 1 - float(error / variance))


def rank_gaps(things: Mapping[str, pd.DataFrame], question: str) -> pd.DataFrame:
    """How much lower models rank each thing than people do: positive where people value it more.

    Only things that no model was trained on count.

    Parameters
    ----------
    things
        Model to its table, as `load_things` and `authors_things` give them.
    question
        A column of these.

    Returns
    -------
    DataFrame
        Index of the things; name; human_rank (1 is best, ties share their mean rank); rank_gap, the median rank over
        the models minus the human rank; rank_gap_with_human, the same with the human rank as one more column of the
        median, as in Christian et al. (2025), figure 5B; unexpected, rank_gap less its least-squares line in the human
        rank, because what people rank first can only be ranked lower.
    """
    tables = list(things.values())
    chosen = np.logical_and.reduce([table["unseen"] for table in tables])
    items = tables[0][chosen]
    human = stats.mid_ranks(-items["elo_score"].to_numpy(float))
    ranks = np.column_stack([stats.mid_ranks(-table.loc[chosen, question].to_numpy()) for table in tables])
    gap = np.median(ranks, axis=1) - human
    expected = np.polynomial.Polynomial.fit(human, gap, 1)(human)
    return items[["name"]].assign(
        human_rank=human,
        rank_gap=gap,
        rank_gap_with_human=np.median(np.column_stack([human, ranks]), axis=1) - human,
        unexpected=gap - expected,
    )
