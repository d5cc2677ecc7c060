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
        Models clearly on the claimed side of zero (of bounds: within them), and clearly beyond, by their own intervals.
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
        pairs one row a pair, with a column other. None or no rows: there is no number of this measure.
    groups
        Model to the group that it belongs to; models that are not named stand for themselves. Of a claim about bases:
        model to base.

    Raises
    ------
    InputError
        Columns are missing, a value is not finite, or two rows are of one model.
    """
    if values is None or values.empty:
        return Verdict(UNTESTED)
    pairs = "other" in values and values["other"].astype(object).fillna("").ne("").all()
    keys = ["model", "other"] if pairs else ["model"]
    if missing := {*keys, "value"} - set(values):
        raise InputError(f"{claim.key}: no column {', '.join(sorted(missing))}")
    if not np.isfinite(values["value"]).all():
        raise InputError(f"{claim.key}: a value is not finite")
    if values.duplicated(keys).any():
        raise InputError(f"{claim.key}: two rows of {values.loc[values.duplicated(keys), 'model'].iloc[0]}")
    table = values.reindex(columns=[*keys, "value", "low", "high"])
    low, high = (
        table[end].fillna(table["value"]).astype(float) for end in ("low", "high")
    )  # exact where there is none
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
    """Where the claim puts its measure."""
    if claim.kind == "between":
        least, greatest = claim.bounds
        return (-np.inf if least is None else least), (np.inf if greatest is None else greatest)
    return (0.0, np.inf) if claim.side == "above" else (-np.inf, 0.0)


def _over_groups(table: pd.DataFrame, keys: list[str], groups: Mapping[str, str]) -> Verdict:
    """The mean over groups with its interval; no verdict yet."""
    group = pd.DataFrame({key: [groups.get(model, model) for model in table[key]] for key in keys})
    names = list(dict.fromkeys(group.to_numpy().ravel()))
    models = len(set(table[keys].to_numpy().ravel()))
    values = table["value"].to_numpy(float)
    if len(keys) == 2:  # each group is in many pairs: leave out one group at a time

        def mean_without(kept: np.ndarray) -> float:
            return values[group.isin([names[place] for place in kept]).all(axis=1)].mean()

        means = pd.Series(dict.fromkeys(names, np.nan))
        value = values.mean()
        estimate = stats.jackknife_over_models(mean_without, len(names)) if len(names) >= FEWEST_GROUPS else None
        spread = np.nan
    else:
        means = pd.Series(values).groupby(group["model"].to_numpy(), sort=False).mean()
        value = means.mean()
        estimate = stats.mean_over_models(means) if len(means) >= FEWEST_GROUPS else None
        spread = means.std(ddof=1)
    if estimate is None:
        return Verdict(UNDECIDED, value, models=models, groups=means.to_dict())  # pyright: ignore[reportArgumentType]
    return Verdict(
        UNDECIDED,
        value,
        estimate.ci_low,
        estimate.ci_high,
        models=models,
        groups=means.to_dict(),  # pyright: ignore[reportArgumentType]
        detectable=spread * _detectable(len(means)),
    )


def _detectable(groups: int) -> float:
    """The mean, in standard deviations between groups, that a t test at 5 % finds four times in five."""
    from statsmodels.stats.power import TTestPower

    return float(TTestPower().solve_power(nobs=groups, alpha=0.05, power=0.8))


def _decide(claim: Claim, verdict: Verdict, all_agree: bool) -> str:
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
