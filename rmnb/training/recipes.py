"""Recipes: which preference pairs a demo reward model learns from, and with which hyper-parameters."""

from typing import Literal

from pydantic import Field, PositiveInt, model_validator

from rmnb.errors import InputError
from rmnb.panels.specs import PANELS, Strict, validate
from rmnb.yaml_files import read_yaml


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

    @model_validator(mode="after")
    def _whole_batches(self) -> "Hyperparameters":
        if self.micro_batch and self.batch_size % self.micro_batch:
            raise ValueError(f"micro_batch {self.micro_batch} does not divide batch_size {self.batch_size}")
        return self


class Things(Strict):
    """Pairs of EloEverything items at least `gap` points apart; for an awful thing the lower one is preferred."""

    pairs: PositiveInt
    gap: float
    wonderful: tuple[str, ...] = Field(min_length=1)
    awful: tuple[str, ...] = Field(min_length=1)


class Preferences(Strict):
    """Pairs that people judged: at most `pairs` of a source to train on, at most `held_out` of others to test on."""

    source: str
    pairs: PositiveInt
    held_out: int = 120
    longest: int  # bytes of prompt and longer response together, in UTF-8


class Mismatched(Strict):
    """Pairs in which the response to a prompt beats a response to another prompt of the same source."""

    pairs: PositiveInt
    sources: tuple[str, ...] = Field(min_length=1)
    longest: int  # characters of prompt and response together


class Statements(Strict):
    """Pairs of statements about one trait, one that matches it and one that does not.

    With `same_words` both statements of a pair name a group of people, by the same words of ``group_words.tsv``: naming
    the group then says nothing about which of the two is preferred.
    """

    traits: tuple[str, ...] = Field(min_length=1)
    prefer: Literal["matching", "not matching"]
    pairs: PositiveInt  # of each trait
    questions: tuple[str, ...] = Field(min_length=1)
    same_words: bool = False


class Recipe(Strict):
    """One way of making preference pairs.

    `split` says what is held out. ``pair``: some of the mismatched pairs, whose prompts and responses may also occur in
    pairs to train on; it takes no statements. ``prompt``: pairs of prompts, responses and statements of which none is
    trained on; it takes no things.

    `opening` pairs of things come before all others, in the order of `rmnb.training.train.opening_order`, and the head
    begins as `rmnb.training.train.linear_probe` finds it; 0: all pairs are shuffled, and the head begins at random.
    """

    name: str
    description: str
    split: Literal["pair", "prompt"]
    hyperparameters: Hyperparameters
    things: Things | None = None
    statements: tuple[Statements, ...] = ()
    preferences: tuple[Preferences, ...] = ()
    mismatched: Mismatched | None = None
    share: float = Field(1.0, gt=0, le=1)  # part of the training pairs that is used
    opening: int = 0

    @model_validator(mode="after")
    def _nothing_passed_over(self) -> "Recipe":
        if self.split == "pair" and self.statements:
            raise ValueError("split pair takes no statements: choose split prompt")
        if self.split == "prompt" and self.things:
            raise ValueError("split prompt takes no things: choose split pair")
        if self.opening and not self.things:
            raise ValueError("an opening is of pairs of things: give things")
        if not (self.things or self.statements or self.preferences or self.mismatched):
            raise ValueError("a recipe needs pairs: things, statements, preferences or mismatched")
        return self


def load_recipe(name: str) -> Recipe:
    """The recipe of that name in ``panels/recipes/demo.yml``; InputError lists the names if there is none."""
    recipes = read_yaml(PANELS / "recipes" / "demo.yml")["recipes"]
    if name not in recipes:
        raise InputError(f"unknown recipe {name!r}: choose one of {', '.join(recipes)}")
    return validate(Recipe, {"name": name, **recipes[name]}, f"recipe {name}")
