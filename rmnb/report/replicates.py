"""The numbers of a model with each group of words left out in turn, from which intervals of changes are computed.

A word is in the same group for every model, whatever its vocabulary, so that what two models share drops out of the
difference of their numbers; terms and controls of one matched set are left out together, and so are sets of things
that share a control.

References: Kott (2001), The delete-a-group jackknife. Shao, Tu (1995), The Jackknife and Bootstrap, section 2.3.
"""

import dataclasses
import functools
import os
import zlib
from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm
from tqdm.contrib.concurrent import process_map

from rmnb.findings import identity
from rmnb.report import numbers
from rmnb.report.scores import ModelScores
from rmnb.stats.estimate import Estimate, estimate_from_error

GROUPS = 20


def left_out(
    scores: ModelScores,
    measured: pd.DataFrame,
    estimates: Mapping[numbers.Key, Estimate],
    workers: int = 1,
    progress: bool = False,
) -> pd.DataFrame:
    """Every number of a model with each group of words left out.

    Parameters
    ----------
    measured
        Of `rmnb.report.numbers.measure`, with all words.
    estimates
        The same of `rmnb.report.numbers.estimates`.
    workers
        How many processes measure at the same time, at most one a core.
    progress
        Show a progress bar.

    Returns
    -------
    DataFrame
        Index `rmnb.report.numbers.KEY` in the order of `measured`, a float64 column a group; NaN where too few words
        are left. A group that holds none of the units that an estimate names leaves it as it is: its words are only
        part of the unit or of the ranking that the number is measured in.
    """
    measure = functools.partial(_values, scores)
    groups = range(GROUPS)
    bar = {"disable": not progress, "desc": "leaving out words"}
    workers = min(workers, os.cpu_count() or 1)
    if workers == 1:
        columns = map(measure, tqdm(groups, **bar))
    else:
        columns = process_map(measure, groups, max_workers=workers, **bar)
    values = measured.set_index(numbers.KEY)["value"]
    table = pd.concat(dict(enumerate(columns)), axis=1).reindex(values.index)
    held = dict(_set_groups())
    if scores.things is not None:
        held |= _thing_groups(scores.things)[1]
    for key in table.index:
        if units := estimates[key].units:
            holding = {held[unit] for unit in units}
            table.loc[key, ~table.columns.isin(holding)] = values[key]
    return table


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
        things=None if scores.things is None else kept(scores.things, _thing_groups(scores.things)[0]),
    )


def jackknife(value: float, estimates: NDArray[np.float64]) -> tuple[float, float]:
    """The ends of a 95 % interval around `value`, from the values with each group left out, (groups,) float64.

    A group without which the value is exactly the same holds none of its words and is not counted. Both ends are NaN
    where a value is missing, as it is where a number cannot do without a group, or where fewer than two groups are
    left; both are `value` where no group shifts it, as in the difference between a model and itself.
    """
    if not np.isfinite(estimates).all() or np.isnan(value):
        return np.nan, np.nan
    estimates = estimates[estimates != value]
    groups = len(estimates)
    if groups == 0:
        return value, value
    if groups == 1:
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
def _set_groups() -> dict[str, int]:
    """The group of each matched set of identity terms: up to 20 sets of one axis are in different groups."""
    terms = identity.terms()
    sets = dict.fromkeys(terms["axis"] + " " + terms["group"])
    return {matched_set: place % GROUPS for place, matched_set in enumerate(sets)}


@functools.cache
def _paired() -> dict[str, int]:
    """The group of each identity term and its control: that of their matched set."""
    terms = identity.terms()
    sets = terms.assign(left_out=(terms["axis"] + " " + terms["group"]).map(_set_groups()))
    words = sets.melt("left_out", ["term", "control"])
    return dict(zip(words["value"].str.strip().str.casefold(), words["left_out"].tolist(), strict=True))


def _thing_groups(things: pd.DataFrame) -> tuple[NDArray[np.int64], dict[str, int]]:
    """The group of each thing, by its place in the list since its name may be out of reach, and of each matched set."""
    groups = np.array([_hash(str(place)) for place in range(len(things))])
    pairs = identity.matched_things(things)
    sets = {label: number % GROUPS for label, number in identity.sharing_controls(pairs).items()}
    of_pairs = pairs["matched_set"].astype(str).map(sets)
    groups[pairs["control"]] = of_pairs
    groups[pairs["term"]] = of_pairs
    return groups, sets
