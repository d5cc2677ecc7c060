"""Whatever trainers leave behind loads, and gives the rewards of the trainer's own forward pass.

The checkpoints are written by transformers, PEFT and TRL; the reference is the model in memory that wrote them, on
``apply_chat_template`` of the whole conversation, one at a time and without padding.
"""

import shutil
from functools import partial

import pytest
import torch
import transformers
from checkpoints import TEMPLATE, rewards_alone, write_base
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from trained import (
    ARCHITECTURES,
    CONVERSATIONS,
    LINEAR,
    WORDS,
    WRITERS,
    Writer,
    difference,
    randomise_trained,
    write_adapted,
    write_adapter,
    write_classifier,
)
from transformers.modeling_outputs import SequenceClassifierOutput

import rmnb
from rmnb.errors import InputError
from rmnb.panels import ModelSpec, find_spec

WRITTEN = {"peft": ARCHITECTURES, "trl": ("llama", "gemma3"), "transformers": ("llama",)}
PATTERNS = dict(alpha_pattern={"q_proj": 24}, rank_pattern={"up_proj": 1})
PATTERNED = Writer("LoRA, ranks and alphas of single layers", "peft", partial(write_adapted, **PATTERNS))
FAST = {"llama", "gemma3"}
CASES = [
    pytest.param(writer, on, id=f"{writer.kind}, {on}", marks=() if on in FAST else pytest.mark.slow)
    for writer in [*WRITERS, PATTERNED]
    for on in WRITTEN[writer.package]
]


@pytest.mark.parametrize(("writer", "architecture"), CASES)
def test_what_a_package_leaves_gives_the_rewards_of_the_model_that_it_had(writer, architecture, tmp_path):
    """Whole models however they are stored, adapters merged into the base they name, checkpoints of a training."""
    expected = writer.write(tmp_path / "rm", architecture)
    assert len(list((tmp_path / "rm").glob("*.safetensors"))) > 2 or "files" not in writer.kind
    assert difference(rmnb.load_reward_model(tmp_path / "rm", **writer.options), expected) < 1e-4


class ValueHead(torch.nn.Module):
    """A language model with LLaMA-Factory's value head: read at the last id of the mask, after the last norm."""

    def __init__(self, model):
        super().__init__()
        self.model, self.summary = model, torch.nn.Linear(model.config.hidden_size, 1)

    def forward(self, input_ids: torch.Tensor) -> SequenceClassifierOutput:
        states = self.model(input_ids=input_ids, output_hidden_states=True).hidden_states[-1]
        return SequenceClassifierOutput(logits=self.summary(states[:, -1].float()))


@pytest.mark.parametrize("adapted", (False, True))
@pytest.mark.parametrize(
    "architecture", [pytest.param(on, marks=() if on in FAST else pytest.mark.slow) for on in ARCHITECTURES]
)
def test_a_value_head_in_a_file_of_its_own_is_read(architecture, adapted, tmp_path):
    base = write_base(tmp_path / "base", architecture)
    model = transformers.AutoModelForCausalLM.from_pretrained(base, attn_implementation="eager")
    if adapted:
        model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=2, target_modules=LINEAR))
        randomise_trained(model)
    model.save_pretrained(tmp_path / "rm")
    WORDS.save_pretrained(tmp_path / "rm")
    torch.manual_seed(0)
    whole = ValueHead(model)
    tensors = {f"v_head.summary.{name}": tensor for name, tensor in whole.summary.state_dict().items()}
    save_file(tensors, tmp_path / "rm" / "value_head.safetensors")
    rm = rmnb.load_reward_model(tmp_path / "rm")
    assert difference(rm, rewards_alone(whole, CONVERSATIONS)) < 1e-4
    as_language_model = rmnb.load_reward_model(tmp_path / "rm", head="lm_head.weight", label=0)
    assert as_language_model.dialogue.trainer == "trl"  # its own template, not as the head beside it was fed


HEAD_ADAPTED = dict(task_type=None, target_modules=[*LINEAR, "score"])


@pytest.mark.parametrize(("labels", "options"), [(1, HEAD_ADAPTED), (2, {})], ids=["head adapted", "head replaced"])
def test_an_adapter_of_a_reward_model_adapts_its_head_or_brings_its_own(labels, options, tmp_path):
    """OpenRLHF writes no task type, the head's update among the others, a configuration beside; PEFT a whole head."""
    write_classifier(tmp_path / "base", "mistral", shape={"num_labels": labels})
    adapted = write_adapter(tmp_path / "base", tmp_path / "adapter", **options)
    if labels == 1:
        adapted.config.to_json_file(tmp_path / "adapter" / "config.json")
    rm = rmnb.load_reward_model(tmp_path / "adapter")
    assert difference(rm, rewards_alone(adapted, CONVERSATIONS)) < 1e-4


def test_a_base_that_has_moved_is_named_by_hand(tmp_path):
    base = write_base(tmp_path / "base")
    expected = rewards_alone(write_adapter(base, tmp_path / "adapter"), CONVERSATIONS)
    moved = shutil.move(base, tmp_path / "moved")
    assert difference(rmnb.load_reward_model(tmp_path / "adapter", base=moved), expected) < 1e-4
    spec = ModelSpec(name="mine", base=str(moved), adapter=str(tmp_path / "adapter"), template=TEMPLATE)
    assert difference(rmnb.load_reward_model(spec), expected) < 1e-4  # as a panel names both


def test_a_hub_id_takes_a_revision():
    spec = find_spec("owner/name@v2")
    assert (spec.source, spec.revision, spec.name) == ("owner/name", "v2", "name")
    with pytest.raises(InputError, match="owner/name@revision"):
        find_spec("owner/name@")
