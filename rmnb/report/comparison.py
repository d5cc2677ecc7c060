"""What changed between two models: each number's difference, paired by word, and the words that moved most.

An interval over words says how the change would be on other words. It says nothing of another training with another
seed; only reports of other seeds can say that.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from rmnb.errors import InputError
from rmnb.findings import frequency
from rmnb.findings.tables import WORD_KINDS, standardise
from rmnb.plans import differences
from rmnb.report import numbers
from rmnb.report import seeds as seeds_of
from rmnb.report.record import Report
from rmnb.report.replicates import jackknife
from rmnb.report.scores import FRAMING, ModelScores
from rmnb.scoring.store import Provenance

SEEDS_UNKNOWN = "seed variation not measured"
#: Keys of a provenance that say what kind of reward it is.
_KINDS = ("label", "judge", "reference", "beta")


def compare(a: Report, b: Report, seeds: Sequence[Sequence[Report]] = ()) -> pd.DataFrame:
    """Every number that one of two models has, and how far the second is from the first.

    Parameters
    ----------
    a, b
        Both of the whole vocabulary, or both of a quick report.
    seeds
        For each training that was repeated, the reports of models that differ in its seed alone: two or more.

    Returns
    -------
    DataFrame
        The columns of `rmnb.report.numbers.glossary`; a, b, and their ends a_low, a_high, b_low, b_high, NaN where that
        model lacks the number; change (b minus a), low, high (95 % interval over words, by a jackknife that is paired
        by word; NaN where too few words are left); seeds, noise and df of `rmnb.report.seeds.noise`: by how much two
        seeds differ, NaN without seeds.

    Raises
    ------
    InputError
        A quick report beside a whole one, a single seed or one seed twice, or no number in common.
    """
    reports = [a, b]
    for training in seeds:
        if len(training) == 1:
            raise InputError(
                f"{training[0].name}: one seed shows no variation: give the reports of two seeds or more of a training"
            )
        reports += training
    quick = [report.name for report in reports if report.quick]
    whole = [report.name for report in reports if not report.quick]
    if quick and whole:
        raise InputError(f"{quick[0]} was scored with --quick and {whole[0]} in full: their numbers are of other words")
    _refuse_equal_weights(reports[2:])
    table = numbers.glossary()
    for side, report in (("a", a), ("b", b)):
        heads = {"value": side, "low": f"{side}_low", "high": f"{side}_high"}
        columns = report.numbers[[*numbers.KEY, *heads]].rename(columns=heads)
        table = table.merge(columns, "left", on=numbers.KEY)
    table["change"] = table["b"] - table["a"]
    if table["change"].isna().all():
        raise InputError(f"{a.name} and {b.name} have no number in common")
    table = table.dropna(subset=["a", "b"], how="all", ignore_index=True)
    keys = pd.MultiIndex.from_frame(table[numbers.KEY])
    left_out = (b.left_out.reindex(keys) - a.left_out.reindex(keys)).to_numpy()
    table[["low", "high"]] = list(map(jackknife, table["change"], left_out))
    table[["seeds", "noise", "df"]] = np.nan
    if seeds:
        trainings = []
        for training in seeds:
            values = [report.numbers.set_index(numbers.KEY)["value"].reindex(keys) for report in training]
            trainings.append(pd.concat(values, axis=1))
        noise = seeds_of.noise(trainings)
        table[noise.columns] = noise.to_numpy()
    return table


def read_differently(a: Provenance, b: Provenance) -> list[str]:
    """What differs in how the rewards of two models are read: label, judge, reference, beta."""
    return differences(a, {key: b.get(key) for key in _KINDS})


def _refuse_equal_weights(seeds: Sequence[Report]) -> None:
    """InputError if two reports are of the same weights: they would differ by nothing, and every change by more."""
    names: dict[str, str] = {}
    for report in seeds:
        weights = report.provenance.get("weights_sha256")
        if weights and weights in names:
            raise InputError(
                f"seeds {names[weights]} and {report.name} have the same weights: give reports of two seeds"
            )
        names[str(weights)] = report.name


#: What a reader sees of a comparison: its columns, and what they are called.
HEADS = {
    "part": "",
    "label": "number",
    "a": "A",
    "b": "B",
    "change": "change",
    "low": "95 %, other words: from",
    "high": "to",
    "seeds": "two seeds differ by",
}


def clear(table: pd.DataFrame) -> pd.Series:
    """Whether each change's interval over words lies on one side of zero."""
    return (table["low"] > 0) | (table["high"] < 0)


def beyond_seeds(table: pd.DataFrame) -> pd.Series:
    """Whether each change, by itself, is more than another seed would make, at 5 %; False where that is not known."""
    return table["change"].abs() > stdtrit(table["df"], 0.975) * table["noise"]


def moved(a: ModelScores, b: ModelScores, count: int = 15) -> pd.DataFrame:
    """The words that moved most from the first model to the second, among English words that a token begins.

    Parameters
    ----------
    a, b
        Scores of the two models; only words that both vocabularies have are compared.
    count
        How many that rose most, and as many that fell most, of each question.

    Returns
    -------
    DataFrame
        question, word, a, b (standard deviations above the mean of the vocabulary, mean over spellings), change; the
        highest rise first.
    """
    means = [_word_means(model.table) for model in (a, b)]
    parts = []
    for question in FRAMING:
        both = pd.DataFrame({"a": means[0][question], "b": means[1][question]}).dropna().rename_axis("word")
        both = both.assign(change=both["b"] - both["a"]).sort_values("change", ascending=False, kind="stable")
        shown = min(count, len(both) // 2)
        extremes = pd.concat([both.head(shown), both.tail(shown)])
        parts.append(extremes.reset_index().assign(question=question))
    return pd.concat(parts, ignore_index=True)[["question", "word", "a", "b", "change"]]


def _word_means(table: pd.DataFrame) -> pd.DataFrame:
    """Means over the spellings of the English words that a token begins."""
    words = standardise(table, list(FRAMING))
    words = words[words["kind"].eq(WORD_KINDS[0]) & words["word"].map(frequency.log_frequencies()).notna()]
    return words.groupby("word")[list(FRAMING)].mean()
