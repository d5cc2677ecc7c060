"""The pairs of the chapter on sequences: all of them scored, and searches held against their known optimum.

``python -m rmnb.findings.pairs_study PANEL [COUNT [MODEL …]]`` scores all pairs of the COUNT most frequent words that
the vocabularies of a panel share (in bfloat16-mixed), scores the highest, the lowest and some random ones
again in float32, and searches among them by every method. Cut off, or called with a larger COUNT, it goes on.
"""

import itertools
import sys
from collections.abc import Sequence

import numpy as np
import pandas as pd

from rmnb.errors import InputError
from rmnb.findings.pairs import DIRECTIONS, PROMPTS, Square, pairs_path, read_square
from rmnb.models.devices import MIXED
from rmnb.models.reward_model import RewardModel
from rmnb.panels import Panel, PromptSpec, load_panel
from rmnb.scoring.conversations import load_reward_model
from rmnb.scoring.pairs import scan_pairs, score_pairs, shared_words
from rmnb.scoring.store import read_scores, read_table, versions, write_table
from rmnb.search.config import SearchConfig
from rmnb.search.rewards import RewardObjective
from rmnb.search.run import search

TOKENS, COUNT = 1000, 500  # words, and of how many of these all pairs are scored unless more are asked for
AGAIN = 200  # highest, lowest and random pairs that are scored again in float32
EFFORT = {"budget": 1000, "steps": 1000, "width": 32, "keep": 1}  # few of the pairs: else every method finds the best
METHODS, SEEDS = ("gcg", "random", "exhaustive", "beam"), (0, 1, 2)


def tokens_of(panel: Panel, model: str) -> pd.DataFrame:
    """The words whose pairs are scored: token, token_id in the model's vocabulary."""
    vocabularies = {name: read_scores(panel, name, PROMPTS[0]) for name in (model, *panel.model_names)}
    distinct: list[pd.DataFrame] = []
    for scan in vocabularies.values():
        if not any(scan["token"].equals(other["token"]) for other in distinct):
            distinct.append(scan)
    return shared_words(distinct, TOKENS)[["token", 0]].rename(columns={0: "token_id"})


def scan(panel: Panel, model: str, prompt: PromptSpec, count: int) -> None:
    """Score a model's pairs that are missing, quickly, and write them."""
    path = pairs_path(panel, model, prompt.key)
    if path.exists() and len(read_square(panel, model, prompt.key).tokens) >= count:
        return
    tokens = tokens_of(panel, model)
    rm = load_reward_model(model, panel=panel, dtype=MIXED)
    rewards, provenance = scan_pairs(rm, prompt, tokens["token_id"].tolist(), path, count, progress=True)
    first, second = np.divmod(np.arange(count * count), count)
    places = {"first": first.astype(np.int16), "second": second.astype(np.int16)}
    listed = {"tokens": tokens["token"].tolist()[:count], "ids": tokens["token_id"].tolist()[:count]}
    write_table(path, pd.DataFrame({**places, "score": rewards.ravel()}), provenance | listed)


def score_again(rm: RewardModel, panel: Panel, prompt: PromptSpec) -> None:
    """Score the highest, the lowest and some random pairs of a square again, exactly, and write them."""
    square = read_square(panel, rm.name, prompt.key)
    path = pairs_path(panel, rm.name, prompt.key, "exact")
    count = len(square.tokens)
    if path.exists() and read_table(path)[1]["tokens"] == count:
        return
    order = np.argsort(square.quick, axis=None, kind="stable")
    among = np.random.default_rng(0).choice(order[AGAIN:-AGAIN], AGAIN, replace=False)
    chosen = np.concatenate([order[-AGAIN:], order[:AGAIN], among])
    why = np.repeat(["highest", "lowest", "random"], AGAIN)
    first, second = np.divmod(chosen, count)
    ids = square.tokens["token_id"].to_numpy()
    rewards = score_pairs(rm, prompt, np.stack([ids[first], ids[second]], axis=1), progress=True)
    places = {"first": first.astype(np.int16), "second": second.astype(np.int16)}
    table = pd.DataFrame({**places, "why": why, "quick": square.quick.ravel()[chosen], "score": rewards})
    about = {"weights_sha256": rm.weights_sha256, "dtype": rm.spec.dtype, "tokens": count, "versions": versions()}
    write_table(path, table, {"model": rm.name, "prompt": prompt.text, **about})


class ScannedPairs(RewardObjective):
    """Rewards of pairs and of single tokens, looked up; gradients are the model's. Only the square's tokens exist."""

    def __init__(self, rm: RewardModel, prompt: PromptSpec, square: Square):
        super().__init__([(rm, 1.0)], [prompt.conversation])
        ids = square.tokens["token_id"]
        kind = self.words["kind"].astype(str)
        self.words = self.words.assign(kind=kind.where(self.words["token_id"].isin(ids), "unused"))
        self._place = {token_id: place for place, token_id in enumerate(ids.tolist())}
        self._pairs, self._single = square.rewards, square.single

    def measure(self, sequences, parent=None):
        """See `Objective.measure`."""
        places = [tuple(self._place[token] for token in ids) for ids in sequences]
        return np.array([self._pairs[ids] if len(ids) == 2 else self._single[ids[0]] for ids in places], dtype=float)


def search_again(rm: RewardModel, panel: Panel, prompt: PromptSpec) -> None:
    """Let every method search among the pairs, and write how far each had got after so many sequences."""
    path, square = pairs_path(panel, rm.name, prompt.key, "searches"), read_square(panel, rm.name, prompt.key)
    if path.exists() and read_table(path)[1]["tokens"] == len(square.tokens):
        return
    known = ScannedPairs(rm, prompt, square)
    single = pd.DataFrame({"token_id": square.tokens["token_id"], "score": square.single})
    courses = []
    for direction, method, seed in itertools.product(DIRECTIONS, METHODS, SEEDS):
        if method == "beam" and seed:  # nothing in it is left to chance
            continue
        config = SearchConfig(length=2, direction=direction, method=method, seed=seed, survive=False, **EFFORT)
        if method == "beam":  # single tokens first, then as many after each of the `buffer` best
            topk = min(config.steps // (config.buffer + 1), len(square.tokens))
            config = config.model_copy(update={"topk": topk})
        course = search(known, config, scan=single).history.dropna(subset="best_reward")
        course = course.drop_duplicates("best_reward")[["scored", "best_reward"]]
        courses.append(course.assign(direction=direction, method=method, seed=seed))
    table = pd.concat(courses, ignore_index=True).rename(columns={"best_reward": "reward"})
    about = {"weights_sha256": rm.weights_sha256, "tokens": len(square.tokens), **EFFORT, "versions": versions()}
    write_table(path, table, {"model": rm.name, "prompt": prompt.text, **about})


def main(name: str, count: int = COUNT, models: Sequence[str] = ()) -> None:
    """Score the pairs of some models of a panel, those named or all, and search among them."""
    if count**2 < 3 * AGAIN:
        raise InputError(
            f"{count} tokens make too few pairs to search among: take {int(np.sqrt(3 * AGAIN)) + 1} or more"
        )
    panel = load_panel(name)
    for key, model in itertools.product(PROMPTS, list(models) or panel.model_names):
        prompt = panel.prompt(key)
        scan(panel, model, prompt, count)
        rm = load_reward_model(model, panel=panel)
        score_again(rm, panel, prompt)
        search_again(rm, panel, prompt)


if __name__ == "__main__":
    try:
        main(sys.argv[1] if len(sys.argv) > 1 else "demo", *map(int, sys.argv[2:3]), models=sys.argv[3:])
    except InputError as error:
        sys.exit(f"error: {error}")
