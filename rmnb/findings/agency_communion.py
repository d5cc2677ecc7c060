"""Agency and communion by base, in a panel's rewards; `rmnb.findings.agency_in_bases` asks the bases themselves.

Tables of a model have the index word (unique) and one column a prompt: rewards, or log-probabilities of the word as the
first of an answer. `rmnb.findings.agency_study` reads and computes them.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons
from rmnb.findings import categories, specifications
from rmnb.findings.categories import FRAMINGS
from rmnb.findings.results import Results
from rmnb.truth import planted

#: What is chosen in the specification curve of one framing, the chapter's choice first.
CHOICES = {
    "summary": ["median rank", "mean rank", "score"],
    "prompts": ["all", "one phrasing"],
    "nouns": ["all", "frequent half"],
}
#: Planted panels: how much communion is worth to one base, and less to the other.
PLANTED = {"planted": 0.8, "planted, bases alike": 0.0}
_RANK_SPREAD = 100 / math.sqrt(12)


def measure(
    scores: Mapping[str, pd.DataFrame],
    words: pd.DataFrame,
    family: Mapping[str, str],
    framing: Mapping[str, str],
    *,
    recipe: Mapping[str, str | None] = {},
    panel: str = "",
    source: str = "panel",
    protocol: str = "exact",
    seed: int = 0,
) -> pd.DataFrame:
    """Which of the two each model prefers, and whether its base has to do with it.

    Rows of `rmnb.findings.categories.add_ranks`; agency_gap of each model and base_agency_gap, its mean over the models
    of a base; base_difference_paired and its p-value, over recipes that two bases were trained with; how many
    specifications of `curve` agree. Left out is what needs another model, and all of it where fewer than two words of a
    category have scores.

    Parameters
    ----------
    scores
        Model → rewards.
    words
        word, category (agency or communion).
    family, framing
        Of each model, and of each prompt (positive or negative). The first family to appear is the minuend.
    recipe
        Of each model; models of one recipe and different families are pairs.
    panel, source, protocol
        Where the rewards are from, as `rmnb.findings.results` names it.
    seed
        Of the permutations.
    """
    results = Results("agency_communion", panel)
    known = in_all(scores, words)
    if not scores or not _enough(known):
        return results.frame()
    categories.add_ranks(results, scores, known, family, framing, source=source, protocol=protocol, seed=seed)
    for asked in FRAMINGS:
        tables = {
            model: table[keys] for model, table in scores.items() if (keys := prompts_asked(table, framing, asked))
        }
        gaps = {model: agency_gap(table, known) for model, table in tables.items()}
        for model, gap in gaps.items():
            results.add(source, "agency_gap", gap, model=model, prompt=asked, protocol=protocol)
        for base in dict.fromkeys(family[model] for model in gaps):
            of_base = [gap.value for model, gap in gaps.items() if family[model] == base]
            if len(of_base) >= 2:
                mean = stats.mean_over_models(of_base)
                results.add(source, "base_agency_gap", mean, model=base, prompt=asked, protocol=protocol)
        contrasts = {model: contrast(table, known, "mean rank") for model, table in tables.items()}
        _add_paired(results, contrasts, family, recipe, source=source, prompt=asked, protocol=protocol)
        if (found := curve(scores, words, family, framing, asked)) is not None:
            results.extend(specifications.survival_rows(found, "agency_communion", panel, asked, source))
    return results.frame()


def measure_planted(
    words: pd.DataFrame, framing: Mapping[str, planted.Framing], *, communion_sd: float = 0.5, seed: int = 0
) -> pd.DataFrame:
    """Rows of `measure` for the panels of `PLANTED`, ten models of two bases each, and what was planted.

    Models of one base differ at random in either panel, by `communion_sd`; in the first the bases differ besides.
    """
    results = Results("agency_communion")
    models = {f"planted-{k}": "one" if k < 4 else "other" for k in range(10)}
    for name, effect in PLANTED.items():
        effects = planted.PlantedEffects(communion={"one": effect, "other": -effect}, word_sd=0.5, noise_sd=0.7)
        scans = planted.planted_panel(words["word"], effects, models, framing, seed=seed, communion_sd=communion_sd)
        scores = {
            model: pd.DataFrame({key: scans[key][model]["score"].to_numpy() for key in framing}, words["word"])
            for model in models
        }
        results.extend(measure(scores, words, models, framing, panel=name, source="planted", seed=seed))
        results.add("planted", "planted_effect", 2 * effect, other="communion", panel=name, protocol="exact")
    return results.frame()


def curve(
    scores: Mapping[str, pd.DataFrame],
    words: pd.DataFrame,
    family: Mapping[str, str],
    framing: Mapping[str, str],
    asked: str = "positive",
) -> pd.DataFrame | None:
    """The first base's contrast less the second one's, with intervals over models, under all of `CHOICES`.

    Which framing is asked is a question of its own, no choice. Under negative prompts the sign is turned (a preferred
    kind of word stands low where the worst is asked), so that one sign stands for one preference: negative, the first
    base prefers agency more than the second does.

    Returns
    -------
    DataFrame or None
        As `rmnb.findings.specifications.specification_curve` gives it; None without two bases of two models or more.
    """
    counted = pd.Series([family[model] for model in scores]).value_counts(sort=False)
    words = in_all(scores, words)
    if len(counted) != 2 or counted.min() < 2 or not _enough(words):
        return None
    zipf = lexicons.zipf(words["word"])
    nouns_of = {"all": words, "frequent half": words[zipf >= np.median(zipf)]}
    in_first = [family[model] == counted.index[0] for model in scores]

    turn = 1 if asked == "positive" else -1

    def estimate(*, summary: str, prompts: str, nouns: str) -> stats.Estimate | None:
        keys = prompts_asked(next(iter(scores.values())), framing, asked)
        keys = [key for key in keys if prompts == "all" or key.endswith("_one") or "_" not in key]
        if not keys or nouns_of[nouns]["category"].nunique() < 2:
            return None
        values = [turn * contrast(table[keys], nouns_of[nouns], summary) for table in scores.values()]
        return stats.difference_between_groups(values, in_first)

    possible = any(prompts_asked(table, framing, asked) for table in scores.values())
    return specifications.specification_curve(CHOICES, estimate) if possible else None


def agency_gap(table: pd.DataFrame, words: pd.DataFrame) -> stats.Estimate:
    """Mean rank of agency words less that of communion words, in percent of the words, with an interval over words.

    Negative: agency stands higher. A word's rank is its mean over the prompts of `table`.
    """
    known = words[words["word"].isin(table.index)]
    return stats.difference_between_groups(percent_ranks(table, known), (known["category"] == "agency").to_numpy())


def contrast(table: pd.DataFrame, words: pd.DataFrame, summary: str) -> float:
    """Agency less communion by one summary, mean over prompts: "median rank", "mean rank" (percent) or "score".

    Negative, by all three: agency stands higher. Scores are given the standard deviation that ranks have, 28.9 percent.
    """
    known = words[words["word"].isin(table.index)]
    if summary == "score":
        values = table.loc[known["word"]].to_numpy(float)
        values = _RANK_SPREAD * (values.mean(axis=0) - values) / values.std(axis=0)  # as for ranks, small is good
    else:
        values = 100 * _ranks(table, known) / len(known)
    middle = np.median if summary == "median rank" else np.mean
    agency = (known["category"] == "agency").to_numpy()
    return float((middle(values[agency], axis=0) - middle(values[~agency], axis=0)).mean())


def in_all(tables: Mapping[str, pd.DataFrame], words: pd.DataFrame) -> pd.DataFrame:
    """The words that all of the tables have."""
    return words[[all(word in table.index for table in tables.values()) for word in words["word"]]]


def _enough(words: pd.DataFrame) -> bool:
    return words["category"].value_counts().reindex(["agency", "communion"], fill_value=0).min() >= 2


def prompts_asked(table: pd.DataFrame, framing: Mapping[str, str], asked: str) -> list[str]:
    """The columns of a table that are prompts of that framing, in its order."""
    return [key for key in map(str, table.columns) if framing.get(key) == asked]


def _ranks(table: pd.DataFrame, words: pd.DataFrame) -> np.ndarray:
    values = -table.loc[words["word"]].to_numpy(float)
    return np.column_stack([stats.mid_ranks(column) for column in values.T])


def percent_ranks(table: pd.DataFrame, words: pd.DataFrame) -> np.ndarray:
    """Each word's rank, its mean over the prompts, in percent of the words: (words,) float64, small is preferred."""
    return 100 * _ranks(table, words).mean(axis=1) / len(words)


def _add_paired(
    results: Results,
    values: Mapping[str, float],
    family: Mapping[str, str],
    recipe: Mapping[str, str | None],
    source: str,
    **about: Any,
) -> None:
    by_base: dict[str, dict[str, float]] = {}
    for model, value in values.items():
        if kind := recipe.get(model):
            by_base.setdefault(family[model], {})[kind] = value
    if len(by_base) != 2:
        return
    one, other = by_base.values()
    differences = [one[kind] - other[kind] for kind in one if kind in other]
    if len(differences) >= 2:
        results.add(source, "base_difference_paired", stats.mean_over_models(differences), **about)
        test = stats.sign_flip_test(differences)
        results.add(source, "base_difference_paired_p", test.p_value, n=len(differences), **about)
