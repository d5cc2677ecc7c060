"""What the authors published: numbers computed from their released files, and numbers that the papers print."""

from importlib import resources

import numpy as np
import pandas as pd

from rmnb.errors import InputError
from rmnb.files import shipped
from rmnb.findings.rows import ENDS

KEY = ["quantity", "source", "model", "other", "question"]
COLUMNS = [*KEY, *ENDS, "n"]


def load_released(chapter: str) -> pd.DataFrame:
    """The numbers of one chapter in the authors' data.

    Returns
    -------
    DataFrame
        quantity, source (released), model, other, question (str, empty where a number has none), value, low, high
        (float64), n (Int64).

    Raises
    ------
    InputError
        Nothing is shipped under that name, or the folder ``data`` is missing.
    """
    directory = shipped("released", "no numbers of the authors' models")
    chapters = [file.stem for file in sorted(directory.glob("*.csv")) if file.stem not in ("bnc", "human_elo")]
    if chapter not in chapters:
        raise InputError(f"no numbers of {chapter!r} in {directory}: choose one of {', '.join(chapters)}")
    return tidy(pd.read_csv(directory / f"{chapter}.csv", keep_default_na=False, na_values=[""]))


def tidy(*frames: pd.DataFrame) -> pd.DataFrame:
    """Numbers of the authors' models in the columns and types of `load_released`; missing text is empty."""
    table = pd.concat(frames, ignore_index=True).assign(source="released").reindex(columns=COLUMNS)
    text = table[KEY].astype(object).fillna("").astype(str)
    numbers = table[ENDS].astype(float)
    return table.assign(**text, **numbers, n=table["n"].astype("Float64").astype("Int64"))  # pyright: ignore[reportArgumentType]


#: The chapters whose numbers the papers print or draw and that are shipped, in the order of the papers.
CHAPTERS = ("heterogeneity", "asymmetry", "elo", "agency_communion")
REPRODUCED, DIFFERS, OUT_OF_REACH = "reproduced", "differs", "not reproducible here"
READ = ("final_median_rank_agency", "final_median_rank_communion")
COUNTED = ("dictionary_size", "elo_highest", "elo_items", "elo_lowest", "prompt_count", "vocabulary_size")
_KEY = ["chapter", "quantity", "model", "other", "question"]


def load_published() -> pd.DataFrame:
    """The numbers that the two papers print or draw, and some that the authors' files contain.

    Returns
    -------
    DataFrame
        chapter, quantity, model, other, question (str), value (float64), mark (``data``: in their files; ``fig``: read
        off a figure; ``text``: printed in the text), tolerance (float64: how far the true value may be from the one
        read), where (table, figure or section).
    """
    with resources.files("rmnb.data").joinpath("lists", "published.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, keep_default_na=False).astype({"value": float, "tolerance": float})


def reproduced() -> pd.DataFrame:
    """Every published number beside the one from the authors' released data.

    Returns
    -------
    DataFrame
        The columns of `load_published`, released (float64, NaN where it cannot be had from what is released), way (how
        that was had: recomputed, a statistic; read, a value of their files as it is; counted, a number of rows or the
        end of a column) and verdict: reproduced (within the published number's precision), differs, or not
        reproducible here.
    """
    computed = pd.concat([load_released(chapter).assign(chapter=chapter) for chapter in CHAPTERS])
    computed = computed.rename(columns={"value": "released"})
    table = load_published().merge(computed[[*_KEY, "released"]], "left", on=_KEY)
    quantity = table["quantity"]
    is_missing = table["released"].isna()
    is_close = (table["released"] - table["value"]).abs() <= table["tolerance"] + 1e-9
    kinds = [is_missing, quantity.isin(COUNTED), quantity.isin(READ)]
    ways = np.select(kinds, ["", "counted", "read"], "recomputed")
    verdicts = np.select([is_missing, is_close], [OUT_OF_REACH, REPRODUCED], DIFFERS)
    return table.assign(way=ways, verdict=verdicts)
