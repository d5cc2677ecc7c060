"""The files that the authors of both papers released, read as they wrote them.

They are pinned and come through `rmnb.data.sources`, which raises `rmnb.data.sources.UnreachableError` where one cannot
be had. Votes on the things of EloEverything and their scores are shipped too, as numbers: `human_elo`, `thing_scores`.
The ten tables of rewards over full vocabularies (columns ``token_id, token_name, token_decoded, greatest, best,
worst``) are large: `vocabularies` gives None where they have not been pulled.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb.data import lexicons, preferences, sources

FACCT, ICLR = "facct2025", "iclr2026"
PROMPTS = ("greatest", "best", "worst")  # of the full vocabularies


@dataclass(frozen=True)
class ReleasedModel:
    """One of the ten reward models of both papers; `rank` on RewardBench, `parameters` in thousand millions."""

    code: str
    hub_id: str
    family: str
    developer: str
    parameters: int
    rank: int


MODELS = tuple(
    ReleasedModel(code, hub_id, family, hub_id.split("/")[0], parameters, rank)
    for code, hub_id, family, parameters, rank in (
        ("N-Gem-27B", "nicolinho/QRM-Gemma-2-27B", "Gemma", 27, 2),
        ("S-Gem-27B-v0.2", "Skywork/Skywork-Reward-Gemma-2-27B-v0.2", "Gemma", 27, 3),
        ("S-Gem-27B", "Skywork/Skywork-Reward-Gemma-2-27B", "Gemma", 27, 5),
        ("S-Lla-8B-v0.2", "Skywork/Skywork-Reward-Llama-3.1-8B-v0.2", "Llama", 8, 10),
        ("N-Lla-8B", "nicolinho/QRM-Llama3.1-8B", "Llama", 8, 11),
        ("L-Lla-8B", "LxzGordon/URM-LLaMa-3.1-8B", "Llama", 8, 12),
        ("R-Lla-8B", "Ray2333/GRM-Llama3-8B-rewardmodel-ft", "Llama", 8, 17),
        ("R-Lla-3B", "Ray2333/GRM-Llama3.2-3B-rewardmodel-ft", "Llama", 3, 19),
        ("F-Lla-8B-v0.1", "RLHFlow/ArmoRM-Llama3-8B-v0.1", "Llama", 8, 20),
        ("R-Gem-2B", "Ray2333/GRM-gemma2-2B-rewardmodel-ft", "Gemma", 2, 31),
    )
)
CODES = [model.code for model in MODELS]
RUNS = {  # training data -> (file, {base: the authors' name for the run}); their "13k" is the 27k file again
    "unified-27k": ("uf_27", ("gemma2b_unified27k_lora", "llama3b_unified27k_lora", "qwen3b_unified27k_lora")),
    "unified-53k": (
        "uf_54",
        ("google--gemma-2b-it-Unified", "meta-llama--Llama-3.2-3B-Unified", "Qwen2.5-3B-Instruct"),
    ),
    "skywork-77k": ("sky_80k", ("google--gemma-2b-it", "meta-llama--Llama-3.2-3B", "qwen--qwen2.5-3B-instruct")),
    "unified-106k": (
        "uf_100",
        ("google--gemma-2b-it-Unified", "meta-llama--Llama-3.2-3B-Unified", "Qwen2.5-3B-Instruct"),
    ),
}
_FOLDERS = {"big_two": "dict_big2_nouns", "moral_foundations": "dict_MFD_20"}
BASES = ("gemma-2-2b-it", "Llama-3.2-3B-Instruct", "Qwen2.5-3B-Instruct")


def vocabularies() -> dict[str, pd.DataFrame] | None:
    """The ten models' tables (`read_table`) by code, in RewardBench order, or None if not all are on this machine.

    They are large, so nothing downloads them by the way, but
    ``rmnb book data pull facct2025/data/reward_model_scores`` does.
    """
    paths = {}
    for model in MODELS:
        name = f"facct2025/data/reward_model_scores/{model.hub_id.replace('/', '--')}.csv"
        paths[model.code] = sources.on_this_machine(name)
        if paths[model.code] is None:
            return None
    return {code: read_table(path) for code, path in paths.items()}


def read_table(path: Path | str) -> pd.DataFrame:
    """One model's scores, in the layout of `rmnb.findings.tables`.

    Columns token_id (int64), token, kind (empty: the file does not say it), word (folded; str), and greatest, best and
    worst (float64).

    A token that reads "NA" or "null" is that token, not a gap: the authors' own reading drops these. Tokens without a
    score, which some of their files have, are left out.
    """
    # A bare carriage return is a token, no end of line: pandas writes it without quotes.
    gaps = {prompt: ["", "NA", "nan"] for prompt in PROMPTS}
    table = pd.read_csv(path, keep_default_na=False, na_values=gaps, lineterminator="\n")
    kept = table.dropna(subset=list(PROMPTS), ignore_index=True).rename(columns={"token_decoded": "token"})
    kept = kept[["token_id", "token", *PROMPTS]]
    kept = kept.astype({"token_id": "int64", "token": "str"} | dict.fromkeys(PROMPTS, "float64"))
    return kept.assign(kind="", word=kept["token"].str.strip().str.casefold())


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
    common = [words[place].capitalize() if place >= 0 else "" for place in table.pop("word")]
    stand_in = "item " + table.pop("item").astype(str)
    names = table["name"].mask(table["name"] == "", common)
    table = table.assign(name=names.mask(names == "", stand_in), elo_rank=np.arange(1, len(table) + 1))
    table.attrs["shipped"] = True
    return table


def thing_scores(prompt: str) -> pd.DataFrame:
    """The ten models' scores of the things of `human_elo`, row by row, a column a code.

    Parameters
    ----------
    prompt : {"elo_greatest", "elo_prefer", "greatest"}
    """
    try:
        table = preferences.elo_scores(prompt)[[model.hub_id for model in MODELS]]
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
    morals = lexicons.moral_foundations()
    morals = morals.loc[~((morals["foundation"] == "sanctity") & (morals["side"] == "vice"))]
    return morals.rename(columns={"foundation": "category"})


def dictionary_scores(name: str) -> dict[str, pd.DataFrame]:
    """The ten models' rewards of a dictionary's words by code: index response, one column a prompt of the 54.

    `name` as in `dictionary`; the table of moral_foundations has the vices of sanctity too.
    """
    tables, start = {}, f"iclr2026/data/reward_model_scores/{_FOLDERS[name]}"
    for model in MODELS:
        end = f"_{model.hub_id.replace('/', '_')}.csv"
        path = sources.locate(next(pin for pin in sources.pins() if pin.startswith(start) and pin.endswith(end)))
        tables[model.code] = pd.read_csv(path, keep_default_na=False).drop_duplicates("response").set_index("response")
    return tables
