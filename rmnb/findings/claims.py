"""The claims of the two papers, from ``rmnb/data/lists/claims.yml``: what each says, and which rows hold its number."""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import pandas as pd
import yaml

from rmnb.findings.evidence import (
    Reader,
    called,
    first_of,
    of_data_sets,
    of_models,
    of_pairs,
    of_pairs_of_bases,
    of_test,
    of_two_bases,
    summed,
)
from rmnb.findings.quoting import find, quote, with_interval

Say = Callable[[pd.DataFrame], str]
#: More and more data: the authors' runs, and the demo panel's.
AMOUNTS = ("unified-27k", "unified-53k", "skywork-77k", "unified-106k", "mixed-quarter", "mixed-half", "mixed")


@dataclass(frozen=True)
class Claim:
    """What a paper says, what its number is, and on which side of `above` and `below` that must lie.

    Attributes
    ----------
    key, paper, claim, chapter
        A short name, who claims it, the claim as pages print it, the notebook that is about it.
    measure, so, not_so
        What the number is; what is the case on the claimed side, and beyond it.
    every, of_bases
        Whether it is about all models rather than most, and about base models rather than reward models.
    within
        The least and the greatest that the number can be: an interval ends there.
    specifications
        Finding and question of its specification curve.
    absent, form, scale
        Why there may be no number, by source; its format; the number with its unit, as ``{} sd``.
    """

    key: str
    paper: str
    claim: str
    chapter: str
    measure: str
    so: str
    not_so: str
    above: float = 0.0
    below: float = math.inf
    every: bool = False
    of_bases: bool = False
    within: tuple[float, float] = (-math.inf, math.inf)
    specifications: tuple[str, str] = ("", "")
    absent: Mapping[str, str] = field(default_factory=dict)
    form: str = "{:.2f}"
    scale: str = "{}"

    @property
    def read(self) -> Reader:
        """How its number is read from the rows of one source."""
        return READERS[self.key]

    def published(self, rows: pd.DataFrame) -> str:
        """The printed numbers, quoted; empty where the paper prints none."""
        return _PUBLISHED.get(self.key, _nothing)(rows[rows["source"] == "published"])

    def note(self, rows: pd.DataFrame) -> str:
        """What else the rows of one source say that a reader of the verdict should know; may be empty."""
        return _NOTES.get(self.key, _nothing)(rows)


@functools.cache
def claims() -> tuple[Claim, ...]:
    """All claims, in the order in which pages list them."""
    text = resources.files("rmnb.data").joinpath("lists", "claims.yml").read_text(encoding="utf-8")
    return tuple(Claim(**one) for one in yaml.safe_load(text))


READERS: Mapping[str, Reader] = {
    "disagree": of_pairs("heterogeneity", "kendall_tau", "greatest"),
    "skewed": of_models("heterogeneity", "skewness", "greatest"),
    "base": of_test("heterogeneity", "rsa_spearman", "rsa_p", other="base"),
    "finer": of_models("asymmetry", "slope_difference_standardised", "greatest"),
    "mirror": summed("framing", "wording_spearman", "adjective", "framing"),
    "frequent": of_models("frequency", "slope_log_frequency_standardised", "greatest", "best", "worst"),
    "identity": first_of(
        of_models("identity", "identity_gap", "best", other="all axes"),
        of_models("identity", "identity_gap", "greatest", other="all axes"),
        called(
            "the place of groups of people less that of things that people rate alike (percent of the ranking)",
            of_models("identity", "identity_gap_things", "elo_greatest"),
            "{} % of the ranking",
        ),
    ),
    "people": of_models("elo", "human_spearman", "elo_greatest"),
    "sequences": of_models("sequences", "best_gain", other="max"),
    "communion": of_two_bases("agency_communion", "base_difference", "agency_less_communion"),
    "foundations": of_two_bases("moral_foundations", "base_difference", "authority_less_care"),
    "logprobs": of_pairs_of_bases("agency_communion", "agency_gap_difference"),
    "same_data": first_of(
        of_two_bases("agency_communion", "base_difference_paired", unit="recipes"),
        of_data_sets("training", "base_gap_end"),
    ),
    "more_data": of_data_sets("training", "base_gap_end", among=AMOUNTS, but=1),
}


def _nothing(rows: pd.DataFrame) -> str:
    return ""


def _filled(template: str, *wanted: dict[str, str], form: str = "{:.2f}") -> Say:
    """Rows put into a template; nothing where one is missing."""

    def say(rows: pd.DataFrame) -> str:
        found = [find(rows, **{"model": "", **one}) for one in wanted]
        return template.format(*(quote(row, form) for row in found if row)) if all(found) else ""

    return say


def _joined(*parts: Say) -> Say:
    return lambda rows: " ".join(filter(None, (part(rows) for part in parts)))


def _ends(template: str, form: str = "{:.2f}", **where: str) -> Say:
    """The lowest, the middle (of an even number the higher of the two) and the highest of the rows of all models."""

    def say(rows: pd.DataFrame) -> str:
        of = rows[rows["model"] != ""]
        for column, value in where.items():
            of = of[of[column] == value]
        ordered: list[Any] = of.sort_values("value", kind="stable").to_dict("records")
        ends = (0, len(ordered) // 2, -1) if ordered else ()
        return template.format(*(quote(ordered[at], form) for at in ends)) if ends else ""

    return say


def _medians(data: str) -> Say:
    """Median ranks of both kinds of words, of Gemma and of Llama trained with these data."""

    def say(rows: pd.DataFrame) -> str:
        of, told = rows[rows["other"] == data], []
        for base in ("gemma", "llama"):
            named: list[Any] = of[of["model"].str.lower().str.startswith(base)].to_dict("records")
            ranks = {str(row["statistic"]): quote(row, "{:g}") for row in named}
            if not {"final_median_rank_agency", "final_median_rank_communion"} <= {*ranks}:
                return ""
            agency, communion = (ranks[f"final_median_rank_{kind}"] for kind in ("agency", "communion"))
            told.append(f"{base.capitalize()} {agency} and {communion}")
        return f"{', '.join(told)} (ranks of agency and communion, {data})"

    return say


def _apart(finding: str, statistic: str, prompt: str, form: str = "{:.2f}") -> Say:
    """The means over the models that read the question and over the others, of which a mean over all is neither."""

    def say(rows: pd.DataFrame) -> str:
        where = {"finding": finding, "other": statistic, "prompt": prompt}
        found = [find(rows, f"mean_{kind}", **where) for kind in ("turning", "not_turning")]
        if None in found:
            return ""
        told = [f"{with_interval(row, form)} over {quote(row, '{:.0f}', 'n')}" for row in found if row]
        return f"In models that read the question it is {told[0]}, in the others {told[1]}."

    return say


def _under_worst(rows: pd.DataFrame) -> str:
    """Whether it is the groups that are put low, or what is asked for."""
    of = rows[(rows["finding"] == "identity") & (rows["model"] == "")]
    worst = find(of, "identity_gap", other="all axes", prompt="worst")
    things = find(of, "identity_gap_things", prompt="elo_greatest")
    said = [f"Asked for the worst it is {with_interval(worst)}." if worst else ""]
    if worst and things:
        said.append(
            f"Among things that people rate alike it is {with_interval(things, '{:.1f}')} percent of the ranking."
        )
    return " ".join(filter(None, said))


def _turns(rows: pd.DataFrame) -> str:
    of = rows[(rows["finding"] == "framing") & (rows["protocol"] != "published") & (rows["value"] > 0)]
    row = next(iter(of[of["statistic"] == "models_not_turning"].to_dict("records")), None)
    if row is None:
        return ""
    named: Mapping[str, Any] = {str(column): value for column, value in row.items()}
    return (
        f"{quote(named, '{:.0f}')} of {quote(named, '{:.0f}', 'n')} models do not read the question: they rank words "
        "alike whether asked for the best or for the worst."
    )


_SLOPE = {"finding": "asymmetry", "other": ""}
_BIG_TWO = {"finding": "agency_communion", "prompt": "positive"}
_LOYALTY = {"finding": "moral_foundations", "prompt": "positive", "other": "loyalty"}

_PUBLISHED: Mapping[str, Say] = {
    "disagree": _ends("τ of two models: {0} to {2}, median {1}", finding="heterogeneity", statistic="kendall_tau"),
    "skewed": _ends("skewness {0} to {2}", finding="heterogeneity", statistic="skewness"),
    "finer": _filled(
        "slopes {} among good words, {} among bad ones",
        {**_SLOPE, "statistic": "slope_positive", "prompt": "greatest"},
        {**_SLOPE, "statistic": "slope_negative", "prompt": "greatest"},
    ),
    "mirror": _filled(
        "slopes {} and {} for the greatest (good and bad words), {} and {} for the worst",
        *({**_SLOPE, "statistic": f"slope_{sign}", "prompt": prompt}
          for prompt in ("greatest", "worst") for sign in ("positive", "negative")),
    ),
    "frequent": _filled(
        "{} of thirty slopes above zero",
        {"finding": "frequency", "statistic": "positive_frequency_slopes"}, form="{:.0f}",
    ),
    "identity": _filled(
        "one group ranked {} places lower than by people",
        {"finding": "elo", "statistic": "rank_gap_with_human", "other": "Black people"}, form="{:,.0f}",
    ),
    "people": _ends("correlations {0} to {2}", finding="elo", statistic="human_spearman"),
    "communion": _filled(
        "d {} for agency, {} for communion",
        *({**_BIG_TWO, "statistic": "base_effect_size", "other": kind} for kind in ("agency", "communion")),
        form="{:.1f}",
    ),
    "logprobs": _filled(
        "F {} and {}; “Freedom” above “Love” in {} pairs of models, which is all",
        {"finding": "agency_communion", "statistic": "anova_f", "other": "instruct"},
        {"finding": "agency_communion", "statistic": "anova_f", "other": "pretrained"},
        {"finding": "agency_communion", "statistic": "mwlr_positive_pairs"}, form="{:.4g}",
    ),
    "same_data": _medians("unified-27k"),
    "more_data": _medians("unified-106k"),
}  # fmt: skip

_NOTES: Mapping[str, Say] = {
    "base": _filled(
        "With a common recipe it is {} (p {}).",
        *({"finding": "heterogeneity", "statistic": name, "other": "recipe"} for name in ("rsa_spearman", "rsa_p")),
        form="{:.3f}",
    ),
    "finer": _apart("asymmetry", "slope_difference_standardised", "greatest"),
    "identity": _under_worst,
    "mirror": _turns,
    "frequent": _joined(
        _filled(
            "Of the slopes of all models under all questions {} lie above zero.",
            {"finding": "frequency", "statistic": "positive_frequency_slopes"}, form="{:.0f}",
        ),
        _filled(
            "With length, spelling and token id held too it is {} asked for the greatest and {} for the worst.",
            *({"finding": "frequency", "statistic": "slope_log_frequency_controlled", "prompt": prompt}
              for prompt in ("greatest", "worst")), form="{:.3f}",
        ),
    ),
    "people": _ends(
        "Among things that are plain words the median is {1}.",
        finding="elo", statistic="human_spearman_words", prompt="elo_greatest",
    ),
    "communion": _filled(
        "With prompts as observations the same ranks give p {} for agency and {} for communion.",
        *({**_BIG_TWO, "statistic": "base_difference_p_bonferroni", "other": kind} for kind in ("agency", "communion")),
        form="{:.4f}",
    ),
    "foundations": _filled(
        "Of single foundations loyalty differs most (p {} over models, one of ten such tests).",
        {**_LOYALTY, "statistic": "base_difference_p"}, form="{:.3f}",
    ),
}  # fmt: skip
