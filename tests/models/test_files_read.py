"""Of a checkpoint's directory the files are read that transformers reads, and no others, in every command."""

import shutil

import numpy as np
import pytest
import torch
import transformers
from checkpoints import (
    own_ids,
    own_rewards,
    rewards_alone,
    tokenizer,
    write_base,
    write_decoder,
    write_encoder,
)
from safetensors.torch import save_file
from trained import write_adapter
from transformers import AutoTokenizer

import rmnb
from rmnb.errors import InputError

QUESTION = "Is it good?"
ANSWERS = ["love", "war and pain", "peace"]


def own(directory, **options):
    ids = own_ids(AutoTokenizer.from_pretrained(directory), QUESTION, ANSWERS)
    return pytest.approx(own_rewards(directory, ids, **options), abs=1e-4)


def rewards(directory, **options):
    return rmnb.load_reward_model(directory, **options).score(QUESTION, ANSWERS)


@pytest.mark.parametrize("sharded", [False, True])
def test_a_backup_beside_the_weights_is_no_head(sharded, tmp_path):
    write_decoder(tmp_path, **({"max_shard_size": "20KB"} if sharded else {}))
    before = rmnb.load_reward_model(tmp_path).hashes
    save_file({"score.weight": torch.ones(1, 32)}, tmp_path / "z-backup.safetensors")
    (tmp_path / "older.safetensors").write_bytes(b"cut short")
    rm = rmnb.load_reward_model(tmp_path)
    assert rm.score(QUESTION, ANSWERS) == own(tmp_path)
    assert rm.hashes == before


def test_an_adapter_beside_the_weights_that_it_was_merged_into_is_not_applied_again(tmp_path, caplog):
    base = write_base(tmp_path / "base")
    adapted = write_adapter(base, tmp_path / "adapter")
    shutil.copytree(tmp_path / "adapter", tmp_path / "merged")
    merged = adapted.merge_and_unload()
    merged.save_pretrained(tmp_path / "merged")
    tokenizer().save_pretrained(tmp_path / "merged")
    expected = rewards_alone(merged, own_ids(tokenizer(), QUESTION, ANSWERS))
    assert rewards(tmp_path / "merged") == pytest.approx(expected, abs=1e-4)
    assert "read as merged" in caplog.text


def test_a_variant_has_a_head_a_hash_and_a_plan_of_its_own(tmp_path):
    write_decoder(tmp_path)
    other = write_decoder(tmp_path / "other", seed=5, variant="fp16") / "model.fp16.safetensors"
    other.rename(tmp_path / other.name)
    plain, variant = rewards(tmp_path), rewards(tmp_path, variant="fp16")
    assert plain == own(tmp_path) and variant == own(tmp_path, variant="fp16")
    assert np.abs(plain - variant).max() > 0.1
    out = tmp_path / "x.parquet"
    rmnb.scan_vocabulary(rmnb.load_reward_model(tmp_path), QUESTION, out, limit=9)
    with pytest.raises(InputError, match="differs in weights, options"):
        rmnb.scan_vocabulary(rmnb.load_reward_model(tmp_path, variant="fp16"), QUESTION, out, limit=9)


ENCODERS = {
    "bert": (transformers.BertConfig, ["query", "value"]),
    "roberta": (transformers.RobertaConfig, ["query", "value"]),
    "deberta": (transformers.DebertaV2Config, ["query_proj", "value_proj"]),
}


@pytest.mark.parametrize("kind", ENCODERS)
def test_an_encoders_adapter_says_how_many_outputs_its_head_has(kind, tmp_path):
    config, modules = ENCODERS[kind]
    write_encoder(tmp_path / "base", config=config)
    adapted = write_adapter(tmp_path / "base", tmp_path / "adapter", labels=3, target_modules=modules).eval()
    words = AutoTokenizer.from_pretrained(tmp_path / "base")
    with torch.no_grad():
        pairs = [words(QUESTION, answer, return_tensors="pt") for answer in ANSWERS]
        expected = [adapted(**pair).logits[0, 2].item() for pair in pairs]
    assert rewards(tmp_path / "adapter", label=2) == pytest.approx(expected, abs=1e-4)
