"""The numbers of a report: the effects of the chapters, of one model, and the same numbers of known models.

Which they are, what they are called and what they mean is in ``numbers.csv``; ``known.csv`` has those of the demo panel
and of the authors' data, as ``python -m rmnb.report.numbers`` computes them.
"""

import functools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons, released_files
from rmnb.data.sources import UnreachableError
from rmnb.errors import InputError
from rmnb.files import atomic_path
from rmnb.findings import agency, asymmetry, frequency, identity, people, tables
from rmnb.findings.framing import CHANGES, rewording, turn
from rmnb.findings.released import load_released
from rmnb.findings.rows import numbers as ends
from rmnb.models.origin import hashes_now
from rmnb.panels import load_panel
from rmnb.report.scores import FRAMING, THINGS, ModelScores, of_panel
from rmnb.stats.estimate import Estimate

KEY = ["name", "question", "other"]
KNOWN = Path(str(resources.files("rmnb.report"))) / "known.csv"
Row = tuple[str, str, str, Estimate]


@functools.cache
def glossary() -> pd.DataFrame:
    """All numbers in the order of a report: part, name, question, other, label, unit, meaning."""
    with resources.files("rmnb.report").joinpath("numbers.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, keep_default_na=False)


def known() -> pd.DataFrame:
    """The same numbers of other models: panel (demo, or of the authors' models), model, `KEY`, value, low, high."""
    return pd.read_csv(KNOWN, keep_default_na=False, na_values={"low": "", "high": ""})


def measure(scores: ModelScores) -> pd.DataFrame:
    """The numbers of one model.

    Returns
    -------
    DataFrame
        The columns of `glossary`, value, low, high (float64, 95 % intervals over words), n (int64). Left out is what
        was not scored, has too few words, or rests on word lists of others that cannot be reached.
    """
    rows = []
    for part in (_question, _valence, _frequency, _identity, _agency, _foundations, _people):
        rows += [(*key, *ends(estimate)) for *key, estimate in part(scores)]
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
    error = ((rows["high"] - rows["low"]) / 3.92).fillna(0)  # a 95 % interval is that many standard errors long
    rows["distance"] = (rows["value"] - rows.pop("mean")) / np.hypot(rows.pop("sd"), error)
    return rows.sort_values("distance", key=lambda distance: -distance.abs(), kind="stable", ignore_index=True)


def _question(scores: ModelScores) -> Iterator[Row]:
    good, bad = FRAMING
    once = scores.table[~scores.table["token"].duplicated(keep=False)]
    with suppress(InputError):
        yield "framing_kendall", good, bad, turn(once, good, bad)["tau"]
    listed = scores.words.drop_duplicates("text")
    for change in CHANGES:
        for estimate in rewording(listed, change, scores.wordings).values():
            yield "wording_spearman", "", change, estimate


def _valence(scores: ModelScores) -> Iterator[Row]:
    table, ratings = tables.standardise(scores.table, list(FRAMING)), tables.afinn()
    for question in FRAMING:
        with suppress(InputError):
            for end, slope in asymmetry.slopes(table, question, ratings).items():
                yield f"slope_{end}", question, "", slope
        yield "skewness", question, "", asymmetry.skewness(table, question)["skewness"]


def _frequency(scores: ModelScores) -> Iterator[Row]:
    good, bad = FRAMING
    words = frequency.word_tokens(tables.standardise(scores.table, [good, bad]))
    for question in FRAMING:
        for which, name in (("rated", "frequency_slope"), ("unrated", "frequency_slope_unrated")):
            with suppress(InputError):
                slope = frequency.slope(words, question, which=which)
                yield name, question, "", next(iter(slope.values()))
    with suppress(InputError):
        yield "frequency_slope_common", good, bad, frequency.by_question(words, good, bad)["common"]


def _identity(scores: ModelScores) -> Iterator[Row]:
    asked = {}
    for framing in dict.fromkeys(FRAMING.values()):
        asked[framing] = [prompt for prompt, kind in scores.wordings.items() if kind == framing]
    texts = identity.average_wordings(scores.words, asked)
    for framing in asked:
        with suppress(InputError):
            for axis, gap in identity.gaps(texts, framing).items():
                yield "identity_gap", framing, axis, gap
    if scores.things is not None:
        with suppress(InputError):
            yield "identity_gap_things", THINGS, "", identity.things_gap(scores.things, THINGS)["gap among things"]


def _agency(scores: ModelScores) -> Iterator[Row]:
    listed = scores.words[scores.words["part"] == "agency_communion"]
    nouns = lexicons.agency_communion().merge(listed, left_on="word", right_on="text")
    for framing in dict.fromkeys(scores.wordings.values()):
        prompts = {framing: [prompt for prompt, asked in scores.wordings.items() if asked == framing]}
        with suppress(InputError):
            yield "agency_gap", framing, "", agency.gap(nouns, framing, prompts)["agency_gap"]


def _foundations(scores: ModelScores) -> Iterator[Row]:
    """Mean rank of each foundation's words among the words of all five, in percent, of words that are one token."""
    try:
        dictionary = released_files.dictionary("moral_foundations")
    except UnreachableError:
        return
    question = next(iter(FRAMING))
    tokens = scores.table[scores.table["kind"].isin(tables.WORD_KINDS)]
    means = tokens[tokens["word"].isin(dictionary["word"])].groupby("word")[question].mean()
    listed = dictionary[dictionary["word"].isin(means.index)]
    rank = 100 * stats.mid_ranks(-means[listed["word"]].to_numpy()) / max(1, len(listed))
    for foundation, ranks in pd.Series(rank).groupby(listed["category"].to_numpy()):
        if len(ranks) >= 10:
            yield "foundation_rank", question, str(foundation), stats.moments(ranks.to_numpy()).mean


def _people(scores: ModelScores) -> Iterator[Row]:
    if scores.things is None:
        return
    seen = _seen(scores)
    judged = scores.things[~seen]
    with suppress(InputError):
        rho = stats.spearman_interval(judged["elo_score"], judged[THINGS])
        yield "human_spearman", THINGS, "", rho


def _seen(scores: ModelScores) -> np.ndarray:
    """Which things the training of a demo model showed it: they cannot judge it."""
    demo = load_panel("demo")
    hashes = hashes_now(demo.model(scores.name)) if scores.name in demo.model_names else {}
    if not hashes or hashes.get("weights_sha256") != scores.provenance["weights_sha256"]:
        return np.zeros(len(scores.things), dtype=bool)
    return ~people.judged_on(demo, scores.things)[scores.name]


#: What the authors' data call the numbers that they have, too: chapter, quantity.
_RELEASED: Mapping[str, tuple[str, str]] = {
    "wording_spearman": ("framing", "rewording spearman"),
    "identity_gap_things": ("identity", "identity_gap_things"),
    "human_spearman": ("elo", "human_spearman"),
    "agency_gap": ("agency_communion", "agency_gap"),
}


def compute_known() -> pd.DataFrame:
    """What is shipped as ``known.csv``: of the demo models by their shipped scores, of the authors' as released."""
    demo = load_panel("demo")
    parts = [measure(of_panel(demo, name)).assign(panel="demo", model=name) for name in demo.model_names]
    for name, (chapter, quantity) in _RELEASED.items():
        rows = load_released(chapter)
        rows = rows[(rows["quantity"] == quantity) & (rows["source"] == "released") & (rows["model"] != "")]
        parts.append(rows.assign(name=name, panel="authors"))
    table = pd.concat(parts, ignore_index=True).merge(glossary()[KEY], on=KEY)
    return table[["panel", "model", *KEY, "value", "low", "high"]]


if __name__ == "__main__":
    with atomic_path(KNOWN) as part:
        compute_known().to_csv(part, index=False, float_format="%.6g")
