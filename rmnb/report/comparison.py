"""What changed between two models: each number's difference, paired by word, and the words that moved most.

The intervals are those of a jackknife that leaves out groups of words. A word is in the same group for both models,
whatever their vocabularies, so that what they share drops out of the difference; terms and controls of one matched set
are left out together.

References: Kott (2001), The delete-a-group jackknife. Shao, Tu (1995), The Jackknife and Bootstrap, section 2.3.
"""

import dataclasses
import functools
import zlib
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rmnb import stats
from rmnb.errors import InputError
from rmnb.findings import identity
from rmnb.findings.results import Results
from rmnb.findings.word_tokens import frequency_list
from rmnb.report import numbers
from rmnb.report.replicates import each_left_out
from rmnb.report.scores import FRAMING, ModelScores
from rmnb.stats.estimate import estimate_from_error

GROUPS = 20
#: What tells a number of one model from its others.
KEY = ["finding", "statistic", "other", "prompt"]
COLUMNS = [
    *KEY, "value_a", "ci_low_a", "ci_high_a", "value_b", "ci_low_b", "ci_high_b", "change", "ci_low", "ci_high", "n",
]  # fmt: skip
_TELLS = 0.05  # of the largest shift: a group that shifts a number less holds none of its words
_TESTS = ("_p", "_q")

Measure = Callable[[ModelScores], pd.DataFrame]


def quickly(scores: ModelScores) -> pd.DataFrame:
    """All numbers of a model, without what their own intervals and tests cost."""
    return numbers.measure(scores, n_boot=2, n_permutations=1)


def compare(
    a: ModelScores,
    b: ModelScores,
    *,
    measure: Measure = quickly,
    seed: int = 0,
    workers: int = 1,
    progress: bool = False,
) -> pd.DataFrame:
    """Every number that both models have, and how far the second is from the first.

    Parameters
    ----------
    a, b
        Scores of the two; both whole or both of a quick report.
    measure
        Gives the rows of one model; with several workers a function of a module.
    seed
        Of the groups.
    workers
        Processes that measure at once. A number is measured again with each group left out.
    progress
        Show a progress bar.

    Returns
    -------
    DataFrame
        `COLUMNS`: the number in either model, `change` (of b less that of a), each with its 95 % interval over words (t
        distribution), and n (the smaller one). NaN where too few words are left for an interval. p-values are left out.

    Raises
    ------
    InputError
        One is of a quick report and the other is not, or they have no number in common.
    """
    both = in_both(a, b, measure)
    values = functools.partial(values_without, measure=measure, seed=seed)
    replicates = each_left_out((a, b), values, GROUPS, workers, progress)
    left = [table.reindex(both.index).to_numpy() for table in replicates]
    table = both[["value_a", "value_b"]].assign(change=both["value_b"] - both["value_a"])
    ends = {"_a": left[0], "_b": left[1], "": left[1] - left[0]}
    for suffix, replicates in ends.items():
        values = table[f"value{suffix}" if suffix else "change"].to_numpy()
        intervals = [jackknife(value, row) for value, row in zip(values, replicates, strict=True)]
        table[[f"ci_low{suffix}", f"ci_high{suffix}"]] = intervals
    return table.assign(n=both[["n_a", "n_b"]].min(axis=1)).reset_index()[COLUMNS]


def in_both(a: ModelScores, b: ModelScores, measure: Measure = quickly) -> pd.DataFrame:
    """The numbers that both models have, by `KEY`, with their own intervals and n: value_a, value_b and so on.

    Raises
    ------
    InputError
        As `compare`.
    """
    if a.quick != b.quick:
        quick, whole = (a.name, b.name) if a.quick else (b.name, a.name)
        raise InputError(f"{quick} was scored with --quick and {whole} in full: their numbers are of other words")
    rows = [comparable(measure(one)) for one in (a, b)]
    both = rows[0].add_suffix("_a").join(rows[1].add_suffix("_b"), how="inner")
    if both.empty:
        raise InputError(f"{a.name} and {b.name} have no number in common")
    return both


def compare_rows(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """The same from the rows of two reports, without the scores: intervals taken as independent, so rather too long.

    Parameters
    ----------
    a, b
        Rows of the results table, of one model each.
    """
    both = comparable(a).add_suffix("_a").join(comparable(b).add_suffix("_b"), how="inner")
    if both.empty:
        raise InputError("the two reports have no number in common")
    reach = ((both["ci_high_a"] - both["ci_low_a"]) ** 2 + (both["ci_high_b"] - both["ci_low_b"]) ** 2) ** 0.5 / 2
    change = both["value_b"] - both["value_a"]
    ends = {"change": change, "ci_low": change - reach, "ci_high": change + reach}
    return both.assign(**ends, n=both[["n_a", "n_b"]].min(axis=1)).reset_index()[COLUMNS]


def comparable(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of one model by `KEY`, without p-values."""
    rows = rows[~rows["statistic"].str.endswith(_TESTS)]
    return rows.set_index(KEY)[["value", "ci_low", "ci_high", "n"]]


def values_without(scores: ModelScores, group: int, *, measure: Measure, seed: int) -> pd.Series:
    """The numbers by `KEY` with the words of one group left out; none where too few words are left to measure."""
    try:
        return comparable(measure(without(scores, group, seed)))["value"]
    except InputError:
        return pd.Series(dtype=float, index=pd.MultiIndex.from_tuples([], names=KEY))


def without(scores: ModelScores, group: int, seed: int = 0) -> ModelScores:
    """The scores without the words of one group: tokens that spell them, listed texts, and things."""
    of_word = group_of_word(seed)
    kept: dict = {
        "table": scores.table[_groups(scores.table["word"], of_word) != group],
        "words": scores.words[_groups(_folded(scores.words["text"]), of_word) != group],
    }
    if scores.things is not None:
        kept["things"] = scores.things[_thing_groups(scores.things, seed) != group]
    return dataclasses.replace(scores, **{name: part.reset_index(drop=True) for name, part in kept.items()})


def group_of_word(seed: int) -> Callable[[str], int]:
    """The group of each folded word: by a hash, and that of its matched set for identity terms and their controls."""
    paired = _paired()
    return lambda word: paired[word] if word in paired else zlib.crc32(f"{seed} {word}".encode()) % GROUPS


@functools.cache
def _paired() -> dict[str, int]:
    terms = identity.terms()
    sets = pd.factorize(terms["axis"] + " " + terms["group"])[0] % GROUPS  # the sets of one axis in different groups
    words = pd.concat([_folded(terms["term"]), _folded(terms["control"])])
    return dict(zip(words, np.tile(sets, 2).tolist(), strict=True))


def jackknife(value: float, left_out: NDArray[np.float64]) -> tuple[float, float]:
    """The ends of a 95 % interval from the values with each group left out.

    Groups that hold none of the words behind a number say nothing about its error. NaN where a value is missing, as it
    is where a number needs the group, or where fewer than two groups say anything.
    """
    shift = np.abs(left_out - value)
    if not np.isfinite(shift).all():
        return np.nan, np.nan
    if not shift.any():
        return value, value
    left = left_out[shift > _TELLS * shift.max()]
    groups = len(left)
    if groups < 2:
        return np.nan, np.nan
    error = float(left.std()) * (groups - 1) ** 0.5
    found = estimate_from_error(value, error, groups, groups, df=groups - 1)
    return found.ci_low, found.ci_high


def alike(a: ModelScores, b: ModelScores) -> pd.DataFrame:
    """Rows spearman of the two models over the words that both have, by question; intervals over words."""
    results = Results("comparison", "change")
    tables = [_word_means(one.table) for one in (a, b)]
    both = tables[0].add_suffix("_a").join(tables[1].add_suffix("_b"), how="inner")
    for prompt in FRAMING if len(both) > 2 else ():
        rho = stats.spearman_interval(both[f"{prompt}_a"], both[f"{prompt}_b"])
        results.add("panel", "spearman", rho, model=a.name, other=b.name, prompt=prompt)
    return results.frame()


def moved(a: ModelScores, b: ModelScores, count: int = 15) -> pd.DataFrame:
    """The words, and with equal vocabularies the tokens, that moved most from the first model to the second.

    Parameters
    ----------
    count
        How many that rose most, and as many that fell most, of each question.

    Returns
    -------
    DataFrame
        unit (words or tokens), prompt (greatest or worst), text, z_a, z_b (standard deviations above the scan's mean,
        of a word the mean over its spellings), change; the highest rise first. Words are those of
        `rmnb.findings.word_tokens.frequency_list` that begin with a space in both vocabularies.
    """
    units: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {"words": _word_means}
    if a.table["token_id"].equals(b.table["token_id"]) and a.table["token"].equals(b.table["token"]):
        units["tokens"] = lambda table: table.drop_duplicates("token").set_index("token")
    parts = []
    for unit, by_text in units.items():
        tables = [by_text(_standardised(one.table)) for one in (a, b)]
        for prompt in FRAMING:
            both = pd.DataFrame({"z_a": tables[0][prompt], "z_b": tables[1][prompt]}).dropna().rename_axis("text")
            both = both.assign(change=both["z_b"] - both["z_a"]).sort_values("change", ascending=False, kind="stable")
            few = min(count, len(both) // 2)
            ends = pd.concat([both.head(few), both.tail(few)]).reset_index()
            parts.append(ends.assign(unit=unit, prompt=prompt))
    return pd.concat(parts, ignore_index=True)[["unit", "prompt", "text", "z_a", "z_b", "change"]]


def _standardised(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(**{prompt: stats.standardise(table[prompt]) for prompt in FRAMING})


def _word_means(table: pd.DataFrame) -> pd.DataFrame:
    words = table[(table["kind"] == "word_start") & table["word"].isin(frequency_list()["word"])]
    return words.groupby("word")[list(FRAMING)].mean()


def _folded(texts: pd.Series) -> pd.Series:
    return texts.str.strip().str.casefold()


def _groups(words: pd.Series, of_word: Callable[[str], int]) -> NDArray[np.int64]:
    codes, distinct = pd.factorize(words)
    return np.array([of_word(word) for word in distinct])[codes]


def _thing_groups(things: pd.DataFrame, seed: int) -> NDArray[np.int64]:
    found = np.array([zlib.crc32(f"{seed} {name}".encode()) % GROUPS for name in things["name"]])
    matched = identity.matched_things(things)
    found[matched.index.to_numpy(int)] = pd.factorize(matched["matched_set"])[0] % GROUPS
    return found
