"""Whatever trainers leave behind loads, and gives the rewards of the trainer's own forward pass.

The checkpoints are written by transformers, PEFT and TRL; the reference is the model in memory that wrote them, on
``apply_chat_template`` of the whole conversation, one at a time and without padding.
"""

import shutil

import pytest
import torch
import transformers
from checkpoints import pair_tokenizer, randomise
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from trained import (
    ARCHITECTURES,
    LINEAR,
    WORDS,
    WRITERS,
    classifier_rewards,
    difference,
    randomise_trained,
    rewards_of,
    train_with_trl,
    write_adapter,
    write_base,
    write_classifier,
)
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

import rmnb
from rmnb.errors import InputError
from rmnb.panels import find_spec

PROMPT = "What, in one word, is the greatest thing ever?"
ANSWERS = ["love", "War and peace", "7, 42", "a"]
BY_PEFT, BY_TRANSFORMERS = ([each for each in WRITERS if each.package == name] for name in ("peft", "transformers"))


@pytest.mark.parametrize("writer", BY_PEFT, ids=lambda writer: writer.kind)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_adapter_is_merged_into_the_base_that_it_names(architecture, writer, tmp_path):
    expected = writer.write(tmp_path / "adapter", architecture)
    assert difference(rmnb.load_reward_model(tmp_path / "adapter", device="cpu"), expected) < 1e-4


@pytest.mark.parametrize("architecture", ("llama", "gemma3"))
def test_what_trl_leaves_loads_checkpoints_with_an_optimiser_beside_too(architecture, tmp_path):
    base = write_base(tmp_path / "base", architecture)
    for adapted in (False, True):
        last, expected = train_with_trl(base, tmp_path / str(adapted), adapted)
        assert difference(rmnb.load_reward_model(last, device="cpu"), expected) < 1e-4


class ValueHead(torch.nn.Module):
    """A language model with LLaMA-Factory's value head: read at the last id of the mask, after the last norm."""

    def __init__(self, model):
        super().__init__()
        self.model, self.summary = model, torch.nn.Linear(model.config.hidden_size, 1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        states = self.model(input_ids=ids, output_hidden_states=True).hidden_states[-1]
        return self.summary(states[0, -1].float())

    def save(self, directory) -> None:
        tensors = {f"v_head.summary.{name}": tensor for name, tensor in self.summary.state_dict().items()}
        save_file(tensors, directory / "value_head.safetensors")


@pytest.mark.parametrize("adapted", (False, True))
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_value_head_in_a_file_of_its_own_is_read(architecture, adapted, tmp_path):
    base = write_base(tmp_path / "base", architecture)
    model = AutoModelForCausalLM.from_pretrained(base, attn_implementation="eager")
    if adapted:
        model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=2, target_modules=LINEAR))
        randomise_trained(model)
    model.save_pretrained(tmp_path / "rm")
    WORDS.save_pretrained(tmp_path / "rm")
    torch.manual_seed(0)
    whole = ValueHead(model)
    whole.save(tmp_path / "rm")
    assert difference(rmnb.load_reward_model(tmp_path / "rm", device="cpu"), rewards_of(whole, whole)) < 1e-4


@pytest.mark.parametrize("writer", BY_TRANSFORMERS, ids=lambda writer: writer.kind)
def test_whole_models_however_they_are_stored(writer, tmp_path):
    expected = writer.write(tmp_path, "llama")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2 or "files" not in writer.kind
    assert difference(rmnb.load_reward_model(tmp_path, device="cpu", **writer.options), expected) < 1e-4


@pytest.mark.parametrize("normalised", (False, True))
def test_a_head_under_the_name_that_openrlhf_gave_it(normalised, tmp_path):
    expected = write_classifier(tmp_path, "qwen3")
    file = tmp_path / "model.safetensors"
    tensors = {name.replace("score.", "value_head."): tensor for name, tensor in load_file(file).items()}
    save_file(tensors, file, metadata={"format": "pt"})
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    config.value_head_prefix, config.normalize_reward, config.mean, config.std = "value_head", normalised, 0.5, 2.0
    config.save_pretrained(tmp_path)
    expected = [(reward - 0.5) / 2.0 for reward in expected] if normalised else expected
    assert difference(rmnb.load_reward_model(tmp_path, device="cpu"), expected) < 1e-4


def test_an_adapter_of_a_reward_model_keeps_its_head_even_where_the_head_is_adapted(tmp_path):
    """As OpenRLHF writes it: no task type, the head's own update among the others, a configuration beside."""
    write_classifier(tmp_path / "base", "mistral")
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "base", attn_implementation="eager")
    adapted = get_peft_model(model, LoraConfig(r=2, target_modules=[*LINEAR, "score"]))
    randomise_trained(adapted)
    adapted.save_pretrained(str(tmp_path / "adapter"))
    adapted.config.to_json_file(tmp_path / "adapter" / "config.json")
    WORDS.save_pretrained(tmp_path / "adapter")
    rm = rmnb.load_reward_model(tmp_path / "adapter", device="cpu")
    assert difference(rm, classifier_rewards(adapted)) < 1e-4


def test_of_several_labels_one_is_chosen(tmp_path):
    expected = write_classifier(tmp_path, "llama", label=2, num_labels=3, id2label={0: "bad", 1: "so", 2: "ok"})
    with pytest.raises(InputError, match=r"3 outputs.*0 \(bad\), 1 \(so\), 2 \(ok\).*--label"):
        rmnb.load_reward_model(tmp_path)
    with pytest.raises(InputError, match="no label 3"):
        rmnb.load_reward_model(tmp_path, label=3)
    rm = rmnb.load_reward_model(tmp_path, label=2, device="cpu")
    assert difference(rm, expected) < 1e-4
    assert rmnb.scan_vocabulary(rm, PROMPT, limit=20).attrs["provenance"]["label"] == 2


def test_an_encoders_label_and_adapter(tmp_path):
    words = pair_tokenizer()
    shape = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
    model = transformers.BertForSequenceClassification(
        transformers.BertConfig(vocab_size=len(words), num_labels=2, **shape)
    )
    randomise(model)
    model.save_pretrained(tmp_path / "base")
    words.save_pretrained(tmp_path / "base")
    words = transformers.AutoTokenizer.from_pretrained(tmp_path / "base")
    options = dict(target_modules=["query", "value"], modules_to_save=["classifier"])
    adapted = get_peft_model(model, LoraConfig(task_type="SEQ_CLS", r=2, **options))
    randomise_trained(adapted)
    adapted.base_model.model.config._name_or_path = str(tmp_path / "base")
    adapted.peft_config["default"].base_model_name_or_path = str(tmp_path / "base")
    adapted.save_pretrained(tmp_path / "adapter")
    adapted.eval()
    with torch.no_grad():
        expected = [adapted(**words(PROMPT, answer, return_tensors="pt")).logits[0, 1].item() for answer in ANSWERS]
    rm = rmnb.load_reward_model(tmp_path / "adapter", label=1, device="cpu")
    assert rm.score(PROMPT, ANSWERS).tolist() == pytest.approx(expected, abs=1e-4)


def test_a_base_that_has_moved_is_named_by_hand(tmp_path):
    base = write_base(tmp_path / "base")
    expected = classifier_rewards(write_adapter(base, tmp_path / "adapter"))
    moved = shutil.move(base, tmp_path / "moved")
    assert difference(rmnb.load_reward_model(tmp_path / "adapter", base=moved, device="cpu"), expected) < 1e-4


def test_the_adapters_head_takes_the_place_of_one_of_another_shape(tmp_path):
    write_classifier(tmp_path / "base", "llama", num_labels=2)
    model = AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "base", num_labels=1, ignore_mismatched_sizes=True
    )
    model.config.pad_token_id = WORDS.pad_token_id
    adapted = get_peft_model(model, LoraConfig(task_type="SEQ_CLS", r=3, target_modules=LINEAR))
    randomise_trained(adapted)
    adapted.save_pretrained(tmp_path / "adapter")
    WORDS.save_pretrained(tmp_path / "adapter")
    assert difference(rmnb.load_reward_model(tmp_path / "adapter", device="cpu"), classifier_rewards(adapted)) < 1e-4


def test_a_hub_id_takes_a_revision():
    spec = find_spec("owner/name@v2")
    assert (spec.source, spec.revision, spec.name) == ("owner/name", "v2", "name")
    with pytest.raises(InputError, match="owner/name@revision"):
        find_spec("owner/name@")
