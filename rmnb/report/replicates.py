"""The numbers of a model with each group of words left out in turn, from which intervals of changes are computed.

A word is in the same group for every model, whatever its vocabulary, so that what two models share drops out of the
difference of their numbers; terms and controls of one matched set are left out together.

References: Kott (2001), The delete-a-group jackknife. Shao, Tu (1995), The Jackknife and Bootstrap, section 2.3.
"""

import dataclasses
import functools
import zlib

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm
from tqdm.contrib.concurrent import process_map

from rmnb.findings import identity
from rmnb.report import numbers
from rmnb.report.scores import ModelScores
from rmnb.stats.estimate import estimate_from_error

GROUPS = 20
_SMALLEST_SHIFT = 0.05  # of the largest: a group that shifts a number less holds none of its words


def left_out(scores: ModelScores, workers: int = 1, progress: bool = False) -> pd.DataFrame:
    """Every number of a model with each group of words left out.

    Parameters
    ----------
    workers
        How many processes measure at the same time.
    progress
        Show a progress bar.

    Returns
    -------
    DataFrame
        Index `rmnb.report.numbers.KEY`, a float64 column a group; NaN where too few words are left.
    """
    measure = functools.partial(_values, scores)
    groups = range(GROUPS)
    bar = {"disable": not progress, "desc": "leaving out words"}
    if workers == 1:
        columns = map(measure, tqdm(groups, **bar))
    else:
        columns = process_map(measure, groups, max_workers=workers, **bar)
    return pd.concat(dict(enumerate(columns)), axis=1)


def _values(scores: ModelScores, group: int) -> pd.Series:
    return numbers.measure(without(scores, group)).set_index(numbers.KEY)["value"]


def without(scores: ModelScores, group: int) -> ModelScores:
    """The scores without the words of one group: tokens that spell them, listed texts, and things."""

    def kept(table: pd.DataFrame, groups: NDArray[np.int64]) -> pd.DataFrame:
        return table[groups != group].reset_index(drop=True)

    return dataclasses.replace(
        scores,
        table=kept(scores.table, _groups(scores.table["word"])),
        words=kept(scores.words, _groups(scores.words["text"].str.strip().str.casefold())),
        things=None if scores.things is None else kept(scores.things, _thing_groups(scores.things)),
    )


def jackknife(value: float, estimates: NDArray[np.float64]) -> tuple[float, float]:
    """The ends of a 95 % interval around `value`, from the values with each group left out, (groups,) float64.

    Groups that hold none of a number's words are not counted. Both ends are NaN where a value is missing, as it is
    where a number cannot do without a group, or where fewer than two groups are left; both are `value` where no group
    shifts it, as in the difference between a model and itself.
    """
    shifts = np.abs(estimates - value)
    if not np.isfinite(shifts).all():
        return np.nan, np.nan
    if not shifts.any():
        return value, value
    estimates = estimates[shifts > _SMALLEST_SHIFT * shifts.max()]
    groups = len(estimates)
    if groups < 2:
        return np.nan, np.nan
    error = float(estimates.std()) * (groups - 1) ** 0.5
    estimate = estimate_from_error(value, error, groups, groups, df=groups - 1)
    return estimate.ci_low, estimate.ci_high


def _groups(words: pd.Series) -> NDArray[np.int64]:
    codes, distinct = pd.factorize(words)
    paired = _paired()
    return np.array([paired.get(word, _hash(word)) for word in distinct])[codes]


def _hash(word: str) -> int:
    return zlib.crc32(f"0 {word}".encode()) % GROUPS


@functools.cache
def _paired() -> dict[str, int]:
    """The group of each identity term and its control: that of their matched set."""
    terms = identity.terms()
    sets = pd.factorize(terms["axis"] + " " + terms["group"])[0] % GROUPS  # the sets of one axis in different groups
    words = pd.concat([terms["term"], terms["control"]]).str.strip().str.casefold()
    return dict(zip(words, np.tile(sets, 2).tolist(), strict=True))


def _thing_groups(things: pd.DataFrame) -> NDArray[np.int64]:
    groups = np.array([_hash(name) for name in things["name"]])
    matched = identity.matched_things(things)
    groups[matched.index.to_numpy(int)] = pd.factorize(matched["matched_set"])[0] % GROUPS
    return groups
