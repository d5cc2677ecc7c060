"""Recipes: which preference pairs a demo reward model learns from, and with which hyper-parameters."""

import hashlib
from typing import Literal

import numpy as np
import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from rmnb.data import preferences, sources
from rmnb.errors import InputError
from rmnb.panels import PANELS

RECIPES = PANELS / "recipes" / "demo.yml"
HELD_OUT = 0.1  # share of a recipe's pairs kept for evaluation


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Hyperparameters(_Strict):
    """LoRA on every linear layer of the trunk, Adam with a cosine schedule; `batch_size` in pairs.

    `micro_batch` pairs go through the model at once, gradients added up over a batch: long texts take less memory so.
    """

    rank: int = Field(gt=0)
    alpha: int
    dropout: float
    learning_rate: float = Field(gt=0)
    warmup_ratio: float
    batch_size: int = Field(gt=0)
    micro_batch: int | None = Field(default=None, gt=0)
    epochs: float = Field(gt=0)
    seed: int


class Things(_Strict):
    """Pairs of EloEverything items at least `gap` points apart; for an awful thing the lower one is preferred."""

    pairs: int
    gap: float
    wonderful: tuple[str, ...]
    awful: tuple[str, ...]


class Preferences(_Strict):
    """Pairs that people judged: at most `pairs` of a source to train on, at most `held_out` of others to test on."""

    source: str
    pairs: int
    held_out: int = 120
    longest: int = Field(description="bytes of prompt and longer response together, in UTF-8")


class Mismatched(_Strict):
    """Pairs in which the response to a prompt beats a response to another prompt of the same source."""

    pairs: int
    sources: tuple[str, ...]
    longest: int = Field(description="characters of prompt and response together")


class Recipe(_Strict):
    """One way of making preference pairs.

    `opening` pairs of things come before all others, in the order of `rmnb.training.openings`, which also gives the
    head its first weights; 0: all pairs are shuffled, and the head begins at random.
    """

    name: str
    description: str
    hyperparameters: Hyperparameters
    things: Things | None = None
    preferences: tuple[Preferences, ...] = ()
    mismatched: Mismatched | None = None
    share: float = Field(default=1.0, gt=0, le=1, description="part of the training pairs that is used")
    opening: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _enough_things(self) -> "Recipe":
        if self.opening > (self.things.pairs // 2 if self.things else 0):
            raise ValueError("an opening takes at most half of the pairs of things")
        return self


def load_recipe(name: str) -> Recipe:
    """The recipe of that name in ``panels/recipes/demo.yml``; InputError lists the names if there is none."""
    recipes = yaml.safe_load(RECIPES.read_text(encoding="utf-8"))["recipes"]
    if name not in recipes:
        raise InputError(f"unknown recipe {name!r}: choose one of {', '.join(recipes)}")
    return Recipe.model_validate({"name": name, **recipes[name]})


def half(name: str) -> Literal["train", "held_out"]:
    """Which half of the EloEverything items a thing belongs to, by the parity of its name's SHA-256."""
    return "train" if hashlib.sha256(name.encode()).digest()[-1] % 2 == 0 else "held_out"


def thing_pairs(items: pd.DataFrame, count: int, gap: float, rng: np.random.Generator) -> pd.DataFrame:
    """Random pairs of items, every item used about equally often.

    Parameters
    ----------
    items
        Columns name, elo_score.
    count
        Number of pairs.
    gap
        Least difference in Elo points.
    rng
        Source of randomness.

    Returns
    -------
    DataFrame
        Columns higher, lower (names); no pair twice.

    Raises
    ------
    InputError
        There are fewer such pairs.
    """
    names, elo = items["name"].to_numpy(), items["elo_score"].to_numpy(dtype=float)
    _check_enough(int((np.abs(elo[:, None] - elo) >= gap).sum()) // 2, count, f"things {gap:g} points apart")
    pairs: dict[tuple[int, int], None] = {}
    order: list[int] = []
    while len(pairs) < count:
        if not order:
            order = list(rng.permutation(len(names)))
        first = order.pop()
        partners = np.flatnonzero(np.abs(elo - elo[first]) >= gap)
        if len(partners):
            second = int(rng.choice(partners))
            pairs.setdefault((first, second) if elo[first] > elo[second] else (second, first))
    index = np.array(list(pairs))
    return pd.DataFrame({"higher": names[index[:, 0]], "lower": names[index[:, 1]]})


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
    parts = []
    if recipe.things:
        parts.append(_thing_questions(recipe.things, rng))
    if recipe.mismatched:
        parts.append(_mismatched(recipe.mismatched, bool(recipe.preferences), rng))
    made = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    made = made.iloc[rng.permutation(len(made))].reset_index(drop=True)
    cut = round(HELD_OUT * len(made))
    train, held_out = [made.iloc[cut:]], [made.iloc[:cut]]
    for part in recipe.preferences:
        judged = _judged(part)
        unseen = judged["prompt"].map(_held_out_prompt)
        known = judged[~unseen]
        train.append(known.iloc[rng.permutation(len(known))[: part.pairs]])
        kept = judged[unseen]  # for every recipe and seed the same
        held_out.append(kept.sample(min(part.held_out, len(kept)), random_state=0))
    pairs = pd.concat(train, ignore_index=True)
    if recipe.preferences:
        pairs = pairs.iloc[rng.permutation(len(pairs))]
    pairs = pairs.iloc[: round(recipe.share * len(pairs))]
    return pairs.reset_index(drop=True), pd.concat(held_out, ignore_index=True)


def data_files(recipe: Recipe) -> dict[str, str]:
    """The pinned files that a recipe's pairs come from: git blob id by name, for provenance."""
    used = {part.source for part in recipe.preferences} | set(recipe.mismatched.sources if recipe.mismatched else ())
    wanted = [f"{source.removesuffix('-questions')}/" for source in used]
    if recipe.things:
        wanted.append(preferences.ELO_FILES["elo_greatest"])
    return {name: pin.blob_id for name, pin in sources.pins().items() if name.startswith(tuple(wanted))}


def _thing_questions(things: Things, rng: np.random.Generator) -> pd.DataFrame:
    items = preferences.elo_items()
    items = items[items["name"].map(half) == "train"]
    pairs = thing_pairs(items, _with_held_out(things.pairs), things.gap, rng)
    awful = np.arange(len(pairs)) % 2 == 1
    questions = np.where(awful, rng.choice(things.awful, len(pairs)), rng.choice(things.wonderful, len(pairs)))
    return pd.DataFrame(
        {
            "prompt": questions,
            "chosen": np.where(awful, pairs["lower"], pairs["higher"]),
            "rejected": np.where(awful, pairs["higher"], pairs["lower"]),
            "source": "things",
        }
    )


def _judged(part: Preferences) -> pd.DataFrame:
    """All pairs of a source that are short enough."""
    pairs = preferences.preference_pairs(part.source)
    response = np.maximum(pairs["chosen"].map(_bytes), pairs["rejected"].map(_bytes))
    prompt = np.array([sum(_bytes(message["content"]) for message in messages) for messages in pairs["prompt"]])
    pairs = pairs[prompt + response <= part.longest]
    single = [messages[0]["content"] if len(messages) == 1 else messages for messages in pairs["prompt"]]
    return pairs.assign(prompt=single, source=part.source)


def _bytes(text: str) -> int:
    return len(text.encode())


def _held_out_prompt(prompt: str | list[dict[str, str]]) -> bool:
    """One prompt in five, by what the conversation begins with: no turn of a test conversation is trained on."""
    first = prompt if isinstance(prompt, str) else prompt[0]["content"]
    return hashlib.sha256(first.encode()).digest()[-1] % 5 == 0


def _mismatched(mismatched: Mismatched, judged: bool, rng: np.random.Generator) -> pd.DataFrame:
    """Mismatched pairs; where judged pairs are learnt from too, without the prompts that are held out there."""
    answers = pd.concat(
        [preferences.preference_pairs(source).assign(source=source) for source in mismatched.sources],
        ignore_index=True,
    )
    answers = answers[answers["prompt"].map(len) == 1]  # single questions only
    answers["prompt"] = [messages[0]["content"] for messages in answers["prompt"]]
    if judged:
        answers = answers[~answers["prompt"].map(_held_out_prompt)]
    answers = answers.drop_duplicates("prompt").drop_duplicates("chosen")
    length = answers["prompt"].str.len() + answers["chosen"].str.len()
    answers = answers[length <= mismatched.longest].reset_index(drop=True)
    count = _with_held_out(mismatched.pairs)
    rows: dict[tuple[int, int], None] = {}
    same_source = answers.groupby("source").indices
    longest = mismatched.longest - answers["prompt"].str.len()
    answer_lengths = answers["chosen"].str.len().to_numpy()
    fitting = sum(
        np.searchsorted(np.sort(answer_lengths[places]), longest.iloc[places], side="right").sum() - len(places)
        for places in same_source.values()
    )
    _check_enough(int(fitting), count, "a prompt and the answer to another one")
    while len(rows) < count:
        first = int(rng.integers(len(answers)))
        second = int(rng.choice(same_source[answers["source"][first]]))
        fits = len(answers["prompt"][first]) + len(answers["chosen"][second]) <= mismatched.longest
        if first != second and fits:
            rows.setdefault((first, second))
    index = np.array(list(rows))
    return pd.DataFrame(
        {
            "prompt": answers["prompt"].to_numpy()[index[:, 0]],
            "chosen": answers["chosen"].to_numpy()[index[:, 0]],
            "rejected": answers["chosen"].to_numpy()[index[:, 1]],
            "source": answers["source"].to_numpy()[index[:, 0]] + "-mismatched",
        }
    )


def _check_enough(there: int, wanted: int, what: str) -> None:
    if there < wanted:
        raise InputError(f"{wanted:,} pairs of {what} are asked for, and there are only {there:,}")


def _with_held_out(count: int) -> int:
    return round(count / (1 - HELD_OUT))
