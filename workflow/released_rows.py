"""Compute what ``data/released`` ships of the authors' files, and write it.

``python workflow/released_rows.py`` writes ``<chapter>.csv``, which `rmnb.findings.released.load_released` reads,
and ``provenance.json``, which names the files that each was computed from by git blob id. What is shipped are numbers:
a thing that people voted on goes by its place in the authors' list, unless a paper names it.
"""

import functools
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons, preferences, released_files, sources
from rmnb.data.released_files import CODES, HUB_IDS, MODELS
from rmnb.files import atomic_path, data_dir, write_json
from rmnb.findings import agency, asymmetry, framing, heterogeneity, identity, people, things
from rmnb.findings.released import load_published, tidy
from rmnb.findings.rows import ENDS, measure_each, numbers
from rmnb.findings.tables import afinn, standardise
from rmnb.panels import load_panel, load_prompts

PROMPTS = ("greatest", "best", "worst")  # of the full vocabularies
_UNIFIED = ("google--gemma-2b-it-Unified", "meta-llama--Llama-3.2-3B-Unified", "Qwen2.5-3B-Instruct")
RUNS = {  # training data -> (file, {base: the authors' name for the run}); their "13k" is the 27k file again
    "unified-27k": ("uf_27", ("gemma2b_unified27k_lora", "llama3b_unified27k_lora", "qwen3b_unified27k_lora")),
    "unified-53k": ("uf_54", _UNIFIED),
    "skywork-77k": ("sky_80k", ("google--gemma-2b-it", "meta-llama--Llama-3.2-3B", "qwen--qwen2.5-3B-instruct")),
    "unified-106k": ("uf_100", _UNIFIED),
}
_FOLDERS = {"big_two": "dict_big2_nouns", "moral_foundations": "dict_MFD_20"}
BASES = ("gemma-2-2b-it", "Llama-3.2-3B-Instruct", "Qwen2.5-3B-Instruct")
_SHARED_TOKENS = "iclr2026/data/corpora/token_intersection.csv"
_COURSES = "iclr2026/data/reward_model_training/rank_results_{}.csv"
_RANKS = dict(zip(BASES, (1452, 1452, 1450), strict=True))  # the file uf_100 has a row a rank at each checkpoint
_FAMILY = load_panel("facct2025").base_families


def _wordings() -> dict[str, str]:
    return {prompt.key: prompt.framing for prompt in load_prompts("iclr2026")}


def dictionary_scores(name: str) -> dict[str, pd.DataFrame]:
    """The ten models' rewards of a dictionary's words by code: index response, one column a prompt of the 54.

    The table of moral_foundations has the vices of sanctity too.
    """
    tables = {}
    start = f"iclr2026/data/reward_model_scores/{_FOLDERS[name]}"
    for code, hub_id in zip(CODES, HUB_IDS, strict=True):
        end = f"_{hub_id.replace('/', '_')}.csv"
        path = sources.locate(next(pin for pin in sources.pins() if pin.startswith(start) and pin.endswith(end)))
        tables[code] = pd.read_csv(path, keep_default_na=False).drop_duplicates("response").set_index("response")
    return tables


def mantel_tests(tau: pd.DataFrame, similarities: dict[str, pd.DataFrame], n_permutations: int) -> pd.DataFrame:
    """Mantel's test of agreement with each similarity: models are shuffled, because pairs are not independent.

    Parameters
    ----------
    tau
        Models × models.
    similarities
        Name to a table of the same models in the same order, at least four.
    n_permutations
        Random orders of the models.

    Returns
    -------
    DataFrame
        Index name; rho (Spearman's correlation over pairs) and p (one-sided: alike models agree more).

    References
    ----------
    Mantel (1967), The detection of disease clustering and a generalized regression approach.
    """
    rows = {}
    for name, similarity in similarities.items():
        test = stats.mantel(tau.to_numpy(), similarity.to_numpy(), n_permutations)
        rows[name] = {"rho": test.value, "p": test.p_value}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["rho", "p"])


def of_heterogeneity() -> pd.DataFrame:
    """The size of the shared vocabulary, and Mantel's tests of the matrix that is read off figure 2A."""
    shared = pd.read_csv(sources.locate(_SHARED_TOKENS), keep_default_na=False)
    size = pd.DataFrame({"quantity": ["vocabulary_size"], "value": [len(shared)]})
    tau, similarities = published_agreement()
    tests = mantel_tests(tau, similarities, n_permutations=10_000)
    long = tests.rename_axis("other").reset_index().melt("other", var_name="quantity")
    return tidy(size, long.assign(question="greatest"))


def published_agreement() -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
    """Kendall's tau of the ten models as read off figure 2A (each within 0.03), models × models, and the similarities
    of the models in base, developer, parameters and rank."""
    triangle = load_published().query("quantity == 'kendall_tau'").pivot(index="model", columns="other", values="value")
    triangle = triangle.reindex(index=CODES, columns=CODES)
    tau = triangle.fillna(triangle.T).mask(np.eye(len(CODES), dtype=bool), 1.0)
    return tau, heterogeneity.similarities(heterogeneity.properties(load_panel("facct2025")))


def _rated_morals() -> dict[str, pd.DataFrame]:
    """Words of the moral foundations dictionary that AFINN rates, in standard deviations over these words."""
    tables = {}
    for code, scores in dictionary_scores("moral_foundations").items():
        rated = scores[scores.index.isin(afinn().index)]
        questions = {key: rated[f"{key}_ever_one"] for key in PROMPTS}
        words = rated.assign(**questions, word=rated.index, kind="word_start").reset_index(drop=True)
        tables[code] = standardise(words, PROMPTS)
    return tables


def of_asymmetry() -> pd.DataFrame:
    """Slopes over valence."""
    slopes = measure_each(_rated_morals(), asymmetry.slopes, PROMPTS, ratings=afinn())
    return tidy(slopes.assign(quantity="slope " + slopes["quantity"]))


def of_framing() -> pd.DataFrame:
    """Contrasts of slopes, and what the wording of a question changes among the nouns."""
    contrasts = measure_each(_rated_morals(), framing.contrasts, [("best", "worst")], ratings=afinn())
    scores = dictionary_scores("big_two")
    reworded = measure_each(scores, framing.rewording, framing.CHANGES, framings=_wordings())
    reworded = reworded.assign(quantity="rewording " + reworded["quantity"]).rename(columns={"question": "other"})
    return tidy(contrasts, reworded)


def of_identity() -> pd.DataFrame:
    """Gaps between groups of people and things that people rate alike."""
    gaps = measure_each(people.authors_things(), identity.things_gap, people.QUESTIONS)
    return tidy(gaps.assign(quantity="identity_gap_things"))


def of_elo() -> pd.DataFrame:
    """The votes, the agreement of rewards with them, and the rank gaps of the things that a paper names."""
    authors = people.authors_things()
    human = preferences.elo_items()["elo_score"]
    votes = pd.DataFrame(
        {
            "quantity": ["elo_items", "elo_lowest", "elo_highest"],
            "value": [len(human), human.min(), human.max()],
        }
    )
    agreement = measure_each(authors, people.agreement, [people.QUESTION]).assign(quantity="human_spearman")
    gaps = people.rank_gaps(authors, people.QUESTION)[["name", "rank_gap_with_human"]]
    gaps = gaps[gaps["name"].isin(load_published()["other"])]
    gaps = gaps.rename(columns={"name": "other", "rank_gap_with_human": "value"})
    gaps = gaps.assign(quantity="rank_gap_with_human", question=people.QUESTION, n=len(MODELS))
    return tidy(votes, agreement, gaps)


def _ranked(name: str) -> dict[str, pd.DataFrame]:
    """Words of a dictionary with their category and a column a prompt, by model."""
    words = lexicons.big_two("nouns") if name == "big_two" else released_files.moral_foundations()
    scores = dictionary_scores(name)
    return {code: words.merge(table, left_on="word", right_index=True) for code, table in scores.items()}


def of_bases(name: str) -> pd.DataFrame:
    """Gemma against Llama in a dictionary, big_two or moral_foundations: `rmnb.findings.agency.compare_bases`."""
    framing_of = _wordings()
    medians = {code: agency.median_ranks(table, list(framing_of)) for code, table in _ranked(name).items()}
    return tidy(agency.compare_bases(pd.concat(medians, names=["model"]), _FAMILY, framing_of))


def of_agency() -> pd.DataFrame:
    """Sizes of the dictionaries, gaps of models and of bases, and where the authors' training runs end."""
    sizes = lexicons.big_two("nouns")["category"].value_counts().add_prefix("big_two_nouns_").sort_index()
    for part in ("nouns", "expanded"):
        sizes[f"big_two_{part}"] = len(lexicons.big_two(part))
    sizes["moral_foundations"] = len(lexicons.moral_foundations())
    counts = sizes.rename("value").rename_axis("other").reset_index().assign(quantity="dictionary_size")
    wordings = _wordings()
    n_prompts = pd.DataFrame({"quantity": ["prompt_count"], "value": [len(wordings)]})
    prompts_of = {}
    for asked in ("positive", "negative"):
        prompts_of[asked] = [key for key, framing_of in wordings.items() if framing_of == asked]
    gaps = measure_each(_ranked("big_two"), agency.gap, prompts_of, prompts=prompts_of)
    rows = []
    for (question, base), base_gaps in gaps.groupby(["question", gaps["model"].map(_FAMILY)], sort=False):
        rows.append((question, base, *numbers(stats.mean_over_models(base_gaps["value"]))))
    means = pd.DataFrame(rows, columns=["question", "model", *ENDS, "n"]).assign(quantity="base_agency_gap")
    last_steps = training_courses().groupby(["model", "other"], sort=False).tail(1)
    ends = last_steps.melt(["model", "other"], ["agency", "communion"], "quantity")
    ends = ends.assign(quantity="final_median_rank_" + ends["quantity"], question="greatest_ever_one")
    return tidy(counts, n_prompts, of_bases("big_two"), gaps, means, ends)


def training_courses() -> pd.DataFrame:
    """The authors' training runs, a row a checkpoint, steps in order.

    Their file for 13,000 pairs has the blob id of the one for 27,000, so it is the same file: it is not read.

    Returns
    -------
    DataFrame
        model (the base), other (the data), step, agency and communion (median ranks), gap (agency less communion in
        percent of all ranks). There are not as many ranks as the paper has tokens, 1,365, but 1,450 or 1,452: the
        authors' list repeats words, and their script makes some tokens alike.
    """
    parts = []
    for data, (file, names) in RUNS.items():
        table = pd.read_csv(sources.locate(_COURSES.format(file)), keep_default_na=False)
        for base, run in zip(BASES, names, strict=True):
            course = table[table["model_id"] == run].drop_duplicates(["checkpoint", "Category"])  # rows are repeated
            medians = course.pivot(index="checkpoint", columns="Category", values="sum_value").rename_axis("step")
            medians = medians.rename(columns=str.lower)[["agency", "communion"]].reset_index()
            gap = 100 * (medians["agency"] - medians["communion"]) / _RANKS[base]
            parts.append(medians.assign(gap=gap, model=base, other=data))
    return pd.concat(parts, ignore_index=True)


def of_training() -> pd.DataFrame:
    """The gap at each checkpoint, and Gemma minus Llama at the last one that both have of each data set."""
    courses = training_courses().rename(columns={"gap": "value"})
    data_and_step = courses["other"] + ", step " + courses["step"].astype(str)
    each_step = courses.assign(quantity="agency_less_communion", other=data_and_step)
    gemma, llama = BASES[0], BASES[1]
    by_base = courses.pivot(index=["other", "step"], columns="model", values="value")
    differences = (by_base[gemma] - by_base[llama]).dropna()
    ends = differences.groupby("other", sort=False).last().rename("value").reset_index()
    ends = ends.assign(quantity="base_gap_end", model=f"{gemma} less {llama}")
    return tidy(each_step, ends).assign(question="greatest_ever_one")


def of_files() -> pd.DataFrame:
    """What to know of the authors' files before relying on them: counts, each with n, of how many."""
    morals = lexicons.moral_foundations()
    kept = released_files.moral_foundations()
    joined = lexicons.afinn().merge(lexicons.bnc_lemmas(), on="word")
    shared = sources.locate(_SHARED_TOKENS)
    tokens = pd.read_csv(shared, keep_default_na=False)["token_decoded"]
    gaps = pd.read_csv(shared)["token_decoded"].isna()
    rows = [
        (
            "entries of the moral foundations dictionary left out (vices of sanctity)",
            len(morals) - len(kept),
            len(morals),
        ),
        (
            "rows that repeat a word in the join of valence and frequency",
            joined["word"].duplicated().sum(),
            len(joined),
        ),
        ("shared tokens that a default reading takes for gaps", gaps.sum(), len(tokens)),
        ("of these, not empty", (gaps & (tokens != "")).sum(), gaps.sum()),
    ]
    counts = pd.DataFrame(rows, columns=["other", "value", "n"])
    return tidy(counts.assign(quantity="released_count"))


_ELO = ("facct2025/data/elo/",)
_RUNS = tuple(_COURSES.format(file) for file, _ in RUNS.values())
_NOUNS = "iclr2026/data/reward_model_scores/dict_big2_nouns/"
_MORALS = "iclr2026/data/reward_model_scores/dict_MFD_20/"
_BIG_TWO = "iclr2026/data/corpora/dict_big2_"
_FOUNDATIONS = "iclr2026/data/corpora/moral-foundations"
#: What computes each chapter's numbers, and how the names of the files begin that it needs.
COMPUTED: dict[str, tuple[Callable[[], pd.DataFrame], tuple[str, ...]]] = {
    "heterogeneity": (of_heterogeneity, (_SHARED_TOKENS,)),
    "asymmetry": (of_asymmetry, (_MORALS,)),
    "framing": (of_framing, (_NOUNS, _MORALS)),
    "identity": (of_identity, _ELO),
    "elo": (of_elo, _ELO),
    "agency_communion": (of_agency, (_BIG_TWO, _FOUNDATIONS, _NOUNS, *_RUNS)),
    "moral_foundations": (functools.partial(of_bases, "moral_foundations"), (_FOUNDATIONS, _MORALS)),
    "training": (of_training, _RUNS),
    "released": (of_files, (_FOUNDATIONS, lexicons.BNC, _SHARED_TOKENS)),
}


def without_names(items: pd.DataFrame) -> pd.DataFrame:
    """What is shipped of the things: their place, votes and facts. `rmnb.data.released_files.human_elo` reads it.

    Returns
    -------
    DataFrame
        item (the thing's place), name (empty unless a paper names it), word (a familiar word's place by frequency, else
        -1), elo_score, elo_matches, and `rmnb.findings.things.facts` as integers.
    """
    facts = things.facts(items)
    frequency_rank = {word: rank for rank, word in enumerate(lexicons.frequent_words(10_000))}
    familiar = items["name"].str.casefold().where(facts["familiar"])
    places = pd.DataFrame(
        {
            "item": np.arange(len(items)),
            "name": items["name"].where(items["name"].isin(load_published()["other"]), ""),
            "word": familiar.map(frequency_rank).fillna(-1).astype(int),
        }
    )
    valence = facts["valence"].astype("Int64")
    flags = facts.drop(columns="valence").astype(int)
    return pd.concat([places, items[["elo_score", "elo_matches"]], valence, flags], axis=1)


def numbered_bnc() -> pd.DataFrame:
    """What is shipped of `rmnb.data.lexicons.bnc_lemmas`: word is its place in `rmnb.data.lexicons.frequent_words`."""
    table = lexicons.bnc_lemmas()
    table = table[table["word"].str.fullmatch("[a-z]+")]
    places = {word: place for place, word in enumerate(lexicons.frequent_words(lexicons.BNC_WORDS))}
    return table.assign(word=table["word"].map(places)).dropna().astype({"word": int})


def write(directory: Path) -> None:
    """Compute all that is shipped and write it with its provenance; UnreachableError where a file cannot be had."""
    scores = [released_files.thing_scores(question).add_prefix(f"{question} ") for question in people.QUESTIONS]
    computed = {f"{chapter}.csv": (compute(), starts) for chapter, (compute, starts) in COMPUTED.items()}
    computed |= {
        "human_elo.csv": (without_names(preferences.elo_items()), _ELO),
        "bnc.csv": (numbered_bnc(), (lexicons.BNC,)),
        "thing_scores.parquet": (pd.concat(scores, axis=1).astype("float32"), _ELO),
    }
    blobs = {file: pin.blob_id for file, pin in sources.pins().items()}
    files = {}
    for name, (_, starts) in computed.items():
        files[name] = {file: blob for file, blob in blobs.items() if file.startswith(starts)}
    packages = ("rmnb", "numpy", "pandas", "scipy", "statsmodels", "wordfreq")
    record = {
        "command": "python workflow/released_rows.py",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "versions": {name: version(name) for name in packages},
        "tables": files,
    }
    for name, (table, _) in computed.items():
        with atomic_path(directory / name) as part:
            if name.endswith(".csv"):
                table.to_csv(part, index=False)
            else:
                table.to_parquet(part, compression="zstd", index=False)
    write_json(directory / "provenance.json", record)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else data_dir() / "released")
