"""The files that the authors of both papers released, read as they wrote them.

They are pinned and come through `rmnb.data.sources`, which raises `rmnb.data.sources.UnreachableError` where one cannot
be had. Votes on the things of EloEverything and their scores are shipped too, as numbers: `human_elo`, `thing_scores`.
"""

import numpy as np
import pandas as pd

from rmnb.data import lexicons, preferences, sources
from rmnb.panels import load_panel

PROMPTS = ("greatest", "best", "worst")  # of the full vocabularies
MODELS = load_panel("facct2025").models  # of both papers, in the order of RewardBench
CODES = [model.name for model in MODELS]
_HUB_IDS = [str(model.source) for model in MODELS]
_UNIFIED = ("google--gemma-2b-it-Unified", "meta-llama--Llama-3.2-3B-Unified", "Qwen2.5-3B-Instruct")
RUNS = {  # training data -> (file, {base: the authors' name for the run}); their "13k" is the 27k file again
    "unified-27k": ("uf_27", ("gemma2b_unified27k_lora", "llama3b_unified27k_lora", "qwen3b_unified27k_lora")),
    "unified-53k": ("uf_54", _UNIFIED),
    "skywork-77k": ("sky_80k", ("google--gemma-2b-it", "meta-llama--Llama-3.2-3B", "qwen--qwen2.5-3B-instruct")),
    "unified-106k": ("uf_100", _UNIFIED),
}
_FOLDERS = {"big_two": "dict_big2_nouns", "moral_foundations": "dict_MFD_20"}
BASES = ("gemma-2-2b-it", "Llama-3.2-3B-Instruct", "Qwen2.5-3B-Instruct")


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
        table = preferences.elo_scores(prompt)[_HUB_IDS]
    except sources.UnreachableError:
        wide = pd.read_parquet(sources.stand_in("thing_scores.parquet"))
        table = wide[[f"{prompt} {code}" for code in CODES]].astype("float64")
    return table.set_axis(CODES, axis=1)


def dictionary(name: str) -> pd.DataFrame:
    """The words that the authors ranked: word, category.

    Parameters
    ----------
    name : {"big_two", "moral_foundations"}
        big_two: agency and communion among the nouns. moral_foundations: five foundations, each with virtue and vice
        together, as the paper has it, but the vices of sanctity, which the authors' selection of columns leaves out.
    """
    if name == "big_two":
        return lexicons.big_two("nouns")
    morals = lexicons.moral_foundations().query("foundation != 'sanctity' or side != 'vice'")
    return morals.rename(columns={"foundation": "category"})


def dictionary_scores(name: str) -> dict[str, pd.DataFrame]:
    """The ten models' rewards of a dictionary's words by code: index response, one column a prompt of the 54.

    `name` as in `dictionary`; the table of moral_foundations has the vices of sanctity too.
    """
    tables = {}
    start = f"iclr2026/data/reward_model_scores/{_FOLDERS[name]}"
    for code, hub_id in zip(CODES, _HUB_IDS, strict=True):
        end = f"_{hub_id.replace('/', '_')}.csv"
        path = sources.locate(next(pin for pin in sources.pins() if pin.startswith(start) and pin.endswith(end)))
        tables[code] = pd.read_csv(path, keep_default_na=False).drop_duplicates("response").set_index("response")
    return tables
