"""Tune a copy of a language model on the answers that people preferred, and ask what reward it implies.

The tuned copy π and its reference π_ref imply the reward β log π/π_ref (Rafailov et al. 2023, arXiv 2305.18290):
`rmnb.findings.agency.log_ratio`, unweighted. Tuning is supervised (SFT): the likelihood of the chosen answers, no
rejected one.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rmnb.panels import BaseSpec
from rmnb.scoring.logprobs import LanguageModel
from rmnb.training import evaluation, lora
from rmnb.training.recipes import Recipe, build_pairs


def tune(spec: BaseSpec, recipe: Recipe, output: Path, work: Path) -> Path:
    """Train a LoRA adapter on the chosen answers of a recipe's pairs, by TRL's SFTTrainer.

    The loss is that of the answer's tokens and of the end of the turn, not of the prompt's. Pairs, hyper-parameters and
    files are those of `rmnb.training.train.fit`; a run that was cut off goes on from its last checkpoint in `work`.

    Parameters
    ----------
    spec
        A language model with `adapter`, whose `source` is a key of `rmnb.models.bases.BASES`, a hub id or a directory.
    recipe, output, work
        As `rmnb.training.train.fit` takes them; there are no snapshots of the way.

    Raises
    ------
    InputError
        The model is no base of `rmnb.models.bases`, the packages for training are missing, or `work` holds another run.
    """
    hyper = recipe.hyperparameters
    dialogue = lora.begin(spec.source, spec.template, recipe, work, objective="sft")
    from datasets import Dataset
    from transformers import AutoModelForCausalLM
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    whole = (
        {"input_ids": prompt + chosen, "completion_mask": [0] * len(prompt) + [1] * len(chosen)}
        for prompt, chosen, _ in lora.conversations(dialogue, build_pairs(recipe)[0])
    )
    rows = [row for row in whole if len(row["input_ids"]) <= lora.LONGEST]
    trainer = SFTTrainer(
        model=lora.load_base(AutoModelForCausalLM, spec.source),
        args=SFTConfig(**lora.training_arguments(hyper, work), completion_only_loss=True),
        train_dataset=Dataset.from_list(lora.in_batches(rows, hyper.batch_size, hyper.seed)),
        processing_class=dialogue.tokenizer,
        peft_config=lora.adapter_config(hyper, task_type="CAUSAL_LM"),
    )
    last = lora.last_whole_checkpoint(work)
    trainer.train(resume_from_checkpoint=None if last is None else str(last))
    about = {"model": spec.name, "template": dialogue.template, "objective": "sft"}
    lora.record(trainer, about, spec.source, recipe, len(rows), output)
    return output


def answer_logprobs(lm: LanguageModel, prompts: Sequence[list[int]], answers: Sequence[list[int]]) -> np.ndarray:
    """Natural log-probability of each answer after its prompt, float64: the sum over the answer's ids."""
    import torch

    found = np.empty(len(answers))
    with torch.inference_mode():
        for row, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
            ids = torch.tensor([prompt + answer], device=lm.network.device)
            logits = lm.network(input_ids=ids, use_cache=False, logits_to_keep=len(answer) + 1).logits[0, :-1]
            values = torch.log_softmax(logits.float(), dim=-1)
            found[row] = values.gather(1, ids[0, -len(answer) :, None]).double().sum().item()
    return found


def implicit_accuracy(tuned: LanguageModel, reference: LanguageModel, recipe: Recipe) -> dict:
    """Share of a recipe's held-out pairs in which the chosen answer has the higher implicit reward.

    Returns
    -------
    dict
        As `rmnb.training.evaluation.held_out_accuracy`.
    """
    _, held_out = build_pairs(recipe)
    prompts, chosen, rejected = zip(*lora.conversations(tuned.dialogue, held_out), strict=True)
    reward = {
        which: answer_logprobs(tuned, prompts, answers) - answer_logprobs(reference, prompts, answers)
        for which, answers in (("chosen", chosen), ("rejected", rejected))
    }
    by_source = {
        str(source): evaluation.accuracy(reward["chosen"][rows], reward["rejected"][rows])
        for source, rows in held_out.reset_index().groupby("source").indices.items()
    }
    return {"all": vars(evaluation.pooled(by_source.values()))} | {name: vars(part) for name, part in by_source.items()}
