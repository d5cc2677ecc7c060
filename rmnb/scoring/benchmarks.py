"""The figures of published benchmarks, as their authors' code computes them from the same rewards.

RewardBench 2 (Malik et al. 2025, arXiv 2506.01937), ``scripts/run_v2.py``; RM-Bench (Liu et al. 2024, arXiv
2410.16184), ``scripts/utils.py``; JudgeBench (Tan et al. 2024, arXiv 2410.12784), ``run_judge.py``, a pair in both
orders.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from rmnb.errors import InputError, list_some

_DOMAINS = ("chat", "math", "code", "safety")
_SOURCES = ("mmlu-pro", "livebench-reasoning", "livebench-math", "livecodebench")


def figures(benchmark: str, frame: pd.DataFrame) -> pd.DataFrame:
    """A benchmark's figures.

    Parameters
    ----------
    benchmark
        A key of `BENCHMARKS`.
    frame
        As `rmnb.scoring.rows.score_file` returns it for the benchmark's rows, as they are published.

    Returns
    -------
    DataFrame
        name (the benchmark), part (the figure), value, low and high (NaN), pairs (rows).

    Raises
    ------
    InputError
        A row is none of that benchmark's.
    """
    provenance = frame.attrs["provenance"]
    if provenance["kind"] == "pairs":
        rows = frame.copy()
        for side in ("chosen", "rejected"):
            rows[side] = frame[[f"reward_{side}"]].to_numpy().tolist()
    else:
        rewards = frame.groupby(["row", "side"])["reward"].agg(list).unstack()
        rows = frame.drop_duplicates("row").set_index("row").join(rewards)
    try:
        values = BENCHMARKS[benchmark](rows.rename(columns={name: key for key, name in provenance["carried"].items()}))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"--as {benchmark}: these are not its rows: {error}", benchmark) from error
    table = pd.DataFrame(values.items(), columns=["part", "value"])
    return table.assign(name=benchmark, low=np.nan, high=np.nan, pairs=len(rows))


def _rewardbench2(rows: pd.DataFrame) -> dict[str, float]:
    """Of each subset the share of rows whose one good response is best, a draw for the best counting its share."""
    values = {}
    for subset, members in rows.groupby("subset"):
        if str(subset).lower() == "ties":
            values[str(subset)] = _ties(members)
        else:
            rewards = members["chosen"] + members["rejected"]
            values[str(subset)] = float(rewards.map(_best_of).mean())
    return values


def _best_of(rewards: list[float]) -> float:
    return (rewards[0] == max(rewards)) / rewards.count(max(rewards))


def _ties(rows: pd.DataFrame) -> float:
    """Of prompts with several good answers: all above each bad one, and by more than they differ from each other."""
    worst = rows["chosen"].map(min)
    gaps = pd.DataFrame({"above": worst - rows["rejected"].map(max), "within": rows["chosen"].map(max) - worst})
    named = rows["id"].str.extract("^(?P<kind>tied|ref):(?P<id>.*)$")  # tied:12, and of one good answer ref:12
    if named["id"].isna().any():
        raise ValueError(f"an id of its ties is tied:N or ref:N, not {rows['id'][named['id'].isna()].iloc[0]!r}")
    gaps["id"] = named["id"]
    tied = gaps[named["kind"] == "tied"].set_index("id")
    reference = gaps[named["kind"] == "ref"].set_index("id")
    if tied.empty or reference.empty:
        raise ValueError("no prompt of several good answers, or none of one")
    both = tied.merge(reference["above"], on="id", suffixes=("", "_ref"))
    least = both[["above", "above_ref"]].min(axis="columns")
    clearness = np.tanh(least / both["within"] - 1).fillna(0)
    parts = [
        tied["above"] > 0,
        reference["above"] > 0,
        both["above"] > both["within"],
        least > both["within"],
        clearness,
    ]
    return float(np.dot([0.3, 0.3, 0.2, 0.2, 0.01], [part.mean() for part in parts]))


def _rm_bench(rows: pd.DataFrame) -> dict[str, float]:
    """Of each domain and of all: by which of three styles the good and the bad response have, plainer ones first."""
    if "domain" not in rows:
        return _styles(rows)
    members = {domain: rows[rows["domain"].str.startswith(domain)] for domain in _DOMAINS}
    if absent := [domain for domain, some in members.items() if some.empty]:
        raise ValueError(f"no row of domain {list_some(absent)}, so that there is no mean of all four")
    table = pd.DataFrame({domain: _styles(some) for domain, some in members.items()})
    return {**table.mean(), **table.mean(axis="columns"), "total_avg_acc": table.mean().mean()}


def _styles(rows: pd.DataFrame) -> dict[str, float]:
    chosen, rejected = (np.array(rows[side].tolist(), dtype=float) for side in ("chosen", "rejected"))
    if not chosen.shape == rejected.shape == (len(rows), 3):
        raise ValueError("a row has three chosen and three rejected responses")
    right = np.mean(chosen[:, :, None] > rejected[:, None, :], axis=0)
    plainer, fancier = np.triu_indices(3, 1)
    return {
        "hard_acc": right[plainer, fancier].mean(),
        "normal_acc": right.diagonal().mean(),
        "easy_acc": right[fancier, plainer].mean(),
    }


def _judgebench(rows: pd.DataFrame) -> dict[str, float]:
    """Of each source and of all: the share of pairs in which the right response has the higher reward."""
    right = rows["chosen"].str[0] > rows["rejected"].str[0]
    values = {source: right[rows["source"].str.startswith(source)].mean() for source in _SOURCES}
    return {**pd.Series(values).dropna(), "Overall": right.mean()}


BENCHMARKS: dict[str, Callable[[pd.DataFrame], dict[str, float]]] = {
    "rewardbench2": _rewardbench2,
    "rm-bench": _rm_bench,
    "judgebench": _judgebench,
}
