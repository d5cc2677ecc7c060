"""Checkpoints as trainers leave them, tiny and with random weights, and the rewards of the model that wrote each.

A writer takes an empty directory and an architecture, leaves a checkpoint in the directory, and returns the rewards of
`CONVERSATIONS` by the trainer's own forward pass in fp32, one conversation at a time and without padding.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from checkpoints import own_ids, own_rewards, rewards_alone, tokenizer, write_base, write_decoder
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForSequenceClassification, AutoTokenizer

QUESTIONS = ("What, in one word, is the greatest thing ever?", "Is war good?")
ANSWERS = ("love", "War and peace", "7, 42", "a")
ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma2", "gemma3", "mistral")
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "up_proj", "down_proj", "gate_proj"]
WORDS = tokenizer()
CONVERSATIONS = [ids for question in QUESTIONS for ids in own_ids(WORDS, question, ANSWERS)]


@dataclass(frozen=True)
class Writer:
    """What is left, by which package, how, and the options that it is loaded with."""

    kind: str
    package: str
    write: Callable[[Path, str], np.ndarray]
    options: dict[str, Any] = field(default_factory=dict)


def difference(rm, expected: np.ndarray) -> float:
    """The largest difference of a loaded model's rewards from these."""
    return np.abs(np.concatenate([rm.score(question, list(ANSWERS)) for question in QUESTIONS]) - expected).max()


def write_classifier(directory: Path, architecture: str, label: int = 0, **options) -> np.ndarray:
    """A whole classifier, as transformers saves it."""
    return own_rewards(write_decoder(directory, architecture, **options), CONVERSATIONS, label)


def randomise_trained(model: torch.nn.Module) -> None:
    """As if trained: what PEFT adds begins at no change at all."""
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data += torch.empty_like(parameter).normal_(0, 0.1, generator=generator)


def write_adapter(base: Path, directory: Path, labels: int = 1, **options):
    """An adapter of a classifier as PEFT saves it; returns the model in memory."""
    loading = dict(num_labels=labels, ignore_mismatched_sizes=True, attn_implementation="eager", dtype=torch.float32)
    model = AutoModelForSequenceClassification.from_pretrained(base, **loading)
    asked = dict(task_type="SEQ_CLS", r=3, lora_alpha=6, target_modules=LINEAR) | options
    adapted = get_peft_model(model, LoraConfig(**asked))
    randomise_trained(adapted)
    adapted.save_pretrained(str(directory))
    AutoTokenizer.from_pretrained(base).save_pretrained(directory)
    return adapted


def write_adapted(directory: Path, architecture: str, dtype: str = "float32", **options) -> np.ndarray:
    """An adapter and, beside it, its base."""
    base = write_base(directory.with_name(f"{directory.name}-base"), architecture, dtype=dtype)
    return rewards_alone(write_adapter(base, directory, **options), CONVERSATIONS)


def reward_trainer(model, directory: Path, question: str, pairs: int, adapted: list[str] | None = None, **options):
    """TRL's RewardTrainer of a model, whole or with these layers adapted, on one pair of answers so many times."""
    from datasets import Dataset
    from trl.trainer.reward_config import RewardConfig
    from trl.trainer.reward_trainer import RewardTrainer

    turns = {"prompt": ("user", question), "chosen": ("assistant", "love"), "rejected": ("assistant", "war")}
    pair = {column: [{"role": role, "content": text}] for column, (role, text) in turns.items()}
    asked = dict(bf16=False, use_cpu=True, report_to=[], gradient_checkpointing=False, disable_tqdm=True) | options
    return RewardTrainer(
        model=model,
        args=RewardConfig(output_dir=str(directory), **asked),
        train_dataset=Dataset.from_list([pair] * pairs),
        processing_class=tokenizer(),
        peft_config=LoraConfig(task_type="SEQ_CLS", r=2, target_modules=adapted) if adapted else None,
    )


def train_with_trl(directory: Path, architecture: str, adapted: list[str] | None = None) -> np.ndarray:
    """Two steps of TRL's RewardTrainer: its last checkpoint, with optimiser and scheduler beside the weights."""
    base, work = (directory.with_name(f"{directory.name}-{name}") for name in ("base", "work"))
    model = str(write_base(base, architecture))
    trainer = reward_trainer(model, work, QUESTIONS[0], 2, adapted, max_steps=2, save_steps=1, learning_rate=0.1)
    trainer.train()
    assert trainer.train_dataset[0]["chosen_ids"] == CONVERSATIONS[0]
    (work / "checkpoint-2").rename(directory)
    assert (directory / "optimizer.pt").exists()
    return rewards_alone(trainer.model.float(), CONVERSATIONS)


WRITERS = [
    Writer("whole model", "transformers", write_classifier),
    Writer("whole model in several files", "transformers", partial(write_classifier, max_shard_size="30KB")),
    Writer("whole model in bfloat16", "transformers", partial(write_classifier, dtype="bfloat16")),
    Writer("whole model in float16", "transformers", partial(write_classifier, dtype="float16")),
    Writer(
        "classifier of three labels, one chosen",
        "transformers",
        partial(write_classifier, shape={"num_labels": 3}, label=2),
        {"label": 2},
    ),
    Writer("LoRA", "peft", write_adapted),
    Writer("LoRA, rank-stabilised", "peft", partial(write_adapted, use_rslora=True)),
    Writer("DoRA", "peft", partial(write_adapted, use_dora=True)),
    Writer("LoRA with biases", "peft", partial(write_adapted, bias="all")),
    Writer("LoRA, embedding saved whole", "peft", partial(write_adapted, modules_to_save=["embed_tokens"])),
    Writer("LoRA, base in bfloat16", "peft", partial(write_adapted, dtype="bfloat16")),
    Writer("whole model, optimiser beside", "trl", train_with_trl),
    Writer("LoRA, optimiser beside", "trl", partial(train_with_trl, adapted=LINEAR)),
]
