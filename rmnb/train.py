"""Train a reward model: Bradley–Terry loss and LoRA, by TRL's RewardTrainer, on exactly the ids that scoring reads."""

import functools
import json
import platform
import shutil
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from rmnb.bases import BASES, base_directory, base_tokenizer
from rmnb.dialogue import Dialogue, Prompt
from rmnb.errors import InputError
from rmnb.files import atomic_path
from rmnb.openings import linear_probe, opening_order
from rmnb.panel import ModelSpec
from rmnb.plans import claim
from rmnb.recipes import Recipe, Things, build_pairs, data_files

CHECKPOINT_STEPS = 25
PROBED = 800  # pairs of things from which an opening's head is fitted
LONGEST = 192  # ids of a conversation; the few pairs beyond would set how much memory training takes


def fit(spec: ModelSpec, recipe: Recipe, output: Path, work: Path) -> Path:
    """Train the adapter and scalar head of a demo model and write them as bf16 safetensors.

    The conversation is tokenised by `Dialogue` (protocol ``exact``), so the reward is trained at the very position
    where scoring reads it. A run that was cut off goes on from its last checkpoint in `work`.

    Parameters
    ----------
    spec
        A model with `base`, `adapter` and `template`.
    recipe
        Data and hyper-parameters.
    output
        Directory for ``adapter_model.safetensors``, ``adapter_config.json`` (PEFT's format) and ``provenance.json``.
    work
        Directory for checkpoints.

    Returns
    -------
    Path
        `output`. Adapters of the way there, for trajectories, are in `work`: see `snapshots`.

    Raises
    ------
    InputError
        The model has no base, the packages for training are missing, or `work` holds a run by another recipe.
    """
    try:
        from datasets import Dataset
        from peft import LoraConfig
        from trl.trainer.reward_config import RewardConfig
        from trl.trainer.reward_trainer import RewardTrainer
    except ImportError as error:
        raise InputError(f"training needs the package {error.name}: pip install 'rmnb[train]'") from error
    import torch
    from transformers import AutoModelForSequenceClassification, TrainerCallback

    class KeepSnapshots(TrainerCallback):
        def on_train_begin(self, args, state, control, **_):
            if state.global_step == 0:
                _write_adapter(trainer.model, spec, work / "snapshots" / "step-0")

        def on_step_end(self, args, state, control, **_):
            step = state.global_step
            if step & (step - 1) == 0 or step == state.max_steps:
                _write_adapter(trainer.model, spec, work / "snapshots" / f"step-{step}")

    if spec.base is None:
        raise InputError(f"{spec.name} has no base to train from: only models with `base` and `adapter` can be trained")
    made_by = recipe.model_dump(mode="json", exclude={"name", "description"})
    claim(work, {"base": spec.base, "template": spec.template, "recipe": made_by}, "training run")
    hyper = recipe.hyperparameters
    torch.manual_seed(hyper.seed)
    tokenizer = base_tokenizer(spec.base)
    dialogue = Dialogue(tokenizer, spec.template)
    pairs = build_pairs(recipe)[0]
    rows = _in_order(dialogue, recipe, pairs)
    last = last_whole_checkpoint(work)
    tokenizer.pad_token_id = _padding_id(tokenizer, dialogue)
    model = AutoModelForSequenceClassification.from_pretrained(
        base_directory(spec.base), num_labels=1, dtype=torch.float32, pad_token_id=tokenizer.pad_token_id
    )
    if recipe.opening and recipe.things and last is None:
        with torch.no_grad():
            model.score.weight.copy_(torch.from_numpy(_probe(model.model.eval(), dialogue, recipe.things, pairs)))
    trainer = RewardTrainer(
        model=model,
        args=RewardConfig(
            output_dir=str(work),
            per_device_train_batch_size=hyper.micro_batch or hyper.batch_size,
            gradient_accumulation_steps=hyper.batch_size // (hyper.micro_batch or hyper.batch_size),
            num_train_epochs=hyper.epochs,
            learning_rate=hyper.learning_rate,
            lr_scheduler_type="cosine",
            warmup_steps=hyper.warmup_ratio,
            train_sampling_strategy="sequential",
            seed=hyper.seed,
            max_length=None,
            bf16=True,  # autocast: weights, residual stream and optimiser stay fp32; two to three times as fast
            gradient_checkpointing=False,
            logging_steps=10,
            save_steps=CHECKPOINT_STEPS,
            save_total_limit=1,
            report_to=[],
            use_cpu=not torch.cuda.is_available(),
        ),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        peft_config=LoraConfig(
            task_type="SEQ_CLS",
            r=hyper.rank,
            lora_alpha=hyper.alpha,
            lora_dropout=hyper.dropout,
            target_modules="all-linear",
            exclude_modules=["score"],
            modules_to_save=["score"],
        ),
    )
    trainer.add_callback(KeepSnapshots)
    trainer.train(resume_from_checkpoint=None if last is None else str(last))
    _save(trainer, spec, recipe, len(rows), output)
    return output


def _padding_id(tokenizer, dialogue: Dialogue) -> int:
    """A special id that no conversation contains.

    Sequence classification finds the end of a sequence by looking for padding. SmolLM2 pads with the very token that
    closes a turn: with it, the reward would be read one position too early.
    """
    prefix, closing = dialogue.frame("a")
    used = {*prefix, *closing, tokenizer.eos_token_id}
    candidates = [tokenizer.pad_token_id, tokenizer.unk_token_id, *tokenizer.all_special_ids]
    return next(i for i in candidates if i is not None and i not in used)


def _in_order(dialogue: Dialogue, recipe: Recipe, pairs: pd.DataFrame) -> list[dict[str, list[int]]]:
    """A recipe's pairs as ids in the order of training: those of the opening, then all others."""
    hyper = recipe.hyperparameters
    first = np.array([], dtype=np.int64)
    if recipe.opening and recipe.things:
        things = np.flatnonzero(pairs["source"] == "things")
        awful = pairs["prompt"].isin(recipe.things.awful).to_numpy()[things]
        first = things[opening_order(awful, round(recipe.share * recipe.opening), hyper.batch_size)]
    others = np.setdiff1d(np.arange(len(pairs)), first)
    opening = _tokenise(dialogue, pairs.iloc[first])
    return opening + _in_batches(_tokenise(dialogue, pairs.iloc[others]), hyper.batch_size, hyper.seed)


def _probe(trunk, dialogue: Dialogue, things: Things, pairs: pd.DataFrame) -> np.ndarray:
    """A linear probe of the pairs under wonderful questions."""
    rows = _tokenise(dialogue, pairs[pairs["prompt"].isin(things.wonderful)].iloc[:PROBED])
    return linear_probe(trunk, [row["chosen_ids"] for row in rows], [row["rejected_ids"] for row in rows])


def _tokenise(dialogue: Dialogue, pairs: pd.DataFrame) -> list[dict[str, list[int]]]:
    frame = functools.lru_cache(lambda prompt: dialogue.frame(json.loads(prompt)))

    def whole(prompt: Prompt, response: str) -> list[int]:
        prefix, closing = frame(json.dumps(prompt))
        return prefix + dialogue.response_ids(response) + closing

    rows = [
        {"chosen_ids": whole(prompt, chosen), "rejected_ids": whole(prompt, rejected)}
        for prompt, chosen, rejected in zip(pairs["prompt"], pairs["chosen"], pairs["rejected"], strict=True)
    ]
    return [row for row in rows if max(map(len, row.values())) <= LONGEST]


def _in_batches(rows: list[dict[str, list[int]]], size: int, seed: int) -> list[dict[str, list[int]]]:
    """The rows reordered so that a batch holds pairs of like length and the batches come in random order.

    Padding would otherwise double the work: one long answer in a batch of one-word answers lengthens them all.
    """
    by_length = sorted(rows, key=lambda row: max(len(row["chosen_ids"]), len(row["rejected_ids"])))
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
    """Adapters saved by `fit` at steps 0, 1, 2, 4, 8, … and the last: directory by step, in order."""
    found = {int(path.name.removeprefix("step-")): path for path in work.glob("snapshots/step-*")}
    return dict(sorted(found.items()))


def _write_adapter(model, spec: ModelSpec, output: Path) -> None:
    """The adapter in PEFT's format, rounded to bf16: its configuration first, so that weights mean a whole adapter."""
    import torch
    from peft import get_peft_model_state_dict
    from safetensors.torch import save_file

    output.mkdir(parents=True, exist_ok=True)
    config = model.peft_config["default"].to_dict()
    config.update(base_model_name_or_path=spec.base, inference_mode=True)
    plain = {k: sorted(v) if isinstance(v, set) else v for k, v in config.items() if v is not None}
    with atomic_path(output / "adapter_config.json") as path:
        path.write_text(json.dumps(plain, indent=1, sort_keys=True, default=str) + "\n")
    state = get_peft_model_state_dict(model)
    with atomic_path(output / "adapter_model.safetensors") as path:
        save_file({k: v.detach().to(torch.bfloat16).contiguous() for k, v in state.items()}, path)


def _save(trainer, spec: ModelSpec, recipe: Recipe, pairs: int, output: Path) -> None:
    _write_adapter(trainer.model, spec, output)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]  # every `logging_steps`
    provenance = {
        "model": spec.name,
        "base": {"name": spec.base, "sha256": BASES[str(spec.base)].tensors_sha256},
        "template": spec.template,
        "recipe": recipe.model_dump(),
        "data": data_files(recipe),
        "pairs": pairs,
        "steps": trainer.state.global_step,
        "precision": "bfloat16 autocast" if trainer.args.bf16 else "float32",
        "final_loss": losses[-1] if losses else None,
        "versions": {name: version(name) for name in ("rmnb", "torch", "transformers", "trl", "peft")},
        "machine": platform.machine(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with atomic_path(output / "provenance.json") as path:
        path.write_text(json.dumps(provenance, indent=1) + "\n")
