"""The numbers of a report: the effects of the chapters, of one model, and the same numbers of known models.

Which they are, what they are called and what they mean is in ``numbers.csv``; ``known.csv`` has those of the demo panel
and of the authors' data, as ``python -m rmnb.report.numbers`` computes them.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons, released_files
from rmnb.errors import InputError
from rmnb.files import atomic_path
from rmnb.findings import agency, asymmetry, framing, frequency, identity, people, tables
from rmnb.findings.released import load_released
from rmnb.findings.rows import numbers as ends
from rmnb.models.origin import hashes_now
from rmnb.panels import load_panel
from rmnb.report.scores import FRAMING, THINGS, ModelScores, of_panel
from rmnb.stats.estimate import Estimate

KEY = ["name", "question", "other"]
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
        The columns of `glossary`, value, low, high (float64), n (int64). Intervals are 95 % intervals over words,
        things or groups; of wording_spearman they hold nine tenths of the pairs of wordings. Left out is what was not
        scored, has too few words, or rests on word lists of others that cannot be reached.
    """
    rows = []
    for effect, key in _effects(scores):
        with suppress(InputError):  # too few words, or a list that cannot be reached
            for quantity, estimate in effect().items():
                name, question, other = (part.format(quantity) for part in key)
                rows.append((name, question, other, *ends(estimate)))
    measured = pd.DataFrame(rows, columns=[*KEY, "value", "low", "high", "n"])
    return glossary().merge(measured, on=KEY)


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
    error = (rows["high"] - rows["low"]) / 3.92  # a 95 % interval is that many standard errors long
    error = error.where(rows["name"] != "wording_spearman").fillna(0)  # the range of these is no error
    rows["distance"] = (rows["value"] - rows.pop("mean")) / np.hypot(rows.pop("sd"), error)
    return rows.sort_values("distance", key=lambda distance: -distance.abs(), kind="stable", ignore_index=True)


def _effects(scores: ModelScores) -> Iterator[tuple[partial[Mapping[str, Estimate]], tuple[str, str, str]]]:
    """Effects of one model, each with the `KEY` of its numbers; the effect's own name of a number replaces {} there."""
    good, bad = FRAMING
    unique_tokens = scores.table[~scores.table["token"].duplicated(keep=False)]
    yield partial(framing.turn, unique_tokens, good, bad), ("framing_kendall", good, bad)
    listed = scores.words.drop_duplicates("text")
    for change in framing.CHANGES:
        yield partial(framing.rewording, listed, change, scores.wordings), ("wording_spearman", "", change)
    table, ratings = tables.standardise(scores.table, [good, bad]), tables.afinn()
    words = frequency.word_tokens(table)
    for question in FRAMING:
        yield partial(asymmetry.slopes, table, question, ratings), ("slope_{}", question, "")
        yield partial(asymmetry.skewness, table, question), ("skewness", question, "")
        yield partial(frequency.slope, words, question, which="rated"), ("frequency_slope", question, "")
        yield partial(frequency.slope, words, question, which="unrated"), ("frequency_slope_unrated", question, "")
    yield partial(frequency.by_question, words, good, bad), ("frequency_slope_{}", good, bad)
    yield partial(_foundations, scores.table, good), ("foundation_rank", good, "{}")
    wordings = {}
    for direction in FRAMING.values():
        wordings[direction] = [prompt for prompt, asked_for in scores.wordings.items() if asked_for == direction]
    texts = identity.average_wordings(scores.words, wordings)
    nouns = lexicons.agency_communion().merge(scores.words, left_on="word", right_on="text")
    nouns = nouns[nouns["part"] == "agency_communion"]
    for direction in wordings:
        yield partial(identity.gaps, texts, direction), ("identity_gap", direction, "{}")
        yield partial(agency.gap, nouns, direction, wordings), ("agency_gap", direction, "")
    if scores.things is not None:
        yield partial(identity.things_gap, scores.things, THINGS), ("identity_gap_things", THINGS, "")
        judged = scores.things.assign(judges=~_seen(scores, scores.things))
        yield partial(people.agreement, judged, THINGS), ("human_spearman", THINGS, "")


def _foundations(table: pd.DataFrame, question: str) -> dict[str, Estimate]:
    """Mean rank of each foundation's words among the words of all five, in percent, of words that are one token.

    Foundations with fewer than ten such words are left out. UnreachableError where the dictionary cannot be had.
    """
    dictionary = released_files.dictionary("moral_foundations")
    tokens = table[table["kind"].isin(tables.WORD_KINDS)]
    means = tokens[tokens["word"].isin(dictionary["word"])].groupby("word")[question].mean()
    listed = dictionary[dictionary["word"].isin(means.index)]
    rank = pd.Series(100 * stats.mid_ranks(-means[listed["word"]].to_numpy()) / max(1, len(listed)))
    by_foundation = rank.groupby(listed["category"].to_numpy())
    return {name: stats.moments(ranks.to_numpy()).mean for name, ranks in by_foundation if len(ranks) >= 10}


def _seen(scores: ModelScores, things: pd.DataFrame) -> np.ndarray:
    """Which things, (things,) bool, the training of a demo model showed it; none for any other model."""
    demo = load_panel("demo")
    hashes = hashes_now(demo.model(scores.name)) if scores.name in demo.model_names else {}
    if not hashes or hashes.get("weights_sha256") != scores.provenance["weights_sha256"]:
        return np.zeros(len(things), dtype=bool)
    return ~people.judged_on(demo, things)[scores.name]


def compute_known() -> pd.DataFrame:
    """The table ``known.csv``: numbers of the demo models from their shipped scores, of the authors' as released."""
    demo = load_panel("demo")
    parts = [measure(of_panel(demo, name)).assign(panel="demo", model=name) for name in demo.model_names]
    for chapter in ("framing", "identity", "elo", "agency_communion"):
        rows = load_released(chapter).assign(panel="authors").rename(columns={"quantity": "name"})
        parts.append(rows.replace({"name": {"rewording spearman": "wording_spearman"}}))
    table = pd.concat(parts, ignore_index=True).merge(glossary()[KEY], on=KEY)
    return table[["panel", "model", *KEY, "value", "low", "high"]]


if __name__ == "__main__":
    with atomic_path(KNOWN) as part:
        compute_known().to_csv(part, index=False, float_format="%.6g")
