"""What searches found: rewards by length, methods compared, transfer, natural text.

Rewards are in standard deviations (z) of the model's scan of single tokens, from its mean: two models' rewards share
neither zero nor unit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.special import betaincinv

from rmnb import stats
from rmnb.errors import InputError
from rmnb.findings.results import Results
from rmnb.findings.specifications import specification_curve, survival_rows
from rmnb.stats import Estimate

PROMPT = "greatest"
DIRECTIONS = ("max", "min")
RIVALS = ("random", "exhaustive", "beam")
SPECIFICATIONS = {
    "direction": ["both", *DIRECTIONS],
    "budget": ["all", "half", "an eighth"],
}
_SHARES = {"all": 1.0, "half": 0.5, "an eighth": 0.125}
_RUN = ["model", "direction", "method", "seed"]


@dataclass(frozen=True)
class Searches:
    """What was found in some models; every frame may be empty.

    Attributes
    ----------
    searches : DataFrame
        What each search found; at one token it is the scan's best that survives as text: model, direction (max, min),
        length (int), method, seed, reward (the model's units), z, scored (sequences, int), text.
    courses : DataFrame
        The best so far after so many sequences, where several methods were compared: model, direction, method, seed,
        scored (int), z: in the direction sought, so that more is better for both.
    single : DataFrame
        Searches for one token from chance beginnings: model, direction, width (candidates a step), seed, scored,
        token_id, rank (int, 1 is best), share (rank over the size of the vocabulary).
    transfer : DataFrame
        What the best found in each model is worth to every model: origin, direction, length, judge, z.
    natural : DataFrame
        Rewards of held-out responses: model, source, side (chosen, rejected), own (as the answer to the response's own
        prompt) and scanned (to the scan's prompt), both in z.
    scans : dict of str to ndarray
        By model the rewards of all single tokens.
    """

    searches: pd.DataFrame
    courses: pd.DataFrame = field(default_factory=pd.DataFrame)
    single: pd.DataFrame = field(default_factory=pd.DataFrame)
    transfer: pd.DataFrame = field(default_factory=pd.DataFrame)
    natural: pd.DataFrame = field(default_factory=pd.DataFrame)
    scans: dict[str, np.ndarray] = field(default_factory=dict)


def measure(
    found: Searches,
    panel: str = "",
    source: str = "panel",
    prompt: str = PROMPT,
    protocol: str = "exact",
    n_boot: int = 200,
    seed: int = 0,
    bases: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Everything that is measured of searches.

    Parameters
    ----------
    found
        Of `rmnb.findings.search_files.load_searches`, or your own frames.
    n_boot, seed
        Of the bootstrap of natural_z.
    bases
        The base of each model, for transfer_toward.

    Returns
    -------
    DataFrame
        Rows of the results table: best_of_random, sequence_z, sequence_z_gcg, sequence_gain (over models, of two or
        more), best_gain and models_above, single_token_found, search_reached, gcg_advantage, farthest, transfer_z,
        transfer_toward, natural_z, natural_beyond, natural_beyond_here, specifications_same_sign and
        specifications_clear (GCG against each of `RIVALS`); those whose frames are not empty.
    """
    results = Results("sequences", panel)

    def add(statistic: str, value, model: str = "", other: str = "", n: int | None = None) -> None:
        results.add(source, statistic, value, model=model, other=other, n=n, prompt=prompt, protocol=protocol)

    for model, scores in found.scans.items():
        for direction in DIRECTIONS:
            add("best_of_random", best_of_random(scores, 1000, direction), model, f"{direction} 1000")
    best = best_found(found.searches)
    for row in best.itertuples():
        add("sequence_z", row.z, str(row.model), f"{row.direction} {row.length}")
    for row in found.searches.itertuples():
        if row.seed == 0 and row.method == "gcg":
            add("sequence_z_gcg", row.z, str(row.model), f"{row.direction} {row.length}")
    for direction, of in gains(best).groupby("direction"):
        if len(of) > 1:
            add("sequence_gain", stats.mean_over_models(of["gain"].tolist()), "", f"{direction} {of['length'].iloc[0]}")
    for direction, of in best_gains(best).groupby("direction"):
        for model, gain in zip(of["model"], of["gain"], strict=True):
            add("best_gain", gain, str(model), str(direction))
        if len(of) > 1:
            add("best_gain", stats.mean_over_models(of["gain"].tolist()), "", str(direction))
        add("models_above", int((of["gain"] > 0).sum()), "", f"best_gain {direction}", len(of))
    for (model, direction, width), of in _groups(found.single, ["model", "direction", "width"]):
        add("single_token_found", (of["share"] <= 0.001).mean(), model, f"{direction} width {width}", len(of))
    for (model, direction, method), of in _groups(reached(found.courses), _RUN[:3]):
        add("search_reached", of["z"].mean(), model, f"{direction} {method}", len(of))
    for rival in RIVALS:
        if (ahead := _specification(found.courses, "both", "all", rival)) is not None:
            add("gcg_advantage", ahead, "", rival)
    for method, cases in (farthest := farthest_by_case(found.courses)).value_counts().items():
        add("farthest", int(cases), "", str(method), len(farthest))
    for row in judged(found.transfer).itertuples():
        add("transfer_z", row.z, str(row.judge), f"{row.direction} {row.length} {row.origin}")
    for (direction, place), of in _groups(_places(judged(found.transfer), bases or {}), ["direction", "place"]):
        add("transfer_toward", of["toward"].mean(), other=f"{direction} {place}", n=len(of))
    for (model,), of in _groups(found.natural, ["model"]):
        add("natural_z", stats.bootstrap(np.median, of["own"].to_numpy(), n_draws=n_boot, seed=seed), model, "median")
        here = stats.bootstrap(np.median, of["scanned"].to_numpy(), n_draws=n_boot, seed=seed)
        add("natural_z", here, model, "median here")
        mine = best.loc[best["model"] == model, "z"]
        if len(mine):
            for name, z in (("natural_beyond", of["own"]), ("natural_beyond_here", of["scanned"])):
                add(name, (z > mine.max()).mean(), model, "max", len(of))
                add(name, (z < mine.min()).mean(), model, "min", len(of))
    return pd.concat([results.frame(), *_survival(found.courses, panel, source)], ignore_index=True)


def curve_against(courses: pd.DataFrame, rival: str) -> pd.DataFrame | None:
    """`advantage` of GCG over a rival under all `SPECIFICATIONS`, a specification curve; None with too few searches."""
    try:
        return specification_curve(SPECIFICATIONS, _specification, courses=courses, against=rival)
    except InputError:  # no combination has searches enough
        return None


def _survival(courses: pd.DataFrame, panel: str, source: str) -> list[pd.DataFrame]:
    curves = {rival: curve_against(courses, rival) for rival in RIVALS}
    return [
        survival_rows(curve, "sequences", panel, rival, source) for rival, curve in curves.items() if curve is not None
    ]


def measure_planted(tries: pd.DataFrame) -> pd.DataFrame:
    """How often each method found the best sequence of planted rewards: rows optimum_found of the results table.

    `tries` is what `rmnb.truth.sequences.try_methods` returns.
    """
    results = Results("sequences", "planted")
    for method, found in tries.groupby("method", sort=False)["found"]:
        results.add("planted", "optimum_found", found.mean(), model=str(method), n=len(found))
    return results.frame()


def best_found(searches: pd.DataFrame) -> pd.DataFrame:
    """Of each model, direction and length the search that got farthest, by whatever method and from whatever seed."""
    toward = searches["z"].where(searches["direction"] == "max", -searches["z"])
    of = searches.assign(toward=toward).sort_values("toward", ascending=False, kind="stable")
    best = of.drop_duplicates(["model", "direction", "length"]).drop(columns="toward")
    return best.sort_values(["model", "direction", "length"], ignore_index=True)


def gains(best: pd.DataFrame) -> pd.DataFrame:
    """How much farther than one token the longest sequences go, in the direction sought: direction, length, gain."""
    parts = []
    for direction, of in best.groupby("direction"):
        z = of.pivot(index="model", columns="length", values="z")
        if 1 not in z:  # a study that was cut off
            continue
        longest = z.columns[-1]
        gain = ((z[longest] - z[1]) * (1 if direction == "max" else -1)).dropna()
        parts.append(pd.DataFrame({"direction": direction, "length": longest, "gain": gain}))
    return pd.concat(parts) if parts else pd.DataFrame(columns=["direction", "length", "gain"])


def best_gains(best: pd.DataFrame) -> pd.DataFrame:
    """How much farther than the best single token the best sequence of any length goes: model, direction, gain."""
    toward = best.assign(z=best["z"].where(best["direction"] == "max", -best["z"]))
    longer, single = toward[toward["length"] > 1], toward[toward["length"] == 1]
    by = ["model", "direction"]
    gain = longer.groupby(by, sort=False)["z"].max() - single.groupby(by, sort=False)["z"].max()
    return gain.dropna().rename("gain").reset_index()


def judged(transfer: pd.DataFrame) -> pd.DataFrame:
    """Of what every model judged, the sequences of the median length."""
    return transfer[transfer["length"] == int(transfer["length"].median())] if len(transfer) else transfer


def _places(judged: pd.DataFrame, bases: Mapping[str, str]) -> pd.DataFrame:
    """With whether the judge is the model itself, of its base or of another, and z in the direction sought."""
    if judged.empty or not bases:
        return judged.iloc[:0]
    alike = judged["origin"].map(bases) == judged["judge"].map(bases)
    place = pd.Series(np.where(alike, "same base", "another base"), judged.index)
    toward = judged["z"].where(judged["direction"] == "max", -judged["z"])
    return judged.assign(place=place.mask(judged["origin"] == judged["judge"], "itself"), toward=toward)


def common_budget(courses: pd.DataFrame) -> int:
    """What methods are compared at: the sequences that the median search scored."""
    return int(courses.groupby(_RUN)["scored"].max().median()) if len(courses) else 0


def reached(courses: pd.DataFrame, sequences: int | None = None) -> pd.DataFrame:
    """The best z of each search after so many sequences (default: `common_budget`), one row a search."""
    if courses.empty:
        return courses
    within = courses[courses["scored"] <= (common_budget(courses) if sequences is None else sequences)]
    return within.groupby(_RUN)["z"].max().reset_index()


def farthest_by_case(courses: pd.DataFrame) -> pd.Series:
    """The method that gets farthest with the common budget, by the mean of its runs, in each model and direction."""
    if courses.empty:
        return pd.Series(dtype=object)
    runs = reached(courses).groupby(_RUN[:3])["z"].mean().unstack("method")
    return runs.idxmax(axis=1)


def advantage(courses: pd.DataFrame, sequences: int, other: str, method: str = "gcg") -> Estimate | None:
    """How much farther a method gets than another with the same number of sequences, over models, directions, seeds.

    A method of which there is one run, since nothing in it is left to chance, meets each run of the other.

    Returns
    -------
    Estimate
        Standard deviations of the scan, with the t interval over the searches; None with fewer than three.
    """
    table = reached(courses, sequences).set_index(_RUN)["z"].unstack("method")
    if method not in table or other not in table:
        return None
    runs = table[other].groupby(["model", "direction"])
    single = runs.transform("max").where(runs.transform("count") == 1)
    gaps = (table[method] - table[other].fillna(single)).dropna()
    return stats.mean_over_models(gaps.tolist()) if len(gaps) > 2 else None


def _specification(courses: pd.DataFrame, direction: str, budget: str, against: str) -> Estimate | None:
    """`advantage` of GCG against a rival under a combination of `SPECIFICATIONS`, for a specification curve."""
    if courses.empty:
        return None
    most = int(courses.groupby("method")["scored"].max().min()) if against == "beam" else int(courses["scored"].max())
    of = courses if direction == "both" else courses[courses["direction"] == direction]
    return advantage(of, int(_SHARES[budget] * most), against)


def best_of_random(scores: np.ndarray, tokens: int, direction: str = "max") -> Estimate:
    """The best of so many tokens drawn at random from a scan: median and central 95 % range, in z.

    The rank of the best of n draws has the distribution function 1 - (1 - p)^n, the beta distribution of order one.
    """
    scores = np.asarray(scores, dtype=np.float64)
    z = np.sort((scores - scores.mean()) / scores.std() * (1 if direction == "max" else -1))[::-1]
    low, middle, high = (betaincinv(1, tokens, p) for p in (0.975, 0.5, 0.025))
    at = [z[min(int(p * len(z)), len(z) - 1)] for p in (middle, low, high)]
    return Estimate(float(at[0]), float(at[1]), float(at[2]), np.nan, np.nan, len(z), len(z))


def _groups(frame: pd.DataFrame, by: list[str]) -> list[tuple[tuple, pd.DataFrame]]:
    """The groups of a frame in the order in which they appear; none of an empty one."""
    return [(tuple(key), of) for key, of in frame.groupby(by, sort=False)] if len(frame) else []
