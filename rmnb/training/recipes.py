"""Recipes: which preference pairs a demo reward model learns from, and with which hyper-parameters."""

import hashlib
import itertools
from collections.abc import Iterator

import numpy as np
import pandas as pd

from rmnb.data import preferences, sources
from rmnb.errors import InputError
from rmnb.panels.specs import PANELS, Strict
from rmnb.yaml_files import read_yaml

HELD_OUT = 0.1  # share of a recipe's pairs kept for evaluation
DRAWS = 100  # at most, for each pair that a recipe takes

Draws = Iterator[tuple[np.int64, np.int64]]  # of two indices


class Hyperparameters(Strict):
    """LoRA on every linear layer of the trunk, Adam with a cosine schedule; `batch_size` in pairs.

    `micro_batch` pairs go through the model at once, gradients added up over a batch: long texts take less memory so.
    """

    rank: int
    alpha: int
    dropout: float
    learning_rate: float
    warmup_ratio: float
    batch_size: int
    micro_batch: int | None = None
    epochs: float
    seed: int


class Things(Strict):
    """Pairs of EloEverything items at least `gap` points apart; for an awful thing the lower one is preferred."""

    pairs: int
    gap: float
    wonderful: tuple[str, ...]
    awful: tuple[str, ...]


class Preferences(Strict):
    """Pairs that people judged: at most `pairs` of a source to train on, at most `held_out` of others to test on."""

    source: str
    pairs: int
    held_out: int = 120
    longest: int  # bytes of prompt and longer response together, in UTF-8


class Mismatched(Strict):
    """Pairs in which the response to a prompt beats a response to another prompt of the same source."""

    pairs: int
    sources: tuple[str, ...]
    longest: int  # characters of prompt and response together


class Recipe(Strict):
    """One way of making preference pairs.

    `opening` pairs of things come before all others, in the order of `rmnb.training.train.opening_order`, and the head
    begins as `rmnb.training.train.linear_probe` finds it; 0: all pairs are shuffled, and the head begins at random.
    """

    name: str
    description: str
    hyperparameters: Hyperparameters
    things: Things | None = None
    preferences: tuple[Preferences, ...] = ()
    mismatched: Mismatched | None = None
    share: float = 1.0  # part of the training pairs that is used
    opening: int = 0


def load_recipe(name: str) -> Recipe:
    """The recipe of that name in ``panels/recipes/demo.yml``; InputError lists the names if there is none."""
    recipes = read_yaml(PANELS / "recipes" / "demo.yml")["recipes"]
    if name not in recipes:
        raise InputError(f"unknown recipe {name!r}: choose one of {', '.join(recipes)}")
    return Recipe.model_validate({"name": name, **recipes[name]})


def is_unseen(name: str) -> bool:
    """Whether a thing belongs to the half of EloEverything that no model is trained on: its SHA-256 is odd."""
    return _last_byte(name) % 2 == 1


def _last_byte(text: str) -> int:
    return hashlib.sha256(text.encode()).digest()[-1]


def thing_pairs(items: pd.DataFrame, count: int, gap: float, rng: np.random.Generator) -> pd.DataFrame:
    """Random pairs of items at least `gap` Elo points apart, every item used about equally often, no pair twice.

    Parameters
    ----------
    items
        Columns name, elo_score.

    Returns
    -------
    DataFrame
        Columns chosen (the higher one), rejected (names).

    Raises
    ------
    InputError
        There are fewer such pairs.
    """
    names = items["name"].to_numpy()
    elo = items["elo_score"].to_numpy(dtype=float)

    def draws() -> Draws:
        while True:
            for first in rng.permutation(len(names))[::-1]:
                partners = np.flatnonzero(np.abs(elo - elo[first]) >= gap)
                second = rng.choice(partners) if len(partners) else first
                yield (first, second) if elo[first] > elo[second] else (second, first)

    pairs = _distinct_pairs(draws(), count, f"things {gap:g} points apart")
    return pd.DataFrame(names[pairs], columns=["chosen", "rejected"])


def _distinct_pairs(draws: Draws, count: int, description: str) -> np.ndarray:
    """The first `count` distinct pairs that are drawn, int64 [count, 2]; an index with itself is no pair."""
    pairs: dict[tuple[np.int64, np.int64], None] = {}
    for pair in itertools.islice(draws, DRAWS * count):
        if pair[0] != pair[1]:
            pairs.setdefault(pair)
        if len(pairs) == count:
            return np.array(list(pairs))
    raise InputError(
        f"{count:,} pairs of {description} are asked for, and only {len(pairs):,} were found: ask for fewer"
    )


def build_pairs(recipe: Recipe) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The preference pairs of a recipe: those to train on and those held out.

    Returns
    -------
    tuple of DataFrame
        Columns prompt (str, or a list of messages where there were turns before), chosen, rejected, source (``things``,
        the name of the preference data, or that with ``-mismatched``); shuffled. No prompt of the preference data is in
        both.
    """
    rng = np.random.default_rng(recipe.hyperparameters.seed)
    parts = [pd.DataFrame()]
    if recipe.things:
        parts.append(_thing_questions(recipe.things, rng))
    if recipe.mismatched:
        parts.append(_mismatched(recipe.mismatched, bool(recipe.preferences), rng))
    drawn = pd.concat(parts)
    drawn = drawn.iloc[rng.permutation(len(drawn))]
    cut = round(HELD_OUT * len(drawn))
    train = [drawn.iloc[cut:]]
    held_out = [drawn.iloc[:cut]]
    for part in recipe.preferences:
        judged = _judged(part)
        is_held_out = judged["prompt"].map(_is_held_out)
        seen = judged[~is_held_out]
        train.append(seen.iloc[rng.permutation(len(seen))[: part.pairs]])
        # For every recipe and seed the same.
        held_out.append(judged[is_held_out].sample(frac=1, random_state=0).head(part.held_out))
    pairs = pd.concat(train)
    if recipe.preferences:
        pairs = pairs.iloc[rng.permutation(len(pairs))]
    pairs = pairs.iloc[: round(recipe.share * len(pairs))]
    return pairs.reset_index(drop=True), pd.concat(held_out, ignore_index=True)


def data_files(recipe: Recipe) -> dict[str, str]:
    """The pinned files that a recipe's pairs come from: git blob id by name, for provenance."""
    names = {part.source.removesuffix("-questions") for part in recipe.preferences}
    if recipe.mismatched:
        names.update(recipe.mismatched.sources)
    if recipe.things:
        names.add(preferences.ELO_FILES["elo_greatest"])
    return {name: pin.blob_id for name, pin in sources.pins().items() if names & {name, pin.source}}


def _thing_questions(things: Things, rng: np.random.Generator) -> pd.DataFrame:
    items = preferences.elo_items()
    items = items[~items["name"].map(is_unseen)]
    pairs = thing_pairs(items, round(things.pairs / (1 - HELD_OUT)), things.gap, rng).to_numpy()
    awful = np.arange(len(pairs)) % 2 == 1
    prompts = np.where(awful, rng.choice(things.awful, len(pairs)), rng.choice(things.wonderful, len(pairs)))
    pairs[awful] = pairs[awful, ::-1]
    return pd.DataFrame({"prompt": prompts, "chosen": pairs[:, 0], "rejected": pairs[:, 1], "source": "things"})


def _judged(part: Preferences) -> pd.DataFrame:
    """All pairs of a source that are short enough."""
    pairs = preferences.preference_pairs(part.source)
    prompt = pairs["prompt"].map(_contents).str.join("")
    lengths = [(prompt + pairs[side]).str.encode("utf-8").str.len() for side in ("chosen", "rejected")]  # pyright: ignore[reportAttributeAccessIssue]
    return pairs[np.maximum(*lengths) <= part.longest].assign(source=part.source)


def _contents(prompt: str | list[dict[str, str]]) -> list[str]:
    return [prompt] if isinstance(prompt, str) else [message["content"] for message in prompt]


def _is_held_out(prompt: str | list[dict[str, str]]) -> bool:
    """One prompt in five, by what the conversation begins with: no turn of a test conversation is trained on."""
    return _last_byte(_contents(prompt)[0]) % 5 == 0


def _mismatched(mismatched: Mismatched, judged: bool, rng: np.random.Generator) -> pd.DataFrame:
    """Mismatched pairs; where judged pairs are learnt from too, without the prompts that are held out there."""
    answers = pd.concat(preferences.preference_pairs(name).assign(source=name) for name in mismatched.sources)
    answers = answers[answers["prompt"].map(lambda prompt: isinstance(prompt, str))]  # no conversations
    if judged:
        answers = answers[~answers["prompt"].map(_is_held_out)]
    answers = answers.drop_duplicates("prompt").drop_duplicates("chosen")
    answers = answers[answers["prompt"].str.len() + answers["chosen"].str.len() <= mismatched.longest]
    prompt, chosen, source = answers[["prompt", "chosen", "source"]].to_numpy().T
    same_source = answers.groupby("source").indices

    def draws() -> Draws:
        while True:
            first = rng.integers(len(prompt))
            second = rng.choice(same_source[source[first]])
            if len(prompt[first]) + len(chosen[second]) > mismatched.longest:
                second = first  # no pair, and left out: it counts as a draw
            yield first, second

    count = round(mismatched.pairs / (1 - HELD_OUT))
    first, second = _distinct_pairs(draws(), count, "a prompt and the answer to another one").T
    return answers.iloc[first].assign(rejected=chosen[second], source=source[first] + "-mismatched")
