"""Agreement with people on EloEverything: how well models order things as people do, and what they value otherwise.

`measure` is the door and `rmnb.findings.people_summary` sums its rows up; how sure the votes themselves are is in
`rmnb.findings.votes`, whether the agreement survives other choices in `rmnb.findings.people_choices`.
"""

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rmnb import stats
from rmnb.data import lexicons, preferences, released_files
from rmnb.errors import InputError
from rmnb.findings import align, votes
from rmnb.findings.results import Results
from rmnb.findings.things import fact
from rmnb.panels import ModelSpec, Panel
from rmnb.scoring.list_scores import load_list_scores
from rmnb.training import recipes

QUESTION = "elo_greatest"  # what is measured under one question alone is measured under this one


def measure(
    items: pd.DataFrame | None = None,
    tables: Mapping[str, pd.DataFrame] = {},
    judged: Mapping[str, NDArray[np.bool_]] = {},
    *,
    words: Mapping[str, pd.DataFrame] = {},
    beside: pd.DataFrame | None = None,
    ends_shown: int = 10,
    panel: str = "",
    source: str = "panel",
    protocol: str = "exact",
) -> pd.DataFrame:
    """How scores go along with people's votes, and rewards of words with their valence, as rows of the results table.

    Parameters
    ----------
    items : name, elo_score, elo_matches, a row a thing
    tables
        For each prompt the scores of the things, row by row, one column a model. Rows human_spearman and human_kendall
        (FAccT25 figures 5C and A5), aware of ties, with intervals over things; under `QUESTION` also
        human_spearman_corrected, human_spearman_words, human_spearman_by_votes, rank_gap and rank_gap_with_human.
    judged
        For each model the things that can judge it, as `judged_on` gives them; all where it is not named. The others
        give human_spearman_seen.
    words
        For each prompt a table of `valence_words`. Rows afinn_spearman.
    beside
        Scores of the things by other models under `QUESTION`. Row rank_gap_spearman.
    ends_shown : int
        Things at either end that get a rank gap.
    """
    results = Results("elo", panel)
    add = functools.partial(results.add, source, protocol=protocol)
    for prompt, table in words.items():
        for model in table.columns[2:] if len(table) >= votes.ENOUGH else ():
            found = stats.spearman_interval(table["valence"], table[model])
            add("afinn_spearman", found, model=model, prompt=prompt)
    if items is None:
        return results.frame()
    for prompt, table in tables.items():
        for model in map(str, table.columns):
            about = functools.partial(add, model=model, prompt=prompt)
            rows = judging(items, model, judged)
            _add_agreement(about, items, table[model], rows)
            if prompt == QUESTION:
                _add_more(about, items, table[model], rows)
    if QUESTION in tables:
        asked = functools.partial(add, prompt=QUESTION)
        kept, scores = common(items, tables[QUESTION], judged)
        gaps = rank_gaps(kept, scores)
        about = {"source": source, "prompt": QUESTION, "protocol": protocol, "n": scores.shape[1]}
        for statistic in ("rank_gap", "rank_gap_with_human"):
            results.extend(gap_rows(ends(gaps, statistic, ends_shown), [statistic], **about))
        if beside is not None:
            both = gaps.merge(rank_gaps(items, beside), on="name")
            asked("rank_gap_spearman", stats.spearman_interval(both["rank_gap_x"], both["rank_gap_y"]))
        for row in by_matches(kept, scores).to_dict("records"):
            between = f"{row['matches_low']} to {row['matches_high']} votes"
            asked("human_spearman_by_votes", row["spearman"], other=between, n=row["n"])
    return results.frame()


def measure_ends(gaps: pd.DataFrame, count: int = 10, **about) -> pd.DataFrame:
    """Rows gap_follows_rank and ends_kept of `rank_gaps`: how far their ends have to be where they are.

    `about` says where the gaps are from: panel, and source, prompt, protocol of the rows.
    """
    results = Results("elo", about.pop("panel", ""))
    add = functools.partial(results.add, about.pop("source"), **about)
    add("gap_follows_rank", stats.spearman(gaps["human_rank"], gaps["rank_gap"]), n=len(gaps))
    far = set(ends(gaps, "rank_gap", count)["name"])
    for by, other in (("rank_gap_with_human", "with the human column"), ("unexpected", "beyond what is expected")):
        add("ends_kept", len(far & set(ends(gaps, by, count)["name"])), other=other, n=len(far))
    return results.frame()


def _add_agreement(add: Callable, items: pd.DataFrame, scores: pd.Series, rows: NDArray[np.bool_]) -> None:
    human = items["elo_score"]
    add("human_spearman", stats.spearman_interval(human[rows], scores[rows]))
    add("human_kendall", stats.kendall_interval(human[rows], scores[rows]))
    if not rows.all():
        add("human_spearman_seen", stats.spearman_interval(human[~rows], scores[~rows]))


def _add_more(add: Callable, items: pd.DataFrame, scores: pd.Series, rows: NDArray[np.bool_]) -> None:
    """Without the error of the votes, and on words alone."""
    human = items["elo_score"]
    found = stats.spearman_interval(human[rows], scores[rows])
    for name, k in votes.ASSUMED.items():
        reliable = votes.reliability(human, items["elo_matches"], k)
        if reliable > 0:
            add("human_spearman_corrected", votes.corrected(found, reliable), other=name)
    on_words = rows & fact(items, "valence").notna().to_numpy()
    if on_words.sum() >= votes.ENOUGH:
        add("human_spearman_words", stats.spearman_interval(human[on_words], scores[on_words]))


def panel_scores(panel: Panel, prompt: str, items: pd.DataFrame) -> pd.DataFrame | None:
    """A panel's scores of `items`, row by row: one column a model; None if no model scored them with that prompt."""
    try:
        table = load_list_scores(panel, "elo", prompt)
    except InputError:
        return None
    scores = table[table["part"] == "elo"].set_index("text").drop(columns="part")
    return scores.loc[items["name"]].reset_index(drop=True) if len(scores) else None


def released_scores() -> dict[str, pd.DataFrame]:
    """The published scores of the things (`rmnb.data.released_files.human_elo`), by prompt: a row a thing."""
    return {prompt: released_files.thing_scores(prompt) for prompt in preferences.ELO_FILES}


def saw_half(model: ModelSpec) -> bool:
    """Whether a model's recipe teaches it votes on half of the things, so that only the other half can judge it."""
    if model.recipe is None:
        return False
    try:
        return recipes.load_recipe(model.recipe).things is not None
    except InputError:  # a recipe of somebody else's
        return False


def judged_on(panel: Panel, items: pd.DataFrame) -> dict[str, NDArray[np.bool_]]:
    """For each model of a panel, which things can judge it: those that its training did not show it."""
    half = fact(items, "held_out").to_numpy()
    whole = np.ones(len(items), dtype=bool)
    return {model.name: half if saw_half(model) else whole for model in panel.models}


def judging(items: pd.DataFrame, model: str, judged: Mapping[str, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Which things can judge a model."""
    return judged.get(model, np.ones(len(items), dtype=bool))


def common(
    items: pd.DataFrame, scores: pd.DataFrame, judged: Mapping[str, NDArray[np.bool_]] = {}
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The things that can judge every model of `scores` (see `measure`), and their scores."""
    rows = np.logical_and.reduce([judging(items, model, judged) for model in map(str, scores)])
    return items[rows].reset_index(drop=True), scores[rows].reset_index(drop=True)


def rank_gaps(items: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
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
    human_rank = stats.mid_ranks(-items["elo_score"].to_numpy(float))
    models = np.column_stack([stats.mid_ranks(-scores[model].to_numpy()) for model in scores])
    gap = np.median(models, axis=1) - human_rank
    low, high = np.quantile(models, [0.25, 0.75], axis=1) - human_rank
    line = np.polynomial.Polynomial.fit(human_rank, gap, 1)
    return pd.DataFrame(
        {
            "name": items["name"].to_numpy(),
            "human_rank": human_rank,
            "rank_gap": gap,
            "rank_gap_with_human": np.median(np.column_stack([human_rank, models]), axis=1) - human_rank,
            "low": low,
            "high": high,
            "unexpected": gap - line(human_rank),
        }
    )


def gap_rows(gaps: pd.DataFrame, statistics: Sequence[str], **about) -> pd.DataFrame:
    """Rows of the results table for all things of `rank_gaps`; `about` says where they are from."""
    return gaps.rename(columns={"name": "other"}).melt("other", statistics, "statistic").assign(**about)


def ends(gaps: pd.DataFrame, by: str, count: int) -> pd.DataFrame:
    """The `count` things that models overvalue most by that column, then the `count` they undervalue most."""
    ordered = gaps.sort_values(by, kind="stable")
    count = min(count, len(ordered) // 2)
    return pd.concat([ordered.head(count), ordered.tail(count)])


def by_matches(items: pd.DataFrame, scores: pd.DataFrame, groups: int = 6) -> pd.DataFrame:
    """Reliability and agreement in groups of things with ever more votes.

    Returns
    -------
    DataFrame
        group (from 1), matches_low, matches_high, n, reliability (the bound), and the median over models of Spearman's
        rho with people: spearman, with low and high, the quartiles over models.
    """
    order = np.argsort(items["elo_matches"].to_numpy(), kind="stable")
    distinct = items["elo_matches"].nunique()  # things of equally many votes are no two groups
    rows = []
    for group, chosen in enumerate(np.array_split(order, max(1, min(groups, len(order) // 10, distinct))), start=1):
        human, matches = (items[column].to_numpy()[chosen] for column in ("elo_score", "elo_matches"))
        rho = [stats.spearman(human, column[chosen]) for column in scores.to_numpy().T]
        low, middle, high = np.quantile(rho, [0.25, 0.5, 0.75])
        reliable = votes.reliability(human, matches)
        rows.append((group, matches.min(), matches.max(), len(chosen), reliable, middle, low, high))
    columns = ["group", "matches_low", "matches_high", "n", "reliability", "spearman", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def valence_words(tables: Mapping[str, pd.DataFrame], prompt: str) -> pd.DataFrame:
    """Scores of the AFINN words that all vocabularies have: columns word, valence, then a column a model.

    Spellings of a word are averaged (`rmnb.findings.align.word_scores`).

    Parameters
    ----------
    tables
        For each model its scans (`rmnb.findings.scan_tables.as_table`); those without that prompt are left out.
    """
    words = lexicons.afinn()
    for model, table in tables.items():
        if prompt in table:
            scan = table[table["token"].str.strip().str.casefold().isin(words["word"])]
            found = align.word_scores(scan.assign(score=scan[prompt]))[["word", "score"]]
            words = words.merge(found.rename(columns={"score": model}), on="word")
    return words
