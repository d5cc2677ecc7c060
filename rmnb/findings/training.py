"""What a reward model comes to like, step by step: trajectories of training runs and the measures that follow them."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons, released_files, sources
from rmnb.errors import InputError
from rmnb.findings import categories
from rmnb.findings.results import Results
from rmnb.panels import Panel, load_panel
from rmnb.scoring.list_scores import read_list
from rmnb.training.runs import trajectory_path

PROMPT = "greatest_ever_one"
_TEXT_COLUMNS = ["part", "text"]
_COURSE = ["model", "family", "recipe", "step", "statistic", "value", "ci_low", "ci_high"]
_AT_THE_END = {  # of what `follow` gives: the statistic's name in the results table
    "slope_valence_standardised": "slope_valence_standardised",
    "slope_log_frequency_standardised": "slope_log_frequency_standardised",
    "median_rank_agency": "final_median_rank_agency",
    "median_rank_communion": "final_median_rank_communion",
}


def measure(
    followed: pd.DataFrame,
    panel: str = "",
    source: str = "panel",
    prompt: str = PROMPT,
    protocol: str = "exact",
) -> pd.DataFrame:
    """Where training runs end: slopes over valence and frequency, median ranks of agency and communion.

    Parameters
    ----------
    followed
        Of `follow`, or of `released_courses`: then a column other tells the runs of a base apart.

    Returns
    -------
    DataFrame
        Rows of the results table: slope_valence_standardised, slope_log_frequency_standardised,
        final_median_rank_agency and final_median_rank_communion of each run's last step, as far as they were followed.
    """
    results = Results("training", panel)
    followed = followed if "other" in followed else followed.assign(other="")
    last = followed["step"] == followed.groupby(["model", "other"])["step"].transform("max")
    ends = followed[last & followed["statistic"].isin(list(_AT_THE_END))]
    columns = (ends[name] for name in ("model", "other", "statistic", "value", "ci_low", "ci_high"))
    for model, other, statistic, value, low, high in zip(*columns, strict=True):
        about = {"model": model, "other": other, "prompt": prompt, "protocol": protocol}
        results.add(source, _AT_THE_END[statistic], value, ci_low=low, ci_high=high, **about)
    return results.frame()


def measure_beginnings(followed: pd.DataFrame, heads: Mapping[str, str], panel: str = "") -> pd.DataFrame:
    """Rows spearman_first: how alike each run's ranking of all words is before its first step and after its last.

    Parameters
    ----------
    followed
        Of `follow`.
    heads
        Of `rmnb.findings.training_records.heads`: how each run's head began; it is the row's `other`. A row without a
        model is the mean over runs.
    """
    results = Results("training", panel)
    begun = followed[(followed["statistic"] == "spearman_last") & (followed["step"] == 0)]
    for head, runs in begun.groupby(begun["model"].map(heads), sort=False):
        about: dict = {"other": str(head), "prompt": PROMPT, "protocol": "exact"}
        for model, rho in zip(runs["model"], runs["value"], strict=True):
            results.add("panel", "spearman_first", rho, model=model, **about)
        if len(runs) > 1:
            results.add("panel", "spearman_first", stats.mean_over_models(runs["value"]), **about)
    return results.frame()


def measure_bases(
    courses: Mapping[str, pd.DataFrame], words: pd.DataFrame, panel: str = "", n_draws: int = 500, seed: int = 0
) -> pd.DataFrame:
    """Rows base_gap_end of every recipe that two bases were trained with, the panel's first base less its second.

    Its interval is over words, the same ones for both bases: it says nothing of another seed or another recipe.
    """
    results = Results("training", panel)
    by_recipe: dict[str, dict[str, pd.DataFrame]] = {}
    for course in courses.values():
        if recipe := course.attrs["recipe"]:
            by_recipe.setdefault(recipe, {})[course.attrs["family"]] = course
    for recipe, of_base in by_recipe.items():
        if len(of_base) != 2:
            continue
        found = [_percent_ranks(course, words) for course in of_base.values()]
        ends = np.column_stack([ranks.iloc[:, -1] for ranks, _ in found])
        value, low, high = _drawn_gap(ends, found[0][1], n_draws, seed)
        about: dict = {"model": " less ".join(of_base), "other": recipe, "prompt": PROMPT, "protocol": "exact"}
        results.add("panel", "base_gap_end", value, ci_low=low, ci_high=high, n=len(ends), **about)
    return results.frame()


def measure_released(courses: pd.DataFrame, panel: str = "") -> pd.DataFrame:
    """The authors' runs: rows of `measure`, agency_less_communion at each checkpoint, and Gemma less Llama.

    Parameters
    ----------
    courses
        Of `released_courses`.

    Returns
    -------
    DataFrame
        Besides rows of `measure`: agency_less_communion (`other`: data and step), base_gap_first and base_gap_end of
        each data set, and base_difference_paired, the mean of the latter with its interval over data sets.
    """
    results = Results("training", panel)
    about: dict = {"prompt": PROMPT, "protocol": "published"}
    results.extend(measure(courses, panel, "released", protocol="published"))
    gaps = courses[courses["statistic"] == "agency_less_communion"]
    for model, data, step, value in zip(*(gaps[name] for name in ("model", "other", "step", "value")), strict=True):
        told: dict = {"model": model, "other": f"{data}, step {step}", **about}
        results.add("released", "agency_less_communion", value, **told)
    gemma, llama, *_ = released_files.BASES
    wide = gaps.pivot(index=["other", "step"], columns="model", values="value")
    apart = (wide[gemma] - wide[llama]).dropna().groupby("other", sort=False)
    for name, found in {"first": apart.first(), "end": apart.last()}.items():
        for data, value in found.items():
            told: dict = {"model": f"{gemma} less {llama}", "other": str(data), **about}
            results.add("released", f"base_gap_{name}", value, **told)
    results.add("released", "base_difference_paired", stats.mean_over_models(apart.last()), **about)
    return results.frame()


def follow(courses: Mapping[str, pd.DataFrame], words: pd.DataFrame, n_draws: int = 500, seed: int = 0) -> pd.DataFrame:
    """Everything that is measured of runs at each of their steps.

    Parameters
    ----------
    courses
        Of `load_trajectories`.
    words
        Columns word and category (agency, communion); words without score are left out.
    n_draws, seed
        Of the bootstrap over words of each category.

    Returns
    -------
    DataFrame
        model, family, recipe, step (int), statistic, value, ci_low, ci_high (95 %; NaN where there is none):
        slope_valence_standardised, slope_log_frequency_standardised (see `slopes`); agency_less_communion, difference
        of the median ranks in percent of the words ranked (below 0, agency stands higher); median_rank_agency,
        median_rank_communion (1 is the highest reward); spearman_last, of all words' scores with the last step's.
    """
    parts = [pd.DataFrame(columns=_COURSE)]
    for model, course in courses.items():
        ranks = _ranks(course, words)
        measured = [slopes(course), _rank_difference(course, words, n_draws, seed), ranks, _agreement(course)]
        parts.append(
            pd.concat(measured).assign(model=model, family=course.attrs["family"], recipe=course.attrs["recipe"])
        )
    return pd.concat(parts[1:] or parts, ignore_index=True)[_COURSE]


def slopes(course: pd.DataFrame) -> pd.DataFrame:
    """How the reward of AFINN's words depends on their valence and frequency at each step.

    Scores are standardised at each step: the head begins with an arbitrary scale, and training stretches it.

    Returns
    -------
    DataFrame
        step, statistic (slope_valence_standardised: over valence; slope_log_frequency_standardised: over the natural
        logarithm of frequency, valence held fixed), value, ci_low, ci_high: standard deviations of the score a unit.
    """
    words = course[course["part"] == "afinn"]
    valence = lexicons.afinn().set_index("word")["valence"].loc[words["text"]].to_numpy(dtype=float)
    words = words.assign(valence=valence, log_frequency=np.log(10) * lexicons.zipf(words["text"]))
    known = words["log_frequency"] > 0  # wordfreq gives 0 to what it has never seen
    rows = []
    for step in steps(course):
        scored = words.assign(score=stats.standardise(words[step]))
        over_valence = stats.ols("score ~ valence", scored)["valence"]
        over_frequency = stats.ols("score ~ log_frequency + valence", scored[known])["log_frequency"]
        for name, found in (("valence", over_valence), ("log_frequency", over_frequency)):
            rows.append((step, f"slope_{name}_standardised", found.value, found.ci_low, found.ci_high))
    return pd.DataFrame(rows, columns=["step", "statistic", "value", "ci_low", "ci_high"])


def steps(course: pd.DataFrame) -> list[int]:
    """The steps of a trajectory, in order."""
    return [column for column in course if isinstance(column, int)]


def _ranks(course: pd.DataFrame, words: pd.DataFrame) -> pd.DataFrame:
    scores = course.drop_duplicates("text").set_index("text")[steps(course)]
    ranks = categories.median_ranks(scores, words).rename(columns={"prompt": "step", "median_rank": "value"})
    return ranks.assign(statistic="median_rank_" + ranks["category"])[["step", "statistic", "value"]]


def _rank_difference(course: pd.DataFrame, words: pd.DataFrame, n_draws: int, seed: int) -> pd.DataFrame:
    ranks, is_agency = _percent_ranks(course, words)
    rows = [(step, *_drawn_gap(ranks[[step]].to_numpy(), is_agency, n_draws, seed)) for step in steps(course)]
    return pd.DataFrame(rows, columns=["step", "value", "ci_low", "ci_high"]).assign(statistic="agency_less_communion")


def _percent_ranks(course: pd.DataFrame, words: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    words = words[words["word"].isin(course["text"])]
    scores = course.drop_duplicates("text").set_index("text").loc[words["word"], steps(course)]
    return 100 * scores.rank(ascending=False) / len(words), (words["category"] == "agency").to_numpy()


def _drawn_gap(ranks: np.ndarray, is_agency: np.ndarray, n_draws: int, seed: int) -> tuple[float, float, float]:
    """Median rank of agency less communion, of a second column taken off the first; 95 % by drawing words anew."""
    signs, rng = np.array([1, -1])[: ranks.shape[1]], np.random.default_rng(seed)
    medians, drawn = [], []
    for group in (ranks[is_agency], ranks[~is_agency]):
        medians.append(np.median(group, axis=0) @ signs)
        drawn.append(np.median(group[rng.integers(len(group), size=(n_draws, len(group)))], axis=1) @ signs)
    low, high = np.quantile(drawn[0] - drawn[1], [0.025, 0.975])
    return float(medians[0] - medians[1]), float(low), float(high)


def _agreement(course: pd.DataFrame) -> pd.DataFrame:
    at = steps(course)
    rho = [float(stats.spearman(course[step], course[at[-1]])) for step in at]
    return pd.DataFrame({"step": at, "statistic": "spearman_last", "value": rho})


def load_trajectories(panel: str | Path | Panel) -> dict[str, pd.DataFrame]:
    """The trajectories of a panel's training runs that have been written.

    Returns
    -------
    dict of str to DataFrame
        By run, in panel order: part, text, then float32 scores, a column a step; the columns' names are int. Words of
        lists that cannot be reached here go by their place. ``attrs`` hold recipe and family.

    Raises
    ------
    InputError
        A file is damaged, or its texts have changed.
    """
    panel = panel if isinstance(panel, Panel) else load_panel(panel)
    found = {}
    for spec in (*panel.models, *panel.watched):
        path = trajectory_path(panel, spec.name)
        if path.exists():
            frame, _ = read_list(path)
            frame.columns = [column if column in _TEXT_COLUMNS else int(column) for column in map(str, frame)]
            frame.attrs = {"recipe": spec.recipe, "family": spec.family}
            found[spec.name] = frame
    return found


def released_courses() -> pd.DataFrame:
    """The authors' released training runs: median ranks of agency and communion at every checkpoint.

    Their file for 13,000 pairs has the blob id of the one for 27,000, so it is the same file: it is not read.

    Returns
    -------
    DataFrame
        model (the base), other (the data), step, statistic (median_rank_agency, median_rank_communion, among 1,365
        tokens, and agency_less_communion in percent of these), value, ci_low, ci_high (NaN).

    Raises
    ------
    UnreachableError
        The files cannot be had here.
    """
    parts = []
    for data, (file, names) in released_files.RUNS.items():
        path = sources.locate(f"iclr2026/data/reward_model_training/rank_results_{file}.csv")
        table = pd.read_csv(path, keep_default_na=False)
        for base, run in zip(released_files.BASES, names, strict=True):
            course = table[table["model_id"] == run].drop_duplicates(["checkpoint", "Category"])  # rows are repeated
            medians = course.pivot(index="checkpoint", columns="Category", values="sum_value")
            median = {f"median_rank_{kind}": medians[kind.capitalize()] for kind in ("agency", "communion")}
            gap = 100 * (medians["Agency"] - medians["Communion"]) / 1365
            wide = pd.DataFrame({**median, "agency_less_communion": gap}).rename_axis("step").reset_index()
            parts.append(wide.melt("step", var_name="statistic").assign(model=base, other=data))
    found = pd.concat(parts, ignore_index=True).assign(ci_low=np.nan, ci_high=np.nan)
    return found[["model", "other", "step", "statistic", "value", "ci_low", "ci_high"]]


def same_file(one: str, other: str) -> bool:
    """Whether two files of the authors' training runs are one and the same, by the blob ids that pin them."""
    pins = sources.pins()
    names = [f"iclr2026/data/reward_model_training/rank_results_{file}.csv" for file in (one, other)]
    if missing := [name for name in names if name not in pins]:
        raise InputError(f"no pin for {missing[0]}")
    return pins[names[0]].blob_id == pins[names[1]].blob_id
