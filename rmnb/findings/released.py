"""What the authors' released data say, recomputed through the doors of the findings.

`measure` gives the rows of the results table: source ``released``, and ``published`` where a number stands in their
files as it is. The files are read by `rmnb.data.released_files`, so each function raises
`rmnb.data.sources.UnreachableError` where they cannot be had.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from rmnb.data import lexicons, preferences, sources
from rmnb.data.released_files import CODES, FACCT, ICLR, MODELS, PROMPTS, dictionary, dictionary_scores
from rmnb.errors import InputError
from rmnb.findings import (
    agency_communion,
    asymmetry,
    frequency,
    heterogeneity,
    moral_foundations,
    people,
    training,
    votes,
)
from rmnb.findings.results import KEY, Results, published
from rmnb.panels import load_prompts

_ABOUT: dict = {"source": "released", "protocol": "published"}
_FAMILY = {model.code: model.family for model in MODELS}


def measure(finding: str, tables: Mapping[str, pd.DataFrame] | None = None) -> pd.DataFrame:
    """All that the authors' data say on one finding.

    Parameters
    ----------
    finding : str
        heterogeneity, asymmetry, frequency, elo, agency_communion or moral_foundations.
    tables
        The full vocabularies, as `rmnb.data.released_files.vocabularies` gives them; without them what the small files
        hold.
    """
    if finding not in {**_SMALL, **_LARGE}:
        raise InputError(f"no released data on {finding!r}: choose one of {', '.join({**_SMALL, **_LARGE})}")
    parts = [Results(finding).frame(), *(part() for part in _SMALL.get(finding, ()))]
    if tables and finding in _LARGE:
        parts.append(_LARGE[finding](tables, panel=FACCT, **_ABOUT))
    # The size of the vocabulary comes out of two files.
    return pd.concat([part for part in parts if len(part)] or parts, ignore_index=True).drop_duplicates(list(KEY))


def vocabulary_size() -> pd.DataFrame:
    """Row vocabulary_size: of the list of shared tokens that the second paper's data have."""
    results = Results("heterogeneity", FACCT)
    shared = pd.read_csv(sources.locate("iclr2026/data/corpora/token_intersection.csv"), keep_default_na=False)
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
    framing = {prompt.key: prompt.framing for prompt in load_prompts("iclr2026")}
    return door(dictionary_scores(name), dictionary(name), _FAMILY, framing, panel=ICLR, **_ABOUT)


def training_medians() -> pd.DataFrame:
    """Rows final_median_rank_agency and _communion of `rmnb.findings.training.measure`: where every run ends."""
    rows = training.measure(training.released_courses(), ICLR, **_ABOUT)
    return rows.assign(finding="agency_communion")


_SMALL: dict[str, tuple[Callable[[], pd.DataFrame], ...]] = {
    "heterogeneity": (vocabulary_size, published_moments, geometry),
    "elo": (elo,),
    "agency_communion": (dictionaries, lambda: bases("big_two"), training_medians),
    "moral_foundations": (lambda: bases("moral_foundations"),),
}


def _agreement(tables: Mapping[str, pd.DataFrame], **about: Any) -> pd.DataFrame:
    scans = {code: table.assign(score=table["greatest"]) for code, table in tables.items()}
    return heterogeneity.measure(scans, "greatest", **about)


#: As published: AFINN's words are tokens that are spelled so, spaces kept and case folded, in each whole vocabulary.
_LARGE: dict[str, Callable[..., pd.DataFrame]] = {
    "heterogeneity": _agreement,
    "asymmetry": functools.partial(asymmetry.measure_slopes, tokens="as published"),
    "frequency": functools.partial(frequency.measure_published, prompts=PROMPTS),
}
