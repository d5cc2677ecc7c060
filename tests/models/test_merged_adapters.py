"""An adapter that changes embeddings is merged into the very model that its trainer had: PEFT's own, unmerged."""

import logging

import numpy as np
import pytest
import torch
from checkpoints import asked_ids, edit_tensors, own_ids, randomise, rewards_alone, tokenizer, write_base
from peft import LNTuningConfig, LoHaConfig, LoraConfig, get_peft_model
from safetensors.torch import load_file
from trained import randomise_trained
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

import rmnb
from rmnb.errors import InputError
from rmnb.models.checkpoint_files import ADAPTER

QUESTION = "Is it good?"
ANSWERS = ["love", "war and pain", "7"]
BOTH = ["embed_tokens", "lm_head"]
TIED = {
    "output layer": {"target_modules": ["lm_head"]},
    "embedding": {"target_modules": ["embed_tokens"]},
    "both, each by itself": {"target_modules": BOTH},
    "embedding, tied in the adapter, too": {"target_modules": ["embed_tokens"], "ensure_weight_tying": True},
    "output layer saved whole": {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
    "a few tokens of both": {"target_modules": ["q_proj"], "trainable_token_indices": [3, 4, 5]},
}


def write(directory, model, words, **options):
    """The trained adapter as PEFT saves it, and the model in memory, not merged."""
    torch.manual_seed(0)  # PEFT begins with random numbers
    adapted = get_peft_model(model, LoraConfig(r=4, **options))
    randomise_trained(adapted)
    adapted.save_pretrained(str(directory))
    words.save_pretrained(directory)
    return adapted.eval()


def likelihoods(model, words) -> np.ndarray:
    """Log-probabilities of whole answers by transformers' own logits."""
    start = len(asked_ids(words, QUESTION))
    sums = []
    for ids in own_ids(words, QUESTION, ANSWERS):
        with torch.no_grad():
            logprobs = model(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(-1)
        sums.append(sum(float(logprobs[place - 1, ids[place]]) for place in range(start, len(ids))))
    return np.array(sums)


@pytest.mark.parametrize("changed", TIED)
def test_what_an_adapter_changes_of_tied_weights_stays_on_its_side(changed, tmp_path):
    write_base(tmp_path / "base", shape={"tie_word_embeddings": True})
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "base", attn_implementation="eager")
    words = tokenizer()
    before = likelihoods(model.eval(), words)
    expected = likelihoods(write(tmp_path / "adapter", model, words, **TIED[changed]), words)
    rm = rmnb.load_reward_model(tmp_path / "adapter", reference=str(tmp_path / "base"), beta=1.0)
    assert np.abs(expected - before).max() > 0.1
    assert rm.score(QUESTION, ANSWERS) == pytest.approx(expected - before, abs=1e-4)


@pytest.mark.parametrize("saved", ["auto", False])
def test_embeddings_grow_to_the_ids_that_an_adapter_was_trained_on(saved, tmp_path):
    words = tokenizer()
    first = len(words)
    words.add_tokens(["<new>", "<newer>"])
    words.chat_template = words.chat_template.replace("<model>", "<newer>")
    write_base(tmp_path / "base")
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "base", num_labels=1)
    randomise(model.score)
    model.resize_token_embeddings(len(words), mean_resizing=False)
    options = {"task_type": "SEQ_CLS", "target_modules": ["q_proj"]}
    adapted = write(
        tmp_path / "adapter", model, words, trainable_token_indices={"embed_tokens": [first, first + 1]}, **options
    )
    adapted.save_pretrained(str(tmp_path / "adapter"), save_embedding_layers=saved)
    expected = rewards_alone(adapted, own_ids(words, QUESTION, ANSWERS))
    rm = rmnb.load_reward_model(tmp_path / "adapter")
    assert rm.score(QUESTION, ANSWERS) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("kind", "part"), [(LoHaConfig, "hada_w2_b"), (LNTuningConfig, "ln_tuning"), (LoraConfig, "bias")]
)
def test_each_tensor_that_peft_trained_is_read_or_missed(kind, part, tmp_path):
    write_base(tmp_path / "base", "qwen2")
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "base", num_labels=1)
    options = {"bias": "all"} if kind is LoraConfig else {"modules_to_save": ["score"]}
    targets = ["input_layernorm" if kind is LNTuningConfig else "k_proj"]
    adapted = get_peft_model(model, kind(task_type="SEQ_CLS", target_modules=targets, **options)).eval()
    randomise_trained(adapted)
    adapted.save_pretrained(str(tmp_path))
    tokenizer().save_pretrained(tmp_path)
    expected = rewards_alone(adapted, own_ids(tokenizer(), QUESTION, ANSWERS))
    assert rmnb.load_reward_model(tmp_path).score(QUESTION, ANSWERS) == pytest.approx(expected, abs=1e-4)
    lost = next(name for name in load_file(tmp_path / ADAPTER) if part in name)
    edit_tensors(tmp_path, lambda found: {name: found[name] for name in found if name != lost}, ADAPTER)
    with pytest.raises(InputError, match=f"the adapter lacks .*{part}"):
        rmnb.load_reward_model(tmp_path)


def test_what_peft_warns_of_is_said_once(tmp_path, caplog):
    write_base(tmp_path / "base")
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "base", num_labels=1)
    options = {"task_type": "SEQ_CLS", "target_modules": ["q_proj"], "rank_pattern": {"nowhere": 8}}
    write(tmp_path / "adapter", model, tokenizer(), **options)
    with caplog.at_level(logging.WARNING):
        rmnb.load_reward_model(tmp_path / "adapter")
    [line] = [line for line in caplog.messages if "PEFT says" in line]
    assert "nowhere" in line
