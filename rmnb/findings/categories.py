"""Which kind of words a model prefers, and whether models of one base family prefer another kind than those of another.

The unit of the data is the median rank of a category's words under one prompt; the unit of a claim about base families
is the model. The papers' tests, which take prompts for independent observations, stand beside tests over models.
"""

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.errors import InputError
from rmnb.findings.results import Results

COLUMNS = ["model", "family", "prompt", "framing", "category", "median_rank"]


def median_ranks(scores: pd.DataFrame, words: pd.DataFrame) -> pd.DataFrame:
    """Median rank of each category's words under each prompt; 1 is the highest reward, ties share their mean rank.

    Parameters
    ----------
    scores : DataFrame
        Rewards of one model: index word (unique), one column a prompt.
    words : DataFrame
        Columns word and category. Ranks are among the words that have scores; a word of two categories counts twice, as
        in the paper.

    Returns
    -------
    DataFrame
        prompt, category (str), median_rank (float64), n (int64, words of the category).
    """
    known = words.loc[words["word"].isin(scores.index.tolist())]
    if known.empty:
        raise InputError("none of the words has a score: are both lower case and without a space marker?")
    rows = []
    for prompt in scores:
        ranks = pd.Series(stats.mid_ranks(-scores[prompt].loc[known["word"]].to_numpy()))
        for category, values in ranks.groupby(known["category"].to_numpy()):
            rows.append((prompt, category, values.median(), len(values)))
    return pd.DataFrame(rows, columns=["prompt", "category", "median_rank", "n"])


def by_model(ranks: pd.DataFrame) -> pd.DataFrame:
    """One number a model: mean median rank over the prompts of a framing.

    Parameters
    ----------
    ranks : DataFrame
        model, family, prompt, framing, category, median_rank.

    Returns
    -------
    DataFrame
        model, family, framing, category, median_rank, in the order of `ranks`.
    """
    keys = ["model", "family", "framing", "category"]
    return ranks.groupby(keys, sort=False, as_index=False).agg(median_rank=("median_rank", "mean"))


def add_base_comparison(
    results: Results, source: str, ranks: pd.DataFrame, *, protocol: str, seed: int = 0, panel: str | None = None
) -> None:
    """Add median ranks by model and the comparison of the two base families of `ranks` to `results`.

    By model: ``median_rank_<category>``. Over models and prompts: the coefficients ``lmm_…`` of
    ``median ~ base * category * framing`` with a random intercept a model (ICLR26 section 3), ``base_effect_size`` and
    the paper's Bonferroni-adjusted permutation test. Over models: ``base_difference`` with its interval and its
    permutation test (exact for ten models: 210 arrangements), for each category and for the first less each other.

    Parameters
    ----------
    ranks : DataFrame
        model, family (two of them; the first to appear is the reference and the minuend), prompt, framing (two),
        category (two or more), median_rank.

    Raises
    ------
    InputError
        More or fewer than two families, a family of fewer than two models, or an unknown category.
    """
    families = list(dict.fromkeys(ranks["family"]))
    if len(families) != 2:
        raise InputError(f"comparing bases takes two families, the panel has {', '.join(map(str, families)) or 'none'}")
    shared = {"protocol": protocol, "panel": panel}
    means = by_model(ranks)
    for model, framing, category, value in means[["model", "framing", "category", "median_rank"]].to_numpy():
        results.add(source, f"median_rank_{category}", float(value), model=model, prompt=framing, **shared)
    _add_mixed_model(results, source, ranks, shared)
    _add_prompt_tests(results, source, ranks, families[0], seed, shared)
    _add_model_tests(results, source, means, families[0], seed, shared)


def _add_mixed_model(results: Results, source: str, ranks: pd.DataFrame, shared: dict) -> None:
    ordered = ranks.sort_values("framing", ascending=False, kind="stable")  # positive is the reference
    design = stats.factorial(
        base=ordered["family"].to_numpy(),
        category=ordered["category"].to_numpy(),
        framing=ordered["framing"].to_numpy(),
    )
    fit = stats.mixed_model(ordered["median_rank"].to_numpy(), design, ordered["model"].to_numpy())
    for name in fit.names:
        factors, levels = zip(
            *(part.rstrip("]").split("[") if "[" in part else (part, "") for part in name.split(" x ")), strict=True
        )
        category = dict(zip(factors, levels, strict=True)).get("category", "")
        results.add(source, "lmm_" + "_x_".join(factors), fit[name], other=category, **shared)


def _add_prompt_tests(results: Results, source: str, ranks: pd.DataFrame, first: str, seed: int, shared: dict) -> None:
    panels = ranks.groupby(["category", "framing"], sort=False)
    for key, rows in panels:
        category, framing = map(str, tuple(key))
        values, in_first = rows["median_rank"].to_numpy(), (rows["family"] == first).to_numpy()
        groups = values[in_first], values[~in_first]
        pooled = np.sqrt(sum(group.var(ddof=1) * (len(group) - 1) for group in groups) / (len(values) - 2))
        about = {"other": category, "prompt": framing, "n": len(values), **shared}
        results.add(source, "base_effect_size", (groups[0].mean() - groups[1].mean()) / pooled, **about)
        test = stats.two_group_test(values, in_first, seed=seed)
        results.add(source, "base_difference_p_bonferroni", min(1.0, test.p_value * panels.ngroups), **about)


def _add_model_tests(results: Results, source: str, means: pd.DataFrame, first: str, seed: int, shared: dict) -> None:
    wide = means.pivot(index=["framing", "model", "family"], columns="category", values="median_rank")
    categories = list(dict.fromkeys(means["category"]))
    contrasts = {category: wide[category] for category in categories}
    contrasts |= {f"{categories[0]}_less_{other}": wide[categories[0]] - wide[other] for other in categories[1:]}
    for framing in dict.fromkeys(means["framing"]):
        for name, column in contrasts.items():
            values = column.xs(framing, level="framing")
            in_first = values.index.get_level_values("family") == first
            difference = stats.difference_between_groups(values.to_numpy(), in_first)
            test = stats.two_group_test(values.to_numpy(), in_first, seed=seed)
            about = {"other": name, "prompt": framing, **shared}
            results.add(source, "base_difference", difference, **about)
            results.add(source, "base_difference_p", test.p_value, n=test.n_arrangements, **about)
