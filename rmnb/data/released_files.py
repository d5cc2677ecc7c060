"""The files that the authors of both papers released, read as they wrote them.

They are pinned and come through `rmnb.data.sources`, which raises `rmnb.data.sources.UnreachableError` where one cannot
be had. Votes on the things of EloEverything and their scores are shipped too, as numbers: `human_elo`, `thing_scores`.
"""

import numpy as np
import pandas as pd

from rmnb.data import lexicons, preferences, sources
from rmnb.panels import load_panel

MODELS = load_panel("facct2025").models  # of both papers, in the order of RewardBench
CODES = [model.name for model in MODELS]
HUB_IDS = [str(model.source) for model in MODELS]


def human_elo() -> pd.DataFrame:
    """The things that people voted on, as `rmnb.data.preferences.elo_items` has them, or, without names, as shipped.

    Returns
    -------
    DataFrame
        name, elo_score, elo_matches, elo_rank. Shipped, a thing that is no common word is called ``item 17``, its place
        in the authors' list, unless a paper names it; further columns are facts that its name would tell
        (`rmnb.findings.things`), and ``attrs["shipped"]`` is true.
    """
    try:
        return preferences.elo_items()
    except sources.UnreachableError:
        table = pd.read_csv(sources.stand_in("human_elo.csv"), keep_default_na=False, na_values={"valence": [""]})
    words = lexicons.frequent_words(1 + table["word"].max())
    names = [
        name or (words[place].capitalize() if place >= 0 else f"item {item}")
        for name, place, item in zip(table["name"], table.pop("word"), table.pop("item"), strict=True)
    ]
    table = table.assign(name=names, elo_rank=np.arange(1, len(table) + 1))
    table.attrs["shipped"] = True
    return table


def thing_scores(prompt: str) -> pd.DataFrame:
    """The ten models' scores of the things of `human_elo`, row by row, a column a code.

    Parameters
    ----------
    prompt : {"elo_greatest", "elo_prefer", "greatest"}
    """
    try:
        table = preferences.elo_scores(prompt)[HUB_IDS]
    except sources.UnreachableError:
        wide = pd.read_parquet(sources.stand_in("thing_scores.parquet"))
        table = wide[[f"{prompt} {code}" for code in CODES]].astype("float64")
    return table.set_axis(CODES, axis=1)


def moral_foundations() -> pd.DataFrame:
    """The moral foundations that the authors ranked: word, category.

    Five, each with virtue and vice together, as the paper has it, but the vices of sanctity, which the authors'
    selection of columns leaves out.
    """
    morals = lexicons.moral_foundations().query("foundation != 'sanctity' or side != 'vice'")
    return morals.rename(columns={"foundation": "category"})
