"""Training by TRL on real pairs: cut off, it goes on, and its adapter scores. That nothing is lost: tests/torture."""

import json

import numpy as np
import pytest

import rmnb
from rmnb.errors import InputError
from rmnb.panels import load_panel
from rmnb.training import lora, train
from rmnb.training.recipes import load_recipe

PROMPT = "What, in one word, is the greatest thing ever?"


@pytest.fixture
def few_steps(mirror, monkeypatch):
    recipe = load_recipe("values")
    monkeypatch.setattr(lora, "CHECKPOINT_STEPS", 1)
    return recipe.model_copy(
        update={
            "hyperparameters": recipe.hyperparameters.model_copy(update={"batch_size": 4}),
            "things": recipe.things.model_copy(update={"pairs": 12}),
            "mismatched": recipe.mismatched.model_copy(update={"pairs": 4}),
        }
    )


def test_training_that_was_cut_off_goes_on_and_its_adapter_scores(few_steps, tmp_path, monkeypatch):
    from trl.trainer.reward_trainer import RewardTrainer

    spec = load_panel("demo").model("smollm2-values")
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
    assert json.loads((cut / "provenance.json").read_text())["steps"] == 4
    assert list(lora.snapshots(tmp_path / "work-cut")) == [0, 1, 2, 4]
    scores = rmnb.load_reward_model(spec.model_copy(update={"adapter": str(cut)})).score(PROMPT, ["love", "war"])
    assert np.isfinite(scores).all() and scores[0] != scores[1]
    other = few_steps.model_copy(update={"share": 0.5})
    with pytest.raises(InputError, match="holds a training run that differs in recipe"):
        train.fit(spec, other, tmp_path / "cut", tmp_path / "work-cut")
