"""Training by TRL on real pairs: cut off, it goes on, and its adapter scores. That nothing is lost: tests/torture."""

import json

import numpy as np
import pytest
import torch

import rmnb
from rmnb.errors import InputError
from rmnb.panels import ModelSpec, load_panel
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
    with pytest.raises(InputError) as refused:
        train.fit(spec, other, tmp_path / "cut", tmp_path / "work-cut")
    assert refused.value.about == "recipe"


def test_a_base_with_pickled_weights_alone_is_refused(tmp_path):
    from checkpoints import DECODERS, SHAPE, tokenizer
    from transformers import AutoModelForCausalLM

    kind, special = DECODERS["qwen2"]
    base = AutoModelForCausalLM.from_config(kind(**SHAPE, **special, vocab_size=320))
    base.config.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    torch.save(base.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match="safetensors"):
        lora.load_base(AutoModelForCausalLM, str(tmp_path))


def test_any_language_model_in_a_directory_can_be_the_base(few_steps, tmp_path):
    """The adapter scores as PEFT's own classifier does, in the template of the base's tokenizer."""
    from checkpoints import DECODERS, SHAPE, randomise, tokenizer
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

    words, (kind, special) = tokenizer(), DECODERS["qwen2"]
    base = AutoModelForCausalLM.from_config(kind(**SHAPE, **special, vocab_size=len(words)))
    randomise(base)
    base.save_pretrained(tmp_path / "base")
    words.save_pretrained(tmp_path / "base")
    spec = ModelSpec(name="own", base=str(tmp_path / "base"), adapter=str(tmp_path / "own"))
    train.fit(spec, few_steps, tmp_path / "own", tmp_path / "work")
    rm = rmnb.load_reward_model(spec, device="cpu")
    classifier = AutoModelForSequenceClassification.from_pretrained(tmp_path / "base", num_labels=1)
    classifier.config.pad_token_id = None
    whole = PeftModel.from_pretrained(classifier, tmp_path / "own").eval()
    ids = words.apply_chat_template(
        [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": "love"}], tokenize=True
    )["input_ids"]
    with torch.no_grad():
        expected = whole(input_ids=torch.tensor([ids])).logits[0, 0].item()
    assert rm.score(PROMPT, ["love"])[0] == pytest.approx(expected, abs=1e-4)
    with pytest.raises(InputError, match="unknown base 'nobody'"):
        train.fit(spec.model_copy(update={"base": "nobody"}), few_steps, tmp_path / "x", tmp_path / "work-x")
