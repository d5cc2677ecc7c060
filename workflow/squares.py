"""All pairs of frequent words as answers, by one model: `python workflow/squares.py MODEL --panel PANEL --prompt KEY`.

Chapter 8 reads ``pairs/MODEL/PROMPT.parquet``, the reward of each pair; ``PROMPT.exact.parquet``, of the highest, the
lowest and some others in single precision; and ``PROMPT.searches.parquet``, how far each method of search comes when it
may score few of these pairs. Cut off, the same command goes on.
"""

import functools
import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import typer
from tqdm import tqdm

from rmnb.cli.main import main
from rmnb.cli.options import Loading, Model, flat
from rmnb.data.lexicons import frequent_words
from rmnb.errors import InputError
from rmnb.files import exclusive
from rmnb.findings import sequences
from rmnb.panels import Panel, PromptSpec, load_panel
from rmnb.plans import kept
from rmnb.scoring.engine import score_continuations
from rmnb.scoring.reward_model import RewardModel
from rmnb.scoring.store import (
    describe_model,
    note_model,
    panel_directory,
    read_scores,
    read_table,
    versions,
    write_table,
)
from rmnb.searching.config import SearchConfig
from rmnb.searching.rewards import RewardObjective
from rmnb.searching.run import search

WORDS = 500
AGAIN = 200  # highest, lowest and random pairs that are scored again
FREQUENT = 50_000  # words among which those are looked for that are one token everywhere
# Few of the pairs: else every method finds the best. All are searched, also those that a template would trim.
EFFORT = {"budget": 1000, "steps": 1000, "width": 32, "sample": 256, "keep": 1, "filter_ids": False}
METHODS = ("surrogate", "random")
SEEDS = (0, 1, 2)


def shared_words(panel: Panel, model: str, prompt: PromptSpec, count: int) -> pd.DataFrame:
    """The most frequent words that are one token behind a space in each vocabulary of the panel.

    The first ones first, each once: in lower case, or capitalised where only that is shared. Columns token and, of the
    model, token_id, as scans of the prompt have them.

    Raises
    ------
    InputError
        There are fewer.
    """
    starts = {}
    for name in panel.model_names:
        scan = read_scores(panel, name, prompt.key)
        starts[name] = scan[scan["kind"] == "word_start"].drop_duplicates("token").set_index("token")["token_id"]
    common = set.intersection(*(set(ids.index) for ids in starts.values())) - {" i"}
    tokens = []
    for word in frequent_words(FREQUENT):
        spelled = [f" {form}" for form in (word, word.capitalize()) if f" {form}" in common]
        if spelled and re.fullmatch("a|i|[a-z]{2,}", word):
            tokens.append(spelled[0])
    if len(tokens) < count:
        raise InputError(
            f"the vocabularies of panel {panel.name} share {len(tokens)} frequent words, fewer than {count}"
        )
    return pd.DataFrame({"token": tokens[:count], "token_id": starts[model][tokens[:count]].to_numpy()})


def score_pairs(rm: RewardModel, prompt: PromptSpec, words: pd.DataFrame, path: Path) -> np.ndarray:
    """The reward of each pair, float32 [first, second]; the first word lengthens the prefix, which is run once."""
    ids = words["token_id"].tolist()
    prefix, closing = rm.dialogue.frame_ids(prompt.conversation)
    plan = {**describe_model(rm), "tokens": words["token"].tolist(), "ids": ids, "frame": [prefix, closing]}
    plan |= {"prompt": prompt.text, "history": prompt.earlier}
    continuations = [[second, *closing] for second in ids]
    with kept(path, plan, read_table) as work:
        table = work.finished
        if table is None:
            work.begin({**note_model(rm), "prompt_key": prompt.key, "protocol": "exact"})
            rows = []
            for place, first in enumerate(tqdm(ids, unit_scale=len(ids), unit=" pairs")):
                rows.append(work.rewards(place, score_continuations, rm, [*prefix, first], continuations))
            first, second = np.divmod(np.arange(len(ids) ** 2), len(ids))
            places = {"first": first.astype(np.int16), "second": second.astype(np.int16)}
            table = pd.DataFrame({**places, "score": np.concatenate(rows)})
            write_table(path, table, work.provenance)
    return table["score"].to_numpy().reshape(len(ids), len(ids))


def score_again(rm: RewardModel, prompt: PromptSpec, words: pd.DataFrame, pairs: np.ndarray) -> pd.DataFrame:
    """The highest, the lowest and some random pairs once more, behind the question alone."""
    order = np.argsort(pairs, axis=None, kind="stable")
    among = np.random.default_rng(0).choice(order[AGAIN:-AGAIN], AGAIN, replace=False)
    chosen = np.concatenate([order[-AGAIN:], order[:AGAIN], among])
    first, second = np.divmod(chosen, len(words))
    ids = words["token_id"].to_numpy()
    prefix, closing = rm.dialogue.frame_ids(prompt.conversation)
    answers = [[*pair, *closing] for pair in np.stack([ids[first], ids[second]], axis=1).tolist()]
    table = {"first": first.astype(np.int16), "second": second.astype(np.int16)}
    table |= {"why": np.repeat(["highest", "lowest", "random"], AGAIN), "quick": pairs.ravel()[chosen]}
    return pd.DataFrame(table | {"score": score_continuations(rm, prefix, answers)})


class KnownPairs(RewardObjective):
    """Rewards of pairs, looked up. Only these words exist."""

    def __init__(self, rm: RewardModel, prompt: PromptSpec, ids: list[int], pairs: np.ndarray):
        super().__init__([rm], [prompt])
        self.words.loc[~self.words["token_id"].isin(ids), "kind"] = "unused"
        self.places = {token_id: place for place, token_id in enumerate(ids)}
        self.pairs = pairs

    def measure(self, sequences, parent=None):
        """See `RewardObjective.measure`."""
        rewards = [self.pairs[self.places[first], self.places[second]] for first, second in sequences]
        return np.array(rewards, dtype=float)


def search_pairs(rm: RewardModel, prompt: PromptSpec, words: pd.DataFrame, pairs: np.ndarray) -> pd.DataFrame:
    """How far each method had come among the pairs after so many answers: scored, reward, direction, method, seed."""
    known = KnownPairs(rm, prompt, words["token_id"].tolist(), pairs)
    courses = []
    for direction, method, seed in itertools.product(("max", "min"), METHODS, SEEDS):
        config = SearchConfig(length=2, direction=direction, method=method, seed=seed, **EFFORT)
        course = search(known, config).history
        course = course.drop_duplicates("best_reward").rename(columns={"best_reward": "reward"})
        courses.append(course[["scored", "reward"]].assign(direction=direction, method=method, seed=seed))
    return pd.concat(courses, ignore_index=True)


def square(model: Model, loading: Loading, prompt: str = sequences.PROMPT, words: int = WORDS) -> None:
    """Write a model's square of pairs, the check of its ends and the searches among them, as far as they are not there.

    With --dtype bfloat16 the square is scored in that, and its ends in single precision all the same.
    """
    if words**2 < 3 * AGAIN:
        raise InputError(f"{words} words make fewer than {3 * AGAIN} pairs: choose more")
    panel = load_panel(loading.panel)
    question = panel.prompt(prompt)
    rm = loading.model(model)
    chosen = shared_words(panel, rm.name, question, words)
    path = panel_directory(panel, "pairs") / rm.name / f"{question.key}.parquet"
    made = {"model": rm.name, "prompt": question.text, "weights_sha256": rm.hashes["weights_sha256"]}
    made |= {"tokens": len(chosen), "versions": versions()}
    with exclusive(path):
        pairs = score_pairs(rm, question, chosen, path)
        checked = path.with_suffix(".exact.parquet")
        if not checked.exists():
            exact = rm if rm.spec.dtype == "float32" else replace(loading, dtype="float32").model(model)
            table = score_again(exact, question, chosen, pairs)
            write_table(checked, table, {**made, "dtype": exact.spec.dtype})
        searched = path.with_suffix(".searches.parquet")
        if not searched.exists():
            write_table(searched, search_pairs(rm, question, chosen, pairs), {**made, **EFFORT})


if __name__ == "__main__":
    main(functools.partial(typer.run, flat(square)))
