"""What searches found, read for the chapter on sequences: rewards by length, methods compared, transfer, natural text.

Rewards are shown in standard deviations of the model's scan of single tokens, from its mean: two models' rewards share
neither zero nor unit.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import betaincinv

from rmnb.data.text_lists import part_sha256
from rmnb.errors import InputError
from rmnb.panels import Panel
from rmnb.scoring.store import read_scores, read_table, store_directory
from rmnb.search.config import SearchConfig
from rmnb.search.result import SearchResult, read_result
from rmnb.stats import mean_over_models
from rmnb.stats.estimate import Estimate

PROMPT = "greatest"
DIRECTIONS = ("max", "min")
_NAME = re.compile(r"(max|min)-(\d+)-(\w+)-(\d+)\.json")


def sequences_directory(panel: Panel) -> Path:
    """Where a panel's searches are kept, beside its scores."""
    return store_directory(panel).parent / "sequences"


def search_path(panel: Panel, model: str, config: SearchConfig) -> Path:
    """The file of one search, named by what distinguishes it."""
    name = f"{config.direction}-{config.length:02d}-{config.method}-{config.seed}.json"
    return sequences_directory(panel) / model / name


def single_path(panel: Panel, model: str) -> Path:
    """The file of searches for one token from chance beginnings."""
    return sequences_directory(panel) / model / "single.parquet"


def natural_path(panel: Panel, model: str) -> Path:
    """The file of a model's rewards of held-out responses."""
    return sequences_directory(panel) / model / "natural.parquet"


def transfer_path(panel: Panel, model: str) -> Path:
    """The file of a model's rewards of what was found in every model."""
    return sequences_directory(panel) / model / "transfer.parquet"


def leads_its_base(panel: Panel, model: str) -> bool:
    """Whether a model is the first of its base in the panel: methods are compared on those."""
    spec = panel.model(model)
    return model == next(other.name for other in panel.models if (other.base, other.family) == (spec.base, spec.family))


def scale(panel: Panel, model: str) -> tuple[float, float]:
    """Mean and standard deviation of a model's scan of single tokens."""
    scores = read_scores(panel, model, PROMPT)["score"].to_numpy(np.float64)
    return float(scores.mean()), float(scores.std())


def results(panel: Panel, model: str) -> dict[tuple[str, int, str, int], SearchResult]:
    """A model's searches by direction, length, method and seed; empty where none has been run."""
    found = {}
    for path in sorted((sequences_directory(panel) / model).glob("*.json")):
        if match := _NAME.fullmatch(path.name):
            direction, length, method, seed = match.groups()
            found[direction, int(length), method, int(seed)] = read_result(path)
    return found


def by_length(panel: Panel) -> pd.DataFrame:
    """What was found at each length: at one token the scan's best that survives as text, else by GCG from seed 0.

    Returns
    -------
    DataFrame
        model, direction, length (int), reward (the model's units), z (standard deviations of the scan from its mean),
        scored (sequences, int), text.
    """
    rows = []
    for model in panel.model_names:
        found = results(panel, model)
        mean, deviation = scale(panel, model) if found else (0.0, 1.0)
        for (direction, length, method, seed), result in found.items():
            if seed == 0 and method == ("exhaustive" if length == 1 else "gcg"):
                reward = float(result.best["reward"])
                z = (reward - mean) / deviation
                rows.append((model, direction, length, reward, z, result.scored, str(result.best["text"])))
    columns = ["model", "direction", "length", "reward", "z", "scored", "text"]
    return pd.DataFrame(rows, columns=columns).sort_values(["model", "direction", "length"], ignore_index=True)


def courses(panel: Panel) -> pd.DataFrame:
    """How the methods get on: the best value after so many sequences.

    Returns
    -------
    DataFrame
        model, direction, method, seed, scored (int), z: in the direction sought, so that more is better for both.
        Only lengths at which a model was searched by several methods.
    """
    parts = []
    for model in panel.model_names:
        found = results(panel, model)
        lengths = {length for _, length, method, _ in found if method == "random"}
        mean, deviation = scale(panel, model) if lengths else (0.0, 1.0)
        for (direction, length, method, seed), result in found.items():
            if length in lengths:
                sign = 1 if direction == "max" else -1
                course = result.history.dropna(subset="best_reward")[["scored", "best_reward"]]
                z = sign * (course["best_reward"].astype(float) - mean) / deviation
                about = {"model": model, "direction": direction, "method": method, "seed": seed}
                parts.append(pd.DataFrame({**about, "scored": course["scored"], "z": z}))
    columns = ["model", "direction", "method", "seed", "scored", "z"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def reached(course: pd.DataFrame, budget: int) -> pd.Series:
    """The best z after `budget` sequences, by model, direction, method and seed."""
    within = course[course["scored"] <= budget]
    return within.groupby(["model", "direction", "method", "seed"])["z"].max()


def advantage(course: pd.DataFrame, budget: int, other: str, method: str = "gcg") -> Estimate | None:
    """How much farther a method gets than another with the same number of sequences, over models, directions, seeds.

    A method of which there is one run, since nothing in it is left to chance, meets each run of the other.

    Returns
    -------
    Estimate
        Standard deviations of the scan, with the t interval over the searches; None with fewer than three.
    """
    table = reached(course, budget).unstack("method")
    if method not in table or other not in table:
        return None
    runs = table[other].groupby(["model", "direction"])
    single = runs.transform("max").where(runs.transform("count") == 1)
    gaps = (table[method] - table[other].fillna(single)).dropna()
    return mean_over_models(gaps.tolist()) if len(gaps) > 2 else None


def best_of_random(scores: np.ndarray, tokens: int, direction: str = "max") -> Estimate:
    """The best of so many tokens drawn at random from a scan: median and central 95 % range, in z.

    The rank of the best of n draws has the distribution function 1 - (1 - p)^n, the beta distribution of order one.
    """
    scores = np.asarray(scores, dtype=np.float64)
    z = np.sort((scores - scores.mean()) / scores.std() * (1 if direction == "max" else -1))[::-1]
    low, middle, high = (betaincinv(1, tokens, p) for p in (0.975, 0.5, 0.025))
    at = [z[min(int(p * len(z)), len(z) - 1)] for p in (middle, low, high)]
    return Estimate(float(at[0]), float(at[1]), float(at[2]), np.nan, np.nan, len(z), len(z))


def single_tokens(panel: Panel) -> pd.DataFrame:
    """Searches for one token: rank of what was found among all tokens (1 is best), for each model searched so.

    Returns
    -------
    DataFrame
        model, direction, width, seed, scored, token_id, rank (int), share (rank over the size of the vocabulary).
    """
    parts = []
    for model in panel.model_names:
        if single_path(panel, model).exists():
            table, _ = read_table(single_path(panel, model))
            scores = read_scores(panel, model, PROMPT)["score"].to_numpy()
            best = table["reward"].to_numpy()
            above = np.array(
                [
                    (scores > reward).sum() if direction == "max" else (scores < reward).sum()
                    for reward, direction in zip(best.astype(scores.dtype), table["direction"], strict=True)
                ]
            )
            table.insert(0, "model", model)
            parts.append(table.assign(rank=above + 1, share=(above + 1) / len(scores)).drop(columns="reward"))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def transfer(panel: Panel) -> pd.DataFrame:
    """What each model's finds are worth to every model: origin, direction, length, judge, z.

    Raises
    ------
    InputError
        Something was found that a model has not scored yet.
    """
    wanted = part_sha256(by_length(panel)["text"].tolist())
    parts = []
    for judge in panel.model_names:
        path = transfer_path(panel, judge)
        if not path.exists():
            continue
        table, provenance = read_table(path)
        if provenance["texts_sha256"] != wanted:
            raise InputError(
                f"{judge} has not scored all that was found: run `python -m rmnb.findings.search_study {panel.name}`"
            )
        mean, deviation = scale(panel, judge)
        table["z"] = (table["reward"] - mean) / deviation
        parts.append(table.drop(columns="reward").assign(judge=judge))
    columns = ["origin", "direction", "length", "z", "judge"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def natural(panel: Panel) -> pd.DataFrame:
    """Rewards of held-out responses: model, source, side (chosen, rejected), own and scanned, both in z.

    ``own`` is the reward as the answer to the response's own prompt, ``scanned`` to the prompt of the scan.
    """
    parts = []
    for model in panel.model_names:
        if natural_path(panel, model).exists():
            table, _ = read_table(natural_path(panel, model))
            mean, deviation = scale(panel, model)
            z = {column: (table[column] - mean) / deviation for column in ("own", "scanned")}
            parts.append(table.drop(columns="pair").assign(model=model, **z))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
