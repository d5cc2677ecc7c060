"""What the authors' released data say, recomputed through the doors of the findings.

Rows of the results table: source ``released``, and ``published`` where a number stands in their files as it is. The
files are read by `rmnb.data.released_files`, so each function raises `rmnb.data.sources.UnreachableError` where they
cannot be had; `rmnb.findings.released_rows` has rows everywhere.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from rmnb.data import lexicons, preferences, sources
from rmnb.data.released_files import CODES, FACCT, ICLR, MODELS, PROMPTS, dictionary, dictionary_scores
from rmnb.findings import (
    agency_communion,
    asymmetry,
    framing,
    frequency,
    heterogeneity,
    identity,
    moral_foundations,
    people,
    reading_question,
    training,
    votes,
    wordings,
)
from rmnb.findings.results import Results, published
from rmnb.panels import load_prompts

_ABOUT: dict = {"source": "released", "protocol": "published"}
SHARED_TOKENS = "iclr2026/data/corpora/token_intersection.csv"
BY_NAME = ("rank_gap", "rank_gap_with_human")  # statistics whose `other` is a thing
_FAMILY = {model.code: model.family for model in MODELS}


def of_vocabularies(finding: str, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What the full vocabularies say on one finding, heterogeneity, asymmetry, framing or frequency; else no rows.

    Parameters
    ----------
    finding : str
    tables
        As `rmnb.data.released_files.vocabularies` gives them.
    """
    if finding not in _OF_VOCABULARIES:
        return Results(finding).frame()
    return _OF_VOCABULARIES[finding](tables, panel=FACCT, **_ABOUT)


def vocabulary_size() -> pd.DataFrame:
    """Row vocabulary_size: of the list of shared tokens that the second paper's data have."""
    results = Results("heterogeneity", FACCT)
    shared = pd.read_csv(sources.locate(SHARED_TOKENS), keep_default_na=False)
    results.add("released", "vocabulary_size", len(shared), protocol="published")
    return results.frame()


def published_moments() -> pd.DataFrame:
    """Rows mean, variance and skewness of the ten models as table 3 prints them: greatest prompt, shared vocabulary."""
    path = sources.locate("facct2025/tables/output/table_3_distribution_moments.csv")
    table = pd.read_csv(path, keep_default_na=False)
    results = Results("heterogeneity", FACCT)
    for statistic in ("mean", "variance", "skewness"):
        for code, value in zip(table["Model"], table[statistic.capitalize()], strict=True):
            results.add("published", statistic, value, model=code, prompt="greatest", protocol="published")
    return results.frame()


def published_tau() -> pd.DataFrame:
    """Kendall's tau between the ten models as read off figure 2A (each within 0.03): (10, 10) float64, symmetric."""
    return heterogeneity.matrix(published(), CODES)


def similarities() -> dict[str, np.ndarray]:
    """The four theoretical matrices of the representational similarity analysis, (10, 10) each."""
    known = {
        "base": [model.family for model in MODELS],
        "developer": [model.developer for model in MODELS],
        "parameters": [model.parameters for model in MODELS],
        "rank": [model.rank for model in MODELS],
    }
    return heterogeneity.relations(pd.DataFrame(known, index=CODES))


def geometry() -> pd.DataFrame:
    """Rows of `rmnb.findings.heterogeneity.measure_geometry` for the matrix as printed."""
    return heterogeneity.measure_geometry(published_tau(), similarities(), "greatest", panel=FACCT, **_ABOUT)


def elo() -> pd.DataFrame:
    """Rows of `rmnb.findings.votes.measure` and of `rmnb.findings.people.measure`."""
    items = preferences.elo_items()
    agreement = people.measure(items, people.released_scores(), panel=FACCT, **_ABOUT)
    return pd.concat([votes.measure(items, panel=FACCT), agreement])


def dictionaries() -> pd.DataFrame:
    """Rows dictionary_size and prompt_count of the second paper."""
    results = Results("agency_communion", ICLR)
    sizes = lexicons.big_two("nouns")["category"].value_counts().add_prefix("big_two_nouns_").sort_index().to_dict()
    sizes |= {f"big_two_{part}": len(lexicons.big_two(part)) for part in ("nouns", "expanded")}
    sizes["moral_foundations"] = len(lexicons.moral_foundations())
    for name, size in sizes.items():
        results.add("released", "dictionary_size", size, other=str(name), protocol="published")
    count = len(dictionary_scores("big_two")[CODES[0]].columns)
    results.add("released", "prompt_count", count, protocol="published")
    return results.frame()


def bases(name: str) -> pd.DataFrame:
    """Rows on Gemma against Llama: the door of agency_communion or moral_foundations on the authors' dictionary."""
    door = {"big_two": agency_communion.measure, "moral_foundations": moral_foundations.measure}[name]
    framings = {prompt.key: prompt.framing for prompt in load_prompts("iclr2026")}
    return door(dictionary_scores(name), dictionary(name), _FAMILY, framings, panel=ICLR, **_ABOUT)


def training_runs() -> pd.DataFrame:
    """Rows of `rmnb.findings.training.measure_released`."""
    return training.measure_released(training.released_courses(), ICLR)


def training_medians() -> pd.DataFrame:
    """Rows final_median_rank_agency and _communion of `rmnb.findings.training.measure`: where every run ends."""
    rows = training.measure(training.released_courses(), ICLR, **_ABOUT)
    return rows.assign(finding="agency_communion")


def wordings_alike() -> pd.DataFrame:
    """Rows of `rmnb.findings.wordings.measure`: the nouns of the second paper under its 54 wordings."""
    framings = {prompt.key: prompt.framing for prompt in load_prompts("iclr2026")}
    return wordings.measure(dictionary_scores("big_two"), framings, panel=ICLR, **_ABOUT)


def contrasts() -> pd.DataFrame:
    """Rows of `rmnb.findings.framing.measure_contrasts`."""
    return framing.measure_contrasts(framing.released_tables(), panel=ICLR, **_ABOUT)


def groups() -> pd.DataFrame:
    """Rows of `rmnb.findings.identity.measure` among things, and rank gaps of those that name a group of people."""
    items, scores = preferences.elo_items(), people.released_scores()
    about = {**_ABOUT, "panel": FACCT}
    named = identity.matched_things(items).query("is_term").index
    gaps = people.rank_gaps(items, scores[people.QUESTION]).loc[named]
    listed = people.gap_rows(gaps, BY_NAME, prompt=people.QUESTION, model="", n=len(MODELS), **about)
    return pd.concat([identity.measure(items=items, things=scores, **about), listed])


def file_counts() -> pd.DataFrame:
    """Rows released_count: what to know of the authors' files before leaning on them, each count with that of all."""
    morals, kept = lexicons.moral_foundations(), dictionary("moral_foundations")
    joined = lexicons.afinn().merge(lexicons.bnc_lemmas(), on="word")
    tokens = pd.read_csv(sources.locate(SHARED_TOKENS), keep_default_na=False)["token_decoded"]
    gaps = pd.read_csv(sources.locate(SHARED_TOKENS))["token_decoded"].isna()
    results = Results("released")
    for what, count, among in (
        ("entries of the moral foundations dictionary left out (vices of sanctity)", len(morals) - len(kept), morals),
        ("rows that repeat a word in the join of valence and frequency", joined["word"].duplicated().sum(), joined),
        ("shared tokens that a default reading takes for gaps", gaps.sum(), tokens),
        ("of these, not empty", (gaps & (tokens != "")).sum(), tokens[gaps]),
    ):
        results.add("released", "released_count", int(count), other=what, n=len(among), protocol="published")
    return results.frame()


def _agreement(tables: Mapping[str, pd.DataFrame], **about: Any) -> pd.DataFrame:
    scans = {code: table.assign(score=table["greatest"]) for code, table in tables.items()}
    return heterogeneity.measure(scans, "greatest", **about)


#: As published: AFINN's words are tokens that are spelled so, spaces kept and case folded, in each whole vocabulary.
_OF_VOCABULARIES: dict[str, Callable[..., pd.DataFrame]] = {
    "heterogeneity": _agreement,
    "asymmetry": functools.partial(asymmetry.measure_slopes, tokens="as published"),
    "framing": functools.partial(reading_question.measure_turns, prompts=("best", "worst", "greatest")),
    "frequency": functools.partial(frequency.measure_published, prompts=PROMPTS),
}
