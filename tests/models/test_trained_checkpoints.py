"""Whatever trainers leave behind loads, and gives the rewards of the trainer's own forward pass.

The checkpoints are written by transformers, PEFT and TRL; the reference is the model in memory that wrote them, on
``apply_chat_template`` of the whole conversation, one at a time and without padding.
"""

import shutil

import pytest
import torch
import transformers
from checkpoints import DECODERS, SHAPE, pair_tokenizer, randomise, tokenizer
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

import rmnb
from rmnb.errors import InputError
from rmnb.panels import find_spec

PROMPT = "What, in one word, is the greatest thing ever?"
ANSWERS = ["love", "War and peace", "7, 42", "a"]
ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma2", "gemma3", "mistral")
WORDS = tokenizer()
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj", "gate_proj"]
KINDS = {
    "lora": {},
    "rslora": {"use_rslora": True},
    "dora": {"use_dora": True},
    "bias": {"bias": "all"},
    "embedding": {"modules_to_save": ["score", "embed_tokens"]},
}


def ids_of(answer: str) -> list[int]:
    messages = [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": answer}]
    return WORDS.apply_chat_template(messages, tokenize=True)["input_ids"]


@torch.no_grad()
def own_rewards(model, label: int = 0) -> list[float]:
    model.eval()
    return [model(input_ids=torch.tensor([ids_of(answer)])).logits[0, label].item() for answer in ANSWERS]


def write_base(directory, architecture="llama", causal=False, **options):
    """A pretrained language model without any head, as transformers saves it."""
    kind, special = DECODERS[architecture]
    config = kind(**{**SHAPE, **special, **options}, vocab_size=len(WORDS))
    model = AutoModelForCausalLM.from_config(config)
    randomise(model)
    model.save_pretrained(directory)
    WORDS.save_pretrained(directory)
    return directory


def write_adapter(base, directory, kind="lora", **options):
    """An adapter of a classifier in PEFT's own format, and the model that wrote it."""
    model = AutoModelForSequenceClassification.from_pretrained(base, num_labels=1, attn_implementation="eager")
    model.config.pad_token_id = WORDS.pad_token_id
    asked = {"modules_to_save": ["score"], **KINDS[kind], **options}
    adapted = get_peft_model(model, LoraConfig(task_type="SEQ_CLS", r=3, lora_alpha=6, target_modules=LINEAR, **asked))
    randomise_trained(adapted)
    adapted.save_pretrained(directory)
    WORDS.save_pretrained(directory)
    return adapted


def randomise_trained(adapted) -> None:
    """As if trained: PEFT begins at no change at all."""
    generator = torch.Generator().manual_seed(1)
    for parameter in adapted.parameters():
        if parameter.requires_grad:
            parameter.data += torch.empty_like(parameter).normal_(0, 0.1, generator=generator)


def difference(loaded, expected) -> float:
    return max(abs(a - b) for a, b in zip(loaded.score(PROMPT, ANSWERS).tolist(), expected, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_adapter_is_merged_into_the_base_that_it_names(architecture, kind, tmp_path):
    base = write_base(tmp_path / "base", architecture)
    expected = own_rewards(write_adapter(base, tmp_path / "adapter", kind))
    assert difference(rmnb.load_reward_model(tmp_path / "adapter", device="cpu"), expected) < 1e-4


@pytest.mark.parametrize("architecture", ("llama", "gemma3"))
def test_what_trl_leaves_loads_checkpoints_with_an_optimiser_beside_too(architecture, tmp_path):
    from datasets import Dataset
    from trl.trainer.reward_config import RewardConfig
    from trl.trainer.reward_trainer import RewardTrainer

    base = write_base(tmp_path / "base", architecture)
    asked = [{"role": "user", "content": PROMPT}]
    pairs = {"prompt": [asked] * 2} | {
        side: [[{"role": "assistant", "content": answer}]] * 2
        for side, answer in {"chosen": "love", "rejected": "war"}.items()
    }
    options = dict(max_steps=2, save_steps=1, learning_rate=0.1, bf16=False, use_cpu=True, report_to=[])
    for peft_config in (None, LoraConfig(task_type="SEQ_CLS", r=2, target_modules=LINEAR)):
        work = tmp_path / ("adapter" if peft_config else "whole")
        trainer = RewardTrainer(
            model=str(base),
            args=RewardConfig(output_dir=str(work), gradient_checkpointing=False, **options),
            train_dataset=Dataset.from_dict(pairs),
            processing_class=tokenizer(),
            peft_config=peft_config,
        )
        trainer.train()
        assert (work / "checkpoint-2" / "optimizer.pt").exists()
        rm = rmnb.load_reward_model(work / "checkpoint-2", device="cpu")
        assert difference(rm, own_rewards(trainer.model.float())) < 1e-4


class ValueHead(torch.nn.Module):
    """A language model with LLaMA-Factory's value head: read at the last id of the mask, after the last norm."""

    def __init__(self, model):
        super().__init__()
        self.model, self.summary = model, torch.nn.Linear(model.config.hidden_size, 1)

    @torch.no_grad()
    def rewards(self) -> list[float]:
        self.model.eval()
        hidden = [
            self.model(input_ids=torch.tensor([ids_of(answer)]), output_hidden_states=True).hidden_states[-1]
            for answer in ANSWERS
        ]
        return [self.summary(states[0, -1].float()).item() for states in hidden]

    def save(self, directory) -> None:
        tensors = {f"v_head.summary.{name}": tensor for name, tensor in self.summary.state_dict().items()}
        save_file(tensors, directory / "value_head.safetensors")


@pytest.mark.parametrize("adapted", (False, True))
@pytest.mark.parametrize("architecture", ("llama", "qwen2", "gemma2"))
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
    assert difference(rmnb.load_reward_model(tmp_path / "rm", device="cpu"), whole.rewards()) < 1e-4


@pytest.mark.parametrize("layout", ("sharded", "bfloat16", "openrlhf"))
def test_other_layouts_of_whole_checkpoints(layout, tmp_path):
    kind, special = DECODERS["llama"]
    model = AutoModelForSequenceClassification.from_config(kind(**SHAPE, **special, vocab_size=len(WORDS)))
    randomise(model)
    for parameter in model.parameters() if layout == "bfloat16" else ():
        parameter.data = parameter.data.bfloat16().float()
    expected = own_rewards(model)
    stored = model.bfloat16() if layout == "bfloat16" else model
    stored.save_pretrained(tmp_path, max_shard_size="30KB" if layout == "sharded" else "5GB")
    WORDS.save_pretrained(tmp_path)
    if layout == "sharded":
        assert len(list(tmp_path.glob("*.safetensors"))) > 2
    if layout == "openrlhf":
        file = tmp_path / "model.safetensors"
        tensors = {name.replace("score.", "value_head."): tensor for name, tensor in load_file(file).items()}
        save_file(tensors, file, metadata={"format": "pt"})
        config = transformers.AutoConfig.from_pretrained(tmp_path)
        config.value_head_prefix = "value_head"
        config.save_pretrained(tmp_path)
    assert difference(rmnb.load_reward_model(tmp_path, device="cpu"), expected) < 1e-4


def test_of_several_labels_one_is_chosen(tmp_path):
    kind, special = DECODERS["llama"]
    config = kind(**{**SHAPE, **special, "num_labels": 3}, vocab_size=len(WORDS), id2label={0: "bad", 1: "so", 2: "ok"})
    model = AutoModelForSequenceClassification.from_config(config)
    randomise(model)
    model.save_pretrained(tmp_path)
    WORDS.save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"3 outputs.*0 \(bad\), 1 \(so\), 2 \(ok\).*--label"):
        rmnb.load_reward_model(tmp_path)
    with pytest.raises(InputError, match="no label 3"):
        rmnb.load_reward_model(tmp_path, label=3)
    for label in (0, 2):
        rm = rmnb.load_reward_model(tmp_path, label=label, device="cpu")
        assert difference(rm, own_rewards(model, label)) < 1e-4
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
    assert difference(rm, expected) < 1e-4


def test_what_is_wrong_with_an_adapter_is_one_line(tmp_path):
    base = write_base(tmp_path / "base")
    write_adapter(base, tmp_path / "good")

    def refused(name, match, change=lambda directory: None, **options):
        directory = shutil.copytree(tmp_path / "good", tmp_path / name)
        change(directory)
        with pytest.raises(InputError, match=match) as raised:
            rmnb.load_reward_model(directory, device="cpu", **options)
        assert "\n" not in str(raised.value)

    def tensors(change):
        def written(directory):
            file = directory / "adapter_model.safetensors"
            save_file(change(load_file(file)), file, metadata={"format": "pt"})

        return written

    headless = tensors(lambda of: {name: each for name, each in of.items() if "score" not in name})
    refused("headless", "no head", headless)
    astray = tensors(lambda of: {**of, "base_model.model.model.layers.9.mlp.up_proj.lora_A.weight": torch.ones(3, 32)})
    refused("astray", "fit nowhere", astray)
    refused("half", "lacks", tensors(lambda of: {name: of[name] for name in list(of) if "q_proj.lora_B" not in name}))
    refused("pickled", "only pickled", lambda of: (of / "adapter_model.safetensors").rename(of / "adapter_model.bin"))
    other = write_base(tmp_path / "other", "llama", hidden_size=64)
    refused("misfit", "", base=str(other))
    refused("nowhere", "its base:.*--base", base=str(tmp_path / "gone"))
    with pytest.raises(InputError, match="is no adapter"):
        rmnb.load_reward_model(base, base=str(base))
    moved = shutil.move(base, tmp_path / "moved")
    assert rmnb.load_reward_model(tmp_path / "good", base=moved, device="cpu").score(PROMPT, ["love"]).shape == (1,)


def test_the_adapters_head_takes_the_place_of_one_of_another_shape(tmp_path):
    kind, special = DECODERS["llama"]
    whole = AutoModelForSequenceClassification.from_config(
        kind(**{**SHAPE, **special, "num_labels": 2}, vocab_size=len(WORDS))
    )
    whole.save_pretrained(tmp_path / "base")
    WORDS.save_pretrained(tmp_path / "base")
    model = AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "base", num_labels=1, ignore_mismatched_sizes=True
    )
    model.config.pad_token_id = WORDS.pad_token_id
    adapted = get_peft_model(model, LoraConfig(task_type="SEQ_CLS", r=3, target_modules=LINEAR))
    randomise_trained(adapted)
    adapted.save_pretrained(tmp_path / "adapter")
    WORDS.save_pretrained(tmp_path / "adapter")
    assert difference(rmnb.load_reward_model(tmp_path / "adapter", device="cpu"), own_rewards(adapted)) < 1e-4


def test_a_hub_id_takes_a_revision():
    spec = find_spec("owner/name@v2")
    assert (spec.source, spec.revision, spec.name) == ("owner/name", "v2", "name")
    with pytest.raises(InputError, match="owner/name@revision"):
        find_spec("owner/name@")
