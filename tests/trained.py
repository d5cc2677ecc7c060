"""Checkpoints as trainers leave them, tiny and with random weights, and the rewards of the model that wrote each.

A writer takes an empty directory and an architecture, leaves a checkpoint in the directory, and returns the rewards of
`CONVERSATIONS` by the trainer's own forward pass in fp32, one conversation at a time and without padding.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from checkpoints import DECODERS, SHAPE, randomise, tokenizer
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

QUESTIONS = ("What, in one word, is the greatest thing ever?", "Is war good?")
ANSWERS = ("love", "War and peace", "7, 42", "a")
CONVERSATIONS = [(question, answer) for question in QUESTIONS for answer in ANSWERS]
ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma2", "gemma3", "mistral")
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj", "gate_proj"]
WORDS = tokenizer()
Rewards = list[float]


@dataclass(frozen=True)
class Writer:
    """What is left, by which package, how, and the options that it is loaded with."""

    kind: str
    package: str
    write: Callable[[Path, str], Rewards]
    options: dict[str, Any] = field(default_factory=dict)


def rewards_of(model: torch.nn.Module, forward: Callable[[torch.Tensor], torch.Tensor]) -> Rewards:
    """What a model gives `CONVERSATIONS`; `forward` takes ids [1, length] and returns one number."""
    model.eval()
    found = []
    for question, answer in CONVERSATIONS:
        messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        ids = WORDS.apply_chat_template(messages, tokenize=True, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            found.append(forward(ids).float().item())
    return found


def classifier_rewards(model, label: int = 0) -> Rewards:
    """Those of a classifier of transformers."""
    return rewards_of(model, lambda ids: model(input_ids=ids).logits[0, label])


def difference(rm, expected: Rewards) -> float:
    """The largest difference of a loaded model's rewards from these."""
    found = [reward for question in QUESTIONS for reward in rm.score(question, list(ANSWERS)).tolist()]
    return max(abs(a - b) for a, b in zip(found, expected, strict=True))


def config_of(architecture: str, **options):
    """The configuration of a tiny model."""
    kind, special = DECODERS[architecture]
    return kind(**{**SHAPE, **special, **options}, vocab_size=len(WORDS))


def cast(model, dtype: str):
    """Weights alone: what is in no file (angles of positions, Gemma's factor) stays, or is again, in fp32."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(getattr(torch, dtype))
    for module in model.modules():
        if hasattr(module, "scalar_embed_scale"):
            module.embed_scale = torch.tensor(module.scalar_embed_scale)
    return model


def write_base(directory: Path, architecture: str = "llama", dtype: str = "float32", **options) -> Path:
    """A pretrained language model without any head, as transformers saves it."""
    model = AutoModelForCausalLM.from_config(config_of(architecture, **options))
    randomise(model)
    cast(model, dtype).save_pretrained(directory)
    WORDS.save_pretrained(directory)
    return directory


def write_classifier(directory: Path, architecture: str, dtype: str = "float32", label: int = 0, **options) -> Rewards:
    """A whole classifier, as transformers saves it, in one file or, by `max_shard_size`, in several."""
    shard = {"max_shard_size": options.pop("max_shard_size", "5GB")}
    model = AutoModelForSequenceClassification.from_config(config_of(architecture, **options))
    randomise(model)
    cast(model, dtype).save_pretrained(directory, **shard)
    WORDS.save_pretrained(directory)
    return classifier_rewards(cast(model, "float32"), label)


def randomise_trained(model: torch.nn.Module) -> None:
    """As if trained: what PEFT adds begins at no change at all."""
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data += torch.empty_like(parameter).normal_(0, 0.1, generator=generator)


def write_adapter(base: Path, directory: Path, **options):
    """An adapter of a classifier as PEFT saves it; returns the model in memory."""
    model = AutoModelForSequenceClassification.from_pretrained(
        base, num_labels=1, attn_implementation="eager", dtype=torch.float32
    )
    model.config.pad_token_id = WORDS.pad_token_id
    asked = {"modules_to_save": ["score"], **options}
    adapted = get_peft_model(model, LoraConfig(task_type="SEQ_CLS", r=3, lora_alpha=6, target_modules=LINEAR, **asked))
    randomise_trained(adapted)
    adapted.save_pretrained(str(directory))
    WORDS.save_pretrained(directory)
    return adapted


def train_with_trl(base: Path, directory: Path, adapted: bool) -> tuple[Path, Rewards]:
    """Two steps of TRL's RewardTrainer: its last checkpoint, with optimiser and scheduler beside the weights."""
    from datasets import Dataset
    from trl.trainer.reward_config import RewardConfig
    from trl.trainer.reward_trainer import RewardTrainer

    sides = {"chosen": "love", "rejected": "war"}
    pairs = {"prompt": [[{"role": "user", "content": QUESTIONS[0]}]] * 2} | {
        side: [[{"role": "assistant", "content": answer}]] * 2 for side, answer in sides.items()
    }
    options = dict(max_steps=2, save_steps=1, learning_rate=0.1, bf16=False, use_cpu=True, report_to=[])
    trainer = RewardTrainer(
        model=str(base),
        args=RewardConfig(output_dir=str(directory), gradient_checkpointing=False, disable_tqdm=True, **options),
        train_dataset=Dataset.from_dict(pairs),
        processing_class=tokenizer(),
        peft_config=LoraConfig(task_type="SEQ_CLS", r=2, target_modules=LINEAR) if adapted else None,
    )
    trainer.train()
    turns = [{"role": "user", "content": QUESTIONS[0]}, {"role": "assistant", "content": sides["chosen"]}]
    assert trainer.train_dataset[0]["chosen_ids"] == WORDS.apply_chat_template(turns, tokenize=True)["input_ids"]
    last = directory / "checkpoint-2"
    assert (last / "optimizer.pt").exists()
    return last, classifier_rewards(trainer.model.float())


def _classifier(**options) -> Callable[[Path, str], Rewards]:
    return lambda directory, architecture: write_classifier(directory, architecture, **options)


def _adapter(dtype: str = "float32", **options) -> Callable[[Path, str], Rewards]:
    def write(directory: Path, architecture: str) -> Rewards:
        base = write_base(directory.with_name(f"{directory.name}-base"), architecture, dtype)
        return classifier_rewards(write_adapter(base, directory, **options))

    return write


def _trl(adapted: bool) -> Callable[[Path, str], Rewards]:
    def write(directory: Path, architecture: str) -> Rewards:
        base = write_base(directory.with_name(f"{directory.name}-base"), architecture)
        last, expected = train_with_trl(base, directory.with_name(f"{directory.name}-work"), adapted)
        last.rename(directory)
        return expected

    return write


WRITERS = [
    Writer("whole model", "transformers", _classifier()),
    Writer("whole model in several files", "transformers", _classifier(max_shard_size="30KB")),
    Writer("whole model in bfloat16", "transformers", _classifier(dtype="bfloat16")),
    Writer("whole model in float16", "transformers", _classifier(dtype="float16")),
    Writer("classifier of three labels, one chosen", "transformers", _classifier(num_labels=3, label=2), {"label": 2}),
    Writer("LoRA", "peft", _adapter()),
    Writer("LoRA, rank-stabilised", "peft", _adapter(use_rslora=True)),
    Writer("DoRA", "peft", _adapter(use_dora=True)),
    Writer("LoRA with biases", "peft", _adapter(bias="all")),
    Writer("LoRA, embedding saved whole", "peft", _adapter(modules_to_save=["score", "embed_tokens"])),
    Writer("LoRA, base in bfloat16", "peft", _adapter("bfloat16")),
    Writer("whole model, optimiser beside", "trl", _trl(adapted=False)),
    Writer("LoRA, optimiser beside", "trl", _trl(adapted=True)),
]
