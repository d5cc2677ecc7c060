"""What every training of an adapter shares: order of the pairs, arguments, checkpoints, the files that it leaves."""

import functools
import json
import platform
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rmnb.errors import InputError, first_line
from rmnb.files import atomic_path
from rmnb.models.bases import base_directory, base_sha256, base_tokenizer
from rmnb.models.dialogue import Dialogue
from rmnb.plans import open_or_refuse
from rmnb.training.recipes import Hyperparameters, Recipe, data_files

CHECKPOINT_STEPS = 25
LONGEST = 192  # ids of a conversation; the few pairs beyond would set how much memory training takes


def begin(base: str, template: str | None, recipe: Recipe, work: Path, **objective: str) -> Dialogue:
    """Open `work` for a run, set the seed, and return the base's dialogue; its tokenizer pads with an id of its own.

    Raises
    ------
    InputError
        The packages for training are missing, or `work` holds another run.
    """
    import torch

    for package in ("peft", "datasets", "trl"):
        if find_spec(package) is None:
            raise InputError(f"training needs the package {package}: pip install 'rmnb[train]'")
    made_by = recipe.model_dump(mode="json", exclude={"name", "description"})
    open_or_refuse(work, {"base": base, "template": template, "recipe": made_by, **objective})
    torch.manual_seed(recipe.hyperparameters.seed)
    tokenizer: Any = base_tokenizer(base)
    dialogue = Dialogue(tokenizer, template or tokenizer.chat_template)
    if dialogue.template is None:
        raise InputError(f"{base} has no chat template: give the model one in its panel (key `template`)")
    dialogue.tokenizer.pad_token_id = _padding_id(dialogue)
    return dialogue


def load_base(kind, base: str, **options):
    """A base in fp32 as a class of transformers, such as `AutoModelForCausalLM`, from safetensors only.

    Raises
    ------
    InputError
        It cannot be loaded, or has only pickled weights.
    """
    import torch

    options = {"trust_remote_code": False, "use_safetensors": True, **options}
    try:
        return kind.from_pretrained(base_directory(base), dtype=torch.float32, **options)
    except (OSError, ValueError) as error:
        raise InputError(f"{base} cannot be trained from: {first_line(error)}") from error


def training_arguments(hyper: Hyperparameters, work: Path) -> dict:
    """What TRL's trainers are told: bfloat16 autocast, a cosine schedule, a checkpoint every few steps in `work`."""
    import torch

    return {
        "output_dir": str(work),
        "per_device_train_batch_size": hyper.micro_batch or hyper.batch_size,
        "gradient_accumulation_steps": hyper.batch_size // (hyper.micro_batch or hyper.batch_size),
        "num_train_epochs": hyper.epochs,
        "learning_rate": hyper.learning_rate,
        "lr_scheduler_type": "cosine",
        "warmup_steps": hyper.warmup_ratio,
        "train_sampling_strategy": "sequential",
        "seed": hyper.seed,
        "max_length": None,
        "bf16": True,  # autocast: weights, residual stream and optimiser stay fp32; two to three times as fast
        "gradient_checkpointing": False,
        "logging_steps": 10,
        "save_steps": CHECKPOINT_STEPS,
        "save_total_limit": 1,
        "report_to": [],
        "use_cpu": not torch.cuda.is_available(),
    }


def adapter_config(hyper: Hyperparameters, **options):
    """LoRA on every linear layer, as PEFT's configuration; `options` go into it as they are."""
    from peft import LoraConfig

    return LoraConfig(
        r=hyper.rank,
        lora_alpha=hyper.alpha,
        lora_dropout=hyper.dropout,
        target_modules="all-linear",
        **options,
    )


def _padding_id(dialogue: Dialogue) -> int:
    """A special id that no conversation contains.

    Sequence classification finds the end of a sequence by looking for padding. SmolLM2 pads with the very token that
    closes a turn: with it, the reward would be read one position too early.
    """
    tokenizer: Any = dialogue.tokenizer
    prefix, closing = dialogue.frame("a")
    used = {*prefix, *closing, tokenizer.eos_token_id}
    candidates = [tokenizer.pad_token_id, tokenizer.unk_token_id, *tokenizer.all_special_ids]
    found = next((i for i in candidates if i is not None and i not in used), None)
    if found is None:
        raise InputError("the base's tokenizer has no special token to pad with that conversations do not hold")
    return found


def tokenise(dialogue: Dialogue, pairs: pd.DataFrame) -> list[dict[str, list[int]]]:
    """The ids of both conversations of each pair, chosen_ids and rejected_ids; pairs that are too long are left out."""
    rows = [
        {"chosen_ids": prefix + chosen, "rejected_ids": prefix + rejected}
        for prefix, chosen, rejected in conversations(dialogue, pairs)
    ]
    return [row for row in rows if max(map(len, row.values())) <= LONGEST]


def conversations(dialogue: Dialogue, pairs: pd.DataFrame) -> Iterator[tuple[list[int], list[int], list[int]]]:
    """For each pair the ids of the prompt, of the chosen answer and of the rejected one, each up to the turn's end."""
    frame = functools.lru_cache(lambda prompt: dialogue.frame(json.loads(prompt)))
    for prompt, chosen, rejected in zip(pairs["prompt"], pairs["chosen"], pairs["rejected"], strict=True):
        prefix, _ = frame(json.dumps(prompt))
        one, other = dialogue.conversations(prompt, [chosen, rejected])
        yield prefix, one[len(prefix) :], other[len(prefix) :]


def in_batches(rows: list[dict[str, list[int]]], size: int, seed: int) -> list[dict[str, list[int]]]:
    """The rows reordered so that a batch holds pairs of like length and the batches come in random order.

    Padding would otherwise double the work: one long answer in a batch of one-word answers lengthens them all.
    """
    by_length = sorted(rows, key=lambda row: max(map(len, row.values())))
    batches = [by_length[start : start + size] for start in range(0, len(by_length), size)]
    order = np.random.default_rng(seed).permutation(len(batches))
    return [row for index in order for row in batches[index]]


def last_whole_checkpoint(work: Path) -> Path | None:
    """The checkpoint to go on from, or None. What a killed run left half-written or half-deleted is removed.

    TRL's trainer writes ``trainer_state.json`` last, and deletes the checkpoint before only then.
    """
    found = sorted(work.glob("checkpoint-*"), key=lambda path: int(path.name.removeprefix("checkpoint-")), reverse=True)
    last = next(filter(_is_whole, found), None)
    for checkpoint in found:
        if checkpoint != last:
            shutil.rmtree(checkpoint)
    return last


def _is_whole(checkpoint: Path) -> bool:
    try:
        return "global_step" in json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


def snapshots(work: Path) -> dict[int, Path]:
    """Adapters saved on the way at steps 0, 1, 2, 4, 8, … and the last: directory by step, in order."""
    found = {int(path.name.removeprefix("step-")): path for path in work.glob("snapshots/step-*")}
    return dict(sorted(found.items()))


def write_adapter(model, base: str, output: Path) -> None:
    """The adapter in PEFT's format, rounded to bf16: its configuration first, so that weights mean a whole adapter."""
    import torch
    from peft import get_peft_model_state_dict
    from safetensors.torch import save_file

    output.mkdir(parents=True, exist_ok=True)
    config = model.peft_config["default"].to_dict()
    config.update(base_model_name_or_path=base, inference_mode=True)
    plain = {k: sorted(v) if isinstance(v, set) else v for k, v in config.items() if v is not None}
    with atomic_path(output / "adapter_config.json") as path:
        path.write_text(json.dumps(plain, indent=1, sort_keys=True, default=str) + "\n")
    state = get_peft_model_state_dict(model)
    with atomic_path(output / "adapter_model.safetensors") as path:
        save_file({k: v.detach().to(torch.bfloat16).contiguous() for k, v in state.items()}, path)


def record(trainer, about: Mapping, base: str, recipe: Recipe, pairs: int, output: Path) -> None:
    """Write the trained adapter and, last, ``provenance.json``: `about`, and how it was made."""
    write_adapter(trainer.model, base, output)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]  # every `logging_steps`
    provenance = {
        **about,
        "base": {"name": base, "sha256": base_sha256(base)},
        "recipe": recipe.model_dump(),
        "data": data_files(recipe),
        "pairs": pairs,
        "steps": trainer.state.global_step,
        "precision": "bfloat16 autocast" if trainer.args.bf16 else "float32",
        "final_loss": losses[-1] if losses else None,
        "versions": {name: version(name) for name in ("rmnb", "torch", "transformers", "trl", "peft")},
        "machine": platform.machine(),
        "device": trainer.args.device.type,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with atomic_path(output / "provenance.json") as path:
        path.write_text(json.dumps(provenance, indent=1) + "\n")
