"""What the authors published: numbers computed from their released files, and numbers that the papers print."""

from importlib import resources

import pandas as pd

from rmnb.data import released_files
from rmnb.data.sources import UnreachableError
from rmnb.errors import InputError
from rmnb.files import CLONE, data_dir

COLUMNS = ["quantity", "source", "model", "other", "question", "value", "low", "high", "n"]


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
    directory = data_dir() / "released"
    if not directory.exists():
        raise InputError(f"no numbers of the authors' models: {CLONE}")
    path = directory / f"{chapter}.csv"
    table = pd.DataFrame()
    if path.exists():
        table = pd.read_csv(path, keep_default_na=False, na_values=[""])
    if "quantity" not in table:
        chapters = [file.stem for file in sorted(directory.glob("*.csv")) if file.stem not in ("bnc", "human_elo")]
        raise InputError(f"no numbers of {chapter!r} in {directory}: choose one of {', '.join(chapters)}")
    return tidy(table)


def tidy(*frames: pd.DataFrame) -> pd.DataFrame:
    """Numbers of the authors' models in the columns and types of `load_released`; missing text is empty."""
    table = pd.concat(frames, ignore_index=True).assign(source="released").reindex(columns=COLUMNS)
    text = table[["quantity", "source", "model", "other", "question"]].astype(object).fillna("").astype(str)
    numbers = table[["value", "low", "high"]].astype(float)
    return table.assign(**text, **numbers, n=table["n"].astype("Float64").astype("Int64"))  # pyright: ignore[reportArgumentType]


def authors_tables(name: str) -> dict[str, pd.DataFrame]:
    """The authors' ten models in the shape of `rmnb.findings.tables.load_tables`.

    Parameters
    ----------
    name : {"big_two", "moral_foundations", "vocabularies"}
        The words of a dictionary under 54 wordings (best_ever_one and so on; best, greatest and worst stand for these),
        or whole vocabularies under best, greatest and worst; there word is the text in lower case, blanks kept, as the
        paper reads it.

    Returns
    -------
    dict
        Code of a model to DataFrame: token, word, kind (always ``word_start``), and float64 columns, one a wording or
        question. Vocabularies have token_id too.

    Raises
    ------
    UnreachableError
        The files can be neither found nor downloaded.
    """
    if name == "vocabularies":
        tables = released_files.vocabularies()
        if tables is None:
            raise UnreachableError("the vocabularies are not on this machine: pull facct2025/data/reward_model_scores")
        return {
            code: table.assign(kind="word_start", word=table["token"].str.lower()) for code, table in tables.items()
        }
    tables = {}
    for code, scores in released_files.dictionary_scores(name).items():
        questions = {key: scores[f"{key}_ever_one"] for key in released_files.PROMPTS}
        words = scores.index.to_series()
        tables[code] = scores.assign(**questions, token=words, word=words, kind="word_start").reset_index(drop=True)
    return tables


#: The chapters whose numbers the papers print or draw and that are shipped, in the order of the papers.
CHAPTERS = ("heterogeneity", "asymmetry", "elo", "agency_communion")
REPRODUCED, DIFFERS, OUT_OF_REACH = "reproduced", "differs", "not reproducible here"
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
    """Every published number beside the one recomputed from the authors' released data.

    Returns
    -------
    DataFrame
        The columns of `load_published`, released (float64, NaN where it cannot be recomputed from what is released) and
        verdict: reproduced (within the published number's precision), differs, or not reproducible here.
    """
    computed = pd.concat([load_released(chapter).assign(chapter=chapter) for chapter in CHAPTERS])
    computed = computed.rename(columns={"value": "released"})
    table = load_published().merge(computed[[*_KEY, "released"]], "left", on=_KEY)
    close = (table["released"] - table["value"]).abs() <= table["tolerance"] + 1e-9
    table["verdict"] = DIFFERS
    table.loc[close, "verdict"] = REPRODUCED
    table.loc[table["released"].isna(), "verdict"] = OUT_OF_REACH
    return table
