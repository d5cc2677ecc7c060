"""The files of searches beside a panel's scores, read as `rmnb.findings.sequences` measures them."""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb.data.text_lists import part_sha256
from rmnb.errors import InputError
from rmnb.findings.sequences import PROMPT, Searches, best_found
from rmnb.panels import Panel
from rmnb.scoring.store import read_scores, read_table, scores_path, store_directory
from rmnb.search.config import SearchConfig
from rmnb.search.result import SearchResult, read_result

_NAME = re.compile(r"(max|min)-(\d+)-(\w+)-(\d+)\.json")


def load_searches(panel: Panel) -> Searches:
    """What was found in a panel's models, as far as they were searched.

    Raises
    ------
    InputError
        A file is damaged, or something was found that a model has not scored yet.
    """
    scanned = [name for name in panel.model_names if scores_path(panel, name, PROMPT).exists()]
    return Searches(
        searches=every_search(panel),
        courses=_courses(panel),
        single=_single_tokens(panel),
        transfer=_transfer(panel),
        natural=_natural(panel),
        scans={name: read_scores(panel, name, PROMPT)["score"].to_numpy() for name in scanned},
    )


def sequences_directory(panel: Panel) -> Path:
    """Where a panel's searches are kept, beside its scores."""
    return store_directory(panel).parent / "sequences"


def search_path(panel: Panel, model: str, config: SearchConfig) -> Path:
    """The file of one search, named by what distinguishes it."""
    name = f"{config.direction}-{config.length:02d}-{config.method}-{config.seed}.json"
    return sequences_directory(panel) / model / name


def table_path(panel: Panel, model: str, name: str) -> Path:
    """The file of a model's searches for one token (``single``), or of its rewards of ``natural`` responses, or of what
    was found in every model (``transfer``)."""
    return sequences_directory(panel) / model / f"{name}.parquet"


def leads_its_base(panel: Panel, model: str) -> bool:
    """Whether a model is the first of its base in the panel: methods are compared on those."""
    spec = panel.model(model)
    return model == next(other.name for other in panel.models if (other.base, other.family) == (spec.base, spec.family))


def results(panel: Panel, model: str) -> dict[tuple[str, int, str, int], SearchResult]:
    """A model's searches by direction, length, method and seed; empty where none has been run."""
    found = {}
    for path in sorted((sequences_directory(panel) / model).glob("*.json")):
        if match := _NAME.fullmatch(path.name):
            direction, length, method, seed = match.groups()
            found[direction, int(length), method, int(seed)] = read_result(path)
    return found


def every_search(panel: Panel) -> pd.DataFrame:
    """What each search found; see `Searches`."""
    rows = []
    for model in panel.model_names:
        found = results(panel, model)
        mean, deviation = _scale(panel, model) if found else (0.0, 1.0)
        for (direction, length, method, seed), result in found.items():
            reward = float(result.best["reward"])
            z = (reward - mean) / deviation
            rows.append((model, direction, length, method, seed, reward, z, result.scored, str(result.best["text"])))
    columns = ["model", "direction", "length", "method", "seed", "reward", "z", "scored", "text"]
    return pd.DataFrame(rows, columns=columns)


def _courses(panel: Panel) -> pd.DataFrame:
    """How the methods get on, at lengths at which a model was searched by several: see `Searches`."""
    parts = []
    for model in panel.model_names:
        found = results(panel, model)
        lengths = {length for _, length, method, _ in found if method == "random"}
        mean, deviation = _scale(panel, model) if lengths else (0.0, 1.0)
        for (direction, length, method, seed), result in found.items():
            if length in lengths:
                sign = 1 if direction == "max" else -1
                course = result.history.dropna(subset="best_reward")[["scored", "best_reward"]]
                z = sign * (course["best_reward"].astype(float) - mean) / deviation
                about = {"model": model, "direction": direction, "method": method, "seed": seed}
                parts.append(pd.DataFrame({**about, "scored": course["scored"], "z": z}))
    columns = ["model", "direction", "method", "seed", "scored", "z"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _single_tokens(panel: Panel) -> pd.DataFrame:
    """Searches for one token; see `Searches`."""
    parts = []
    for model in panel.model_names:
        path = table_path(panel, model, "single")
        if path.exists():
            table, _ = read_table(path)
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


def _transfer(panel: Panel) -> pd.DataFrame:
    """What the best found in each model is worth to every model; see `Searches`."""
    wanted = part_sha256(best_found(every_search(panel))["text"].tolist())
    parts = []
    for judge in panel.model_names:
        path = table_path(panel, judge, "transfer")
        if not path.exists():
            continue
        table, provenance = read_table(path)
        if provenance["texts_sha256"] != wanted:
            raise InputError(
                f"{judge} has not scored all that was found: run `python -m rmnb.findings.search_study {panel.called}`"
            )
        mean, deviation = _scale(panel, judge)
        table["z"] = (table["reward"] - mean) / deviation
        parts.append(table.drop(columns="reward").assign(judge=judge))
    columns = ["origin", "direction", "length", "z", "judge"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _natural(panel: Panel) -> pd.DataFrame:
    """Rewards of held-out responses; see `Searches`."""
    parts = []
    for model in panel.model_names:
        path = table_path(panel, model, "natural")
        if path.exists():
            table, _ = read_table(path)
            mean, deviation = _scale(panel, model)
            z = {column: (table[column] - mean) / deviation for column in ("own", "scanned")}
            parts.append(table.drop(columns="pair").assign(model=model, **z))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _scale(panel: Panel, model: str) -> tuple[float, float]:
    """Mean and standard deviation of a model's scan of single tokens."""
    scores = read_scores(panel, model, PROMPT)["score"].to_numpy(np.float64)
    return float(scores.mean()), float(scores.std())
