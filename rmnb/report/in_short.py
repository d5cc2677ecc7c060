"""The sentences that open a report: does the model read the question, then what is most unlike the reference models."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rmnb.findings.identity import ALL, tested
from rmnb.findings.quoting import Row, find, interval, listed, quote, records, side, with_interval
from rmnb.report import reference
from rmnb.report.scores import ModelScores

SHOWN = 5  # sentences


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
    rest = [
        (distance(rows, demo, topic.statistic, topic.other, topic.prompt), topic.sentence(rows)) for topic in TOPICS
    ]
    rest.append((distance(rows, demo, "wording_spearman", "adjective", ""), wording(rows)))
    ordered = [sentence for _, sentence in sorted(rest, key=lambda one: -one[0])]
    return [sentence for sentence in (QUESTION.sentence(rows), *ordered) if sentence][:shown]


def notes(scores: ModelScores, rows: pd.DataFrame) -> list[str]:
    """What a reader has to know of a report: what it rests on, and what is missing."""
    quick = "A quick report: a sample of the vocabulary and shorter lists, so the intervals are wide."
    known = {"The things that people voted on": scores.things is not None}
    known["The dictionary of moral foundations"] = "foundation_rank" in set(rows["statistic"])
    missing = [
        f"{what} cannot be reached from here: that part is left out." for what, here in known.items() if not here
    ]
    return [*([quick] if scores.quick else []), *missing]


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


@dataclass(frozen=True)
class Topic:
    """A number that a sentence is about.

    Attributes
    ----------
    statistic, other, prompt : str
        Which row.
    above, below, unclear : str
        How the sentence begins, by the side of zero on which the interval lies.
    number : str
        What the value with its interval is, at ``{}``.
    more : callable
        Gives what follows, from the rows.
    """

    statistic: str
    other: str
    prompt: str
    above: str
    below: str
    unclear: str
    number: str
    more: Callable[[pd.DataFrame], str] = lambda rows: ""

    def sentence(self, rows: pd.DataFrame) -> str:
        """What the model does, its number, and where that lies among the demo models; empty without the number."""
        row = find(rows, self.statistic, other=self.other, prompt=self.prompt)
        if row is None:
            return ""
        says = {1: self.above, -1: self.below, 0: self.unclear}[side(row)]
        return f"{says}: {self.number.format(with_interval(row))}{_beside(rows, row)}{self.more(rows)}."


def _other_question(rows: pd.DataFrame) -> str:
    """The gap of identity terms when something bad is asked for, and the axes that have one."""
    bad = find(rows, "identity_gap", other=ALL, prompt="words, negative")
    asked = f"; asked for something bad {with_interval(bad)}" if bad is not None else ""
    found = tested(rows[rows["prompt"] == "words, positive"])
    clear = records(found[found["discovery"]].sort_values("value"))
    each = listed([f"{row['other']} ({quote(row)})" for row in clear]) if clear else ""
    return asked + (f". Axes with a gap after control of false discoveries: {each}" if each else "")


def _slopes(rows: pd.DataFrame) -> str:
    """The two slopes behind a difference."""
    ends = [find(rows, f"slope_{end}_standardised", prompt="greatest") for end in ("positive", "negative")]
    good, bad = (quote(row) for row in ends if row is not None)
    return f"; {good} among good words, {bad} among bad ones"


QUESTION = Topic(
    *("framing_kendall", "worst", "greatest"),
    "It does not read the question (opposite ones order words alike)",
    "It turns with the question",
    "Its rankings under opposite questions have nothing clear to do with each other",
    "τ of its rankings of the greatest and of the worst thing is {}",
)
TOPICS = (
    Topic(
        *("slope_log_frequency_controlled", "", "greatest"),
        "It prefers frequent words",
        "It prefers rare words",
        "It has no clear preference for frequent or for rare words",
        "{} standard deviations a unit of log frequency, with valence, length, spelling and id held constant",
    ),
    Topic(
        *("identity_gap", ALL, "words, positive"),
        "It rates words for groups of people above matched controls",
        "It rates words for groups of people below matched controls",
        "It has no clear gap between words for groups of people and matched controls",
        "{} standard deviations",
        _other_question,
    ),
    Topic(
        *("slope_difference_standardised", "", "greatest"),
        "It tells good words apart more finely than bad ones",
        "It tells bad words apart more finely than good ones",
        "It tells neither good nor bad words apart clearly more finely than the others",
        "the slopes over valence differ by {} standard deviations a step",
        _slopes,
    ),
    Topic(
        *("agency_gap", "", "positive"),
        "It ranks words of communion above words of agency",
        "It ranks words of agency above words of communion",
        "It has no clear preference for words of agency or of communion",
        "agency's mean place less communion's is {} percent",
    ),
    Topic(
        *("human_spearman", "", "elo_greatest"),
        "Its order of things goes with people's votes",
        "Its order of things goes against people's votes",
        "Its order of things has nothing clear to do with people's votes",
        "ρ is {}",
    ),
)


def wording(rows: pd.DataFrame) -> str:
    """How far do other words for the same question move the ranking?"""
    found = [find(rows, "wording_spearman", other=change) for change in ("style", "scope", "adjective")]
    known = [row for row in found if row is not None]
    if len(known) < 3:
        return ""
    least = min(known, key=lambda row: row["value"])
    moved = "hardly move" if least["ci_low"] > 0.9 else "move"
    return (
        f"Other words for the same question {moved} its ranking: most of all another {least['other']}, "
        f"ρ {quote(least)} (90 % of pairs: {interval(least)}){_beside(rows, least)}."
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
