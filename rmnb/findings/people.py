"""Agreement with people on EloEverything: correlations, things over- and undervalued, and how sure the votes are."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rmnb import stats
from rmnb.data import lexicons
from rmnb.errors import InputError
from rmnb.findings import align
from rmnb.findings.results import Results
from rmnb.panels import ModelSpec, Panel
from rmnb.scoring.list_scores import load_list_scores
from rmnb.training import recipes

SCALE = 400 / math.log(10)  # Elo points to one unit of log odds
_WORD_FREQUENCY = 4.0  # Zipf: a word that every reader knows


def add_agreement(results: Results, source: str, human: ArrayLike, scores: pd.DataFrame, **about) -> None:
    """Add human_spearman and human_kendall of each model, aware of ties and with intervals over things, to `results`.

    Parameters
    ----------
    human : (things,) ratings by people, higher is better.
    scores : DataFrame
        The same things, one column a model.
    about
        As `Results.add` takes it: prompt, protocol, panel.

    References
    ----------
    FAccT25 figures 5C and A5. Intervals are in closed form (`rmnb.stats.spearman_interval`, `kendall_interval`).
    """
    for model in map(str, scores.columns):
        pair = np.asarray(human, dtype=float), scores[model].to_numpy(float)
        results.add(source, "human_spearman", stats.spearman_interval(*pair), model=model, **about)
        results.add(source, "human_kendall", stats.kendall_interval(*pair), model=model, **about)


def panel_scores(panel: Panel, prompt: str, items: pd.DataFrame) -> pd.DataFrame | None:
    """A panel's scores of `items`, row by row: one column a model; None if no model scored them with that prompt."""
    try:
        table = load_list_scores(panel, "elo", prompt)
    except InputError:
        return None
    scores = table[table["part"] == "elo"].set_index("text").drop(columns="part")
    return scores.loc[items["name"]].reset_index(drop=True) if len(scores) else None


def saw_half(model: ModelSpec) -> bool:
    """Whether a model's recipe teaches it votes on half of the things, so that only the other half can judge it."""
    if model.recipe is None:
        return False
    try:
        return recipes.load_recipe(model.recipe).things is not None
    except InputError:  # a recipe of somebody else's
        return False


def unseen(names: pd.Series) -> NDArray[np.bool_]:
    """Which things no recipe teaches: the held-out half (`rmnb.training.recipes.half`)."""
    return (names.map(recipes.half) == "held_out").to_numpy()


def judged_on(panel: Panel, items: pd.DataFrame) -> dict[str, NDArray[np.bool_]]:
    """For each model of a panel, which things can judge it: those that its training did not show it."""
    half, whole = unseen(items["name"]), np.ones(len(items), dtype=bool)
    return {model.name: half if saw_half(model) else whole for model in panel.models}


def add_panel(
    results: Results, items: pd.DataFrame, tables: Mapping[str, pd.DataFrame], judged: Mapping[str, NDArray[np.bool_]]
) -> None:
    """Add the agreement of a panel's models with people; for those that saw half of the things, with that half beside.

    Parameters
    ----------
    tables : prompt → scores, as `panel_scores` gives them
    judged : model → (things,) bool, as `judged_on` gives it
    """
    for prompt, table in tables.items():
        for model in map(str, table.columns):
            rows = judged[model]
            about: dict = {"prompt": prompt, "protocol": "exact"}
            add_agreement(results, "panel", items.loc[rows, "elo_score"], table.loc[rows, [model]], **about)
            if not rows.all():
                seen = stats.spearman_interval(items.loc[~rows, "elo_score"], table[model][~rows])
                results.add("panel", "human_spearman_seen", seen, model=model, **about)


def rank_gaps(names: ArrayLike, human: ArrayLike, scores: pd.DataFrame) -> pd.DataFrame:
    """How much higher or lower models rank each thing than people do.

    Returns
    -------
    DataFrame
        name; human_rank (1 is best, ties share their mean rank); rank_gap, the median rank over the models less the
        human rank; rank_gap_with_human, the same with the human rank as one more column of the median, as FAccT25
        figure 5B has it; low and high, the quartiles over models of the gap; unexpected, the part of rank_gap that is
        left when a straight line in the human rank is taken out (what stands first with people can only fall).
        Positive: people value it more.
    """
    human_rank = stats.mid_ranks(-np.asarray(human, dtype=float))
    models = np.column_stack([stats.mid_ranks(-scores[model].to_numpy()) for model in scores])
    gap = np.median(models, axis=1) - human_rank
    low, high = np.quantile(models, [0.25, 0.75], axis=1) - human_rank
    line = np.polynomial.Polynomial.fit(human_rank, gap, 1)
    return pd.DataFrame(
        {
            "name": np.asarray(names),
            "human_rank": human_rank,
            "rank_gap": gap,
            "rank_gap_with_human": np.median(np.column_stack([human_rank, models]), axis=1) - human_rank,
            "low": low,
            "high": high,
            "unexpected": gap - line(human_rank),
        }
    )


def ends(gaps: pd.DataFrame, by: str, count: int) -> pd.DataFrame:
    """The `count` things that models overvalue most by that column, then the `count` they undervalue most."""
    ordered = gaps.sort_values(by, kind="stable")
    count = min(count, len(ordered) // 2)
    return pd.concat([ordered.head(count), ordered.tail(count)])


def error_variance(matches: ArrayLike, k: float | None = None) -> NDArray[np.float64]:
    """Variance of an Elo rating around the true one, in squared points.

    Parameters
    ----------
    matches : (things,) number of votes.
    k : float, optional
        Without it, the least that any unbiased estimate from that many even matches can have (Cramér–Rao):
        ``SCALE² / (n · ¼)``. With it, where a rating that moves by at most `k` points a match settles:
        ``k · SCALE / (2 - k / (4 SCALE))``, however many matches there are.

    References
    ----------
    Elo (1978), The Rating of Chessplayers, chapter 8; the update is linearised at even matches.
    """
    matches = np.asarray(matches, dtype=float)
    if (matches < 1).any():
        raise InputError("a rating needs a match at least")
    least = 4 * SCALE**2 / matches
    return least if k is None else np.maximum(least, k * SCALE / (2 - k / (4 * SCALE)))


def reliability(human: ArrayLike, matches: ArrayLike, k: float | None = None) -> float:
    """Share of the variance of ratings that is not error: 1 - mean error variance / variance, at least 0."""
    return max(0.0, 1 - float(error_variance(matches, k).mean() / np.var(np.asarray(human, dtype=float), ddof=1)))


def corrected(correlation: ArrayLike, reliable: float) -> NDArray[np.float64]:
    """Correlation with error-free ratings (Spearman, 1904): divided by the square root of their reliability."""
    if not 0 < reliable <= 1:
        raise InputError(f"a reliability lies above 0 and at most at 1, got {reliable}")
    return np.clip(np.asarray(correlation, dtype=float) / math.sqrt(reliable), -1, 1)


def by_matches(items: pd.DataFrame, scores: pd.DataFrame, groups: int = 6) -> pd.DataFrame:
    """Reliability and agreement in groups of things with ever more votes.

    Returns
    -------
    DataFrame
        group (from 1), matches_low, matches_high, n, reliability (the bound), and the median over models of Spearman's
        rho with people: spearman, with low and high, the quartiles over models.
    """
    order = np.argsort(items["elo_matches"].to_numpy(), kind="stable")
    rows = []
    for group, chosen in enumerate(np.array_split(order, min(groups, len(order) // 10)), start=1):
        human, matches = (items[column].to_numpy()[chosen] for column in ("elo_score", "elo_matches"))
        rho = [stats.spearman(human, column[chosen]) for column in scores.to_numpy().T]
        low, middle, high = np.quantile(rho, [0.25, 0.5, 0.75])
        rows.append((group, matches.min(), matches.max(), len(chosen), reliability(human, matches), middle, low, high))
    columns = ["group", "matches_low", "matches_high", "n", "reliability", "spearman", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def familiar(items: pd.DataFrame, count: int) -> pd.DataFrame:
    """One thing with many votes from each of `count` layers of human rank: single common words, no group of people."""
    named = items["name"].str.casefold()
    terms = lexicons.identity_terms()["term"].str.casefold()
    strong = lexicons.afinn().query("valence <= -3")["word"]
    plain = items["name"].str.fullmatch("[A-Za-z]{3,12}") & ~named.isin(terms) & ~named.isin(strong)
    known = items[plain & (lexicons.zipf(items["name"]) >= _WORD_FREQUENCY)].sort_values("elo_score", ascending=False)
    layers = np.array_split(np.arange(len(known)), min(count, len(known)) or 1)
    best = [known.iloc[layer]["elo_matches"].idxmax() for layer in layers if len(layer)]
    return items.loc[best]


def valence_words(scans: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Scores of the AFINN words that all the given vocabularies have: columns word, valence, then one a model.

    Spellings of a word are averaged (`rmnb.findings.align.word_scores`).
    """
    table = lexicons.afinn()
    for model, scan in scans.items():
        folded = scan["token"].str.strip().str.casefold()
        words = align.word_scores(scan[folded.isin(table["word"])])
        table = table.merge(words[["word", "score"]].rename(columns={"score": model}), on="word")
    return table


def mean_agreement(
    items: pd.DataFrame,
    tables: Mapping[str, pd.DataFrame],
    judged: Mapping[str, NDArray[np.bool_]],
    *,
    prompt: str,
    statistic: str,
    things: str,
    ratings: str,
) -> stats.Estimate | None:
    """Mean agreement over models, with its interval over models, under one set of choices (of one model: over things).

    `statistic` Spearman or Kendall; `things` all, "many votes" (the half with most) or "single words"; `ratings` "as
    voted" or "error removed" (Spearman only; by the bound).
    """
    table = tables[prompt]
    kept = np.ones(len(items), dtype=bool)
    if things == "many votes":
        kept = (items["elo_matches"] >= items["elo_matches"].median()).to_numpy()
    elif things == "single words":
        kept = items["name"].str.fullmatch("[A-Za-z]+").to_numpy()
    if statistic != "Spearman" and ratings != "as voted":
        return None
    found = []
    for model in map(str, table.columns):
        rows = items[judged[model] & kept]
        function = stats.spearman_interval if statistic == "Spearman" else stats.kendall_interval
        estimate = function(rows["elo_score"], table[model].loc[rows.index])
        ends = np.array([estimate.value, estimate.ci_low, estimate.ci_high])
        if ratings != "as voted":
            ends = corrected(ends, reliability(rows["elo_score"], rows["elo_matches"]))
        found.append((estimate, ends))
    if len(found) > 1:
        return stats.mean_over_models([ends[0] for _, ends in found])
    estimate, (value, low, high) = found[0]
    return replace(estimate, value=value, ci_low=low, ci_high=high)


def planted_things(
    correlations: Mapping[str, float], matches: ArrayLike, spread: float = 120.0, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Things whose true worth is known, rated with the error of their votes, and models that follow the true worth.

    Parameters
    ----------
    correlations : model → Spearman correlation of its scores with the true worth (normal)
    matches : (things,)
    spread : float, standard deviation of the true worth, in Elo points

    Returns
    -------
    items : DataFrame with name, elo_score, elo_matches
    scores : DataFrame, one column a model
    """
    rng = np.random.default_rng(seed)
    matches = np.asarray(matches)
    worth = rng.normal(size=len(matches))
    rated = 1200 + spread * worth + np.sqrt(error_variance(matches)) * rng.normal(size=len(matches))
    scores = {}
    for model, rho in correlations.items():
        r = 2 * math.sin(math.pi * rho / 6)  # Pearson's r of two normal variables whose Spearman correlation is rho
        scores[model] = r * worth + math.sqrt(1 - r**2) * rng.normal(size=len(matches))
    names = [f"thing {place}" for place in range(len(matches))]
    return pd.DataFrame({"name": names, "elo_score": rated, "elo_matches": matches}), pd.DataFrame(scores)
