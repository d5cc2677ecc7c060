"""The nouns of agency and communion: a panel's rewards of them, and what its bases and their tuned copies say first.

``python -m rmnb.findings.agency_study`` computes the log-probabilities that the book ships: every noun's, under the 54
prompts, for the bases of the demo panel.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from rmnb.data import lexicons
from rmnb.data.text_lists import described_parts, part_texts
from rmnb.errors import InputError
from rmnb.files import data_dir, sha256
from rmnb.findings import align, scan_tables
from rmnb.panels import BaseSpec, Panel, find_base, load_panel, load_prompts
from rmnb.scoring import store
from rmnb.scoring.list_scores import list_path, read_list

PARTS = ("agency_communion", "big_two")
SPELLINGS = ("{}", " {}", "{C}", " {C}")  # of "love": love, ␣love, Love, ␣Love
WRAPPINGS = ("user_assistant", "chat", "bare")


@dataclass(frozen=True)
class NounLogprobs:
    """What one language model says first.

    Attributes
    ----------
    name, wrapping : str
        Of the model, and how it was asked.
    tuned : bool
        A tuned copy, no base.
    spellings : int
        How many spellings of nouns are one token.
    table : DataFrame
        Natural log-probability that the first token spells each noun, summed over its spellings: float64, index word,
        one column a prompt.
    """

    name: str
    wrapping: str
    tuned: bool
    spellings: int
    table: pd.DataFrame


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
    wanted, tables = set(lexicons.agency_communion()["word"]), {}
    for model, table in scan_tables.load_found(panel).items():
        chosen = table[table["word"].isin(wanted)]
        by_prompt = {
            prompt: align.word_scores(chosen.assign(score=chosen[prompt])).set_index("word")["score"]
            for prompt in scan_tables.prompts_of(table)
        }
        tables[model] = pd.DataFrame(by_prompt)
    if not tables:
        return {}
    shared = functools.reduce(lambda one, other: one.intersection(other), (table.index for table in tables.values()))
    keys = [key for key in next(iter(tables.values())) if all(key in table for table in tables.values())]
    return {model: table.loc[shared, keys] for model, table in tables.items()} if keys else {}


def logprobs_directory(panel: Panel) -> Path:
    """Where the log-probabilities of a panel's bases are: beside its scores."""
    return store.store_directory(panel).parent / "logprobs"


def load_logprobs(panel: Panel) -> tuple[list[NounLogprobs], list[str]]:
    """The shipped log-probabilities of a panel, and what is wrong with files that cannot be read."""
    found, damaged = [], []
    for wrapping in WRAPPINGS:
        for path in sorted(logprobs_directory(panel).glob(f"*.{wrapping}.parquet")):
            try:
                found.append(read_logprobs(path))
            except InputError as error:
                damaged.append(str(error))
    return found, damaged


def of_bases(found: Iterable[NounLogprobs]) -> dict[str, dict[str, pd.DataFrame]]:
    """How the question was put → base → its table."""
    tables: dict[str, dict[str, pd.DataFrame]] = {}
    for one in found:
        if not one.tuned:
            tables.setdefault(one.wrapping, {})[one.name] = one.table
    return tables


def of_copies(found: Sequence[NounLogprobs]) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """What a tuned copy is of, in words → its table and that of its base, asked in the same way."""
    bases = of_bases(found)
    return {
        f"{copy.name} over {base} ({copy.wrapping})": (copy.table, table)
        for copy in found
        for base, table in bases.get(copy.wrapping, {}).items()
        if copy.tuned and copy.name.startswith(base)
    }


def read_logprobs(path: Path) -> NounLogprobs:
    """One file of the project's nouns, called ``name.wrapping.parquet``.

    Raises
    ------
    InputError
        Missing or damaged, or the nouns are others now.
    """
    frame, provenance = read_list(path)
    name, wrapping, _ = path.name.split(".")
    rows = frame[frame["part"] == "agency_communion"].rename(columns={"text": "word"})
    table = rows.drop(columns=["part", "spelling"]).groupby("word", sort=False)
    total = table.agg(lambda values: float(np.logaddexp.reduce(values.to_numpy(float))))
    tuned = name != str(provenance["model"]).rsplit("/")[-1]
    return NounLogprobs(name, wrapping, tuned, len(frame), total)


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
            "command": f"python -m rmnb.findings.agency_study --base {one} --wrapping {wrapping}",
            "versions": store.versions(),
        }
        path = logprobs_directory(members) / f"{name or Path(one).name}.{wrapping}.parquet"
        store.write_table(path, frame, told)
        typer.echo(f"{frame['item'].size:,} spellings under {len(asked)} prompts in {path}")


if __name__ == "__main__":
    typer.run(main)
