"""Answers of two tokens: how much of a pair's reward is its tokens', and how far from the optimum searches end.

Rewards are in standard deviations (z) of the model's scan of single tokens, from its mean, where they are compared.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.errors import InputError
from rmnb.findings.results import Results
from rmnb.panels import Panel
from rmnb.scoring.store import read_scores, read_table, store_directory

PROMPTS = ("greatest", "worst")
DIRECTIONS = ("max", "min")
NEGATION = (" not", " good")  # a pair whose meaning is not that of its parts


@dataclass(frozen=True)
class Square:
    """The rewards of all pairs of some tokens as answers to one question.

    Attributes
    ----------
    tokens : DataFrame
        token, token_id; the place of a row is the place in the square.
    quick : ndarray
        float32 [first token, second token], in reduced precision.
    single : ndarray
        float64 [token]: each token alone as the answer.
    mean, deviation : float
        Of the whole scan of single tokens, for z.
    exact : DataFrame
        Pairs scored again in float32: first, second (places), why (highest, lowest, random), quick, score; or empty.
    searches : DataFrame
        How searches among the pairs got on: direction, method, seed, scored (pairs so far), reward (the best of them);
        or empty.
    """

    tokens: pd.DataFrame
    quick: np.ndarray
    single: np.ndarray
    mean: float = 0.0
    deviation: float = 1.0
    exact: pd.DataFrame = field(default_factory=pd.DataFrame)
    searches: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def rewards(self) -> np.ndarray:
        """float64 [first token, second token]: in float32 where a pair was scored again, else the quick ones."""
        rewards = self.quick.astype(np.float64)
        if len(self.exact):
            rewards[self.exact["first"], self.exact["second"]] = self.exact["score"]
        return rewards

    @property
    def z(self) -> np.ndarray:
        """`rewards` in standard deviations of the scan of single tokens."""
        return (self.rewards - self.mean) / self.deviation


@dataclass(frozen=True)
class Parts:
    """Rewards of pairs as a sum: a mean, what the first token adds, what the second adds, and what is left.

    Attributes
    ----------
    mean : float
    first, second : ndarray
        float64 [token]: main effects, of mean zero.
    rest : ndarray
        float64 [first token, second token]: what the pair is worth beyond its parts.
    """

    mean: float
    first: np.ndarray
    second: np.ndarray
    rest: np.ndarray

    @property
    def sum(self) -> np.ndarray:
        """What the parts alone predict, float64 [first token, second token]."""
        return self.mean + self.first[:, None] + self.second

    @property
    def shares(self) -> dict[str, float]:
        """Shares of the variance of all pairs: first, second, together (their sum) and rest; the last two make 1."""
        parts = {"first": self.first.var(), "second": self.second.var(), "rest": self.rest.var()}
        whole = sum(parts.values())
        return {**{name: float(part / whole) for name, part in parts.items()}, "together": 1 - parts["rest"] / whole}


def parts(rewards: np.ndarray) -> Parts:
    """The two-way additive model of a square, by least squares: on a complete square the means of rows and columns."""
    mean = float(rewards.mean())
    first, second = rewards.mean(axis=1) - mean, rewards.mean(axis=0) - mean
    return Parts(mean, first, second, rewards - mean - first[:, None] - second)


def extreme_pairs(square: Square, count: int = 5) -> pd.DataFrame:
    """The pairs that are worth most and least beyond their parts.

    Returns
    -------
    DataFrame
        first, second (token text), z (of the pair), parts (z that the additive model predicts), beyond (their
        difference); the `count` farthest above, then the `count` farthest below.
    """
    z, of = square.z, parts(square.z)
    order = np.argsort(-of.rest, axis=None, kind="stable")
    first, second = np.divmod(np.concatenate([order[:count], order[-count:]]), len(z))
    text = square.tokens["token"].to_numpy()
    columns = {"first": text[first], "second": text[second], "z": z[first, second]}
    return pd.DataFrame(columns | {"parts": of.sum[first, second], "beyond": of.rest[first, second]})


def measure(squares: Mapping[tuple[str, str], Square], panel: str = "", source: str = "panel") -> pd.DataFrame:
    """Everything that is measured of pairs.

    Parameters
    ----------
    squares
        By model and prompt, as `load_squares` gives them, or your own.

    Returns
    -------
    DataFrame
        Rows of the results table, for each model and prompt: pair_share, pair_single_correlation, pair_beyond (of
        `NEGATION`), pair_optimum; where there were searches pair_gap and pair_budget; and where pairs were scored again
        pair_quick_tau, pair_quick_error and pair_margin.
    """
    results = Results("sequences", panel)
    for (model, prompt), square in squares.items():
        for statistic, other, value, n in _of_square(square):
            results.add(source, statistic, float(value), model=model, other=other, prompt=prompt, protocol="exact", n=n)
    return results.frame()


def _of_square(square: Square) -> Iterator[tuple[str, str, float, int]]:
    """(statistic, other, value, n) of one square."""
    z, of, count = square.z, parts(square.z), len(square.tokens)
    for name, share in of.shares.items():
        yield "pair_share", name, share, count**2
    for name, effect in (("first", of.first), ("second", of.second)):
        yield "pair_single_correlation", name, np.corrcoef(effect, square.single)[0, 1], count
    places = {token: place for place, token in enumerate(square.tokens["token"])}
    if all(token in places for token in NEGATION):
        first, second = (places[token] for token in NEGATION)
        yield "pair_beyond", "".join(NEGATION).strip(), of.rest[first, second], 1
    for direction, best in (("max", z.max()), ("min", z.min())):
        yield "pair_optimum", direction, best, count**2
    for (direction, method), gap in gaps(square).groupby(["direction", "method"], sort=False)["gap"]:
        yield "pair_gap", f"{direction} {method}", gap.mean(), len(gap)
    if len(square.searches):
        yield "pair_budget", "", square.searches["scored"].max(), count**2
    if len(square.exact):
        drawn, quick = square.exact[square.exact["why"] == "random"], square.exact["quick"]
        error = float((square.exact["score"] - quick).abs().max()) / square.deviation
        yield "pair_quick_tau", "", stats.kendall_tau(drawn["quick"].to_numpy(), drawn["score"].to_numpy()), len(drawn)
        yield "pair_quick_error", "", error, len(square.exact)
        for direction, margin in margins(square).items():
            yield "pair_margin", direction, margin, count**2 - len(square.exact)


def margins(square: Square) -> dict[str, float]:
    """How far beyond the optimum lies above what any pair that was not scored again can be worth, in z, by direction.

    That is: above the highest quick reward among those, raised by the largest error seen. A positive margin makes the
    optimum certain as far as no error is larger than those seen.
    """
    others = square.quick.astype(np.float64)
    others[square.exact["first"], square.exact["second"]] = np.nan
    error = float((square.exact["score"] - square.exact["quick"]).abs().max())
    high = square.rewards.max() - (np.nanmax(others) + error)
    low = (np.nanmin(others) - error) - square.rewards.min()
    return {"max": high / square.deviation, "min": low / square.deviation}


def gaps(square: Square) -> pd.DataFrame:
    """How far from the optimum each search ended: direction, method, seed, scored (pairs), gap (z, 0 or more)."""
    if square.searches.empty:
        return pd.DataFrame(columns=["direction", "method", "seed", "scored", "gap"])
    ends = (
        square.searches.groupby(["direction", "method", "seed"], sort=False)[["scored", "reward"]].last().reset_index()
    )
    best = ends["direction"].map({"max": square.rewards.max(), "min": square.rewards.min()})
    return ends.assign(gap=(best - ends["reward"]).abs() / square.deviation).drop(columns="reward")


def pairs_path(panel: Panel, model: str, prompt: str, kind: str = "") -> Path:
    """Where a model's pairs are kept, beside the panel's scores; kind: ``exact`` or ``searches``."""
    name = f"{prompt}.{kind}" if kind else prompt
    return store_directory(panel).parent / "pairs" / model / f"{name}.parquet"


def load_squares(panel: Panel) -> dict[tuple[str, str], Square]:
    """All pairs that a panel has, by model and prompt; empty where none were scored."""
    asked = [(model, prompt) for model in panel.model_names for prompt in PROMPTS]
    return {key: read_square(panel, *key) for key in asked if pairs_path(panel, *key).exists()}


def read_square(panel: Panel, model: str, prompt: str) -> Square:
    """A model's pairs for one question.

    Raises
    ------
    InputError
        They have not been scored, were scored with other weights, or a file is damaged.
    """
    table, provenance = read_table(pairs_path(panel, model, prompt))
    tokens = pd.DataFrame({"token": provenance["tokens"], "token_id": provenance["ids"]})
    scores = read_scores(panel, model, prompt)["score"].to_numpy(np.float64)
    again = {kind: pairs_path(panel, model, prompt, kind) for kind in ("exact", "searches")}
    found = {kind: read_table(path) for kind, path in again.items() if path.exists()}
    for kind, (_, other) in found.items():
        if other["weights_sha256"] != provenance["weights_sha256"]:
            raise InputError(f"{again[kind]} is of other weights than {prompt}.parquet beside it: delete it")
    known = {kind: frame for kind, (frame, other) in found.items() if other["tokens"] == len(tokens)}
    return Square(
        tokens,
        table["score"].to_numpy(np.float32).reshape(len(tokens), len(tokens)),
        scores[tokens["token_id"]],  # a scan has a row an id
        float(scores.mean()),
        float(scores.std()),
        **known,
    )
