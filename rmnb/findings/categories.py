"""Which kind of words a model prefers, and whether models of one base family prefer another kind than those of another.

The unit of the data is the median rank of a category's words under one prompt; the unit of a claim about base families
is the model. The papers' tests, which take prompts for independent observations, stand beside tests over models.
"""

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd
import scipy.stats

from rmnb import stats
from rmnb.errors import InputError
from rmnb.findings.results import Results

FRAMINGS = ("positive", "negative")


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


def ranks_by_prompt(
    scores: Mapping[str, pd.DataFrame], words: pd.DataFrame, framing: Mapping[str, str]
) -> pd.DataFrame:
    """`median_ranks` of several models, with model and framing; prompts that have no framing are left out."""
    parts = [median_ranks(table, words).assign(model=model) for model, table in scores.items()]
    ranks = pd.concat(parts, ignore_index=True)
    return ranks.assign(framing=ranks["prompt"].map(framing)).dropna(subset="framing")


def add_ranks(
    results: Results,
    scores: Mapping[str, pd.DataFrame],
    words: pd.DataFrame,
    family: Mapping[str, str],
    framing: Mapping[str, str],
    *,
    source: str,
    protocol: str,
    seed: int,
) -> None:
    """Add median ranks by model and, of two base families, their comparison to `results`.

    By model: ``median_rank_<category>``, the mean over the prompts of a framing. Then, if there are two families of two
    models or more and both framings, over models and prompts: the coefficients ``lmm_…`` of
    ``median ~ base * category * framing`` with a random intercept a model (ICLR26 section 3), ``base_effect_size`` and
    the paper's Bonferroni-adjusted permutation test. Over models: ``base_difference`` with its interval and its
    permutation test (exact for ten models: 210 arrangements), for each category and for the first less each other;
    ``base_difference_joint_p``, of all of them at once. ``comparisons_clear`` counts what either kind of test finds.

    Parameters
    ----------
    scores
        Model → rewards: index word (unique), one column a prompt.
    words
        word, category (two or more).
    family, framing
        Of each model (the first to appear is the reference and the minuend), and of each prompt.
    """
    ranks = ranks_by_prompt(scores, words, framing)
    ranks["family"] = pd.Categorical(ranks["model"].map(family), list(dict.fromkeys(family[name] for name in scores)))
    ranks["framing"] = pd.Categorical(ranks["framing"], FRAMINGS)
    about: dict = {"protocol": protocol}
    keys = ["model", "family", "framing", "category"]
    means = ranks.groupby(keys, sort=False, observed=True, as_index=False).agg(median_rank=("median_rank", "mean"))
    for model, asked, category, value in means[["model", "framing", "category", "median_rank"]].to_numpy():
        results.add(source, f"median_rank_{category}", value, model=model, prompt=asked, **about)
    models = means.groupby("family", observed=True)["model"].nunique()
    if len(models) == 2 and models.min() >= 2 and means["framing"].nunique() == 2:
        _add_mixed_model(results, source, ranks, about)
        over_prompts = _add_prompt_tests(results, source, ranks, seed, about)
        over_models = _add_model_tests(results, source, means, seed, about)
        for unit, p_values in {"prompts": over_prompts, "models": over_models}.items():
            clear = sum(p_value < 0.05 for p_value in p_values)
            results.add(source, "comparisons_clear", clear, other=unit, n=len(p_values), **about)


def compared(rows: pd.DataFrame) -> pd.DataFrame:
    """The tests of `add_ranks` side by side, to be shown: a line a framing and category, of the rows of one panel."""
    key, tests = ["prompt", "other"], ["base_effect_size", "base_difference_p_bonferroni", "base_difference_p"]
    wide = rows[rows["statistic"].isin(tests)].pivot(index=key, columns="statistic", values="value")
    found = rows[rows["statistic"] == "base_difference"].join(wide.reindex(columns=tests), on=key)
    effect, over_prompts, over_models = (found[test] for test in tests)
    ends = zip(found["ci_low"], found["ci_high"], strict=True)
    return pd.DataFrame(
        {
            "framing": found["prompt"],
            "category": found["other"].str.replace("_", " "),
            "d, prompts": effect,
            "p, prompts (the paper's)": over_prompts.astype(object).mask(over_prompts < 0.001, "< 0.001"),
            "first base less second": found["value"].map("{:.1f}".format),
            "95 % interval, models": [f"{low:.1f} to {high:.1f}" for low, high in ends],
            "p, models": over_models,
        }
    )


def coefficients(rows: pd.DataFrame) -> pd.DataFrame:
    """The mixed model of `add_ranks`, to be shown: a line a coefficient."""
    terms = rows[rows["statistic"].str.startswith("lmm_")]
    names = terms["statistic"].str.removeprefix("lmm_").str.replace("_", " ")
    shown = terms.assign(term=names, category=terms["other"])[["term", "category", "value", "ci_low", "ci_high"]]
    return shown.set_axis(["term", "category", "coefficient", "95 % from", "to (prompts)"], axis=1)


def _add_mixed_model(results: Results, source: str, ranks: pd.DataFrame, about: dict) -> None:
    named = ranks.rename(columns={"family": "base"})
    fit = stats.mixed("median_rank ~ base * category * framing", named, groups="model")
    for name in fit.names:
        levels = dict(re.findall(r"(base|category|framing)\[T\.(.*?)\](?::|$)", name))
        term = "_x_".join(levels) or "intercept"
        results.add(source, f"lmm_{term}", fit[name], other=levels.get("category", ""), **about)


def _add_prompt_tests(results: Results, source: str, ranks: pd.DataFrame, seed: int, about: dict) -> list[float]:
    p_values, panels = [], ranks.groupby(["category", "framing"], sort=False, observed=True)
    for (category, framing), rows in panels:
        values, in_first = rows["median_rank"].to_numpy(), _in_first(rows["family"])
        groups = values[in_first], values[~in_first]
        pooled = np.sqrt(sum(group.var(ddof=1) * (len(group) - 1) for group in groups) / (len(values) - 2))
        told = {"other": category, "prompt": framing, "n": len(values), **about}
        results.add(source, "base_effect_size", (groups[0].mean() - groups[1].mean()) / pooled, **told)
        test = stats.two_group_test(values, in_first, seed=seed)
        p_values.append(min(1.0, test.p_value * panels.ngroups))
        results.add(source, "base_difference_p_bonferroni", p_values[-1], **told)
    return p_values


def _add_model_tests(results: Results, source: str, means: pd.DataFrame, seed: int, about: dict) -> list[float]:
    wide = means.pivot(index=["framing", "model", "family"], columns="category", values="median_rank")
    first, *others = dict.fromkeys(means["category"])
    contrasts = {category: wide[category] for category in (first, *others)}
    contrasts |= {f"{first}_less_{other}": wide[first] - wide[other] for other in others}
    p_values = []
    for framing in dict.fromkeys(means["framing"]):
        for name, column in contrasts.items():
            values = column.xs(framing, level="framing")
            in_first = _in_first(values.index.get_level_values("family"))
            told = {"other": name, "prompt": framing, **about}
            difference = stats.difference_between_groups(values.to_numpy(), in_first)
            results.add(source, "base_difference", difference, **told)
            test = stats.two_group_test(values.to_numpy(), in_first, seed=seed)
            results.add(source, "base_difference_p", test.p_value, n=test.n_arrangements, **told)
            p_values.append(test.p_value)
    by_model = wide[[first, *others]].unstack("framing")
    families = by_model.index.get_level_values("family")
    joint = joint_test(by_model.to_numpy(), np.asarray(_in_first(families)), seed)
    results.add(source, "base_difference_joint_p", float(joint.pvalue), n=len(joint.null_distribution), **about)
    return p_values


def joint_test(values: np.ndarray, in_first: np.ndarray, seed: int = 0):
    """Do two groups of models differ in any of several numbers? One test of all of them, with no number favoured.

    The largest difference of the groups' means, in standard deviations over models, among all arrangements of the
    models (10,000 random ones, if there are more): as a test of many numbers at once it needs no other correction.

    Parameters
    ----------
    values : (models, numbers)
    in_first : (models,) bool

    Returns
    -------
    scipy.stats result
        pvalue and null_distribution.

    References
    ----------
    Westfall, Young (1993), Resampling-Based Multiple Testing.
    """
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    index = np.arange(len(values))

    def largest(one: np.ndarray, other: np.ndarray) -> float:
        return float(np.abs(scaled[one].mean(axis=0) - scaled[other].mean(axis=0)).max())

    groups = index[in_first], index[~in_first]
    return scipy.stats.permutation_test(groups, largest, n_resamples=10_000, alternative="greater", rng=seed)


def _in_first(family) -> np.ndarray:
    return np.asarray(family == pd.Categorical(family).categories[0])
