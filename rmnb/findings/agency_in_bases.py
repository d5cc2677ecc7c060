"""Agency and communion in language models: what a base would say first, and what a tuned copy learned to say.

Tables are as in `rmnb.findings.agency_communion`, of log-probabilities of a word as the first of an answer.
"""

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.findings import categories
from rmnb.findings.agency_communion import agency_gap, in_all, percent_ranks, prompts_asked
from rmnb.findings.categories import FRAMINGS
from rmnb.findings.log_ratios import word_log_ratio
from rmnb.findings.results import Results

_ENOUGH = 20  # words for a correlation


def measure_logprobs(
    logprobs: Mapping[str, Mapping[str, pd.DataFrame]],
    words: pd.DataFrame,
    framing: Mapping[str, str],
    *,
    panel: str = "",
    source: str = "panel",
    n_boot: int = 200,
    seed: int = 0,
) -> pd.DataFrame:
    """Which words language models say first, for each way of putting the question, on the words that all of them have.

    Rows agency_gap by model; of two models also anova_f; of each pair agency_gap_difference, and mwlr_gap of the
    mixture-weighted log ratio (mwlr) and of the plain one, by bootstrap over words.

    Parameters
    ----------
    logprobs
        How the question was put (chat, bare, user_assistant) → model → natural log-probabilities.
    """
    results = Results("agency_communion", panel)
    for wrapping, tables in logprobs.items():
        known = in_all(tables, words)
        is_agency = (known["category"] == "agency").to_numpy()
        about: dict = {"protocol": "exact"}
        for (model, table), asked in itertools.product(tables.items(), FRAMINGS):
            gap = agency_gap(table[prompts_asked(table, framing, asked)], known)
            results.add(source, "agency_gap", gap, model=model, other=wrapping, prompt=asked, **about)
        if len(tables) == 2:
            ranks = categories.ranks_by_prompt(tables, known, framing)
            results.add(source, "anova_f", interaction_f(ranks), other=wrapping, n=len(ranks), **about)
        for one, other in itertools.combinations(tables, 2):
            for kind, asked in itertools.product(("mwlr", "plain"), FRAMINGS):
                keys = prompts_asked(tables[one], framing, asked)
                ratio = word_log_ratio(tables[one], tables[other], keys, weighted=kind == "mwlr")[known["word"]]
                gap = stats.bootstrap(_mean_gap, ratio.to_numpy(), is_agency, n_draws=n_boot, seed=seed)
                told = {"model": f"{one} over {other} ({wrapping})", "other": kind, "prompt": asked, **about}
                results.add(source, "mwlr_gap", gap, **told)
            for asked in FRAMINGS:
                ranks = [
                    percent_ranks(tables[model][prompts_asked(tables[model], framing, asked)], known)
                    for model in (one, other)
                ]
                gap = stats.difference_between_groups(ranks[0] - ranks[1], is_agency)
                told = {"model": f"{one} less {other}", "other": wrapping, "prompt": asked, **about}
                results.add(source, "agency_gap_difference", gap, **told)
    return results.frame()


def measure_tuned(
    pairs: Mapping[str, tuple[pd.DataFrame, pd.DataFrame]],
    words: pd.DataFrame,
    framing: Mapping[str, str],
    scores: Mapping[str, pd.DataFrame] = {},
    *,
    beta: float = 0.1,
    panel: str = "",
    source: str = "panel",
) -> pd.DataFrame:
    """The implicit rewards of tuned copies of language models, under positive prompts.

    Rows mwlr_gap, and implicit_spearman with the rewards of each explicit model of `scores` that has 20 of the words.

    Parameters
    ----------
    pairs
        What stands for the copy in the rows → log-probabilities of the copy, and of what it is a copy of.
    beta
        Strength of the pull towards the reference in the tuning.
    """
    results = Results("agency_communion", panel)
    for pair, (copy, reference) in pairs.items():
        reward = beta * word_log_ratio(copy, reference, prompts_asked(copy, framing, "positive"), weighted=False)
        kinds = words.set_index("word").loc[reward.index, "category"]
        gap = stats.difference_between_groups(reward.to_numpy(), (kinds == "agency").to_numpy())
        results.add(source, "mwlr_gap", gap, model=pair, other="plain", prompt="positive")
        for model, table in scores.items():
            both, keys = reward.index.intersection(table.index), prompts_asked(table, framing, "positive")
            if keys and len(both) >= _ENOUGH:
                explicit = table.loc[both, keys].mean(axis=1).to_numpy()
                rho = stats.spearman_interval(reward[both].to_numpy(), explicit)
                results.add(source, "implicit_spearman", rho, model=pair, other=model, prompt="positive")
    return results.frame()


def interaction_f(ranks: pd.DataFrame) -> float:
    """F of category by model in the analysis of variance of median ranks.

    Parameters
    ----------
    ranks : DataFrame
        model, framing, category, median_rank: as many prompts in every cell.

    References
    ----------
    ICLR26 section 4: 216 medians, F(1, 208). Its observations are prompts: it speaks of these two models.
    """
    import statsmodels.formula.api as smf
    from statsmodels.stats.anova import anova_lm

    fit = smf.ols("median_rank ~ model * category * framing", ranks).fit()
    return float(anova_lm(fit)["F"].to_dict()["model:category"])


def _mean_gap(values: np.ndarray, is_agency: np.ndarray) -> float:
    return values[is_agency].mean() - values[~is_agency].mean()
