"""The same measurement on many parts of two models' scores, in several processes if there is time to save."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed

import pandas as pd
from tqdm import tqdm

from rmnb.report.scores import ModelScores

Measurement = Callable[[ModelScores, int], pd.Series]
_held: tuple[ModelScores, ...] = ()


def each_left_out(
    models: tuple[ModelScores, ...], measurement: Measurement, groups: int, workers: int, progress: bool
) -> list[pd.DataFrame]:
    """Numbers of each model with one group after the other left out.

    Parameters
    ----------
    models
        Scores.
    measurement
        ``measurement(scores, group)`` gives numbers by a key; with several workers it must be picklable.
    groups
        How many.
    workers
        Processes at once; with 1 nothing is started.
    progress
        Show a progress bar with the time left.

    Returns
    -------
    list of DataFrame
        One a model: a row a number, a column a group; NaN where a group's absence leaves a number undefined.
    """
    jobs = [(model, group) for group in range(groups) for model in range(len(models))]
    done: dict[tuple[int, int], pd.Series] = {}
    bar = tqdm(total=len(jobs), disable=not progress, desc="jackknife over words")
    if workers == 1:
        for model, group in jobs:
            done[model, group] = measurement(models[model], group)
            bar.update()
    else:
        spawn = multiprocessing.get_context("spawn")  # a fork of a process that has used torch can hang
        with ProcessPoolExecutor(workers, spawn, _hold, (models,)) as pool:
            futures = {pool.submit(_measure, measurement, *job): job for job in jobs}
            for future in as_completed(futures):
                done[futures[future]] = future.result()
                bar.update()
    bar.close()
    return [pd.DataFrame({group: done[model, group] for group in range(groups)}) for model in range(len(models))]


def _hold(models: tuple[ModelScores, ...]) -> None:
    global _held
    _held = models


def _measure(measurement: Measurement, model: int, group: int) -> pd.Series:
    return measurement(_held[model], group)
