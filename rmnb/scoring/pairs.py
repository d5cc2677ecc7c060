"""What the rewards of rows say: accuracy, margins, calibration, of all rows and of parts of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

#: Heads that were not trained on pairs: the sigmoid of a margin is no probability.
NOT_BY_PAIRS = {"armorm", "qrm", "urm", "judge", "log-probability"}
ALL = ""  # the part that is all rows
GAP = "none"  # the part of rows that lack the key
NAMES = ("accuracy", "margin", "length_correlation", "brier_score", "calibration_error", "auc")
_DRAWS = 200
Statistic = Callable[[pd.DataFrame], Any]  # a number


def pair_numbers(frame: pd.DataFrame, by: str | None = None) -> pd.DataFrame:
    """Numbers of pairs or lists of responses, or of responses that are labelled.

    Parameters
    ----------
    frame
        As `rmnb.scoring.rows.score_file` returns it for these; of lists, the hardest pair of each row counts.
    by
        A key of the rows: numbers of each of its values, `GAP` among them, beside those of all rows.

    Returns
    -------
    DataFrame
        name, part (`ALL` last), value, low, high (95 % interval), pairs. Names, as far as defined: ``accuracy``, how
        often the chosen response has the higher reward (Wilson's interval; a tie counts as wrong, as in RewardBench);
        ``margin``, the mean of its reward less the rejected one's; ``length_correlation``, Spearman's correlation of
        that with the difference of the lengths; and, of a head that pairs trained, ``brier_score`` and
        ``calibration_error`` (expected, ten bins) of the sigmoid of the margin as the probability of the choice. Of
        labelled responses ``auc`` alone: how often a good one has a higher reward than a bad one, of whatever prompt.

    References
    ----------
    Guo et al. (2017), On Calibration of Modern Neural Networks, arXiv 1706.04599 (calibration error).
    """
    rows = []
    every = margins(frame, by)
    for part, pairs in [*(every.groupby("part") if by else ()), (ALL, every)]:
        intervals = _bootstrap(statistics(frame.attrs["provenance"]), pairs)
        if "accuracy" in intervals:
            intervals["accuracy"] = accuracy(pairs["margin"] > 0)
        rows += [{"name": name, "part": part, "pairs": len(pairs), **ends} for name, ends in intervals.items()]
    table = pd.DataFrame(rows, columns=["name", "part", "value", "low", "high", "pairs"])
    return table.dropna(subset="value", ignore_index=True)


def limit_table(numbers: pd.DataFrame, side: str = "b") -> pd.DataFrame:
    """`pair_numbers` of one side of a comparison as `rmnb.limits.check` takes them."""
    heads = {"part": "other", "value": side, "low": f"{side}_low", "high": f"{side}_high"}
    return numbers.rename(columns=heads).assign(question="")


def margins(frame: pd.DataFrame, by: str | None = None) -> pd.DataFrame:
    """A row a pair, in the order of the file: margin, longer (by how much the chosen response is), part.

    Of lists, a row has the chosen response with the least reward and the rejected one with the greatest. Labelled
    responses have reward and label in place of margin and longer.
    """
    provenance = frame.attrs["provenance"]
    if provenance["kind"] in ("pairs", "labelled"):
        pairs = frame
    else:
        ordered = frame.sort_values("reward", kind="stable").groupby(["side", "row"])
        rejected = ordered.last().loc["rejected"][["reward", "length"]]
        pairs = ordered.first().loc["chosen"].merge(rejected, on="row", suffixes=("_chosen", "_rejected"))
    part: Any = ALL
    if by:
        values = pairs[provenance["carried"][by]].astype(object)
        part = values.where(values.notna() & values.ne(ALL), GAP).astype(str)
    if provenance["kind"] == "labelled":
        label = pairs[provenance["carried"]["label"]].astype(str).str.lower().eq("true")
        return pd.DataFrame({"reward": pairs["reward"], "label": label, "part": part})
    return pd.DataFrame(
        {
            "margin": (pairs["reward_chosen"] - pairs["reward_rejected"]).astype(float),
            "longer": pairs["length_chosen"] - pairs["length_rejected"],
            "part": part,
        }
    )


def statistics(provenance: dict[str, Any]) -> dict[str, Statistic]:
    """The numbers of `pair_numbers` that a model of this provenance has, as functions of `margins`."""
    if provenance["kind"] == "labelled":
        return {"auc": _auc}
    numbers: dict[str, Statistic] = {
        "accuracy": lambda pairs: (pairs["margin"] > 0).mean(),
        "margin": lambda pairs: pairs["margin"].mean(),
        "length_correlation": lambda pairs: pairs[["margin", "longer"]].corr("spearman").iloc[0, 1],
    }
    is_by_pairs = provenance.get("head") not in NOT_BY_PAIRS or provenance.get("beta") is not None  # as DPO is
    if is_by_pairs and provenance.get("label") is None:
        numbers["brier_score"] = lambda pairs: np.square(1 - expit(pairs["margin"])).mean()
        numbers["calibration_error"] = calibration_error
    return numbers


def calibration_error(pairs: pd.DataFrame) -> float:
    """How far the sigmoid of a margin is from the share of right choices, on average over ten bins of it."""
    probability = expit(pairs["margin"].abs())  # of what has the higher reward
    bins = np.minimum((20 * probability - 10).astype(int), 9)
    return np.abs(np.bincount(bins, probability - (pairs["margin"] > 0))).sum() / len(pairs)


def _auc(rows: pd.DataFrame) -> float:
    """The area under the ROC curve; NaN where all have one label."""
    from scipy.stats import mannwhitneyu  # loading it takes memory and half a second

    good, bad = rows.loc[rows["label"], "reward"], rows.loc[~rows["label"], "reward"]
    if good.empty or bad.empty:
        return np.nan
    return mannwhitneyu(good, bad, method="asymptotic").statistic / (len(good) * len(bad))


def _bootstrap(numbers: dict[str, Statistic], pairs: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Statistics of pairs, and 95 % intervals: percentiles of samples of as many pairs; NaN if all are the same."""
    rng = np.random.default_rng(0)
    samples = (pairs.sample(frac=1, replace=True, random_state=rng) for _ in range(_DRAWS))
    draws = pd.DataFrame([{name: number(sample) for name, number in numbers.items()} for sample in samples])
    ends = draws.loc[:, draws.nunique() > 1].quantile([0.025, 0.975]).reindex(columns=[*numbers])
    return {
        name: {"value": float(number(pairs)), "low": ends[name].iloc[0], "high": ends[name].iloc[1]}
        for name, number in numbers.items()
    }


def accuracy(correct: pd.Series | np.ndarray) -> dict[str, float]:
    """The share of pairs that were judged rightly (bool): value, low, high (Wilson's 95 % interval), pairs."""
    from scipy.stats import binomtest  # loading it takes memory and half a second

    low, high = binomtest(int(correct.sum()), len(correct)).proportion_ci(0.95, method="wilson")
    return {"value": correct.mean(), "low": low, "high": high, "pairs": len(correct)}
