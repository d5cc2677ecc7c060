"""The claims of the two papers, and the one rule that judges each by its kind.

A claim about reward models is a claim about the next one, so what counts are *groups* of models that share nothing but
a method: words, prompts, seeds and bases of one recipe are no new observations.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources

import numpy as np
import pandas as pd
import yaml

from rmnb import stats
from rmnb.errors import InputError

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
DESCRIBED, UNTESTED = "described", "cannot be tested here"
FEWEST_GROUPS = 3


@dataclass(frozen=True)
class Claim:
    """What a paper says, and how it is judged; see ``rmnb/data/lists/claims.yml`` for the fields."""

    key: str
    paper: str
    chapter: str
    claim: str
    kind: str
    measure: str
    question: str = ""
    unit: str = ""
    side: str = "above"
    bounds: tuple[float | None, float | None] = (None, None)
    range: tuple[float, float] = (-np.inf, np.inf)
    printed: str = ""

    @property
    def region(self) -> tuple[float, float]:
        """The open interval in which the claim puts its measure."""
        if self.kind in ("between", "half"):
            least, greatest = self.bounds
            return -np.inf if least is None else least, np.inf if greatest is None else greatest
        return (0.0, np.inf) if self.side == "above" else (-np.inf, 0.0)


@dataclass(frozen=True)
class Verdict:
    """What models say on a claim.

    Attributes
    ----------
    verdict : str
        supported, contradicted, undecided, described (two bases cannot decide) or cannot be tested here.
    value, low, high : float
        Mean over groups of the mean over a group's models, with its 95 % t interval (of pairs: mean over pairs of
        groups of the mean over their pairs of models, jackknife over groups). NaN for bases; without three groups no
        interval.
    models : int
    groups : dict
        Group, or base, to its mean; of pairs NaN.
    agreeing, opposing : int
        Models (of a measure of pairs: pairs of models of different groups) clearly within the region of the claim, and
        clearly beyond, by their own intervals. Where one model decides (kind some: agreeing, kind all: opposing) these
        are corrected for the number of models by Holm's method.
    detectable : float
        Kind mean: the mean that groups which scatter like these would show clearly four times in five; else NaN.
    """

    verdict: str
    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    models: int = 0
    groups: Mapping[str, float] = field(default_factory=dict)
    agreeing: int = 0
    opposing: int = 0
    detectable: float = np.nan


def load_claims() -> dict[str, Claim]:
    """All claims by key, in the order in which pages list them."""
    text = resources.files("rmnb.data").joinpath("lists", "claims.yml").read_text(encoding="utf-8")
    claims = [Claim(**entry) for entry in yaml.safe_load(text)]
    return {claim.key: claim for claim in claims}


def judge(claim: Claim, values: pd.DataFrame, groups: Mapping[str, str]) -> Verdict:
    """Judge a claim by what each model shows.

    Parameters
    ----------
    values
        One row a model: model, value, low, high (its own interval; NaN where the value is exact); of kinds some and all
        also df, the degrees of freedom of its interval. Of a measure of pairs one row a pair, in one order, with a
        column other. No rows: there is no number of this measure.
    groups
        Model to the group that it belongs to; models that are not named stand for themselves. Of a claim about bases:
        model to base.

    Raises
    ------
    InputError
        Degrees of freedom are missing, a value is not finite, two rows are of one model or of one pair in one order, or
        no pair is left without one of the groups.
    """
    if values.empty:
        return Verdict(UNTESTED)
    pairs = "other" in values and values["other"].astype(object).fillna("").ne("").all()
    keys = ["model", "other"] if pairs else ["model"]
    if not np.isfinite(values["value"]).all():
        raise InputError(f"{claim.key}: a value is not finite")
    if values.duplicated(keys).any():
        raise InputError(f"{claim.key}: two rows of {values.loc[values.duplicated(keys), 'model'].iloc[0]}")
    table = values.reindex(columns=[*keys, "value", "low", "high", "df"])
    if claim.kind in ("some", "all") and (table["low"].notna() & table["df"].isna()).any():
        raise InputError(f"{claim.key}: an interval without its degrees of freedom: add a column df")
    models = len(set(table[keys].to_numpy().ravel()))
    table["groups"] = [tuple(groups.get(model, model) for model in row) for row in table[keys].to_numpy()]
    names = list(dict.fromkeys(name for row in table["groups"] for name in row))
    if claim.kind == "bases":
        means = table.groupby("groups", sort=False)["value"].mean()
        return Verdict(DESCRIBED, models=models, groups=dict(zip(names, means, strict=True)))
    if pairs:
        table = table[table["groups"].map(set).map(len) == 2]
    least, greatest = claim.region
    one_supports, one_contradicts = claim.kind == "some", claim.kind == "all"
    within = _clear(table, least, 1, one_supports) & _clear(table, greatest, -1, one_supports)
    beyond = _clear(table, least, -1, one_contradicts) | _clear(table, greatest, 1, one_contradicts)
    mean = _over_groups(claim, table, names)
    judgement = replace(
        mean,
        models=models,
        low=max(mean.low, claim.range[0]),
        high=min(mean.high, claim.range[1]),
        agreeing=int(within.sum()),
        opposing=int(beyond.sum()),
    )
    return replace(judgement, verdict=_decide(claim, judgement, all_agree=bool(within.all())))


def _clear(table: pd.DataFrame, bound: float, side: int, correct: bool) -> np.ndarray:
    """Which values lie clearly above (`side` 1) or below (-1) a bound, by their own 95 % intervals.

    Corrected, it is Holm's method at 5 %, with the p-value of Student's t from the end of the interval that is nearer
    to the bound. A value without an interval is exact.
    """
    distance = side * (table["value"] - bound).to_numpy(float)
    ends = table["low"] if side > 0 else table["high"]
    reach = (table["value"] - ends.fillna(table["value"])).abs().to_numpy(float)
    if not correct:
        return distance > reach
    from scipy.special import stdtr, stdtrit

    df = table["df"].fillna(np.inf).to_numpy(float)
    t = np.full(len(distance), np.inf)
    np.divide(stdtrit(df, 0.975) * np.abs(distance), reach, out=t, where=reach > 0)
    p_values = np.where(distance > 0, 2 * stdtr(df, -t), 1.0)
    # As statsmodels' multipletests, which collects all garbage of the process at each call.
    order = np.argsort(p_values)
    adjusted = np.maximum.accumulate(p_values[order] * np.arange(len(order), 0, -1))
    clear = np.zeros(len(order), dtype=bool)
    clear[order] = adjusted <= 0.05
    return clear


def _over_groups(claim: Claim, table: pd.DataFrame, names: list[str]) -> Verdict:
    """The mean over groups, or over pairs of groups, each counted once, with the jackknife over groups; no verdict yet.

    Of a mean over groups, that is Student's interval.

    Parameters
    ----------
    table
        groups (tuple of one or two names), value; of pairs also other.
    names
        All groups.
    """
    means = table["value"].groupby(table["groups"].map(frozenset), sort=False).mean()
    is_of_pairs = "other" in table
    by_group = dict.fromkeys(names, np.nan) if is_of_pairs else dict(zip(names, means, strict=True))
    verdict = Verdict(UNDECIDED, float(means.mean()), groups=by_group)
    if len(names) < FEWEST_GROUPS:
        return verdict

    def mean_among(places: np.ndarray) -> float:
        remaining = {names[place] for place in places}
        chosen = means[[unit <= remaining for unit in means.index]]
        if chosen.empty:
            raise InputError(f"no pair is left among {', '.join(sorted(remaining))}: measure every pair of models")
        return chosen.mean()

    estimate = stats.jackknife_over_models(mean_among, len(names))
    detectable = np.nan
    if claim.kind == "mean" and not is_of_pairs:
        from statsmodels.stats.power import TTestPower

        power = TTestPower().solve_power(nobs=len(means), alpha=0.05, power=0.8)
        detectable = means.std(ddof=1) * float(power)
    return replace(verdict, low=estimate.ci_low, high=estimate.ci_high, detectable=detectable)


def _decide(claim: Claim, verdict: Verdict, all_agree: bool) -> str:
    """The verdict of a claim of this kind, from the interval over groups and the models' own intervals."""
    least, greatest = claim.region
    enough = len(verdict.groups) >= FEWEST_GROUPS
    if claim.kind == "some":
        return SUPPORTED if verdict.agreeing else UNDECIDED
    if claim.kind == "all":
        if verdict.opposing:
            return CONTRADICTED
        return SUPPORTED if all_agree and enough else UNDECIDED
    if claim.kind == "half" and enough:
        is_within = [least < mean < greatest for mean in verdict.groups.values()]
        return SUPPORTED if np.mean(is_within) >= 0.5 else CONTRADICTED
    if enough and verdict.low > least and verdict.high < greatest:
        return SUPPORTED
    if enough and (verdict.high < least or verdict.low > greatest):
        return CONTRADICTED
    return UNDECIDED
