"""Agency and communion: which kind of word a model prefers, and what tests over prompts and over models make of it.

A table of words has a row a word, columns word and category, and one column a prompt: rewards, or natural
log-probabilities of the word as the first of an answer. Ranks are in percent of the words of the table, so that word
lists of any length compare; the highest score has the smallest rank.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf
from statsmodels.stats.anova import anova_lm

from rmnb import stats
from rmnb.errors import InputError
from rmnb.findings.rows import numbers
from rmnb.stats.estimate import Estimate

Prompts = Mapping[str, Sequence[str]]


def percent_ranks(table: pd.DataFrame, prompts: Sequence[str]) -> pd.DataFrame:
    """Rank of every word under every prompt, in percent of the words: small is preferred, ties share their mean."""
    return 100 * table[list(prompts)].rank(ascending=False, pct=True)


def gap(
    table: pd.DataFrame, question: str, prompts: Prompts, first: str = "agency", second: str = "communion"
) -> dict[str, Estimate]:
    """Mean rank of one category's words minus that of another's; negative if the first is preferred.

    Parameters
    ----------
    table
        One model's scores of words.
    question
        A key of `prompts`: positive or negative.
    prompts
        Question to the columns that ask it; a word's rank is its mean over them.
    first, second
        Categories.

    Returns
    -------
    dict
        agency_gap, in percent of the words, with Welch's interval over words.

    Raises
    ------
    InputError
        Fewer than two words of a category.
    """
    ranks = percent_ranks(table, prompts[question]).mean(axis="columns")
    chosen = table["category"].isin([first, second])
    if table["category"].value_counts().reindex([first, second], fill_value=0).min() < 2:
        raise InputError(f"fewer than two words of {first} or of {second} have scores: there is nothing to compare")
    difference = stats.difference_between_groups(ranks[chosen], table.loc[chosen, "category"] == first)
    return {f"{first}_gap": difference}


def median_ranks(table: pd.DataFrame, prompts: Sequence[str]) -> pd.DataFrame:
    """Median rank of each category's words under each prompt: a row a prompt, a column a category, in percent."""
    medians = percent_ranks(table, prompts).groupby(table["category"]).median().T
    return medians.rename_axis(index="prompt", columns="category")


def interaction_f(medians: pd.DataFrame, framing: Mapping[str, str]) -> float:
    """F of category by model in the analysis of variance of median ranks, which takes prompts for independent.

    Parameters
    ----------
    medians
        Index (model, prompt), a column a category, as `median_ranks` gives them.
    framing
        Prompt to framing.

    References
    ----------
    Christian et al. (2026), section 4.
    """
    rows = medians.melt(ignore_index=False, value_name="rank").reset_index()
    rows["framing"] = rows["prompt"].map(framing)
    fit = smf.ols("rank ~ model * category * framing", rows).fit()
    return float(anova_lm(fit).loc["model:category", "F"])  # pyright: ignore[reportArgumentType]


def compare_bases(
    medians: pd.DataFrame, base: Mapping[str, str], framing: Mapping[str, str], seed: int = 0
) -> pd.DataFrame:
    """Do the models of two bases differ? The paper's test over prompts beside the test over models.

    Parameters
    ----------
    medians
        Index (model, prompt), a column a category.
    base, framing
        Of each model (the first to appear is the minuend), and of each prompt.
    seed
        Of the paper's shuffles.

    Returns
    -------
    DataFrame
        Columns quantity, question (the framing), other (a category, or ``agency_less_communion`` for the first less
        another), value, low, high, n, model. base_effect_size is Cohen's d over models and prompts;
        base_difference_p_bonferroni has labels of base shuffled over models and prompts (10,000 times), times the
        number of such tests; base_difference is that of the models' means over prompts, with Welch's interval over
        models; base_difference_p is over all ways to assign the models to the two bases; base_median_rank is the mean
        over the models of the base in `model`.

    Raises
    ------
    InputError
        Not two bases, or a base with a single model.
    """
    sizes = Counter(base[model] for model in dict.fromkeys(medians.index.get_level_values("model")))
    minuend, _ = two_bases(sizes.elements())
    first, *others = medians.columns
    contrasts = medians.assign(**{f"{first}_less_{other}": medians[first] - medians[other] for other in others})
    questions = medians.index.get_level_values("prompt").map(framing)
    n_tests = questions.nunique() * (1 + len(others))
    rows, nan = [], np.nan
    for question in dict.fromkeys(questions):
        by_prompt = contrasts[questions == question]
        by_model = by_prompt.groupby(level="model", sort=False).mean()
        for other in contrasts:
            if other in medians:
                values = by_prompt[other]
                in_first = np.array([base[model] == minuend for model in values.index.get_level_values("model")])
                p_value = stats.two_group_test(values, in_first, seed=seed).p_value
                p_value = min(1.0, n_tests * p_value)
                rows.append(
                    ("base_effect_size", question, other, cohens_d(values, in_first), nan, nan, len(values), "")
                )
                rows.append(("base_difference_p_bonferroni", question, other, p_value, nan, nan, len(values), ""))
            values = by_model[other]
            for name, mean in values.groupby(base, sort=False).mean().items():
                rows.append(("base_median_rank", question, other, mean, nan, nan, sizes[name], name))
            in_first = np.array([base[model] == minuend for model in values.index])
            test = stats.two_group_test(values, in_first, seed=seed)
            difference = stats.difference_between_groups(values, in_first)
            rows.append(("base_difference", question, other, *numbers(difference), ""))
            rows.append(("base_difference_p", question, other, test.p_value, nan, nan, difference.n, ""))
    return pd.DataFrame(rows, columns=["quantity", "question", "other", "value", "low", "high", "n", "model"])


def two_bases(bases: Iterable[str]) -> list[str]:
    """The two bases in a list of one base a model; InputError unless there are two, with two models each at least."""
    counts = Counter(bases)
    if len(counts) != 2 or min(counts.values()) < 2:
        counted = ", ".join(f"{count} of {base}" for base, count in counts.items()) or "no model"
        raise InputError(f"comparing bases takes two bases with two models each, and the panel has {counted}")
    return list(counts)


def cohens_d(values: pd.Series, in_first: np.ndarray) -> float:
    """Difference of the means of two groups in their pooled standard deviation; NaN where nothing varies."""
    groups = values[in_first], values[~in_first]
    pooled = np.sqrt(sum(group.var() * (len(group) - 1) for group in groups) / (len(values) - 2))
    return float((groups[0].mean() - groups[1].mean()) / pooled) if pooled > 0 else float("nan")
