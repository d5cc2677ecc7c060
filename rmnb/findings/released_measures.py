"""What the authors' released data say, recomputed through the doors of the findings.

Rows of the results table: source ``released``, and ``published`` where a number stands in their files as it is. The
files are read by `rmnb.data.released_files`, so each function raises `rmnb.data.sources.UnreachableError` where they
cannot be had; `rmnb.findings.released_rows` has rows everywhere.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons, preferences, sources
from rmnb.data.released_files import BASES, CODES, FACCT, ICLR, MODELS, PROMPTS, RUNS, dictionary, dictionary_scores
from rmnb.findings import (
    agency,
    frequency,
    identity,
    people,
    rows,
)
from rmnb.findings.results import Results, of_effects
from rmnb.findings.rows import each
from rmnb.panels import load_prompts

_ABOUT: dict = {"source": "released", "protocol": "published"}
SHARED_TOKENS = "iclr2026/data/corpora/token_intersection.csv"
_RANKS = "iclr2026/data/reward_model_training/rank_results_{}.csv"
BY_NAME = ("rank_gap", "rank_gap_with_human")  # statistics whose `other` is a thing
_FAMILY = {model.code: model.family for model in MODELS}


def of_vocabularies(finding: str, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What the full vocabularies say on one finding, heterogeneity or frequency; else no rows.

    Parameters
    ----------
    finding : str
    tables
        As `rmnb.data.released_files.vocabularies` gives them.
    """
    if finding not in _OF_VOCABULARIES:
        return Results(finding).frame()
    return _OF_VOCABULARIES[finding](tables, panel=FACCT, **_ABOUT)


def elo() -> pd.DataFrame:
    """Rows on the votes, on the agreement with them, and the ten things at either end of the rank gaps."""
    things = people.authors_things()
    human = preferences.elo_items()["elo_score"]
    results = Results("elo", FACCT)
    for statistic, value in (("items", len(human)), ("lowest", human.min()), ("highest", human.max())):
        results.add("released", f"elo_{statistic}", value, protocol="published")
    agreement = each(things, people.agreement, people.QUESTIONS)
    kendall = each(things, people.agreement, people.QUESTIONS, correlation="Kendall")
    words = each(things, people.agreement, [people.QUESTION], among="rated words").assign(quantity="words")
    names = {"Spearman": "human_spearman", "Kendall": "human_kendall", "words": "human_spearman_words"}
    found = pd.concat([agreement, kendall, words])
    results.extend(of_effects("elo", found, names, **_ABOUT, panel=FACCT))
    gaps = people.rank_gaps(things, people.QUESTION)
    for statistic in BY_NAME:
        ordered = gaps.sort_values(statistic, kind="stable")
        results.extend(_gap_rows(pd.concat([ordered.head(10), ordered.tail(10)]), [statistic]))
    return results.frame()


def _gap_rows(gaps: pd.DataFrame, statistics: Sequence[str]) -> pd.DataFrame:
    rows = gaps.rename(columns={"name": "other"}).melt("other", statistics, "statistic")
    return rows.assign(**_ABOUT, panel=FACCT, prompt=people.QUESTION, model="", n=len(MODELS))


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
    """Rows on Gemma against Llama in the authors' dictionary big_two or moral_foundations; ranks in percent.

    median_rank_<category> of each model, and those of `rmnb.findings.agency.compare_bases`; of big_two also agency_gap
    of each model and base_agency_gap, its mean over the models of a base.
    """
    finding = {"big_two": "agency_communion"}.get(name, name)
    framing = {prompt.key: prompt.framing for prompt in load_prompts("iclr2026")}
    prompts = {asked: [key for key, of in framing.items() if of == asked] for asked in ("positive", "negative")}
    scores, words = dictionary_scores(name), dictionary(name)
    tables = {code: words.merge(table, left_on="word", right_index=True) for code, table in scores.items()}
    medians = pd.concat(
        {code: agency.median_ranks(table, [*framing]) for code, table in tables.items()}, names=["model"]
    )
    results = Results(finding, ICLR)
    about: dict = {"protocol": "published"}
    means = medians.groupby([medians.index.get_level_values("prompt").map(framing), "model"], sort=False).mean()
    for (asked, code), row in means.iterrows():
        for category, value in row.items():
            results.add("released", f"median_rank_{category}", value, model=code, prompt=asked, **about)
    for row in agency.compare_bases(medians, _FAMILY, framing).itertuples():
        interval = {} if np.isnan(row.low) else {"ci_low": row.low, "ci_high": row.high}
        told = {"model": row.model, "other": row.other, "prompt": row.question, "n": row.n, **interval, **about}
        results.add("released", row.quantity, row.value, **told)
    if name == "big_two":
        gaps = rows.each(tables, agency.gap, prompts, prompts=prompts)
        for row in gaps.itertuples():
            told = {"model": row.model, "prompt": row.question, "n": row.n, **about}
            results.add("released", "agency_gap", row.value, ci_low=row.low, ci_high=row.high, **told)
        for (asked, family), of_base in gaps.groupby(["question", gaps["model"].map(_FAMILY)], sort=False):
            mean = stats.mean_over_models(of_base["value"])
            results.add("released", "base_agency_gap", mean, model=family, prompt=asked, **about)
    return results.frame()


def training_courses() -> pd.DataFrame:
    """The authors' training runs: model (the base), other (the data), step, agency, communion, gap.

    Median ranks among 1,365 tokens, and their difference in percent of these. Their file for 13,000 pairs has the blob
    id of the one for 27,000, so it is the same file: it is not read.
    """
    parts = []
    for data, (file, names) in RUNS.items():
        table = pd.read_csv(sources.locate(_RANKS.format(file)), keep_default_na=False)
        for base, run in zip(BASES, names, strict=True):
            course = table[table["model_id"] == run].drop_duplicates(["checkpoint", "Category"])  # rows are repeated
            medians = course.pivot(index="checkpoint", columns="Category", values="sum_value").rename_axis("step")
            medians = medians.rename(columns=str.lower)[["agency", "communion"]].reset_index()
            gap = 100 * (medians["agency"] - medians["communion"]) / 1365
            parts.append(medians.assign(gap=gap, model=base, other=data))
    return pd.concat(parts, ignore_index=True)


def training_runs() -> pd.DataFrame:
    """Rows agency_less_communion of each checkpoint, and Gemma less Llama at each data set's first and last one."""
    courses = training_courses()
    results = Results("training", ICLR)
    about: dict = {"prompt": "greatest_ever_one", "protocol": "published"}
    for row in courses.itertuples():
        told: dict = {"model": row.model, "other": f"{row.other}, step {row.step}", **about}
        results.add("released", "agency_less_communion", row.gap, **told)
    gemma, llama, *_ = BASES
    wide = courses.pivot(index=["other", "step"], columns="model", values="gap")
    apart = (wide[gemma] - wide[llama]).dropna().groupby("other", sort=False)
    for name, found in {"first": apart.first(), "end": apart.last()}.items():
        for data, value in found.items():
            told = {"model": f"{gemma} less {llama}", "other": str(data), **about}
            results.add("released", f"base_gap_{name}", value, **told)
    return results.frame()


def training_medians() -> pd.DataFrame:
    """Rows final_median_rank_agency and _communion of agency_communion: where every run of the authors ends."""
    results = Results("agency_communion", ICLR)
    for row in training_courses().groupby(["model", "other"], sort=False).tail(1).itertuples():
        about = {"model": row.model, "other": row.other, "prompt": "greatest_ever_one", "protocol": "published"}
        results.add("released", "final_median_rank_agency", row.agency, **about)
        results.add("released", "final_median_rank_communion", row.communion, **about)
    return results.frame()


def same_file(one: str, other: str) -> bool:
    """Whether two files of the authors' training runs are one and the same, by the blob ids that pin them."""
    pins = sources.pins()
    return pins[_RANKS.format(one)].blob_id == pins[_RANKS.format(other)].blob_id


def groups() -> pd.DataFrame:
    """Rows identity_gap_things, and rank gaps of the things that name a group of people."""
    things = people.authors_things()
    found = each(things, identity.things_gap, people.QUESTIONS)
    gaps = of_effects("identity", found, {"gap among things": "identity_gap_things"}, **_ABOUT, panel=FACCT)
    named = identity.matched_things(next(iter(things.values()))).query("is_term").index
    listed = _gap_rows(people.rank_gaps(things, people.QUESTION).loc[named], BY_NAME)
    return pd.concat([gaps, listed])


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


def _frequency(tables: Mapping[str, pd.DataFrame], **about: Any) -> pd.DataFrame:
    slopes = each(tables, frequency.published_slope, PROMPTS)
    return of_effects("frequency", slopes, {"slope as published": "slope_log_frequency"}, **about)


#: As published: AFINN's words are tokens that are spelled so, spaces kept and case folded, in each whole vocabulary.
_OF_VOCABULARIES: dict[str, Callable[..., pd.DataFrame]] = {
    "frequency": _frequency,
}
