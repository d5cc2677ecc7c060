"""Scores of lists of texts: computed prompt by prompt, kept beside a panel's scans, read back with their texts."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from rmnb.data.text_lists import TextList, can_be_read, described_parts, named_parts, part_texts, text_list
from rmnb.errors import InputError
from rmnb.panels import Panel, PromptSpec
from rmnb.plans import kept
from rmnb.scoring.store import (
    Provenance,
    describe_model,
    note_model,
    read_table,
    store_directory,
    versions,
    write_table,
)

Scorer = Callable[[list[str]], np.ndarray]


def list_path(panel: Panel, model: str, name: str) -> Path:
    """The file of one model's scores of a list in the panel's store."""
    return store_directory(panel) / model / "lists" / f"{name}.parquet"


def panel_lists(panel: Panel) -> list[TextList]:
    """The lists that chapters read, as far as the panel has their prompts and their texts can be had here."""
    prompts = {prompt.key for prompt in panel.prompts}.union(panel.prompt_sets)
    lists = [text_list("words"), text_list("elo")]
    return [texts for texts in lists if prompts.issuperset(texts.prompts) and all(map(can_be_read, texts.parts))]


def book_answers(panel: Panel) -> dict[str, int]:
    """How many answers the workflow scores with each model of a panel beside its scans, by what they are for."""
    counts = {"exchanged pairs": 12 * len(part_texts("identity")), "in searches": 6 * 8 * 256 + 2 * 256}
    for texts in panel_lists(panel):
        prompts = panel.named_prompts(texts.prompts)
        counts[texts.name] = len(prompts) * sum(len(part_texts(part)) for part in texts.parts)
    return counts


def score_list(
    rm, panel: Panel, name: str, progress: bool = False, prompts: Sequence[PromptSpec] | None = None
) -> Path:
    """Score a list of texts with each of its prompts (protocol ``exact``) and write the panel's file.

    Cut off, the same call goes on with the prompt it was at; a list that is there whole stays. The file has a row a
    text (part, item: the text's place in its part) and a float32 column a prompt; it holds no text.

    Parameters
    ----------
    rm : RewardModel
        A model of the panel.
    panel
        Whose prompts and store.
    name
        A list of `rmnb.data.text_lists.LISTS`.
    progress
        Show a progress bar.
    prompts
        These in place of the list's own.

    Raises
    ------
    UnreachableError
        The texts of a part cannot be had here.
    InputError
        Unknown list or prompt, a reward that is not finite, or a list there of another plan.
    """
    texts = text_list(name)
    prompts = panel.named_prompts(texts.prompts) if prompts is None else prompts
    histories = {prompt.key: prompt.earlier for prompt in prompts if prompt.earlier}
    asked = {"prompts": {prompt.key: prompt.text for prompt in prompts}, "histories": histories}
    columns = {prompt.key: partial(rm.score, prompt.conversation) for prompt in prompts}
    path = list_path(panel, rm.name, name)
    return score_columns(path, texts, columns, describe_model(rm) | asked, note_model(rm), progress)


def score_columns(
    path: Path,
    texts: TextList,
    columns: Mapping[str, Scorer],
    plan: Provenance,
    notes: Provenance,
    progress: bool = False,
) -> Path:
    """Score a list column by column, each kept as soon as it is there, and write the file that `read_list` reads.

    Parameters
    ----------
    path
        Where to.
    texts
        The list; a text that is in two parts is scored once.
    columns
        For each column's name what scores texts: float32 [texts].
    plan, notes
        What the caller knows of the scores, see `rmnb.plans`.
    progress
        Show a progress bar.
    """
    parts = {part: part_texts(part) for part in texts.parts}
    plan = {**plan, "list": texts.name, "parts": described_parts(parts), "protocol": "exact"}
    notes = {**notes, "versions": versions()}
    rows = [(part, item, text) for part, members in parts.items() for item, text in enumerate(members)]
    frame = pd.DataFrame(rows, columns=["part", "item", "text"]).astype({"item": "int32"})
    places, distinct = pd.factorize(frame.pop("text"))
    with kept(path, plan, read_table) as work:
        if work.finished is None:
            work.begin(notes)
            for index, (name, scorer) in enumerate(tqdm(columns.items(), disable=not progress)):
                frame[name] = work.rewards(index, scorer, distinct.tolist())[places]
            write_table(path, frame, work.provenance)
    return path


def read_list(path: Path) -> tuple[pd.DataFrame, Provenance]:
    """A file of list scores, with the texts: columns part, text, then a float32 column a prompt (or a training step).

    Texts that cannot be reached here are called as `rmnb.data.text_lists.named_parts` says.

    Raises
    ------
    InputError
        The file is missing or damaged, or the texts are others now than when they were scored.
    """
    frame, provenance = read_table(path)
    try:
        texts = named_parts(provenance["parts"])
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    frame.insert(1, "text", [texts[part][item] for part, item in zip(frame["part"], frame["item"], strict=True)])
    return frame.drop(columns="item"), provenance
