"""What the authors' released data say, recomputed through the package's own statistics.

Functions return rows of the results table (source ``released``; ``published`` where a number stands in their files as
it is), ready for `rmnb.findings.results.Results.extend`. The data are read through `rmnb.data.sources`, so each
function raises `rmnb.data.sources.UnreachableError` where they cannot be had. Full vocabularies are in
`rmnb.findings.released_vocabulary`.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons, sources
from rmnb.data.preferences import ELO_FILES, elo_items, elo_scores
from rmnb.errors import InputError
from rmnb.findings import categories, people
from rmnb.findings.results import Results, published

FACCT, ICLR = "facct2025", "iclr2026"
_SCORES = "iclr2026/data/reward_model_scores/"
_TABLES = "facct2025/tables/output/"


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
BASES = ("gemma-2-2b-it", "Llama-3.2-3B-Instruct", "Qwen2.5-3B-Instruct")
_POSITIVE = ("best", "greatest", "good")


def counts(finding: str) -> pd.DataFrame:
    """Rows on how much there is: vocabulary_size, elo_items, dictionary_size, prompt_count and the like."""
    results = Results(finding, ICLR if finding == "agency_communion" else FACCT)
    found: list[tuple[str, str, int]] = []
    if finding == "heterogeneity":
        shared = pd.read_csv(sources.locate("iclr2026/data/corpora/token_intersection.csv"), keep_default_na=False)
        found = [("vocabulary_size", "", len(shared))]
    elif finding == "elo":
        human = elo_items()["elo_score"].to_numpy()
        found = [("elo_items", "", len(human)), ("elo_lowest", "", human.min()), ("elo_highest", "", human.max())]
    elif finding == "agency_communion":
        categories_of_nouns = lexicons.big_two("nouns")["category"].tolist()
        sizes = {f"big_two_nouns_{name}": categories_of_nouns.count(name) for name in ("agency", "communion")}
        sizes["big_two_nouns"] = len(categories_of_nouns)
        sizes["big_two_expanded"] = len(lexicons.big_two("expanded"))
        sizes["moral_foundations"] = len(lexicons.moral_foundations())
        found = [("dictionary_size", name, size) for name, size in sizes.items()]
        found.append(("prompt_count", "", len(word_scores(MODELS[0], "dict_big2_nouns").columns)))
    for statistic, other, value in found:
        results.add("released", statistic, float(value), other=other, protocol="published")
    return results.frame()


def published_moments() -> pd.DataFrame:
    """Rows mean, variance and skewness of the ten models as table 3 prints them: greatest prompt, shared vocabulary."""
    table = pd.read_csv(sources.locate(_TABLES + "table_3_distribution_moments.csv"), keep_default_na=False)
    results = Results("heterogeneity", FACCT)
    for statistic in ("mean", "variance", "skewness"):
        for code, value in zip(table["Model"], table[statistic.capitalize()], strict=True):
            results.add("published", statistic, value, model=code, prompt="greatest", protocol="published")
    return results.frame()


def token_table(code: str) -> pd.DataFrame:
    """The 22 highest and 22 lowest tokens of a model's full vocabulary, greatest prompt (tables 2a and 2b).

    Parameters
    ----------
    code : {"R-Gem-2B", "R-Lla-3B"}

    Returns
    -------
    DataFrame
        token_id (int64), token (str), score (float64), end (``optimal`` or ``pessimal``), highest score first.
    """
    letters = {"R-Gem-2B": "a", "R-Lla-3B": "b"}
    if code not in letters:
        raise InputError(f"no published token table of {code!r}: there are {', '.join(letters)}")
    path = sources.locate(f"{_TABLES}table_2{letters[code]}_top_bottom_tokens_{code}.csv")
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    gap = table["Token ID"].tolist().index("...")
    ends = np.where(np.arange(len(table)) < gap, "optimal", "pessimal")
    rows = table.assign(end=ends).drop(index=gap)
    rows.columns = ["token_id", "token", "score", "end"]
    return rows.astype({"token_id": "int64", "score": "float64"}).reset_index(drop=True)


def elo_correlations() -> pd.DataFrame:
    """Rows human_spearman and human_kendall, both aware of ties, for ten models and three prompts."""
    results = Results("elo", FACCT)
    for prompt in ELO_FILES:
        table = elo_scores(prompt)
        for model in MODELS:
            pair = table["elo_score"].to_numpy(), table[model.hub_id].to_numpy()
            for statistic, function in (("human_spearman", stats.spearman), ("human_kendall", stats.kendall_tau)):
                about: dict = {"model": model.code, "prompt": prompt, "protocol": "published", "n": len(table)}
                results.add("released", statistic, function(*pair), **about)
    return results.frame()


def rank_gaps(prompt: str = "elo_greatest") -> pd.DataFrame:
    """How much higher or lower the models rank each thing than people do.

    Returns
    -------
    DataFrame
        As `rmnb.findings.people.rank_gaps` gives it: rank_gap from the ten models, rank_gap_with_human as published.
    """
    table = elo_scores(prompt)
    return people.rank_gaps(table, table[[model.hub_id for model in MODELS]])


def rank_gap_rows(prompt: str = "elo_greatest", count: int = 10) -> pd.DataFrame:
    """Rows rank_gap and rank_gap_with_human of the `count` things at either end of either version."""
    gaps = rank_gaps(prompt)
    results = Results("elo", FACCT)
    for statistic in ("rank_gap", "rank_gap_with_human"):
        ordered = gaps.sort_values(statistic, kind="stable")
        ends = pd.concat([ordered.head(count), ordered.tail(count)])
        for name, value in zip(ends["name"], ends[statistic], strict=True):
            about: dict = {"other": name, "prompt": prompt, "protocol": "published", "n": len(MODELS)}
            results.add("released", statistic, value, **about)
    return results.frame()


def median_ranks(dictionary: str) -> pd.DataFrame:
    """Median rank of each category's words, for every model and prompt; 1 is the highest reward, ties share ranks.

    Parameters
    ----------
    dictionary : {"big_two", "moral_foundations"}
        big_two: agency and communion among the nouns. moral_foundations: five foundations, each with virtue and vice
        together, as the paper has it; ranks are among all its entries except the vices of sanctity, which the
        authors' selection of columns leaves out.

    Returns
    -------
    DataFrame
        model, family, prompt, framing (positive or negative), category, median_rank (float64), n (int64, words).
    """
    if dictionary == "big_two":
        words, folder = lexicons.big_two("nouns"), "dict_big2_nouns"
    elif dictionary == "moral_foundations":
        morals = lexicons.moral_foundations()
        morals = morals.loc[~((morals["foundation"] == "sanctity") & (morals["side"] == "vice"))]
        words, folder = morals.rename(columns={"foundation": "category"}), "dict_MFD_20"
    else:
        raise InputError(f"no released scores of {dictionary!r}: choose big_two or moral_foundations")
    tables = []
    for model in MODELS:
        ranks = categories.median_ranks(word_scores(model, folder), words)
        tables.append(ranks.assign(model=model.code, family=model.family))
    table = pd.concat(tables, ignore_index=True)
    framing = table["prompt"].map(lambda prompt: "positive" if prompt.split("_")[0] in _POSITIVE else "negative")
    return table.assign(framing=framing).reindex(columns=[*categories.COLUMNS, "n"])


def noun_scores() -> dict[str, pd.DataFrame]:
    """The ten models' rewards of the 263 nouns by code: index word, one column a prompt."""
    return {model.code: word_scores(model, "dict_big2_nouns") for model in MODELS}


def word_scores(model: ReleasedModel, folder: str) -> pd.DataFrame:
    """A model's rewards of a dictionary's words: index response, one column a prompt."""
    end = f"_{model.hub_id.replace('/', '_')}.csv"
    name = next(name for name in sources.pins() if name.startswith(_SCORES + folder) and name.endswith(end))
    scores = pd.read_csv(sources.locate(name), keep_default_na=False)
    return scores.drop_duplicates("response").set_index("response")


def base_comparison(dictionary: str) -> pd.DataFrame:
    """Rows on Gemma against Llama: see `categories.add_base_comparison`. `dictionary` as in `median_ranks`."""
    results = Results("agency_communion" if dictionary == "big_two" else dictionary, ICLR)
    categories.add_base_comparison(results, "released", median_ranks(dictionary), protocol="published")
    return results.frame()


def training_medians() -> pd.DataFrame:
    """Rows final_median_rank_agency and _communion: the last checkpoint of every training run, greatest_ever_one."""
    results = Results("agency_communion", ICLR)
    for data, (file, runs) in RUNS.items():
        path = sources.locate(f"iclr2026/data/reward_model_training/rank_results_{file}.csv")
        table = pd.read_csv(path, keep_default_na=False)
        for base, run in zip(BASES, runs, strict=True):
            rows = table.loc[table["model_id"] == run]
            last = rows.loc[rows["checkpoint"] == rows["checkpoint"].max()]
            for category in ("Agency", "Communion"):
                values = last.loc[last["Category"] == category, "sum_value"].unique()  # some files repeat their rows
                if len(values) != 1:
                    raise InputError(f"{path} gives {len(values)} final medians of {category} for {run}")
                about: dict = {"model": base, "other": data, "prompt": "greatest_ever_one", "protocol": "published"}
                results.add("released", f"final_median_rank_{category.lower()}", float(values[0]), **about)
    return results.frame()


def published_tau() -> np.ndarray:
    """Kendall's tau between the ten models as read off figure 2A (each within 0.03): (10, 10) float64, symmetric."""
    table = published()
    tau = np.eye(len(CODES))
    for row in table.loc[table["statistic"] == "kendall_tau", ["model", "other", "value"]].to_numpy():
        i, j = CODES.index(row[0]), CODES.index(row[1])
        tau[i, j] = tau[j, i] = row[2]
    return tau


def similarities() -> dict[str, np.ndarray]:
    """The four theoretical matrices of the representational similarity analysis, (10, 10) each."""
    return {
        "base": stats.same([model.family for model in MODELS]),
        "developer": stats.same([model.developer for model in MODELS]),
        "parameters": stats.closeness([model.parameters for model in MODELS]),
        "rank": stats.closeness([model.rank for model in MODELS]),
    }


def geometry() -> pd.DataFrame:
    """Rows mds_stress_1; rsa_spearman, rsa_p (Mantel) and rsa_coefficient (joint regression) of four matrices."""
    tau, theory = published_tau(), similarities()
    results = Results("heterogeneity", FACCT)
    about: dict = {"prompt": "greatest", "protocol": "published", "n": len(MODELS)}
    results.add("released", "mds_stress_1", stats.embed(1 - tau).stress_1, **about)
    for name, matrix in theory.items():
        test = stats.mantel(tau, matrix)
        results.add("released", "rsa_spearman", test.correlation, other=name, **about)
        results.add("released", "rsa_p", test.p_value, other=name, **about)
    joint = stats.matrix_regression(tau, theory)
    for name, value in zip(joint.names, joint.coefficients, strict=True):
        results.add("released", "rsa_coefficient", float(value), other=name, **about)
    return results.frame()


def all_rows(finding: str) -> pd.DataFrame:
    """Everything above on one finding, ready for its results table.

    Parameters
    ----------
    finding : {"heterogeneity", "elo", "agency_communion", "moral_foundations"}

    Returns
    -------
    DataFrame
        Rows of the results table, source ``released`` (and ``published`` for the moments).
    """
    parts = {
        "heterogeneity": [published_moments, geometry],
        "elo": [elo_correlations, rank_gap_rows],
        "agency_communion": [lambda: base_comparison("big_two"), training_medians],
        "moral_foundations": [lambda: base_comparison("moral_foundations")],
    }
    if finding not in parts:
        raise InputError(f"no released data on {finding!r}: choose one of {', '.join(parts)}")
    return pd.concat([counts(finding), *(part() for part in parts[finding])], ignore_index=True)
