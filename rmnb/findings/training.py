"""What a reward model comes to like, step by step: trajectories of training runs and the measures that follow them."""

from pathlib import Path

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons, sources
from rmnb.errors import InputError
from rmnb.findings import categories, released
from rmnb.panels import Panel, load_panel
from rmnb.scoring.list_scores import read_list
from rmnb.stats import Estimate
from rmnb.training.runs import trajectory_path

PROMPT = "greatest_ever_one"
_TEXT_COLUMNS = ["part", "text"]


def load_trajectories(panel: str | Path | Panel) -> dict[str, pd.DataFrame]:
    """The trajectories of a panel's training runs that have been written.

    Returns
    -------
    dict of str to DataFrame
        By run, in panel order: part, text, then float32 scores, a column a step; the columns' names are int. Words of
        lists that cannot be reached here are left out. ``attrs`` hold recipe and family.

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


def steps(trajectory: pd.DataFrame) -> list[int]:
    """The steps of a trajectory, in order."""
    return [column for column in trajectory if isinstance(column, int)]


def category_ranks(trajectory: pd.DataFrame, words: pd.DataFrame) -> pd.DataFrame:
    """Median rank of each category's words at each step, 1 is the highest reward; see `categories.median_ranks`.

    Parameters
    ----------
    trajectory
        Of `load_trajectories`.
    words
        Columns word and category; words without score are left out.

    Returns
    -------
    DataFrame
        step (int), category, median_rank, n (words of the category).
    """
    scores = trajectory.drop_duplicates("text").set_index("text")[steps(trajectory)]
    return categories.median_ranks(scores, words).rename(columns={"prompt": "step"})


def rank_difference(trajectory: pd.DataFrame, words: pd.DataFrame, n_draws: int, seed: int) -> pd.DataFrame:
    """Median rank of communion less that of agency, as a share of all words ranked: above 0, agency stands higher.

    Returns
    -------
    DataFrame
        step, value, ci_low, ci_high; a bootstrap over words of each category.
    """
    words = words[words["word"].isin(trajectory["text"])]
    scores = trajectory.drop_duplicates("text").set_index("text").loc[words["word"], steps(trajectory)].to_numpy()
    agency = (words["category"] == "agency").to_numpy()
    ranks = np.apply_along_axis(stats.mid_ranks, 0, -scores) / len(words)
    rng = np.random.default_rng(seed)
    rows = []
    for step, column in zip(steps(trajectory), ranks.T, strict=True):
        one, other = column[agency], column[~agency]
        drawn = np.median(rng.choice(other, (n_draws, len(other))), axis=1)
        drawn -= np.median(rng.choice(one, (n_draws, len(one))), axis=1)
        rows.append((step, np.median(other) - np.median(one), *np.quantile(drawn, [0.025, 0.975])))
    return pd.DataFrame(rows, columns=["step", "value", "ci_low", "ci_high"])


def slopes(trajectory: pd.DataFrame) -> pd.DataFrame:
    """How the reward of AFINN's words depends on their valence and frequency at each step.

    Scores are standardised at each step: the head begins with an arbitrary scale, and training stretches it.

    Returns
    -------
    DataFrame
        step, statistic (slope_valence_standardised: over valence; slope_log_frequency_standardised: over the natural
        logarithm of frequency, valence held fixed), value, ci_low, ci_high: standard deviations of the score a unit.
    """
    rated = lexicons.afinn().set_index("word")["valence"]
    words = trajectory[trajectory["part"] == "afinn"]
    valence = rated.loc[words["text"]].to_numpy(dtype=float)
    frequency = np.log(10) * lexicons.zipf(words["text"])
    known = frequency > 0  # wordfreq gives 0 to what it has never seen
    rows = []
    for step in steps(trajectory):
        score = stats.standardise(words[step])
        over_valence = stats.least_squares(score, {"valence": valence})["valence"]
        over_frequency = stats.frequency_slope(score[known], frequency[known], {"valence": valence[known]})
        for statistic, estimate in (
            ("slope_valence_standardised", over_valence),
            ("slope_log_frequency_standardised", over_frequency),
        ):
            rows.append((step, statistic, *_interval(estimate)))
    return pd.DataFrame(rows, columns=["step", "statistic", "value", "ci_low", "ci_high"])


def released_courses() -> pd.DataFrame:
    """The authors' released training runs: median ranks of agency and communion at every checkpoint.

    Their file for 13,000 pairs has the blob id of the one for 27,000, so it is the same file: it is not read.

    Returns
    -------
    DataFrame
        data, base, step, category (agency or communion), median_rank (among 1,365 tokens).

    Raises
    ------
    UnreachableError
        The files cannot be had here.
    """
    parts = []
    for data, (file, names) in released.RUNS.items():
        table = pd.read_csv(
            sources.locate(f"iclr2026/data/reward_model_training/rank_results_{file}.csv"), keep_default_na=False
        )
        for base, run in zip(released.BASES, names, strict=True):
            course = table[table["model_id"] == run].drop_duplicates(["checkpoint", "Category"])  # rows are repeated
            parts.append(
                pd.DataFrame(
                    {
                        "data": data,
                        "base": base,
                        "step": course["checkpoint"],
                        "category": course["Category"].str.lower(),
                        "median_rank": course["sum_value"],
                    }
                )
            )
    return pd.concat(parts, ignore_index=True).sort_values(["data", "base", "category", "step"], ignore_index=True)


def same_file(one: str, other: str) -> bool:
    """Whether two files of the authors' training runs are one and the same, by the blob ids that pin them."""
    pins = sources.pins()
    names = [f"iclr2026/data/reward_model_training/rank_results_{file}.csv" for file in (one, other)]
    if missing := [name for name in names if name not in pins]:
        raise InputError(f"no pin for {missing[0]}")
    return pins[names[0]].blob_id == pins[names[1]].blob_id


def _interval(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.ci_low, estimate.ci_high
