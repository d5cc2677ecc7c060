"""How far a ranking turns with the question, and which models do not read it: they rank best and worst alike.

Tables are those of `rmnb.findings.scan_tables`. A mean over models that turn and models that do not describes neither,
so chapters give both apart (`means_apart`).
"""

import functools
import itertools
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.findings import align
from rmnb.findings.counts import one_a_model
from rmnb.findings.results import Results
from rmnb.stats.estimate import Estimate


def measure(
    tables: Mapping[str, pd.DataFrame],
    framings: Mapping[str, str],
    *,
    panel: str = "",
    source: str = "panel",
    protocol: str = "exact",
) -> pd.DataFrame:
    """Do the models read the question? What a chapter that does not measure framing adds to its results.

    Parameters
    ----------
    tables
        Model → its scans. Models without both questions are left out.
    framings
        Prompt → ``positive`` or ``negative``.

    Returns
    -------
    DataFrame
        Rows framing_kendall of `question_pair`, and `count`; none where no model was asked both.
    """
    about: dict = {"panel": panel, "source": source, "protocol": protocol}
    pair = question_pair(framings) or ()
    asked_both = {model: table for model, table in tables.items() if pair and set(pair) <= set(table)}
    if not asked_both:
        return Results("framing").frame()
    turns = measure_turns(asked_both, [key for key in framings if key in pair], **about)
    turns = turns[turns["statistic"] == "framing_kendall"]
    return pd.concat([turns, count(turns, framings)], ignore_index=True)


def measure_turns(
    tables: Mapping[str, pd.DataFrame],
    prompts: Sequence[str],
    seeds: Sequence[tuple[str, str]] = (),
    *,
    panel: str = "",
    source: str = "panel",
    protocol: str = "exact",
) -> pd.DataFrame:
    """Rows framing_kendall and framing_spearman for every two prompts, and noise_ceiling for `seeds`."""
    results = Results("framing", panel)
    add = functools.partial(results.add, source, protocol=protocol)
    shared = shared_scores(tables, prompts)
    words = words_of(next(iter(shared.values())))
    for model, (one, other) in itertools.product(tables, itertools.combinations(prompts, 2)):
        scores = shared[one][model].to_numpy(), shared[other][model].to_numpy()
        about: dict = {"model": model, "prompt": one, "other": other}
        add("framing_kendall", stats.kendall_interval(*scores, words), **about)
        add("framing_spearman", stats.spearman(*scores), n=len(words), **about)
    for (one, other), prompt in itertools.product(seeds, prompts):
        tau = stats.kendall_interval(shared[prompt][one], shared[prompt][other], words)
        add("noise_ceiling", tau, model=one, other=other, prompt=prompt)
    return results.frame()


def question_pair(framings: Mapping[str, str]) -> tuple[str, str] | None:
    """The first prompt that asks for something good and the first that asks for something bad; None without both."""
    first = {framing: prompt for prompt, framing in reversed(list(framings.items()))}
    return (first["positive"], first["negative"]) if {"positive", "negative"} <= set(first) else None


def count(rows: pd.DataFrame, framings: Mapping[str, str]) -> pd.DataFrame:
    """Row models_not_turning of rows framing_kendall: in how many the interval of `question_pair` lies above zero."""
    pair = question_pair(framings) or ()
    of = rows[(rows["statistic"] == "framing_kendall") & rows["prompt"].isin(pair) & rows["other"].isin(pair)]
    results = Results("framing")
    for about, found in of.groupby(["source", "panel", "prompt", "other", "protocol"], sort=False):
        named = dict(zip(("source", "panel", "prompt", "other", "protocol"), map(str, about), strict=True))
        source, alike = named.pop("source"), int((found["ci_low"] > 0).sum())
        results.add(source, "models_not_turning", alike, n=len(found), **named)
    return results.frame()


def does_not_turn(rows: pd.DataFrame, source: str = "panel") -> list[str]:
    """The models that do not read the question, by rows of `measure` or of a chapter's results.

    The rule: Kendall's tau of a model's own scans under a good and under a bad question is above zero, and so is its
    whole 95 % interval over words. Empty where none does so, and where no two opposite questions were asked
    (`was_asked` tells the two apart).
    """
    rows = rows[rows["source"] == source]
    pair = rows.loc[rows["statistic"] == "models_not_turning", ["prompt", "other"]].drop_duplicates()
    alike = rows[(rows["statistic"] == "framing_kendall") & (rows["ci_low"] > 0)]
    return list(alike.merge(pair, on=["prompt", "other"])["model"].drop_duplicates())


def was_asked(rows: pd.DataFrame, source: str = "panel") -> bool:
    """Whether models were asked two opposite questions, so that they can be told apart at all."""
    return bool(((rows["statistic"] == "models_not_turning") & (rows["source"] == source)).any())


def means_apart(rows: pd.DataFrame, statistic: str, alike: Collection[str], what: str = "") -> pd.DataFrame:
    """The mean of a statistic over the models that turn with the question, and over the others.

    Parameters
    ----------
    rows
        Rows of a results table that differ in their model alone; those of other statistics or without a model are
        left out.
    alike
        The models of `does_not_turn`.
    what
        What tells these means from others of the same statistic, for `other`.

    Returns
    -------
    DataFrame
        Results rows mean_turning and mean_not_turning, `other` the statistic and `what`, `n` and the interval of the
        models, a single model's own; none for a group without models.
    """
    of = one_a_model(rows, statistic)
    results = Results(of["finding"].iloc[0] if len(of) else "framing")
    for name, group in (
        ("mean_turning", of[~of["model"].isin(alike)]),
        ("mean_not_turning", of[of["model"].isin(alike)]),
    ):
        if len(group):
            about = {column: group[column].iloc[0] for column in ("panel", "prompt", "protocol")}
            mean = stats.mean_over_models(group["value"]) if len(group) > 1 else _alone(group.iloc[0])
            results.add(group["source"].iloc[0], name, mean, other=f"{statistic} {what}".strip(), **about)
    return results.frame()


def _alone(row: pd.Series) -> Estimate:
    return Estimate(row["value"], row["ci_low"], row["ci_high"], np.nan, np.nan, 1, 1)


def shared_scores(tables: Mapping[str, pd.DataFrame], prompts: Sequence[str]) -> dict[str, pd.DataFrame]:
    """For each prompt the scores on the tokens that all models have: index token, a float32 column a model."""
    like: dict[str, str] = {}  # models of one base have one vocabulary, which is aligned once: that takes the time
    for model, table in tables.items():
        like[model] = next((one for one in like.values() if tables[one]["token"].equals(table["token"])), model)
    places = {
        model: tables[model].assign(score=np.arange(len(tables[model]))) for model in dict.fromkeys(like.values())
    }
    rows = align.align(places).astype(int)
    return {
        prompt: pd.DataFrame(
            {model: table[prompt].to_numpy(np.float32)[rows[like[model]]] for model, table in tables.items()},
            index=rows.index,
        )
        for prompt in prompts
    }


def words_of(shared: pd.DataFrame) -> np.ndarray:
    """The words of shared tokens, (tokens,) of folded str: the unit of the intervals."""
    return shared.index.str.strip().str.casefold().to_numpy()
