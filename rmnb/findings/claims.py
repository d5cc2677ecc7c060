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


@dataclass(frozen=True)
class Verdict:
    """What models say on a claim.

    Attributes
    ----------
    verdict : str
        supported, contradicted, undecided, described (two bases cannot decide) or cannot be tested here.
    value, low, high : float
        Mean over models of the mean of each group, with its 95 % t interval over groups (of pairs: mean over pairs,
        jackknife over groups); NaN where there are fewer than three groups, or for two bases.
    models : int
    groups : dict
        Group to its mean.
    agreeing, opposing : int
        Models (of a measure of pairs: pairs) clearly on the claimed side of zero, or within the bounds, and clearly
        beyond, by their own intervals.
    detectable : float
        The mean that groups which scatter like these would show clearly four times in five; NaN where it makes no
        sense.
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


def judge(claim: Claim, values: pd.DataFrame | None, groups: Mapping[str, str]) -> Verdict:
    """Judge a claim by what each model shows.

    Parameters
    ----------
    values
        One row a model: model, value, low, high (its own interval; NaN where the value is exact). Of a measure of
        pairs one row a pair, in one order, with a column other. None or no rows: there is no number of this measure.
    groups
        Model to the group that it belongs to; models that are not named stand for themselves. Of a claim about bases:
        model to base.

    Raises
    ------
    InputError
        Columns are missing, a value is not finite, two rows are of one model or of one pair in one order, or no pair is
        left without one of the groups.
    """
    if values is None or values.empty:
        return Verdict(UNTESTED)
    pairs = "other" in values and values["other"].astype(object).fillna("").ne("").all()
    keys = ["model", "other"] if pairs else ["model"]
    missing = {*keys, "value"} - set(values)
    if missing:
        raise InputError(f"{claim.key}: no column {', '.join(sorted(missing))}")
    if not np.isfinite(values["value"]).all():
        raise InputError(f"{claim.key}: a value is not finite")
    if values.duplicated(keys).any():
        raise InputError(f"{claim.key}: two rows of {values.loc[values.duplicated(keys), 'model'].iloc[0]}")
    table = values.reindex(columns=[*keys, "value", "low", "high"])
    # Without an interval the value is exact.
    low = table["low"].fillna(table["value"]).astype(float)
    high = table["high"].fillna(table["value"]).astype(float)
    least, greatest = _region(claim)
    within = (low > least) & (high < greatest)
    beyond = (high < least) | (low > greatest)
    mean = _over_groups(table, keys, groups)
    if claim.kind == "bases":
        mean = replace(mean, low=np.nan, high=np.nan, detectable=np.nan)
    judgement = replace(
        mean,
        low=max(mean.low, claim.range[0]),
        high=min(mean.high, claim.range[1]),
        agreeing=int(within.sum()),
        opposing=int(beyond.sum()),
    )
    return replace(judgement, verdict=_decide(claim, judgement, all_agree=bool(within.all())))


def _region(claim: Claim) -> tuple[float, float]:
    """The open interval in which the claim puts its measure."""
    if claim.kind == "between":
        least, greatest = claim.bounds
        if least is None:
            least = -np.inf
        if greatest is None:
            greatest = np.inf
        return least, greatest
    if claim.side == "above":
        return 0.0, np.inf
    return -np.inf, 0.0


def _over_groups(table: pd.DataFrame, keys: list[str], groups: Mapping[str, str]) -> Verdict:
    """The mean over groups with its interval; no verdict yet."""
    group = pd.DataFrame({key: [groups.get(model, model) for model in table[key]] for key in keys})
    names = list(dict.fromkeys(group.to_numpy().ravel()))
    models = len(set(table[keys].to_numpy().ravel()))
    values = table["value"].to_numpy(float)
    enough = len(names) >= FEWEST_GROUPS
    if len(keys) == 2:  # each group is in many pairs: leave out one group at a time

        def mean_among(places: np.ndarray) -> float:
            remaining = [names[place] for place in places]
            chosen = values[group.isin(remaining).all(axis="columns")]
            if len(chosen) == 0:
                raise InputError(f"no pair is left among {', '.join(remaining)}: measure every pair of models")
            return chosen.mean()

        means = pd.Series(dict.fromkeys(names, np.nan))
        value = values.mean()
        estimate = stats.jackknife_over_models(mean_among, len(names)) if enough else None
        spread = np.nan
    else:
        means = pd.Series(values).groupby(group["model"].to_numpy(), sort=False).mean()
        value = means.mean()
        estimate = stats.mean_over_models(means) if enough else None
        spread = means.std(ddof=1)
    verdict = Verdict(UNDECIDED, value, models=models, groups=means.to_dict())  # pyright: ignore[reportArgumentType]
    if estimate is None:
        return verdict
    detectable = spread * _detectable(len(names))
    return replace(verdict, low=estimate.ci_low, high=estimate.ci_high, detectable=detectable)


def _detectable(groups: int) -> float:
    """The mean, in standard deviations between groups, that a t test at 5 % finds four times in five."""
    from statsmodels.stats.power import TTestPower

    return float(TTestPower().solve_power(nobs=groups, alpha=0.05, power=0.8))


def _decide(claim: Claim, verdict: Verdict, all_agree: bool) -> str:
    """The verdict of a claim of this kind, from the interval over groups and the models' own intervals."""
    least, greatest = _region(claim)
    enough = len(verdict.groups) >= FEWEST_GROUPS
    if claim.kind == "bases":
        return DESCRIBED
    if claim.kind == "some":
        return SUPPORTED if verdict.agreeing else UNDECIDED
    if claim.kind == "all":
        if verdict.opposing:
            return CONTRADICTED
        return SUPPORTED if all_agree and enough else UNDECIDED
    if enough and verdict.low > least and verdict.high < greatest:
        return SUPPORTED
    if enough and (verdict.high < least or verdict.low > greatest):
        return CONTRADICTED
    return UNDECIDED
