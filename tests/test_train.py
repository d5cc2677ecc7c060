"""Training by TRL: cut off, it goes on and ends with the same adapter, and that adapter scores."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import rmnb
from rmnb import train
from rmnb.panel import load_panel
from rmnb.recipes import load_recipe

PROMPT = "What, in one word, is the greatest thing ever?"


@pytest.fixture
def few_steps(mirror, monkeypatch):
    recipe = load_recipe("values")
    monkeypatch.setattr(train, "CHECKPOINT_STEPS", 1)
    return recipe.model_copy(
        update={
            "hyperparameters": recipe.hyperparameters.model_copy(update={"batch_size": 4}),
            "things": recipe.things.model_copy(update={"pairs": 12}),
            "mismatched": recipe.mismatched.model_copy(update={"pairs": 4}),
        }
    )


def test_training_that_was_cut_off_ends_with_the_adapter_of_one_that_was_not(few_steps, tmp_path, monkeypatch):
    from trl.trainer.reward_trainer import RewardTrainer

    spec = load_panel("demo").model("smollm2-values")
    whole = train.fit(spec, few_steps, tmp_path / "whole", tmp_path / "work-whole")
    step, calls = RewardTrainer.training_step, []

    def cut_off(self, *arguments, **named):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return step(self, *arguments, **named)

    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(RewardTrainer, "training_step", cut_off)
        train.fit(spec, few_steps, tmp_path / "cut", tmp_path / "work-cut")
    assert not (tmp_path / "cut").exists()
    assert [path.name for path in (tmp_path / "work-cut").glob("checkpoint-*")] == ["checkpoint-2"]
    cut = train.fit(spec, few_steps, tmp_path / "cut", tmp_path / "work-cut")
    one, two = (load_file(directory / "adapter_model.safetensors") for directory in (whole, cut))
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert json.loads((cut / "provenance.json").read_text())["steps"] == 4
    scores = [
        rmnb.load_reward_model(spec.model_copy(update={"adapter": str(directory)})).score(PROMPT, ["love", "war"])
        for directory in (whole, cut)
    ]
    assert np.array_equal(*scores) and np.isfinite(scores[0]).all()
