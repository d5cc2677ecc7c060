"""The numbers of a report: the effects of the chapters, of one model, and the same numbers of known models.

Which they are, what they are called and what they mean is in ``numbers.csv``; ``known.csv`` has those of the demo panel
and of the authors' data, as ``workflow/known_numbers.py`` computes them.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons, released_files
from rmnb.data.sources import UnreachableError
from rmnb.errors import TooFewError
from rmnb.findings import agency, asymmetry, framing, frequency, heterogeneity, identity, people, tables
from rmnb.findings.rows import Effect
from rmnb.findings.rows import numbers as ends
from rmnb.findings.things import fact
from rmnb.limits import KEY
from rmnb.report.scores import FRAMING, SENTENCE, THINGS, ModelScores
from rmnb.stats.estimate import Estimate

Key = tuple[str, str, str]
BOTH = "both"  # mean of the questions for something good and for something bad
KNOWN = Path(__file__).with_name("known.csv")


@cache
def glossary() -> pd.DataFrame:
    """All numbers in the order of a report: part, name, question, other, label, unit, meaning."""
    return pd.read_csv(KNOWN.with_name("numbers.csv"), keep_default_na=False)


def known() -> pd.DataFrame:
    """The same numbers of other models: panel (demo, or of the authors' models), model, `KEY`, value, low, high."""
    return pd.read_csv(KNOWN, keep_default_na=False, na_values={"low": "", "high": ""})


def measure(scores: ModelScores) -> pd.DataFrame:
    """The numbers of one model.

    Returns
    -------
    DataFrame
        The columns of `glossary`, value, low, high, error (float64: the standard error), n (int64). Intervals are 95 %
        intervals over words, things or groups, NaN where a number has none. Left out is what was not scored, has too
        few words, or rests on the dictionary of moral foundations where it cannot be reached.
    """
    return tabulate(estimates(scores))


def tabulate(estimates: Mapping[Key, Estimate]) -> pd.DataFrame:
    """`estimates` as `measure` returns them: those of the glossary, in its order."""
    rows = [(*key, *ends(estimate)[:3], estimate.standard_error, estimate.n) for key, estimate in estimates.items()]
    measured = pd.DataFrame(rows, columns=[*KEY, "value", "low", "high", "error", "n"])
    return glossary().merge(measured, on=KEY)


def estimates(scores: ModelScores) -> dict[Key, Estimate]:
    """The numbers of `measure` and some more by name, question and other, as their effects return them."""
    found = {}

    def add(name: str, question: str, other: str, effect: Effect, *arguments, **options) -> None:
        """The estimates of an effect; its own name of a number replaces {} in the key."""
        with suppress(TooFewError):
            for quantity, estimate in effect(*arguments, **options).items():
                found[name.format(quantity), question, other.format(quantity)] = estimate

    good, bad = FRAMING
    unique_tokens = scores.table[~scores.table["token"].duplicated(keep=False)]
    add("framing_kendall", good, bad, framing.tau_between, unique_tokens, good, bad)
    if SENTENCE in scores.table:
        add("travel", good, "", framing.tau_between, scores.table.dropna(subset=SENTENCE), good, SENTENCE)
    listed = scores.words.drop_duplicates("text")
    for change in framing.CHANGES:
        add("wording_spearman", "", change, framing.rewording, listed, change, scores.wordings)
    table, ratings = tables.standardise(scores.table, [good, bad]), tables.afinn()
    words = frequency.word_tokens(table)
    for question in FRAMING:
        add("slope_{}", question, "", asymmetry.slopes, table, question, ratings)
        add("{}", question, "", heterogeneity.moments, table, question)  # of these only the skewness is in the glossary
        add("frequency_slope", question, "", frequency.slope, words, question, which="rated")
        add("frequency_slope_unrated", question, "", frequency.slope, words, question, which="unrated")
    add("frequency_slope_{}", good, bad, frequency.by_question, words, good, bad)
    with suppress(UnreachableError):
        dictionary = released_files.moral_foundations()
        add("foundation_rank", good, "{}", _foundations, scores.table, good, dictionary)
    wordings = {}
    for direction in FRAMING.values():
        wordings[direction] = [prompt for prompt, asked_for in scores.wordings.items() if asked_for == direction]
    texts = identity.average_wordings(scores.words, wordings)
    texts[BOTH] = texts[list(wordings)].mean(axis="columns")
    nouns = lexicons.agency_communion().merge(scores.words, left_on="word", right_on="text")
    nouns = nouns[nouns["part"] == "agency_communion"]
    for direction in (*wordings, BOTH):
        add("identity_gap", direction, "{}", identity.gaps, texts, direction)
    for direction in wordings:
        add("agency_gap", direction, "", agency.gap, nouns, direction, wordings)
    if scores.things is not None:
        add("identity_gap_things", THINGS, "", identity.things_gap, scores.things, THINGS)
        # The things that no recipe teaches: the same ones for every model, whatever it was trained on.
        held_out = scores.things.assign(unseen=fact(scores.things, "held_out"))
        add("human_spearman", THINGS, "", people.agreement, held_out, THINGS)
    return found


def stand_out(measured: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Each number's place among known models, the ones that stand out most first.

    Parameters
    ----------
    measured
        Of `measure`.
    others
        Of `known`, without the model itself; the demo panel's are what it is held against.

    Returns
    -------
    DataFrame
        The rows of `measured` that three known models or more have too, and known (how many), least, greatest, and
        distance: from their mean, in standard deviations of the known models and of the number's own error together.
    """
    demo = others[others["panel"] == "demo"].groupby(KEY, sort=False)["value"]
    beside = demo.agg(known="size", mean="mean", sd="std", least="min", greatest="max").reset_index()
    rows = measured.merge(beside[beside["known"] >= 3], on=KEY)
    rows["distance"] = (rows["value"] - rows.pop("mean")) / np.hypot(rows.pop("sd"), rows["error"].fillna(0))
    return rows.sort_values("distance", key=lambda distance: -distance.abs(), kind="stable", ignore_index=True)


def _foundations(table: pd.DataFrame, question: str, dictionary: pd.DataFrame) -> dict[str, Estimate]:
    """Mean rank of each foundation's words among the words of all five, in percent, of words that are one token.

    Foundations with fewer than ten such words are left out. A word belongs to one foundation. Ranks among the same
    words depend on one another, so the 95 % interval is wide: it covers 96 to 98 % (2,000 simulations in this design).
    """
    tokens = table[table["kind"].isin(tables.WORD_KINDS)]
    means = tokens[tokens["word"].isin(dictionary["word"])].groupby("word")[question].mean()
    listed = dictionary[dictionary["word"].isin(means.index)]
    rank = pd.Series(100 * stats.mid_ranks(-means[listed["word"]].to_numpy()) / max(1, len(listed)))
    by_foundation = rank.groupby(listed["category"].to_numpy())
    return {name: stats.moments(ranks)["mean"] for name, ranks in by_foundation if len(ranks) >= 10}
