"""What is wrong with a checkpoint is one line that names the file or the tensors, and nothing pickled is opened."""

import json
import re

import pytest
import torch
import transformers
from checkpoints import SHAPE, randomise, tokenizer, write_decoder
from peft import LoraConfig, PromptTuningConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForSequenceClassification

import rmnb
from rmnb.cli.main import main

WORDS = tokenizer()


def write_model(directory, **shape):
    config = transformers.LlamaConfig(**{**SHAPE, **shape}, vocab_size=len(WORDS))
    model = AutoModelForSequenceClassification.from_config(config)
    randomise(model)
    model.save_pretrained(directory)
    WORDS.save_pretrained(directory)
    return AutoModelForSequenceClassification.from_pretrained(directory)


@pytest.fixture
def adapter(tmp_path):
    """A directory with an adapter, and beside it its base."""
    model = write_model(tmp_path / "base")
    asked = LoraConfig(task_type="SEQ_CLS", r=3, target_modules=["q_proj"], modules_to_save=["score"])
    get_peft_model(model, asked).save_pretrained(tmp_path / "adapter")
    return tmp_path / "adapter"


def set_adapter(directory, **changed):
    file = directory / "adapter_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changed}))


def pickle_base(adapter):
    weights = adapter.with_name("base") / "model.safetensors"
    torch.save({}, weights.with_name("pytorch_model.bin"))
    weights.unlink()


def tune_prompt(adapter):
    model = write_model(adapter.with_name("base"))
    asked = PromptTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=2)
    get_peft_model(model, asked).save_pretrained(adapter)


ADAPTERS = {
    "a pickled base": (pickle_base, r"base: only pickled weights \(pytorch_model.bin\)"),
    "a base of another size": (
        lambda adapter: write_model(adapter.with_name("base"), hidden_size=64),
        r"does not fit its base \S+/base: .*q_proj.lora_A.default.weight \[3, 32\], not \[3, 64\]",
    ),
    "a base of fewer layers": (
        lambda adapter: write_model(adapter.with_name("base"), num_hidden_layers=2),
        r"fit nowhere in its base \S+/base: .*layers.2.self_attn.q_proj",
    ),
    "a base that is no checkpoint": (
        lambda adapter: (adapter.with_name("base") / "config.json").unlink(),
        "its base .* is no checkpoint: it has no config.json",
    ),
    "no name of a base": (lambda adapter: set_adapter(adapter, base_model_name_or_path=7), "name it with --base"),
    "an unknown kind": (lambda adapter: set_adapter(adapter, peft_type="NOPE"), "peft_type unknown to PEFT: 'NOPE'"),
    "a tuned prompt": (tune_prompt, "an adapter of kind PromptTuning, which cannot be merged"),
    "a damaged head": (
        lambda adapter: (adapter / "value_head.safetensors").write_bytes(b"x"),
        "value_head.safetensors: damaged or cut short",
    ),
}
WHOLE = {
    "a damaged tokenizer": (lambda of: (of / "tokenizer_config.json").write_text("{no"), "damaged JSON"),
    "pickled weights beside a head": (
        lambda of: (
            torch.save({}, of / "pytorch_model.bin"),
            save_file({"v_head.summary.weight": torch.ones(1, 32)}, of / "value_head.safetensors"),
            (of / "model.safetensors").unlink(),
        ),
        "no file named model.safetensors",
    ),
}


def refused(directory, said, monkeypatch, capfd):
    monkeypatch.setattr("sys.argv", ["rmnb", "check", str(directory)])
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capfd.readouterr()
    assert ended.value.code == 2 and not out
    assert err.count("\n") == 1 and err.startswith("rmnb: "), err
    assert said.search(err), err


@pytest.mark.parametrize("wrong", ADAPTERS)
def test_a_wrong_adapter_is_one_line(wrong, adapter, monkeypatch, capfd):
    spoil, said = ADAPTERS[wrong]
    spoil(adapter)
    refused(adapter, re.compile(said), monkeypatch, capfd)


@pytest.mark.parametrize("wrong", WHOLE)
def test_a_wrong_checkpoint_is_one_line(wrong, tmp_path, monkeypatch, capfd):
    spoil, said = WHOLE[wrong]
    spoil(write_decoder(tmp_path / "model"))
    refused(tmp_path / "model", re.compile(said), monkeypatch, capfd)


def test_an_adapter_is_a_classifiers_whatever_its_training_called_it(adapter):
    score = rmnb.load_reward_model(adapter, device="cpu").score("Love?", ["yes", "no"])
    set_adapter(adapter, task_type="CAUSAL_LM")
    assert rmnb.load_reward_model(adapter, device="cpu").score("Love?", ["yes", "no"]).tolist() == score.tolist()
