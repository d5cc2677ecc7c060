"""Answers of several tokens: the best that searches found, the methods compared, and all pairs of some tokens.

Rewards of two models share neither zero nor unit, so all are shown as z: in standard deviations of the model's scan of
single tokens under the same question, from its mean.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb.errors import InputError, LackError
from rmnb.models.origin import hashes_now
from rmnb.panels import Panel
from rmnb.scoring.store import panel_directory, read_scores, read_table, refuse_other_weights
from rmnb.searching.result import SearchResult, read_result

PROMPT = "greatest"
_RUN = ["model", "direction", "method", "seed"]


def searches(panel: Panel, model: str) -> dict[tuple[str, int, str, int], SearchResult]:
    """A model's searches, by direction, length, method and seed; empty where none has been run.

    They are kept beside the panel's scores as ``sequences/MODEL/DIRECTION-LENGTH-METHOD-SEED.json``, which is what
    ``rmnb search --out`` writes.
    """
    results = {}
    for path in sorted((panel_directory(panel, "sequences") / model).glob("*.json")):
        result = read_result(path)
        _check_weights(path, result.provenance["models"][0].get("weights_sha256"), panel, model)
        config = result.config
        results[config.direction, config.length, config.method, config.seed] = result
    return results


def _check_weights(path: Path, recorded: str | None, panel: Panel, model: str) -> None:
    """Raise InputError where what lies at a path was computed with other weights than the model has."""
    refuse_other_weights(path, recorded, hashes_now(panel.model(model)).get("weights_sha256"))


def load_searches(panel: Panel) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The best sequence of every search of a panel's models, and the course of the searches that compare methods.

    Of one token it is the scan's: no search is needed where all are scored. Special tokens are left out.

    Returns
    -------
    found : DataFrame
        One row a search, two a scan: model, direction (max, min), length, method, seed, z, scored (sequences), text.
    courses : DataFrame
        At the lengths at which random search was run too, the best so far: model, direction, length, method, seed,
        scored, z. Empty where it was run at none.

    Raises
    ------
    InputError
        No model has been searched.
    """
    found, courses = [], []
    for model in panel.model_names:
        results = searches(panel, model)
        if not results:
            continue
        compared = {length for _, length, method, _ in results if method == "random"}
        mean, deviation = scale(panel, model)
        scan = read_scores(panel, model, PROMPT)
        scan = scan[~scan["kind"].isin(["special", "unused"])].sort_values("score", ignore_index=True)
        for direction, end in (("min", scan.iloc[0]), ("max", scan.iloc[-1])):
            run = {"model": model, "direction": direction, "length": 1, "method": "scan", "seed": 0}
            z = (end["score"] - mean) / deviation
            found.append({**run, "z": z, "scored": len(scan), "text": end["token"]})
        for key, result in results.items():
            run = dict(zip(["model", "direction", "length", "method", "seed"], (model, *key), strict=True))
            best, history = result.best, result.history
            best_z = (best["reward"] - mean) / deviation
            found.append({**run, "z": best_z, "scored": result.scored, "text": best["text"]})
            if run["length"] in compared:
                z = (history["best_reward"].astype(float) - mean) / deviation
                courses.append(pd.DataFrame({**run, "scored": history["scored"], "z": z}))
    if not found:
        raise LackError(f"no model of panel {panel.name!r} has been searched: run `rmnb search MODEL --out FILE`")
    return pd.DataFrame(found), pd.concat(courses, ignore_index=True) if courses else pd.DataFrame()


def load_table(panel: Panel, name: str) -> pd.DataFrame:
    """Rewards of texts in all models that scored them, as z; empty where there are none.

    Parameters
    ----------
    name
        ``transfer``: the best sequence found in each model (origin, direction, length, reward) as every model scores
        it. ``natural``: held-out responses of the preference data (source, side), as answers to their own question
        (own) and to the one that was searched (scanned).
    """
    tables = []
    for model in panel.model_names:
        path = panel_directory(panel, "sequences") / model / f"{name}.parquet"
        if path.exists():
            table, provenance = read_table(path)
            _check_weights(path, provenance["weights_sha256"], panel, model)
            mean, deviation = scale(panel, model)
            for column in table.columns.intersection(["reward", "own", "scanned"]):
                table[column] = (table[column] - mean) / deviation
            tables.append(table.assign(model=model))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def load_timed(panel: Panel) -> pd.DataFrame:
    """The best z so far after so much processor time, of this package's search and of the one that it is held against.

    Measured by ``benchmarks/search.py``; empty where it was not.

    Returns
    -------
    DataFrame
        model, direction, length, way (search, reference), seed, seconds (of one processor), z (as of `sought`). From
        its first time on, a run has a row at each time at which one of the other seeds has one, so that seeds can be
        averaged; after its end it keeps its last z.
    """
    path = panel_directory(panel, "sequences") / "courses.tsv"
    if not path.exists():
        return pd.DataFrame()
    courses = pd.read_csv(path, sep="\t")
    of_model = {model: scale(panel, model) for model in courses["model"].unique()}
    mean, deviation = np.array(courses["model"].map(of_model).tolist()).T
    courses["z"] = sought(courses.assign(z=(courses["reward"] - mean) / deviation))
    tables = []
    case = ["model", "direction", "length", "way"]
    for values, runs in courses.groupby(case, sort=False):
        best = runs.pivot_table("z", "seconds", "seed", "max").ffill()
        table = best.unstack().dropna().rename("z").reset_index()
        table[case] = values
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def scale(panel: Panel, model: str, question: str = PROMPT) -> tuple[float, float]:
    """Mean and standard deviation (divided by n) of a model's scan of single tokens, in the unit of its rewards."""
    scores = read_scores(panel, model, question)["score"].to_numpy(np.float64)
    return float(scores.mean()), float(scores.std())


def best_found(found: pd.DataFrame) -> pd.DataFrame:
    """For each model, direction and length the search that got farthest, of all methods and seeds.

    Parameters
    ----------
    found
        Of `load_searches`; the rows returned keep its columns.
    """
    order = sought(found).sort_values(ascending=False, kind="stable").index
    best = found.loc[order].drop_duplicates(["model", "direction", "length"])
    return best.sort_values(["model", "direction", "length"], ignore_index=True)


def sought(frame: pd.DataFrame) -> pd.Series:
    """z, with its sign reversed where the lowest reward is sought: more is better."""
    return frame["z"].where(frame["direction"] == "max", -frame["z"])


def gains(found: pd.DataFrame) -> pd.DataFrame:
    """How much farther the best sequence of two or more tokens goes than the best token.

    Parameters
    ----------
    found
        Of `load_searches`.

    Returns
    -------
    DataFrame
        model, direction, value (z, below 0 where no longer sequence beat the best token).

    Raises
    ------
    InputError
        No search is of more than one token.
    """
    if found["length"].max() == 1:
        raise InputError("gains need a search of more tokens than one: run `rmnb search`")
    toward = found.assign(value=sought(found), longer=found["length"] > 1)
    best = toward.pivot_table("value", ["model", "direction"], "longer", aggfunc="max", sort=False)
    return (best[True] - best[False]).dropna().rename("value").reset_index()


def reached(courses: pd.DataFrame) -> pd.DataFrame:
    """The best z of each run after as many sequences as the median run scored: model, direction, method, seed, z.

    Parameters
    ----------
    courses
        Of `load_searches`. A run whose first record comes later has no row.

    Returns
    -------
    DataFrame
        z as of `sought`: more is better in both directions.
    """
    within = courses[courses["scored"] <= courses.groupby(_RUN)["scored"].max().median()]
    return within.assign(z=sought(within)).groupby(_RUN, sort=False)["z"].max().reset_index()


@dataclass(frozen=True)
class Square:
    """All pairs of some tokens as answers to one question.

    Attributes
    ----------
    tokens : DataFrame
        token, token_id; the place of a row is the place in the square.
    z : ndarray
        float64 [first token, second token]: from rewards in float32 where those exist, else in bfloat16-mixed.
    margin : dict
        By direction (max, min), the z by which the best pair beats every pair that was not scored in float32, after
        allowing these the largest error seen. Where it is positive, the best pair is known.
    searches : DataFrame
        The ends of searches among the pairs: direction, method, seed, z.
    """

    tokens: pd.DataFrame
    z: np.ndarray
    margin: dict[str, float]
    searches: pd.DataFrame


def load_squares(panel: Panel, question: str) -> dict[str, Square]:
    """The pairs that a panel's models have scored under a question, by model; empty where there are none.

    Raises
    ------
    InputError
        A file is damaged, or of other weights than the others.
    """
    squares = {}
    for model in panel.model_names:
        directory = panel_directory(panel, "pairs") / model
        if (directory / f"{question}.parquet").exists():
            squares[model] = _read_square(panel, model, question, directory)
    return squares


def _read_square(panel: Panel, model: str, question: str, directory: Path) -> Square:
    quick, source = read_table(directory / f"{question}.parquet")
    exact, exact_source = read_table(directory / f"{question}.exact.parquet")
    runs, runs_source = read_table(directory / f"{question}.searches.parquet")
    if not source["weights_sha256"] == exact_source["weights_sha256"] == runs_source["weights_sha256"]:
        raise InputError(f"the files of {question} in {directory} are of different weights: delete them", directory)
    _check_weights(directory, source["weights_sha256"], panel, model)
    tokens = pd.DataFrame({"token": source["tokens"], "token_id": source["ids"]})
    size = (len(tokens), len(tokens))
    mean, deviation = scale(panel, model, question)
    z = (quick["score"].to_numpy(np.float64).reshape(size) - mean) / deviation
    rescored = (exact["first"], exact["second"])
    not_rescored = z.copy()
    not_rescored[rescored] = np.nan
    z[rescored] = (exact["score"].astype(float) - mean) / deviation
    error = np.abs(exact["score"] - exact["quick"]).max() / deviation
    margin = {
        "max": z.max() - np.nanmax(not_rescored) - error,
        "min": np.nanmin(not_rescored) - error - z.min(),
    }
    ends = runs.groupby(["direction", "method", "seed"], sort=False)["reward"].last().reset_index()
    ends["z"] = (ends["reward"] - mean) / deviation
    return Square(tokens, z, margin, ends.drop(columns="reward"))


def shares(square: Square) -> dict[str, float]:
    """Shares of the variance of pairs that the first token explains, the second, and both together.

    A reward is written as a sum, m + a[first] + b[second] + rest; on a complete square, a and b are the means of rows
    and columns less the mean of all (a two-way analysis of variance without replication).

    Returns
    -------
    dict
        first, second, rest, together (shares of the variance), max and min (z of the best and the worst pair).
    """
    z = square.z
    first = z.mean(axis=1) - z.mean()
    second = z.mean(axis=0) - z.mean()
    rest = z - z.mean() - first[:, None] - second
    parts = {"first": first, "second": second, "rest": rest}
    shares = {name: part.var() / z.var() for name, part in parts.items()}
    return {**shares, "together": 1 - shares["rest"], "max": z.max(), "min": z.min()}


def gaps(square: Square) -> pd.DataFrame:
    """How far from the best pair each search among them ended: direction, method, seed, gap (z, 0 or more)."""
    best = square.searches["direction"].map({"max": square.z.max(), "min": square.z.min()})
    return square.searches.assign(gap=(best - square.searches["z"]).abs()).drop(columns="z")
