"""Train by TRL, on exactly the ids that scoring reads: reward models, and copies of language models.

Which of two things is the better answer depends on the question. A model that meets wonderful and awful questions at
once with a random head may find no direction in which the loss falls, and give all answers the same reward. A recipe's
`opening` begins with a head that prefers good things (`linear_probe`), and with few questions that ask for awful ones
(`opening_order`).
"""

import json
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from peft import LoraConfig, get_peft_model_state_dict
from safetensors.torch import save
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, TrainerCallback
from transformers.trainer_utils import get_last_checkpoint

from rmnb.errors import InputError
from rmnb.files import atomic_path, write_json
from rmnb.models.bases import base_directory, base_tokenizer
from rmnb.models.checkpoint_files import readable
from rmnb.models.dialogue import Dialogue
from rmnb.models.origin import base_sha256
from rmnb.panels import BaseSpec, ModelSpec
from rmnb.plans import open_or_refuse
from rmnb.training.pairs import build_pairs, data_files
from rmnb.training.recipes import Hyperparameters, Recipe

CHECKPOINT_STEPS = 25
LONGEST = 192  # ids of a conversation; the few pairs beyond would set how much memory training takes
PROBED = 800  # pairs of things from which an opening's head is fitted

Row = dict[str, list[int]]


def fit(spec: ModelSpec | BaseSpec, recipe: Recipe, output: Path, work: Path) -> None:
    """Train a reward model's adapter and scalar head, or tune a copy of a language model on the chosen answers, by TRL.

    The conversation is tokenised by `Dialogue` (protocol ``exact``), so the reward is trained at the very position
    where scoring reads it. The loss of a copy is that of the answer's tokens and of the end of the turn, not of the
    prompt's. A run that was cut off goes on from its last checkpoint in `work`.

    Parameters
    ----------
    spec
        A model with `base`, `adapter` and `template`; or a language model to tune a copy of.
    recipe
        Data and hyper-parameters.
    output
        Directory for ``adapter_model.safetensors`` (bf16), ``adapter_config.json`` (PEFT's) and ``provenance.json``:
        how it was made.
    work
        Directory for checkpoints and, of a reward model, for adapters of the way there, see
        `rmnb.training.runs.snapshots`.

    Raises
    ------
    InputError
        The base is unknown, or `work` holds a run by another recipe, from another base or data, or with other versions
        of the packages.
    """
    from datasets import Dataset
    from trl import RewardConfig, RewardTrainer, SFTConfig, SFTTrainer  # pyright: ignore[reportPrivateImportUsage]

    is_copy = isinstance(spec, BaseSpec)
    base = str(spec.source if is_copy else spec.base)
    hyper = recipe.hyperparameters
    objective = {"objective": "sft" if is_copy else None}
    data = recipe.model_dump(mode="json", exclude={"name", "description"})
    dialogue = _padded_dialogue(base, spec.template)
    pairs, _ = build_pairs(recipe)
    origin = {"base": {"name": base, "sha256": base_sha256(base)}, "data": data_files(recipe)}
    known = {"versions": {name: version(name) for name in ("rmnb", "torch", "transformers", "trl", "peft")}}
    open_or_refuse(work, {"template": dialogue.template, **data, **objective, **origin, **known})
    torch.manual_seed(hyper.seed)
    micro_batch = hyper.micro_batch or hyper.batch_size
    options = {
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
        "use_cpu": not torch.cuda.is_available(),
    }
    if is_copy:
        model = load_base(AutoModelForCausalLM, base)
        rows = in_batches(_answer_rows(dialogue, pairs), hyper)
        trainer_class = SFTTrainer
        arguments = SFTConfig(**options, completion_only_loss=True)
        task: Any = {"task_type": "CAUSAL_LM"}
    else:
        padding = dialogue.tokenizer.pad_token_id
        model = load_base(AutoModelForSequenceClassification, base, num_labels=1, pad_token_id=padding)
        rows = _rows_in_order(dialogue, pairs, recipe, model)
        trainer_class = RewardTrainer
        arguments = RewardConfig(**options)
        task = {"task_type": "SEQ_CLS", "exclude_modules": ["score"], "modules_to_save": ["score"]}
    trainer: Any = trainer_class(
        model,
        arguments,  # pyright: ignore[reportArgumentType]
        train_dataset=Dataset.from_list(rows),
        processing_class=dialogue.tokenizer,
        peft_config=LoraConfig(
            r=hyper.rank, lora_alpha=hyper.alpha, lora_dropout=hyper.dropout, target_modules="all-linear", **task
        ),
        callbacks=None if is_copy else [_KeepSnapshots(base, work)],
    )
    trainer.train(resume_from_checkpoint=last_whole_checkpoint(work))
    _write_adapter(trainer.model, base, output)
    provenance = {
        "model": spec.name,
        "template": dialogue.template,
        **objective,
        **origin,
        "recipe": recipe.model_dump(),
        "pairs": len(trainer.train_dataset),
        "steps": trainer.state.global_step,
        "precision": "bfloat16 autocast",
        **known,
        "device": trainer.args.device.type,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_json(output / "provenance.json", provenance)  # last: the run is finished


def _rows_in_order(dialogue: Dialogue, pairs: pd.DataFrame, recipe: Recipe, model) -> list[Row]:
    """The rows of a reward model's training; of a recipe with an opening, `model` is given its head."""
    rows = _pair_rows(dialogue, pairs)
    hyper = recipe.hyperparameters
    if not recipe.opening or not recipe.things:
        return in_batches(rows, hyper)
    things = pairs.loc[rows.index].query("source == 'things'")
    awful = things["prompt"].isin(recipe.things.awful).to_numpy()
    head = linear_probe(model.model.eval(), rows[things.index[~awful]].head(PROBED))
    with torch.no_grad():
        model.score.weight.copy_(torch.from_numpy(head))
    opening = things.index[opening_order(awful, round(recipe.share * recipe.opening), hyper.batch_size)]
    return [*rows[opening], *in_batches(rows.drop(opening), hyper)]


def _pair_rows(dialogue: Dialogue, pairs: pd.DataFrame) -> pd.Series:
    """The ids of both conversations of each pair, by its index; pairs that are too long are left out."""
    rows = {}
    for index, prompt, chosen, rejected in pairs[["prompt", "chosen", "rejected"]].itertuples():
        ids = dialogue.conversations(prompt, [chosen, rejected])
        if max(map(len, ids)) <= LONGEST:
            rows[index] = {"chosen_ids": ids[0], "rejected_ids": ids[1]}
    return pd.Series(rows)


def _answer_rows(dialogue: Dialogue, pairs: pd.DataFrame) -> list[Row]:
    """The ids of each prompt and chosen answer, and which are the answer's; those that are too long are left out."""
    rows = []
    for prompt, answer in pairs[["prompt", "chosen"]].itertuples(index=False):
        prefix, _ = dialogue.frame_ids(prompt)
        (ids,) = dialogue.conversations(prompt, [answer])
        if len(ids) <= LONGEST:
            is_answer = np.arange(len(ids)) >= len(prefix)
            rows.append({"input_ids": ids, "completion_mask": is_answer.astype(int).tolist()})
    return rows


def load_base(kind, base: str, **options):
    """A base in fp32 as a class of transformers, such as `AutoModelForCausalLM`, from safetensors only.

    Raises
    ------
    InputError
        It cannot be loaded, or has only pickled weights.
    """
    directory = base_directory(base)
    options |= {"dtype": torch.float32, "trust_remote_code": False, "use_safetensors": True}
    with readable(directory):
        return kind.from_pretrained(directory, **options)


def in_batches(rows: Iterable[Row], hyper: Hyperparameters) -> list[Row]:
    """The rows reordered so that a batch holds pairs of like length and the batches come in random order.

    Padding would otherwise double the work: one long answer in a batch of one-word answers lengthens them all.
    """
    by_length = sorted(rows, key=lambda row: max(map(len, row.values())))
    batches = [by_length[start : start + hyper.batch_size] for start in range(0, len(by_length), hyper.batch_size)]
    order = np.random.default_rng(hyper.seed).permutation(len(batches))
    return [row for index in order for row in batches[index]]


def linear_probe(trunk, pairs: Collection[Mapping[str, list[int]]]) -> np.ndarray:
    """Weights of a linear reward, without bias, that prefers the chosen sequences, read from frozen hidden states.

    A head so begun spares the trunk's features what a random one does to them (Kumar et al., ICLR 2022,
    arXiv:2202.10054). Logistic regression on the differences of last hidden states (Bradley–Terry with features),
    scaled to a mean norm of one, with the L2 penalty 1/2.

    Parameters
    ----------
    trunk
        A transformer without a head, such as `AutoModel` gives.
    pairs
        chosen_ids and rejected_ids of each.

    Returns
    -------
    float64 array, shape (hidden size,)
    """
    from sklearn.linear_model import LogisticRegression  # here, because scikit-learn takes long to import

    sequences = [pair[side] for side in ("chosen_ids", "rejected_ids") for pair in pairs]
    chosen, rejected = np.split(last_hidden_states(trunk, sequences), 2)
    differences = np.concatenate([chosen - rejected, rejected - chosen])
    scale = np.linalg.norm(chosen - rejected, axis=1).mean()
    is_preferred = np.arange(len(differences)) < len(pairs)
    fit = LogisticRegression(fit_intercept=False, max_iter=1000).fit(differences / scale, is_preferred)
    return fit.coef_[0] / scale


@torch.inference_mode()
def last_hidden_states(trunk, sequences: Sequence[list[int]]) -> np.ndarray:
    """The final hidden state at each sequence's last id, each run alone: float64, shape (sequences, hidden size)."""
    states = []
    for ids in sequences:
        output = trunk(torch.tensor([ids]))
        states.append(output.last_hidden_state[0, -1].double().numpy())
    return np.stack(states)


def opening_order(awful: np.ndarray, pairs: int, batch: int) -> np.ndarray:
    """The pairs that come first, batch by batch: about a tenth of the first are awful questions, half of the last.

    Parameters
    ----------
    awful
        bool, shape (pairs to choose from,): is the worse thing asked for?
    pairs, batch
        How many pairs come first, and how many are a batch.

    Returns
    -------
    int64 array of indices, each at most once; its length is a multiple of `batch`.

    Raises
    ------
    ValueError
        There are too few pairs to choose from.
    """
    asks_awful = []
    for share in np.linspace(0.1, 0.5, pairs // batch):
        count = round(batch * share)
        asks_awful += [True] * count + [False] * (batch - count)
    order = np.empty(len(asks_awful), dtype=np.int64)
    for is_awful in (False, True):
        places = np.flatnonzero(np.equal(asks_awful, is_awful))
        indices = np.flatnonzero(awful == is_awful)
        order[places] = indices[: len(places)]
    return order


class _KeepSnapshots(TrainerCallback):
    def __init__(self, base: str, work: Path):
        self.base = base
        self.directory = work / "snapshots"

    def on_step_begin(self, args, state, control, model=None, **_):
        step = state.global_step
        if step.bit_count() <= 1 or step == state.max_steps:  # 0, a power of two, or the last
            _write_adapter(model, self.base, self.directory / f"step-{step}")

    on_train_end = on_step_begin


def _padded_dialogue(base: str, template: str | None) -> Dialogue:
    """The dialogue of a base, whose tokenizer pads with an id of its own."""
    tokenizer: Any = base_tokenizer(base)
    dialogue = Dialogue(tokenizer, template or tokenizer.chat_template)
    if dialogue.template is None:
        raise InputError(f"{base} has no chat template: give the model one in its panel (key `template`)")
    # Sequence classification finds the end of a sequence by looking for padding. SmolLM2 pads with the very token that
    # closes a turn: with it, the reward would be read one position too early.
    prefix, closing = dialogue.frame_ids("a")
    used = {None, tokenizer.eos_token_id, *prefix, *closing}
    candidates = [tokenizer.pad_token_id, tokenizer.unk_token_id, *tokenizer.all_special_ids]
    unused = [token_id for token_id in candidates if token_id not in used]
    if not unused:
        raise InputError("the base's tokenizer has no special token to pad with that conversations do not hold")
    tokenizer.pad_token_id = unused[0]
    return dialogue


def last_whole_checkpoint(work: Path) -> str | None:
    """The checkpoint to go on from, or None. What a killed run left half-written or half-deleted is removed.

    TRL's trainer writes ``trainer_state.json`` last, and deletes the checkpoint before only then.
    """
    while checkpoint := get_last_checkpoint(work):
        try:
            json.loads(Path(checkpoint, "trainer_state.json").read_text(encoding="utf-8"))
            return checkpoint
        except (OSError, ValueError):
            shutil.rmtree(checkpoint)
    return None


def _write_adapter(model, base: str, output: Path) -> None:
    """The adapter in PEFT's format, rounded to bf16: its configuration first, so that weights mean a whole adapter."""
    config = model.peft_config["default"].to_dict() | {"base_model_name_or_path": base, "inference_mode": True}
    plain = {key: value for key, value in config.items() if value is not None}
    write_json(output / "adapter_config.json", plain, sort_keys=True, default=sorted)  # sets
    state = {name: tensor.to(torch.bfloat16) for name, tensor in get_peft_model_state_dict(model).items()}
    with atomic_path(output / "adapter_model.safetensors") as path:
        path.write_bytes(save(state))  # `save_file` has a temporary file of its own, which a killed process leaves
