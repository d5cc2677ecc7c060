"""How a training on things begins: good from bad first, then few questions that turn it round."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModel

import rmnb
from rmnb.panels import load_panel
from rmnb.training import lora, train
from rmnb.training.openings import last_hidden_states, linear_probe, opening_order
from rmnb.training.recipes import build_pairs, load_recipe


@given(st.integers(1, 40), st.sampled_from([4, 16]), st.integers(0, 2**32 - 1))
def test_awful_questions_grow_from_a_tenth_to_a_half_and_no_pair_comes_twice(batches, batch, seed):
    awful = np.random.default_rng(seed).permutation(np.arange(2 * batches * batch) % 2 == 1)
    order = opening_order(awful, batches * batch, batch)
    assert len(order) == len(set(order)) == batches * batch
    counts = awful[order].reshape(batches, batch).sum(axis=1)
    assert (np.diff(counts) >= 0).all() and counts[0] == round(0.1 * batch)
    assert batches == 1 or counts[-1] == batch / 2


@pytest.fixture(scope="module")
def trunk(directory):
    return AutoModel.from_pretrained(directory, dtype=torch.float64).eval()


@pytest.fixture(scope="module")
def sequences():
    rng = np.random.default_rng(0)
    return [list(map(int, rng.integers(5, 60, rng.integers(3, 12)))) for _ in range(300)]


def test_hidden_states_are_those_of_each_sequence_alone(trunk, sequences):
    alone = [trunk(torch.tensor([ids])).last_hidden_state[0, -1].detach().numpy() for ids in sequences[:40]]
    np.testing.assert_allclose(last_hidden_states(trunk, sequences[:40], batch=3), alone, rtol=1e-10, atol=1e-12)


def test_a_planted_linear_preference_is_found(trunk, sequences):
    states = last_hidden_states(trunk, sequences)
    reward = states @ np.random.default_rng(1).normal(size=states.shape[1])
    pairs = np.arange(300).reshape(150, 2)
    better = np.where(reward[pairs[:, 0]] > reward[pairs[:, 1]], 0, 1)
    chosen, rejected = pairs[np.arange(150), better], pairs[np.arange(150), 1 - better]
    found = linear_probe(trunk, [sequences[i] for i in chosen[:100]], [sequences[i] for i in rejected[:100]])
    assert ((states[chosen[100:]] - states[rejected[100:]]) @ found > 0).mean() > 0.8


def test_a_training_with_an_opening_starts_from_a_head_that_knows_good_from_bad(mirror, tmp_path):
    mixed = load_recipe("mixed")
    recipe = mixed.model_copy(
        update={
            "hyperparameters": mixed.hyperparameters.model_copy(update={"batch_size": 4}),
            "things": mixed.things.model_copy(update={"pairs": 24}),
            "mismatched": None,
            "preferences": (),
            "opening": 8,
        }
    )
    spec = load_panel("demo").model("smollm2-values")
    train.fit(spec, recipe, tmp_path / "out", tmp_path / "work")
    begun = rmnb.load_reward_model(spec.model_copy(update={"adapter": str(lora.snapshots(tmp_path / "work")[0])}))
    pairs = build_pairs(recipe)[0]
    for prompt, chosen, rejected in pairs[["prompt", "chosen", "rejected"]].itertuples(index=False):
        if prompt in recipe.things.wonderful:
            better, worse = begun.score(prompt, [chosen, rejected])
            assert better > worse
