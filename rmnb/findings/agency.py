"""Agency and communion: which kind of word a model prefers, and what tests over prompts and over models make of it.

A table of words has a row a word, columns word and category, and one column a prompt: rewards, or natural
log-probabilities of the word as the first of an answer. Ranks are in percent of the words of the table, so that word
lists of any length compare; the highest score has the smallest rank.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.errors import LackError, TooFewError
from rmnb.findings.rows import ENDS, numbers
from rmnb.stats.estimate import Estimate

Prompts = Mapping[str, Sequence[str]]


def percent_ranks(table: pd.DataFrame, prompts: Sequence[str]) -> pd.DataFrame:
    """Rank of every word under every prompt, in percent of the words: small is preferred, ties share their mean."""
    return 100 * table[list(prompts)].rank(ascending=False, pct=True)


def gap(table: pd.DataFrame, question: str, prompts: Prompts) -> dict[str, Estimate]:
    """Mean rank of the words of agency minus that of the words of communion; negative if agency is preferred.

    Parameters
    ----------
    table
        One model's scores of words, all of agency or communion.
    question
        A key of `prompts`: positive or negative.
    prompts
        Question to the columns that ask it; a word's rank is its mean over them.

    Returns
    -------
    dict
        agency_gap, in percent of the words, with the interval of Brunner and Munzel over words: it is that of the
        words' placements, because the ranks of two kinds depend on one another.

    Raises
    ------
    TooFewError
        Fewer than two words of a category.

    References
    ----------
    Brunner, Munzel (2000), The nonparametric Behrens-Fisher problem.
    """
    scores = table[list(prompts[question])]
    is_agency = table["category"] == "agency"
    if min(is_agency.sum(), (~is_agency).sum()) < 2:
        raise TooFewError("fewer than two words of agency or of communion have scores: there is nothing to compare")
    others = np.where(is_agency, (~is_agency).sum(), is_agency.sum())
    # A word's placement: the share of the words of the other kind that rank before it.
    before = scores.rank(ascending=False) - scores.groupby(is_agency).rank(ascending=False)
    placement = 100 * before.mean(axis="columns") / others
    # With the placements of communion moved to a mean of 50, Welch's interval is that of Brunner and Munzel.
    placement[~is_agency] += 50 - placement[~is_agency].mean()
    return {"agency_gap": stats.difference_between_groups(placement, is_agency)}


def median_ranks(table: pd.DataFrame, prompts: Sequence[str]) -> pd.DataFrame:
    """Median rank of each category's words under each prompt, in percent of the words.

    Returns
    -------
    DataFrame
        float64; index prompt, a column a category in alphabetical order.
    """
    medians = percent_ranks(table, prompts).groupby(table["category"]).median().T
    return medians.rename_axis(index="prompt", columns="category")


def compare_bases(
    medians: pd.DataFrame,
    base: Mapping[str, str],
    framing: Mapping[str, str],
    groups: Mapping[str, str] | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Do the models of two bases differ? The paper's test over prompts beside the test over models.

    Parameters
    ----------
    medians
        Index (model, prompt), a column a category.
    base
        Model to base. Differences are the first base to appear less the other.
    framing
        Prompt to framing.
    groups
        Model to recipe, as `difference_of_bases` takes it.
    seed
        Of shuffles.

    Returns
    -------
    DataFrame
        Columns quantity, question (the framing), other (a category, or ``agency_less_communion`` for the first category
        less another), value, low, high, n, model. The quantities, all but d and p in percent of the words:

        - base_effect_size: Cohen's d, each prompt of each model an observation;
        - base_difference_p_bonferroni: p of shuffling the bases over models and prompts (10,000 times, or every
          arrangement where there are at most 200,000), times the number of such tests;
        - base_median_rank: mean over the models of the base in `model`;
        - base_difference, base_difference_p: `difference_of_bases` of the mean over prompts.

    Raises
    ------
    InputError
        Not two bases, or a base with a single model.
    """
    models = medians.index.get_level_values("model")
    first_base, _ = two_bases(base[model] for model in models.unique())
    in_first_base = models.map(base) == first_base
    first, *others = medians.columns
    contrasts = medians.copy()
    for other in others:
        contrasts[f"{first}_less_{other}"] = medians[first] - medians[other]
    questions = medians.index.get_level_values("prompt").map(framing)
    n_tests = questions.nunique() * len(medians.columns)
    rows = []
    for question, name in product(questions.unique(), contrasts):
        asked = questions == question
        values, in_first = contrasts.loc[asked, name], in_first_base[asked]
        estimates = {}
        if name in medians:
            test = stats.two_group_test(values, in_first, seed=seed)
            effect_size = cohens_d(values, in_first)
            estimates["base_effect_size", ""] = replace(test, value=effect_size)
            estimates["base_difference_p_bonferroni", ""] = replace(test, value=min(1.0, n_tests * test.p_value))
        of_models = values.groupby(level="model", sort=False).mean()
        for of_base, its_models in of_models.groupby(of_models.index.map(base), sort=False):
            count = len(its_models)
            estimates["base_median_rank", str(of_base)] = Estimate(its_models.mean(), count, count)
        difference = difference_of_bases(of_models, base, groups, seed)
        estimates["base_difference", ""] = difference
        estimates["base_difference_p", ""] = Estimate(difference.p_value, difference.n, difference.n)
        for (quantity, model), estimate in estimates.items():
            rows.append((quantity, question, str(name), *numbers(estimate), model))
    return pd.DataFrame(rows, columns=["quantity", "question", "other", *ENDS, "n", "model"])


def difference_of_bases(
    values: pd.Series, base: Mapping[str, str], groups: Mapping[str, str] | None = None, seed: int = 0
) -> Estimate:
    """Difference between two bases in a number of each model. Seeds of one recipe on one base are averaged first.

    Recipes that were trained on both bases are compared with themselves: then other recipes do not count.

    Parameters
    ----------
    values
        A number a model, the index.
    base
        Model to base. The difference is the first base to appear less the other.
    groups
        Model to recipe. Default: each model is alone.
    seed
        Of shuffles, where there are too many models to take every arrangement.

    Returns
    -------
    Estimate
        With two recipes on both bases or more: the mean over these, a t interval, and p of flipping signs. Else the
        difference of means, Welch's interval, and p of all ways to assign the models to the bases. `n` counts recipes
        or models.
    """
    in_base = values.index.map(base)
    recipes = [(groups or {}).get(model, model) for model in values.index]
    by_recipe = values.groupby([recipes, in_base], sort=False).mean().unstack(sort=False)
    first, second = two_bases(in_base)
    paired = by_recipe[first] - by_recipe[second]
    if paired.count() > 1:
        estimate = stats.mean_over_models(paired.dropna())
        test = stats.sign_flip_test(paired.dropna())
    else:
        apart = by_recipe.stack().dropna()
        in_first = apart.index.get_level_values(-1) == first
        estimate = stats.difference_between_groups(apart, in_first)
        test = stats.two_group_test(apart, in_first, seed=seed)
    return replace(estimate, p_value=test.p_value)


def two_bases(bases: Iterable[str]) -> list[str]:
    """The two bases in a list of one base a model; LackError unless there are two, with two models each at least."""
    counts = Counter(bases)
    if len(counts) != 2 or min(counts.values()) < 2:
        counted = ", ".join(f"{count} of {base}" for base, count in counts.items()) or "no model"
        raise LackError(f"comparing bases takes two bases with two models each, and the panel has {counted}")
    return list(counts)


def cohens_d(values: pd.Series, in_first: np.ndarray) -> float:
    """Difference of the means of two groups in their pooled standard deviation; NaN where nothing varies."""
    first, second = values[in_first], values[~in_first]
    squares = first.var() * (len(first) - 1) + second.var() * (len(second) - 1)
    pooled = np.sqrt(squares / (len(values) - 2))
    return float((first.mean() - second.mean()) / pooled) if pooled else float("nan")
