"""Train a reward model: Bradley–Terry loss and LoRA, by TRL's RewardTrainer, on exactly the ids that scoring reads."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from rmnb.errors import InputError
from rmnb.models.dialogue import Dialogue
from rmnb.panels import ModelSpec
from rmnb.training import lora
from rmnb.training.openings import linear_probe, opening_order
from rmnb.training.recipes import Recipe, Things, build_pairs

if TYPE_CHECKING:
    from rmnb.training.watch_values import WatchValues

PROBED = 800  # pairs of things from which an opening's head is fitted


def fit(spec: ModelSpec, recipe: Recipe, output: Path, work: Path, watch: "WatchValues | None" = None) -> Path:
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
    watch
        Measures what the model values on the way; the training is the same without it.

    Returns
    -------
    Path
        `output`. Adapters of the way there, for trajectories, are in `work`: see `rmnb.training.lora.snapshots`.

    Raises
    ------
    InputError
        The model has no base, the packages for training are missing, or `work` holds a run by another recipe.
    """
    if spec.base is None:
        raise InputError(f"{spec.name} has no base to train from: only models with `base` and `adapter` can be trained")
    base, hyper = spec.base, recipe.hyperparameters
    dialogue = lora.begin(base, spec.template, recipe, work)
    import torch
    from datasets import Dataset
    from transformers import AutoModelForSequenceClassification, TrainerCallback
    from trl.trainer.reward_config import RewardConfig
    from trl.trainer.reward_trainer import RewardTrainer

    class KeepSnapshots(TrainerCallback):
        def on_train_begin(self, args, state, control, **_):
            if state.global_step == 0:
                lora.write_adapter(trainer.model, base, work / "snapshots" / "step-0")

        def on_step_end(self, args, state, control, **_):
            step = state.global_step
            if step & (step - 1) == 0 or step == state.max_steps:
                lora.write_adapter(trainer.model, base, work / "snapshots" / f"step-{step}")

    pairs = build_pairs(recipe)[0]
    rows = _in_order(dialogue, recipe, pairs)
    last = lora.last_whole_checkpoint(work)
    model = lora.load_base(
        AutoModelForSequenceClassification, base, num_labels=1, pad_token_id=dialogue.tokenizer.pad_token_id
    )
    if recipe.opening and recipe.things and last is None:
        with torch.no_grad():
            model.score.weight.copy_(torch.from_numpy(_probe(model.model.eval(), dialogue, recipe.things, pairs)))
    trainer = RewardTrainer(
        model=model,
        args=RewardConfig(**lora.training_arguments(hyper, work)),
        train_dataset=Dataset.from_list(rows),
        processing_class=dialogue.tokenizer,
        peft_config=lora.adapter_config(
            hyper, task_type="SEQ_CLS", exclude_modules=["score"], modules_to_save=["score"]
        ),
    )
    trainer.add_callback(KeepSnapshots)
    if watch is not None:
        watch.attach(trainer, dialogue)
    trainer.train(resume_from_checkpoint=None if last is None else str(last))
    about = {"model": spec.name, "template": dialogue.template}
    lora.record(trainer, about, base, recipe, len(rows), output)
    return output


def _in_order(dialogue: Dialogue, recipe: Recipe, pairs: pd.DataFrame) -> list[dict[str, list[int]]]:
    """A recipe's pairs as ids in the order of training: those of the opening, then all others."""
    hyper = recipe.hyperparameters
    first = np.array([], dtype=np.int64)
    if recipe.opening and recipe.things:
        things = np.flatnonzero(pairs["source"] == "things")
        awful = pairs["prompt"].isin(recipe.things.awful).to_numpy()[things]
        first = things[opening_order(awful, round(recipe.share * recipe.opening), hyper.batch_size)]
    others = np.setdiff1d(np.arange(len(pairs)), first)
    opening = lora.tokenise(dialogue, pairs.iloc[first])
    return opening + lora.in_batches(lora.tokenise(dialogue, pairs.iloc[others]), hyper.batch_size, hyper.seed)


def _probe(trunk, dialogue: Dialogue, things: Things, pairs: pd.DataFrame) -> np.ndarray:
    """A linear probe of the pairs under wonderful questions."""
    rows = lora.tokenise(dialogue, pairs[pairs["prompt"].isin(things.wonderful)].iloc[:PROBED])
    return linear_probe(trunk, [row["chosen_ids"] for row in rows], [row["rejected_ids"] for row in rows])
