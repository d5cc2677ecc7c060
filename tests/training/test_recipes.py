"""What the demo models learn from: never a scanned question, never an item that is held out for good."""

import hashlib
import json
import re

import numpy as np
import pandas as pd
import pytest

from rmnb.data import preferences
from rmnb.data.lexicons import agency_communion
from rmnb.data.preferences import elo_items
from rmnb.data.sources import own_list
from rmnb.errors import InputError
from rmnb.files import data_dir
from rmnb.panels import load_panel
from rmnb.panels.specs import validate
from rmnb.training import pairs
from rmnb.training.pairs import build_pairs, data_files, is_apart, is_unseen, thing_pairs
from rmnb.training.recipes import Mismatched, Preferences, Recipe, Statements, load_recipe

PAIRS = {
    "values": ("45026b85c81e6a99", "d1fc017d4608975e"),
    "harmless": ("54ca803677c39fb5", "7c5f82cb531abb9e"),
    "helpful": ("88d0d623eece901c", "bcbb162e0674148b"),
    "mixed": ("23809af00a6e0fe3", "d74234ff3c332548"),
    "mixed-seed2": ("9cf789ada56f3949", "efa858f7d4242fb7"),
    "mixed-half": ("645da6e382d7a743", "d74234ff3c332548"),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_are_the_published_ones_in_order_and_no_conversation_is_on_both_sides(mirror, name):
    built = train, held_out = build_pairs(load_recipe(name))
    content = [pairs.to_json(orient="values").encode() for pairs in built]
    assert tuple(hashlib.sha256(text).hexdigest()[:16] for text in content) == PAIRS[name]
    mismatched = held_out["source"].str.endswith("-mismatched")
    asked = held_out.loc[~mismatched & (held_out["source"] != "things"), "prompt"].map(_first)
    assert not set(asked) & set(train["prompt"].map(_first))
    assert set(train["source"]) == set(held_out["source"])


def _first(prompt):
    return prompt if isinstance(prompt, str) else prompt[0]["content"]


def test_things_follow_the_votes_and_the_question_and_none_is_scanned_or_held_out(mirror):
    values = load_recipe("values")
    train, held_out = (pairs[pairs["source"] == "things"] for pairs in build_pairs(values))
    elo = elo_items().set_index("name")["elo_score"]
    lead = elo[train["chosen"]].to_numpy() - elo[train["rejected"]].to_numpy()
    awful = train["prompt"].isin(values.things.awful).to_numpy()
    assert (lead[~awful] >= 120).all() and (lead[awful] <= -120).all()
    assert 0.45 < awful.mean() < 0.55
    things = pd.concat([train, held_out])
    assert not {prompt.text for prompt in load_panel("demo").prompts} & set(things["prompt"])
    assert not any(map(is_unseen, [*things["chosen"], *things["rejected"]]))
    assert not things[["chosen", "rejected"]].apply(frozenset, axis=1).duplicated().any()


@pytest.mark.parametrize("name", ["fair", "warm", "ambitious", "cautious"])
def test_split_by_prompt_no_held_out_text_is_trained_on_and_no_question_is_scanned(mirror, name):
    recipe = load_recipe(name)
    train, held_out = build_pairs(recipe)
    assert is_apart(held_out, train, recipe).all()
    texts = [{*pairs["chosen"], *pairs["rejected"]} for pairs in (train, held_out)]
    assert not texts[0] & texts[1]
    for part in recipe.statements:
        assert not {prompt.text for prompt in load_panel("demo").prompts} & set(part.questions)
        for trait in part.traits:
            statements = preferences.statements(trait).set_index("statement")["matches"]
            pairs = train[train["source"] == trait]
            assert len(pairs) == part.pairs and not pairs.duplicated(["chosen", "rejected"]).any()
            assert (statements[pairs["chosen"]] == (part.prefer == "matching")).all()
            assert (statements[pairs["rejected"]] != (part.prefer == "matching")).all()
            fresh = held_out[held_out["source"] == trait]
            assert len(fresh) >= 10 and pd.concat([fresh["chosen"], fresh["rejected"]]).is_unique


def test_naming_a_group_says_nothing_about_which_statement_is_friendly(mirror):
    pairs = pd.concat(build_pairs(load_recipe("fair")))
    words = own_list("group_words.tsv")
    for trait, rows in pairs[~pairs["source"].str.endswith("-mismatched")].groupby("source"):
        for word in words.loc[words["trait"] == trait, "word"]:
            named = [rows[side].str.contains(rf"\b{word}", case=False) for side in ("chosen", "rejected")]
            assert (named[0] == named[1]).all(), word


def test_nouns_of_the_statements_of_warm_and_ambitious_are_those_that_are_listed(mirror):
    pairs = pd.concat(part for name in ("warm", "ambitious") for part in build_pairs(load_recipe(name)))
    statements = pairs[~pairs["source"].str.endswith("-mismatched")]
    said = " ".join([*statements["chosen"], *statements["rejected"]])
    nouns = agency_communion()["word"]
    found = nouns[[re.search(rf"\b{noun}", said, re.IGNORECASE) is not None for noun in nouns]]
    assert own_list("statement_nouns.tsv")["word"].tolist() == found.tolist()


def test_shipped_adapters_are_small_and_say_what_they_were_made_of():
    for spec in load_panel("demo").models:
        directory, recipe = data_dir() / spec.adapter, load_recipe(spec.recipe)
        assert (directory / "adapter_model.safetensors").stat().st_size <= 3e6
        provenance = json.loads((directory / "provenance.json").read_text())
        assert provenance["template"] == spec.template and provenance["data"] == data_files(recipe)
        measured = provenance["evaluation"]["held_out"]["all"]
        assert measured["low"] < measured["value"] <= measured["high"]
        assert provenance["recipe"]["hyperparameters"]["seed"] == recipe.hyperparameters.seed


def test_what_cannot_be_had_is_refused(monkeypatch):
    with pytest.raises(InputError, match=r"choose one of .*values"):
        load_recipe("virtues")
    things = pd.DataFrame({"name": ["a", "b", "c"], "elo_score": [0.0, 100.0, 250.0]})
    rng = np.random.default_rng(0)
    assert len(thing_pairs(things, 2, 120, rng)) == 2
    with pytest.raises(InputError, match="only 2 were found"):
        thing_pairs(things, 3, 120, rng)
    questions = ["one?", "two?", "a long one?"]
    answers = pd.DataFrame({"prompt": questions, "chosen": ["1", "2", "long"], "rejected": ["x", "x", "x"]})
    monkeypatch.setattr(preferences, "preference_pairs", lambda source: answers)
    hyper = load_recipe("values").hyperparameters
    few = Mismatched(pairs=9, sources=("made",), longest=12)  # of two short questions
    recipe = Recipe(name="few", description="", split="pair", hyperparameters=hyper, mismatched=few)
    with pytest.raises(InputError, match="asked for, and only 2 were found"):
        build_pairs(recipe)
    with pytest.raises(InputError, match="there are no pairs of things"):
        thing_pairs(things[:0], 3, 120, rng)
    none = few.model_copy(update={"longest": 1})
    with pytest.raises(InputError, match="there are no pairs of a prompt and the answer to another one"):
        build_pairs(recipe.model_copy(update={"mismatched": none}))
    short = Preferences(source="made", pairs=9, longest=1)
    recipe = Recipe(name="short", description="", split="prompt", hyperparameters=hyper, preferences=(short,))
    with pytest.raises(InputError, match="recipe short leaves 0 pairs to train on"):
        build_pairs(recipe)
    untested = short.model_copy(update={"longest": 99, "held_out": 0})
    with pytest.raises(InputError, match="leaves 3 pairs to train on and 0 held out"):
        build_pairs(recipe.model_copy(update={"preferences": (untested,)}))
    statements = pd.DataFrame({"statement": ["gay people are kind", "trans people are not"], "matches": [True, False]})
    monkeypatch.setattr(preferences, "statements", lambda trait: statements)
    monkeypatch.setattr(pairs, "_last_byte", lambda text: 1)  # none is held out
    named = Statements(traits=("made",), prefer="matching", pairs=2, questions=("who?",), same_words=True)
    monkeypatch.setattr(pairs, "_naming", lambda trait, texts: texts.str.split().str[0])  # no two by the same word
    made = Recipe(name="made", description="", split="prompt", hyperparameters=hyper, statements=(named,))
    with pytest.raises(InputError, match="there are no pairs of statements of made"):
        build_pairs(made)


HYPER = load_recipe("values").hyperparameters.model_dump()


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"split": "prompt"}, "split prompt takes no things"),
        ({"statements": [{"traits": ["a"], "prefer": "matching", "pairs": 1, "questions": ["b?"]}]}, "no statements"),
        ({"opening": 8, "things": None}, "an opening is of pairs of things"),
        ({"mismatched": None, "things": None}, "a recipe needs pairs"),
        ({"hyperparameters": HYPER | {"batch_size": 16, "micro_batch": 6}}, "micro_batch 6 does not divide batch_size"),
    ],
)
def test_a_recipe_says_nothing_that_is_passed_over(changes, reason):
    with pytest.raises(InputError, match=reason):
        validate(Recipe, load_recipe("values").model_dump() | changes, "values")
