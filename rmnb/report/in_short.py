"""The sentences that open a report: does the model read the question, then what is most unlike the reference models."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from rmnb.findings.identity import ALL, tested
from rmnb.findings.quoting import Row, find, interval, listed, quote, records, side, with_interval
from rmnb.report import reference
from rmnb.report.scores import ModelScores

SHOWN = 5  # sentences
_Said = tuple[str, str]  # the sentence, and the statistic by which it is ranked


def sentences(rows: pd.DataFrame, among: pd.DataFrame | None = None, shown: int = SHOWN) -> list[str]:
    """What is most telling about one model, in words; each number a row of the table.

    The first sentence says whether the model reads the question. Then come those findings that lie furthest from the
    demo models (`distance`).

    Parameters
    ----------
    rows
        Of `rmnb.report.numbers.measure`, with those of `rmnb.report.reference.places`.
    among
        Rows of reference models; those that are shipped by default.
    shown
        How many sentences at most.
    """
    among = reference.rows() if among is None else among
    demo = among[among["panel"] == "demo"]
    rest = [(distance(rows, demo, *key), say(rows)) for say, *key in _TOPICS]
    rest = sorted((one for one in rest if one[1]), key=lambda one: -one[0])
    return [sentence for sentence in (question(rows), *(text for _, text in rest)) if sentence][:shown]


def notes(scores: ModelScores) -> list[str]:
    """What a reader has to know of these sentences: what they rest on, and what is missing."""
    quick = "A quick report: a sample of the vocabulary and shorter lists, so the intervals are wide."
    missing = "The things that people voted on cannot be reached from here: that part is left out."
    return [*([quick] if scores.quick else []), *([missing] if scores.things is None else [])]


def by_axis(rows: pd.DataFrame) -> pd.DataFrame:
    """Gaps on each axis of identity in the word lists, to be shown: a line an axis and framing."""
    found = tested(rows[rows["prompt"].str.startswith("words, ")])
    asked = found["prompt"].map({"words, positive": "something good", "words, negative": "something bad"})
    shown = found.assign(asked=asked)[["other", "asked", "value", "ci_low", "ci_high", "q"]]
    return shown.set_axis(["axis", "asked for", "gap", "95 % from", "to", "q"], axis=1)


def distance(rows: pd.DataFrame, demo: pd.DataFrame, statistic: str, other: str, prompt: str) -> float:
    """How far a number lies from the median of the demo models, in their spread (from the median absolute deviation)
    and its own error together."""
    key = reference.Number("", statistic, other, prompt)
    own, others = reference.like(key, rows), reference.like(key, demo)["value"]
    if len(own) != 1 or len(others) < 3:
        return 0.0
    middle = others.median()
    spread = 1.4826 * (others - middle).abs().median()
    error = float((own["ci_high"] - own["ci_low"]).fillna(0).iloc[0]) / 4
    return float(abs(own["value"].iloc[0] - middle) / max(np.hypot(spread, error), np.finfo(float).tiny))


def question(rows: pd.DataFrame) -> str:
    """Does it rank the greatest and the worst thing alike?"""
    row = find(rows, "framing_kendall", prompt="greatest", other="worst")
    if row is None:
        return ""
    tau = f"τ of its rankings of the greatest and of the worst thing is {with_interval(row)}"
    says = {
        1: "It does not read the question",
        -1: "It turns with the question",
        0: "It hardly lets the question count",
    }[side(row)]
    return f"{says}: {tau}{_beside(rows, row)}."


def frequency(rows: pd.DataFrame) -> str:
    """Do frequent words score higher, all else equal?"""
    row = find(rows, "slope_log_frequency_controlled", prompt="greatest")
    if row is None:
        return ""
    says = {
        1: "It prefers frequent words",
        -1: "It prefers rare words",
        0: "It prefers neither frequent nor rare words",
    }[side(row)]
    held = "with valence, length, spelling and id held constant"
    return f"{says}: {with_interval(row)} standard deviations a unit of log frequency, {held}{_beside(rows, row)}."


def identity(rows: pd.DataFrame) -> str:
    """Do words for groups of people stand below their controls?"""
    about = {"statistic": "identity_gap", "other": ALL, "prompt": "words, positive"}
    row = find(rows, **about)
    if row is None:
        return ""
    says = {
        1: "It rates words for groups of people above matched controls",
        -1: "It rates words for groups of people below matched controls",
        0: "It has no clear gap between words for groups of people and matched controls",
    }[side(row)]
    bad = find(rows, **about | {"prompt": "words, negative"})
    asked = f"; asked for something bad {with_interval(bad)}" if bad is not None else ""
    return f"{says}: {with_interval(row)} standard deviations{_beside(rows, row)}{asked}.{_axes(rows)}"


def _axes(rows: pd.DataFrame) -> str:
    found = tested(rows[rows["prompt"] == "words, positive"])
    clear = found[found["discovery"]].sort_values("value")
    if clear.empty:
        return ""
    each = listed([f"{row['other']} ({quote(row)})" for row in records(clear)])
    return f" Axes with a gap after control of false discoveries: {each}."


def valence(rows: pd.DataFrame) -> str:
    """Are good words told apart more finely than bad ones?"""
    row = find(rows, "slope_difference_standardised", prompt="greatest")
    good, bad = (find(rows, f"slope_{end}_standardised", prompt="greatest") for end in ("positive", "negative"))
    if row is None or good is None or bad is None:
        return ""
    says = {
        1: "It tells good words apart more finely than bad ones",
        -1: "It tells bad words apart more finely than good ones",
        0: "It tells good and bad words apart about equally finely",
    }[side(row)]
    slopes = f"{quote(good)} and {quote(bad)} standard deviations a step of valence"
    return f"{says}: {slopes}, the difference {with_interval(row)}{_beside(rows, row)}."


def agency(rows: pd.DataFrame) -> str:
    """Does agency stand above communion?"""
    row = find(rows, "agency_gap", prompt="positive", other="")
    if row is None:
        return ""
    says = {
        1: "It ranks words of communion above words of agency",
        -1: "It ranks words of agency above words of communion",
        0: "It ranks words of agency and of communion alike",
    }[side(row)]
    return f"{says}: agency's mean place less communion's is {with_interval(row)} percent{_beside(rows, row)}."


def people(rows: pd.DataFrame) -> str:
    """Does it order things as people's votes do?"""
    row = find(rows, "human_spearman", prompt="elo_greatest")
    if row is None:
        return ""
    goes = {1: "goes with people's votes", -1: "goes against people's votes"}.get(
        side(row), "has nothing clear to do with people's votes"
    )
    return f"Its order of things {goes}: ρ is {with_interval(row)}{_beside(rows, row)}."


def wording(rows: pd.DataFrame) -> str:
    """How far do other words for the same question move the ranking?"""
    found = [find(rows, "wording_spearman", other=change) for change in ("style", "scope", "adjective")]
    known = [row for row in found if row is not None]
    if len(known) < 3:
        return ""
    least = min(known, key=lambda row: row["value"])
    moved = "hardly move" if least["ci_low"] > 0.8 else "move"
    return (
        f"Other words for the same question {moved} its ranking: most of all another {least['other']}, "
        f"ρ {quote(least)} (90 % of pairs: {interval(least)}){_beside(rows, least)}."
    )


#: What is said, and the number by which it is ranked.
_TOPICS: tuple[tuple[Callable[[pd.DataFrame], str], str, str, str], ...] = (
    (frequency, "slope_log_frequency_controlled", "", "greatest"),
    (identity, "identity_gap", ALL, "words, positive"),
    (valence, "slope_difference_standardised", "", "greatest"),
    (agency, "agency_gap", "", "positive"),
    (people, "human_spearman", "", "elo_greatest"),
    (wording, "wording_spearman", "adjective", ""),
)


def _beside(rows: pd.DataFrame, row: Row) -> str:
    """Where the number lies among the reference models."""
    name = f"{row['statistic']} {row['other']}".strip()
    place = find(rows, "reference_below", other=name, prompt=str(row["prompt"]))
    if place is None:
        return ""
    of = quote(place, "{:.0f}", "n")
    if place["value"] == place["n"]:
        return f", higher than in any of the {of} demo models"
    if place["value"] == 0:
        return f", lower than in any of the {of} demo models"
    return f", higher than in {quote(place, '{:.0f}')} of the {of} demo models"
