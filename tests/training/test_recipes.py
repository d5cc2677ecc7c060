"""What the demo models learn from: never a scanned question, never an item that is held out for good."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmnb.data.preferences import elo_items
from rmnb.errors import InputError
from rmnb.files import data_dir
from rmnb.panels import load_panel
from rmnb.training import recipes
from rmnb.training.evaluation import accuracy
from rmnb.training.recipes import Mismatched, Recipe, build_pairs, data_files, half, load_recipe, thing_pairs


@pytest.fixture(scope="module")
def values():
    return load_recipe("values")


def test_no_scanned_question_and_no_held_out_item_is_trained_on(mirror, values):
    train, held_out = build_pairs(values)
    scanned = {prompt.text for prompt in load_panel("demo").prompts}
    for pairs in (train, held_out):
        assert not scanned & set(pairs["prompt"])
        things = pairs[pairs["source"] == "things"]
        assert {half(name) for name in [*things["chosen"], *things["rejected"]]} == {"train"}
    seen = set(map(frozenset, train[["chosen", "rejected"]].to_numpy()))
    assert not seen & set(
        map(frozenset, held_out.loc[held_out["source"] == "things", ["chosen", "rejected"]].to_numpy())
    )


def test_pairs_follow_the_votes_and_the_question(mirror, values):
    train, _ = build_pairs(values)
    things = train[train["source"] == "things"]
    elo = elo_items().set_index("name")["elo_score"]
    lead = elo[things["chosen"]].to_numpy() - elo[things["rejected"]].to_numpy()
    awful = things["prompt"].isin(values.things.awful).to_numpy()
    assert (lead[~awful] >= 120).all() and (lead[awful] <= -120).all()
    assert 0.45 < awful.mean() < 0.55
    assert 0.15 < 1 - len(things) / len(train) < 0.25
    again, _ = build_pairs(values)
    assert train.equals(again)


@pytest.mark.parametrize("name", ["harmless", "helpful", "mixed", "mixed-seed2"])
def test_no_conversation_is_on_both_sides(mirror, name):
    train, held_out = build_pairs(load_recipe(name))
    mismatched = held_out["source"].str.endswith("-mismatched")
    asked = held_out.loc[~mismatched & (held_out["source"] != "things"), "prompt"].map(_first)
    assert len(asked) > 150 and not set(asked) & set(train["prompt"].map(_first))
    same = train["source"].str.removesuffix("-mismatched").map(lambda source: source in held_out["source"].values)
    assert same.all()


def _first(prompt):
    return prompt if isinstance(prompt, str) else prompt[0]["content"]


def test_half_of_a_recipe_is_its_beginning_and_another_seed_is_another_draw(mirror):
    mixed, held_out = build_pairs(load_recipe("mixed"))
    half_of_it, same_held_out = build_pairs(load_recipe("mixed-half"))
    assert half_of_it.equals(mixed.iloc[: len(mixed) // 2]) and same_held_out.equals(held_out)
    other, other_held_out = build_pairs(load_recipe("mixed-seed2"))
    assert len(other) == len(mixed)

    def things(pairs):
        return set(map(tuple, pairs.loc[pairs["source"] == "things", ["chosen", "rejected"]].to_numpy()))

    assert len(things(mixed) & things(other)) < 0.1 * len(things(mixed))
    judged = [part[~part["source"].str.contains("mismatched|things")] for part in (held_out, other_held_out)]
    assert judged[0].reset_index(drop=True).equals(judged[1].reset_index(drop=True))


def test_shipped_adapters_are_small_and_say_what_they_were_made_of():
    for spec in load_panel("demo").models:
        directory = data_dir() / spec.adapter
        assert (directory / "adapter_model.safetensors").stat().st_size <= 3e6
        provenance = json.loads((directory / "provenance.json").read_text())
        assert provenance["template"] == spec.template
        recipe = load_recipe(spec.recipe)
        assert provenance["data"] == data_files(recipe)
        measured = provenance["evaluation"]["held_out"]["all"]
        assert measured["low"] < measured["value"] < measured["high"]
        assert provenance["recipe"]["hyperparameters"]["seed"] == recipe.hyperparameters.seed


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=1, max_size=50))
def test_accuracy_counts_ties_as_wrong_and_its_interval_contains_it(rewards):
    chosen, rejected = np.array(rewards).T
    measured = accuracy(chosen, rejected)
    assert measured.value == sum(a > b for a, b in rewards) / len(rewards)
    assert 0 <= measured.low <= measured.value + 1e-12 and measured.value <= measured.high + 1e-12


def test_an_unknown_recipe_lists_the_known_ones():
    with pytest.raises(InputError, match=r"choose one of .*values"):
        load_recipe("virtues")


def test_more_pairs_than_there_are_is_an_error_and_all_of_them_can_be_had(monkeypatch):
    things = pd.DataFrame({"name": ["a", "b", "c"], "elo_score": [0.0, 100.0, 250.0]})
    rng = np.random.default_rng(0)
    assert len(thing_pairs(things, 2, 120, rng)) == 2
    with pytest.raises(InputError, match="only 2"):
        thing_pairs(things, 3, 120, rng)
    questions = [[{"role": "user", "content": text}] for text in ("one?", "two?", "a long one?")]
    answers = pd.DataFrame({"prompt": questions, "chosen": ["1", "2", "long"], "rejected": ["x", "x", "x"]})
    monkeypatch.setattr(recipes.preferences, "preference_pairs", lambda source: answers)
    hyper = load_recipe("values").hyperparameters
    few = Mismatched(pairs=9, sources=("made",), longest=12)  # of two short questions
    with pytest.raises(InputError, match="asked for, and there are only 2"):
        build_pairs(Recipe(name="few", description="", hyperparameters=hyper, mismatched=few))
