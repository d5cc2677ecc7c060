"""How often each estimator is right on planted rewards; ``workflow/coverage.py`` makes the table that ships."""

import functools
import json
import math
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest
from tqdm import tqdm

from rmnb.files import shipped
from rmnb.planted import models, words
from rmnb.stats.estimate import check_count

#: Where the share should lie: of 95 % intervals that hold the truth, of true null hypotheses rejected at 5 %.
BAND = {"coverage": (0.92, 0.98), "rejection": (0.03, 0.07)}
LEVEL = 0.05
COLUMNS = ["name", "group", "unit", "holds", "origin"]  # of a case that are columns of a study

Case = dict[Any, Any]


def _read_cases() -> list[Case]:
    """The table ``cases.csv``, a dict a row: an estimator, and the planted data that it is tried on.

    name (what is estimated, and how), group (the section of the book's page on estimators), unit (of the estimate),
    origin (who uses it, if the book does not, because its error rates are wrong; else empty), holds (whether the book
    relies on it), slow (tried on two fifths of the data sets), simulate (generator to `rmnb.planted.words.Outcome`: in
    the table a function of one of these modules, and its options as JSON).
    """
    modules = {"words": words, "models": models}
    table = pd.read_csv(Path(__file__).with_name("cases.csv"), keep_default_na=False)
    cases = table.assign(holds=table["origin"] == "", slow=table["slow"] == "yes").to_dict("records")
    for case in cases:
        module, function = case["simulation"].split(".")
        case["simulate"] = functools.partial(getattr(modules[module], function), **json.loads(case["options"] or "{}"))
    return cases


CASES = _read_cases()


def run(case: Case, n_simulations: int, seed: int = 0) -> dict[str, Any]:
    """Try a case on simulated data sets; data set i of a case does not depend on what else is run.

    Returns
    -------
    dict
        name, group, unit, holds, origin of the case; measure: "coverage" of the 95 % interval or, of an estimator
        without one, "rejection" at 5 % of a true null hypothesis; truth, mean_estimate and spread (standard deviation
        of the estimates) in that unit; value, the share of data sets, with its 95 % Wilson interval ci_low, ci_high;
        n_simulations; within_band, whether that share lies in `BAND`.

    Raises
    ------
    InputError
        No simulation.
    """
    check_count(n_simulations, "n_simulations")
    key = zlib.crc32(case["name"].encode())
    outcomes = [case["simulate"](np.random.default_rng([seed, key, i])) for i in range(n_simulations)]
    drawn = pd.DataFrame([estimate for _, estimate in outcomes]).assign(truth=[truth for truth, _ in outcomes])
    if drawn["ci_low"].notna().all():
        measure = "coverage"
        counted = drawn["truth"].between(drawn["ci_low"], drawn["ci_high"])
    else:
        measure = "rejection"
        counted = drawn["p_value"] <= LEVEL
    interval = binomtest(int(counted.sum()), n_simulations).proportion_ci(0.95, method="wilson")
    low, high = BAND[measure]
    return {
        **{name: case[name] for name in COLUMNS},
        "measure": measure,
        "truth": drawn["truth"].mean(),
        "mean_estimate": drawn["value"].mean(),
        "spread": drawn["value"].std(),
        "value": counted.mean(),
        "ci_low": interval.low,
        "ci_high": interval.high,
        "n_simulations": n_simulations,
        "within_band": low <= counted.mean() <= high,
    }


def study(n_simulations: int, seed: int = 0, cases: Iterable[Case] | None = None) -> pd.DataFrame:
    """A table with a row of `run` for each case, by default all; slow ones are tried on two fifths of the data sets."""
    cases = list(CASES if cases is None else cases)
    rows = []
    for case in tqdm(cases, desc="cases", disable=None):
        n = math.ceil(n_simulations * 2 / 5) if case["slow"] else n_simulations
        rows.append(run(case, n, seed))
    return pd.DataFrame(rows)


def read_study() -> pd.DataFrame:
    """The shipped study, as `study` returns it; origin is "" if the book relies on the estimator.

    Raises
    ------
    InputError
        There is no such file.
    """
    return pd.read_csv(shipped("simulations/coverage.csv", "the study of estimators")).fillna(
        {"origin": "", "unit": ""}
    )
