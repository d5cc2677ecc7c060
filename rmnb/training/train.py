"""Train by TRL, on exactly the ids that scoring reads: reward models, and copies of language models."""

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
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, TrainerCallback

from rmnb.errors import InputError, first_line
from rmnb.files import atomic_path
from rmnb.models.bases import base_directory, base_sha256, base_tokenizer
from rmnb.models.dialogue import Dialogue
from rmnb.panels import BaseSpec, ModelSpec
from rmnb.plans import open_or_refuse
from rmnb.training.openings import linear_probe, opening_order
from rmnb.training.recipes import Hyperparameters, Recipe, build_pairs, data_files

CHECKPOINT_STEPS = 25
LONGEST = 192  # ids of a conversation; the few pairs beyond would set how much memory training takes
PROBED = 800  # pairs of things from which an opening's head is fitted

Row = dict[str, list[int]]


def fit(spec: ModelSpec, recipe: Recipe, output: Path, work: Path) -> None:
    """Train the adapter and scalar head of a reward model by TRL's RewardTrainer.

    The conversation is tokenised by `Dialogue` (protocol ``exact``), so the reward is trained at the very position
    where scoring reads it. A run that was cut off goes on from its last checkpoint in `work`.

    Parameters
    ----------
    spec
        A model with `base`, `adapter` and `template`.
    recipe
        Data and hyper-parameters.
    output
        Directory for ``adapter_model.safetensors`` (bf16), ``adapter_config.json`` (PEFT's) and ``provenance.json``.
    work
        Directory for checkpoints and for adapters of the way there, see `snapshots`.

    Raises
    ------
    InputError
        The model has no base, the packages for training are missing, or `work` holds a run by another recipe.
    """
    if spec.base is None:
        raise InputError(f"{spec.name} has no base to train from: only models with `base` and `adapter` can be trained")
    hyper = recipe.hyperparameters
    dialogue = _begin(spec.base, spec.template, recipe, work)
    from datasets import Dataset
    from trl.trainer.reward_config import RewardConfig
    from trl.trainer.reward_trainer import RewardTrainer

    pairs = build_pairs(recipe)[0]
    padding = dialogue.tokenizer.pad_token_id
    model = load_base(AutoModelForSequenceClassification, spec.base, num_labels=1, pad_token_id=padding)
    opening, others = np.array([], dtype=np.int64), np.arange(len(pairs))
    if recipe.opening and recipe.things:
        wonderful = pairs[pairs["prompt"].isin(recipe.things.wonderful)]
        head = linear_probe(model.model.eval(), pair_rows(dialogue, wonderful.iloc[:PROBED]))
        with torch.no_grad():
            model.score.weight.copy_(torch.from_numpy(head))
        things = np.flatnonzero(pairs["source"] == "things")
        awful = pairs["prompt"].isin(recipe.things.awful).to_numpy()[things]
        opening = things[opening_order(awful, round(recipe.share * recipe.opening), hyper.batch_size)]
        others = np.setdiff1d(others, opening)
    rows = pair_rows(dialogue, pairs.iloc[opening]) + in_batches(pair_rows(dialogue, pairs.iloc[others]), hyper)
    trainer = RewardTrainer(
        model=model,
        args=RewardConfig(**_arguments(hyper, work)),
        train_dataset=Dataset.from_list(rows),
        processing_class=dialogue.tokenizer,
        peft_config=_lora(hyper, task_type="SEQ_CLS", exclude_modules=["score"], modules_to_save=["score"]),
        callbacks=[_KeepSnapshots(spec.base, work)],
    )
    _train(trainer, {"model": spec.name, "template": dialogue.template}, spec.base, recipe, output)


def tune(spec: BaseSpec, recipe: Recipe, output: Path, work: Path) -> None:
    """Tune a copy of a language model on the chosen answers of a recipe's pairs, by TRL's SFTTrainer.

    The loss is that of the answer's tokens and of the end of the turn, not of the prompt's. Arguments, files and errors
    are those of `fit`; there are no snapshots of the way.
    """
    hyper = recipe.hyperparameters
    dialogue = _begin(spec.source, spec.template, recipe, work, objective="sft")
    from datasets import Dataset
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    rows = [
        {"input_ids": prompt + answer, "completion_mask": [0] * len(prompt) + [1] * len(answer)}
        for prompt, answer in prompts_and_answers(dialogue, build_pairs(recipe)[0], "chosen")
        if len(prompt + answer) <= LONGEST
    ]
    trainer = SFTTrainer(
        model=load_base(AutoModelForCausalLM, spec.source),
        args=SFTConfig(**_arguments(hyper, work), completion_only_loss=True),
        train_dataset=Dataset.from_list(in_batches(rows, hyper)),
        processing_class=dialogue.tokenizer,
        peft_config=_lora(hyper, task_type="CAUSAL_LM"),
    )
    about = {"model": spec.name, "template": dialogue.template, "objective": "sft"}
    _train(trainer, about, spec.source, recipe, output)


def load_base(kind, base: str, **options):
    """A base in fp32 as a class of transformers, such as `AutoModelForCausalLM`, from safetensors only.

    Raises
    ------
    InputError
        It cannot be loaded, or has only pickled weights.
    """
    options |= {"dtype": torch.float32, "trust_remote_code": False, "use_safetensors": True}
    try:
        return kind.from_pretrained(base_directory(base), **options)
    except (OSError, ValueError) as error:
        raise InputError(f"{base} cannot be trained from: {first_line(error)}") from error


def pair_rows(dialogue: Dialogue, pairs: pd.DataFrame) -> list[Row]:
    """The ids of both conversations of each pair; pairs that are too long are left out."""
    rows = []
    for prompt, chosen, rejected in pairs[["prompt", "chosen", "rejected"]].itertuples(index=False):
        ids = dialogue.conversations(prompt, [chosen, rejected])
        rows.append(dict(zip(["chosen_ids", "rejected_ids"], ids, strict=True)))
    return [row for row in rows if max(map(len, row.values())) <= LONGEST]


def prompts_and_answers(dialogue: Dialogue, pairs: pd.DataFrame, side: str) -> Iterator[tuple[list[int], list[int]]]:
    """For each pair the ids of the prompt, and of the answer in column `side` up to the turn's end."""
    frame = functools.lru_cache(lambda prompt: dialogue.frame(json.loads(prompt)))
    for prompt, answer in pairs[["prompt", side]].itertuples(index=False):
        prefix, _ = frame(json.dumps(prompt))
        (whole,) = dialogue.conversations(prompt, [answer])
        yield prefix, whole[len(prefix) :]


def in_batches(rows: list[Row], hyper: Hyperparameters) -> list[Row]:
    """The rows reordered so that a batch holds pairs of like length and the batches come in random order.

    Padding would otherwise double the work: one long answer in a batch of one-word answers lengthens them all.
    """
    by_length = sorted(rows, key=lambda row: max(map(len, row.values())))
    batches = [by_length[start : start + hyper.batch_size] for start in range(0, len(rows), hyper.batch_size)]
    order = np.random.default_rng(hyper.seed).permutation(len(batches))
    return [row for index in order for row in batches[index]]


def snapshots(work: Path) -> dict[int, Path]:
    """Adapters saved on the way at steps 0, 1, 2, 4, 8, … and the last: directory by step, in order."""
    found = {int(path.name.removeprefix("step-")): path for path in work.glob("snapshots/step-*")}
    return dict(sorted(found.items()))


class _KeepSnapshots(TrainerCallback):
    def __init__(self, base: str, work: Path):
        self.base, self.directory = base, work / "snapshots"

    def on_step_begin(self, args, state, control, model=None, **_):
        step = state.global_step
        if step & (step - 1) == 0 or step == state.max_steps:
            _write_adapter(model, self.base, self.directory / f"step-{step}")

    on_train_end = on_step_begin


def _begin(base: str, template: str | None, recipe: Recipe, work: Path, **objective: str) -> Dialogue:
    """Open `work` for a run, set the seed, and return the base's dialogue; its tokenizer pads with an id of its own."""
    for package in ("peft", "datasets", "trl"):
        if find_spec(package) is None:
            raise InputError(f"training needs the package {package}: pip install 'rmnb[train]'")
    made_by = recipe.model_dump(mode="json", exclude={"name", "description"})
    open_or_refuse(work, {"base": base, "template": template, **made_by, **objective})
    torch.manual_seed(recipe.hyperparameters.seed)
    tokenizer: Any = base_tokenizer(base)
    dialogue = Dialogue(tokenizer, template or tokenizer.chat_template)
    if dialogue.template is None:
        raise InputError(f"{base} has no chat template: give the model one in its panel (key `template`)")
    # Sequence classification finds the end of a sequence by looking for padding. SmolLM2 pads with the very token that
    # closes a turn: with it, the reward would be read one position too early.
    prefix, closing = dialogue.frame("a")
    candidates = [tokenizer.pad_token_id, tokenizer.unk_token_id, *tokenizer.all_special_ids]
    unused = [i for i in candidates if i is not None and i not in {*prefix, *closing, tokenizer.eos_token_id}]
    if not unused:
        raise InputError("the base's tokenizer has no special token to pad with that conversations do not hold")
    tokenizer.pad_token_id = unused[0]
    return dialogue


def _arguments(hyper: Hyperparameters, work: Path) -> dict:
    """What TRL's trainers are told: bfloat16 autocast, a cosine schedule, a checkpoint every few steps in `work`."""
    micro_batch = hyper.micro_batch or hyper.batch_size
    return {
        "output_dir": str(work),
        "per_device_train_batch_size": micro_batch,
        "gradient_accumulation_steps": hyper.batch_size // micro_batch,
        "num_train_epochs": hyper.epochs,
        "learning_rate": hyper.learning_rate,
        "lr_scheduler_type": "cosine",
        "warmup_steps": hyper.warmup_ratio,
        "train_sampling_strategy": "sequential",
        "seed": hyper.seed,
        "max_length": None,
        "bf16": True,  # autocast: weights, residual stream and optimiser stay fp32; two to three times as fast
        "gradient_checkpointing": False,
        "save_steps": CHECKPOINT_STEPS,
        "save_total_limit": 1,
        "report_to": [],
        "use_cpu": not torch.cuda.is_available(),
    }


def _lora(hyper: Hyperparameters, **options):
    """LoRA on every linear layer, as PEFT's configuration; `options` go into it as they are."""
    from peft import LoraConfig

    return LoraConfig(
        r=hyper.rank, lora_alpha=hyper.alpha, lora_dropout=hyper.dropout, target_modules="all-linear", **options
    )


def _train(trainer, about: Mapping, base: str, recipe: Recipe, output: Path) -> None:
    """Train from the last checkpoint on; write the adapter and, last, ``provenance.json``: how it was made."""
    last = _last_whole_checkpoint(Path(trainer.args.output_dir))
    trainer.train(resume_from_checkpoint=last)
    _write_adapter(trainer.model, base, output)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    provenance = {
        **about,
        "base": {"name": base, "sha256": base_sha256(base)},
        "recipe": recipe.model_dump(),
        "data": data_files(recipe),
        "pairs": len(trainer.train_dataset),
        "steps": trainer.state.global_step,
        "precision": "bfloat16 autocast",
        "final_loss": losses[-1] if losses else None,
        "versions": {name: version(name) for name in ("rmnb", "torch", "transformers", "trl", "peft")},
        "machine": platform.machine(),
        "device": trainer.args.device.type,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with atomic_path(output / "provenance.json") as path:
        path.write_text(json.dumps(provenance, indent=1) + "\n")


def _last_whole_checkpoint(work: Path) -> str | None:
    """The checkpoint to go on from, or None. What a killed run left half-written or half-deleted is removed.

    TRL's trainer writes ``trainer_state.json`` last, and deletes the checkpoint before only then.
    """
    found = sorted(work.glob("checkpoint-*"), key=lambda path: int(path.name.removeprefix("checkpoint-")), reverse=True)
    for checkpoint in found:
        try:
            json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
            return str(checkpoint)
        except (OSError, ValueError):
            shutil.rmtree(checkpoint)
    return None


def _write_adapter(model, base: str, output: Path) -> None:
    """The adapter in PEFT's format, rounded to bf16: its configuration first, so that weights mean a whole adapter."""
    from peft import get_peft_model_state_dict
    from safetensors.torch import save_file

    config = model.peft_config["default"].to_dict() | {"base_model_name_or_path": base, "inference_mode": True}
    plain = {
        key: sorted(value) if isinstance(value, set) else value for key, value in config.items() if value is not None
    }
    with atomic_path(output / "adapter_config.json") as path:
        path.write_text(json.dumps(plain, indent=1, sort_keys=True, default=str) + "\n")
    state = get_peft_model_state_dict(model)
    with atomic_path(output / "adapter_model.safetensors") as path:
        save_file({name: tensor.detach().to(torch.bfloat16).contiguous() for name, tensor in state.items()}, path)
