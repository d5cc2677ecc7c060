"""Agency and communion by base: in a panel's rewards, and in what the bases themselves would say first.

``python -m rmnb.findings.agency_communion`` computes the log-probabilities that the book ships: every noun's, under
the 54 prompts, for the bases of the demo panel.
"""

import functools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from rmnb import stats
from rmnb.data import lexicons
from rmnb.data.text_lists import described_parts, part_texts
from rmnb.errors import InputError
from rmnb.files import data_dir, sha256
from rmnb.findings import align, categories
from rmnb.findings.log_ratios import implicit_reward, mwlr
from rmnb.findings.results import Results
from rmnb.panels import BaseSpec, Panel, find_base, load_panel, load_prompts
from rmnb.scoring import store
from rmnb.scoring.list_scores import list_path, read_list

PARTS = ("agency_communion", "big_two")
_RANK_SPREAD = 100 / math.sqrt(12)
SPELLINGS = ("{}", " {}", "{C}", " {C}")  # of "love": love, ␣love, Love, ␣Love


def logprobs_directory(panel: Panel) -> Path:
    """Where the log-probabilities of a panel's bases are: beside its scores."""
    return store.store_directory(panel).parent / "logprobs"


def score_nouns(lm, prompts, parts=PARTS) -> pd.DataFrame:
    """Log-probability of every noun that is one token, in each of four spellings, as the first token of the answer.

    Returns
    -------
    DataFrame
        part (str), item (int32, the noun's place in its part), spelling (int32, place in `SPELLINGS`), and a float32
        column a prompt key: natural log. No text, so that it can be shipped where the texts may not.
    """
    from rmnb.scoring.logprobs import next_token_logprobs, scan_logprobs

    first = scan_logprobs(lm, prompts[0])
    once = first[~first["token"].duplicated(keep=False)].set_index("token")["token_id"]
    rows = [
        (part, item, spelling, token)
        for part in parts
        for item, word in enumerate(part_texts(part))
        for spelling, pattern in enumerate(SPELLINGS)
        if (token := pattern.format(word, C=word.capitalize())) in once.index
    ]
    frame = pd.DataFrame(rows, columns=["part", "item", "spelling", "token"])
    ids = once.loc[frame.pop("token")].to_numpy()
    columns = {prompt.key: next_token_logprobs(lm, prompt.text)[ids] for prompt in prompts}
    return pd.concat([frame.astype({"item": "int32", "spelling": "int32"}), pd.DataFrame(columns)], axis=1)


def read_logprobs(path: Path) -> tuple[pd.DataFrame, dict]:
    """A shipped table with its nouns (columns part, word, spelling, then a prompt each) and its provenance.

    Parts whose texts cannot be reached here are left out.

    Raises
    ------
    InputError
        Missing or damaged, or the nouns are others now.
    """
    frame, provenance = read_list(path)
    return frame.rename(columns={"text": "word"}), provenance


def noun_logprobs(table: pd.DataFrame, part: str = "agency_communion", capitals: bool = True) -> pd.DataFrame:
    """Log-probability that the first token spells each noun: summed over its spellings (without capitals if so asked).

    Returns
    -------
    DataFrame
        float64, index word, one column a prompt.
    """
    rows = table[(table["part"] == part) & (capitals | (table["spelling"] < 2))]
    return rows.drop(columns=["part", "spelling"]).groupby("word", sort=False).agg(_log_sum)


def _log_sum(values: pd.Series) -> float:
    return float(np.logaddexp.reduce(values.to_numpy(float)))


def interaction_f(ranks: pd.DataFrame) -> tuple[float, int]:
    """F of category x model in the analysis of variance of median ranks, and its second degrees of freedom.

    Parameters
    ----------
    ranks : DataFrame
        model (two), framing, category (two), median_rank: as many prompts in every cell.

    References
    ----------
    ICLR26 section 4: 216 medians, F(1, 208). Its observations are prompts: it speaks of these two models.
    """
    cells = ranks.groupby(["model", "category", "framing"], sort=False)["median_rank"].agg(["mean", "var", "size"])
    models, kinds, framings = (cells.index.unique(level) for level in range(3))
    if len(models) != 2 or len(kinds) != 2 or cells["size"].nunique() > 1 or len(cells) != 4 * len(framings):
        raise InputError("the test compares two models and two categories, with as many prompts in every cell")
    n = int(cells["size"].iloc[0])
    signs = np.array([(1 if m == models[0] else -1) * (1 if k == kinds[0] else -1) for m, k, _ in cells.index])
    contrast = float(signs @ cells["mean"]) / len(cells)
    return contrast**2 * n * len(cells) / float(cells["var"].mean()), len(cells) * (n - 1)


def nouns() -> pd.DataFrame:
    """The project's nouns: word, category."""
    return lexicons.agency_communion()


def panel_tables(panel: Panel, prompt_set: str = "iclr2026") -> dict[str, pd.DataFrame]:
    """Rewards of the project's nouns by every model that scored the list `words`: index word, one column a prompt."""
    keys = [prompt.key for prompt in load_prompts(prompt_set)]
    tables = {}
    for model in panel.model_names:
        path = list_path(panel, model, "words")
        if path.exists():
            frame, _ = read_list(path)
            rows = frame[frame["part"] == "agency_communion"].set_index("text")
            tables[model] = rows[[key for key in keys if key in rows]]
    return tables


def scanned_tables(panel: Panel) -> dict[str, pd.DataFrame]:
    """The same from scans, for nouns that are words in all the panel's vocabularies and for the prompts scanned."""
    wanted = set(nouns()["word"])
    columns: dict[str, dict[str, pd.Series]] = {model: {} for model in panel.model_names}
    for model in panel.model_names:
        for prompt in panel.scanned_prompts:
            try:
                scan = store.read_scores(panel, model, prompt.key)
            except InputError:
                continue
            chosen = scan[scan["token"].str.strip().str.casefold().isin(wanted)]
            columns[model][prompt.key] = align.word_scores(chosen).set_index("word")["score"]
    tables = {model: pd.DataFrame(found) for model, found in columns.items() if found}
    if not tables:
        return {}
    shared = functools.reduce(lambda one, other: one.intersection(other), (table.index for table in tables.values()))
    keys = [key for key in next(iter(tables.values())) if all(key in table for table in tables.values())]
    return {model: table.loc[shared, keys] for model, table in tables.items()} if len(keys) else {}


def ranks_by_prompt(
    tables: Mapping[str, pd.DataFrame], family: Mapping[str, str], framing: Mapping[str, str], words: pd.DataFrame
) -> pd.DataFrame:
    """Median rank of each category under each prompt, ready for `rmnb.findings.categories.add_base_comparison`.

    `tables` model → rewards or log-probabilities of words (index word, one column a prompt); `framing` by prompt.
    """
    parts = [
        categories.median_ranks(table, words).assign(model=model, family=family[model])
        for model, table in tables.items()
    ]
    ranks = pd.concat(parts, ignore_index=True)
    return ranks.assign(framing=ranks["prompt"].map(framing))


def add_ranks(results: Results, ranks: pd.DataFrame, seed: int = 0) -> str:
    """Add the comparison of a panel's bases (`rmnb.findings.categories.add_base_comparison`) to `results`, if it can
    be made.

    Returns
    -------
    str
        Why it cannot be made (then there are the models' median ranks alone), or "".
    """
    families = ranks.groupby("family")["model"].nunique()
    if len(families) == 2 and families.min() >= 2 and ranks["framing"].nunique() == 2:
        categories.add_base_comparison(results, "panel", ranks, protocol="exact", seed=seed)
        return ""
    for row in categories.by_model(ranks).to_dict("records"):
        about = {"model": row["model"], "prompt": row["framing"], "protocol": "exact"}
        results.add("panel", f"median_rank_{row['category']}", row["median_rank"], **about)
    counted = ", ".join(f"{count} of {base}" for base, count in families.items())
    return f"two bases with two models each, and both framings, are needed; here: {counted}"


def noun_gap(table: pd.DataFrame, words: pd.DataFrame, keys: list[str]) -> stats.Estimate:
    """Mean rank of agency nouns less that of communion nouns, in percent of the nouns, with an interval over nouns.

    Negative: agency stands higher. A noun's rank is its mean over the prompts `keys`.
    """
    known = words[words["word"].isin(table.index)]
    ranks = np.column_stack([stats.mid_ranks(-table[key].loc[known["word"]].to_numpy(float)) for key in keys])
    mean = 100 * ranks.mean(axis=1) / len(known)
    return stats.difference_between_groups(mean, (known["category"] == "agency").to_numpy())


def contrast(
    tables: Mapping[str, pd.DataFrame], family: Mapping[str, str], words: pd.DataFrame, keys: list[str], summary: str
) -> dict[str, float]:
    """For each model, agency less communion by one summary: "median rank", "mean rank" (percent) or "score".

    Negative, by all three: agency stands higher. Scores are given the standard deviation that ranks have, 28.9 percent.
    """
    found = {}
    for model, table in tables.items():
        known = words[words["word"].isin(table.index)]
        values = table.loc[known["word"], keys].to_numpy(float)
        if summary == "score":
            values = _RANK_SPREAD * (values.mean(axis=0) - values) / values.std(axis=0)  # as for ranks, small is good
        else:
            values = np.column_stack([100 * stats.mid_ranks(-column) / len(column) for column in values.T])
        middle = np.median if summary == "median rank" else np.mean
        agency = (known["category"] == "agency").to_numpy()
        found[model] = float((middle(values[agency], axis=0) - middle(values[~agency], axis=0)).mean())
    return found


def add_paired(results: Results, source: str, values: Mapping[str, float], panel: Panel, **about) -> bool:
    """Add base_difference_paired, over recipes that both bases were trained with, and its p-value; False if too few.

    `values` one number a model, for instance `contrast`. The order of bases is that of the panel.
    """
    by_base: dict[str, dict[str, float]] = {}
    for model in panel.models:
        if model.name in values and model.recipe and model.family:
            by_base.setdefault(model.family, {})[model.recipe] = values[model.name]
    if len(by_base) != 2:
        return False
    one, other = by_base.values()
    differences = [one[recipe] - other[recipe] for recipe in one if recipe in other]
    if len(differences) < 2:
        return False
    results.add(source, "base_difference_paired", stats.mean_over_models(differences), **about)
    test = stats.sign_flip_test(differences)
    results.add(source, "base_difference_paired_p", test.p_value, n=len(differences), **about)
    return True


def word_log_ratio(one: pd.DataFrame, other: pd.DataFrame, keys: list[str], weighted: bool = True) -> pd.Series:
    """For each noun that both tables have, the mean over prompts of the log ratio: one model over the other.

    `weighted`: the mixture-weighted log ratio (`rmnb.findings.log_ratios.mwlr`), else log π₁ − log π₂ — the implicit
    reward with β = 1 where the first model is the second one tuned (`rmnb.findings.log_ratios.implicit_reward`).
    """
    shared = [word for word in one.index if word in other.index]
    if not shared:
        raise InputError("the two tables share no word")
    function = mwlr if weighted else implicit_reward
    values = function(one.loc[shared, keys].to_numpy(), other.loc[shared, keys].to_numpy())
    return pd.Series(values.mean(axis=1), index=pd.Index(shared, name="word"))


def adapter_described(spec: BaseSpec) -> dict:
    """For the provenance of a tuned copy: which adapter, and the recipe that it was tuned by."""
    if spec.adapter is None:
        return {}
    weights = sha256(data_dir() / spec.adapter / "adapter_model.safetensors")
    return {"adapter": spec.adapter, "adapter_sha256": weights, "recipe": spec.recipe}


def main(
    base: Annotated[list[str] | None, typer.Option(help="Names of bases; default: those of the demo panel.")] = None,
    wrapping: Annotated[str, typer.Option(help="chat, bare or user_assistant, for all of them.")] = "user_assistant",
    panel: Annotated[str, typer.Option(help="Whose bases they are.")] = "demo",
    prompts: Annotated[str, typer.Option(help="A set of prompts.")] = "iclr2026",
    name: Annotated[str, typer.Option(help="Name of the file, if not the base's: for a tuned copy.")] = "",
) -> None:
    """Compute the log-probabilities of the nouns for bases and write them beside the panel's scores."""
    from rmnb.scoring.logprobs import load_language_model

    members, asked = load_panel(panel), load_prompts(prompts)
    chosen = base or sorted({model.base for model in members.models if model.base})
    for one in chosen:
        spec = find_base(members, one)
        lm = load_language_model(spec, wrapping)
        frame = score_nouns(lm, asked)
        told = {
            "model": lm.spec.source,
            "revision": lm.spec.revision,
            "wrapping": wrapping,
            "dtype": lm.spec.dtype,
            "prompts": {prompt.key: prompt.text for prompt in asked},
            "parts": described_parts({part: part_texts(part) for part in PARTS}),
            "spellings": list(SPELLINGS),
            "unit": "natural log",
            **adapter_described(lm.spec),
            "command": f"python -m rmnb.findings.agency_communion --base {one} --wrapping {wrapping}",
            "versions": store.versions(),
        }
        path = logprobs_directory(members) / f"{name or Path(one).name}.{wrapping}.parquet"
        store.write_table(path, frame, told)
        typer.echo(f"{frame['item'].size:,} spellings under {len(asked)} prompts in {path}")


if __name__ == "__main__":
    typer.run(main)
