"""Language models: the log-probability of every token as the first word of an answer.

The unit is the natural logarithm; softmax runs in fp32 whatever the weights' precision. A scan of log-probabilities has
the columns of a scan of rewards, so vocabularies are matched in the same way.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from rmnb.conversation import Prompt
from rmnb.errors import InputError
from rmnb.models.origin import template_sha256
from rmnb.models.readouts import LanguageHead
from rmnb.models.vocabulary import vocabulary
from rmnb.panels import BaseSpec, ModelSpec, PromptSpec
from rmnb.plans import kept
from rmnb.scoring.engine import check_readable, score_continuations, whole_logits
from rmnb.scoring.loading import load_reward_model
from rmnb.scoring.reward_model import RewardModel
from rmnb.scoring.store import Provenance, note_model, read_scan, write_table


def load_language_model(
    model: str | Path | BaseSpec, wrapping: str | None = None, dtype: str | None = None
) -> RewardModel:
    """Load a causal language model, onto a GPU if there is one, to be read by its own head.

    Its `score`, and scans of it (`rmnb.scan_vocabulary`), give the log-probability of whole answers: of the answer's
    ids and of the id that ends the turn.

    Parameters
    ----------
    model
        A hub id ``owner/name``, a local checkpoint directory, a key of `rmnb.models.bases.BASES`, or a BaseSpec of a
        panel.
    wrapping
        ``chat``, ``bare`` or ``user_assistant``, see `BaseSpec`. Default: the spec's own; without one, ``chat`` for a
        model that has a chat template and ``bare`` for one that has none.
    dtype
        Of the weights. Default: the spec's own (float32).

    Raises
    ------
    InputError
        Unknown model, wrapping or dtype, ``chat`` for a model without chat template, pickled weights only, or a
        checkpoint that lacks a language model's head, as classifiers do.
    """
    spec = model.as_model() if isinstance(model, BaseSpec) else ModelSpec(name=Path(model).name, source=str(model))
    wrapping = wrapping or getattr(model, "wrapping", None)
    lm = load_reward_model(spec, dtype=dtype, head=LanguageHead.name, wrapping=wrapping)
    if wrapping == "chat" and lm.dialogue.template is None:
        raise InputError(f"{lm.name} has no chat template: give wrapping bare or user_assistant")
    return lm


def prompt_ids(lm: RewardModel, prompt: Prompt) -> list[int]:
    """The ids that come before the answer.

    ``chat``: the template with the generation prompt, as it writes BOS. ``bare`` and ``user_assistant``: text, with the
    special tokens that the tokenizer adds.

    Raises
    ------
    InputError
        Earlier turns without a chat template to write them.
    """
    wrapping = describe(lm)["wrapping"]
    if wrapping == "chat":
        return lm.dialogue.asked_ids(prompt)
    if not isinstance(prompt, str):
        raise InputError(f"wrapping {wrapping} takes one question, without earlier turns", "wrapping")
    text = prompt if wrapping == "bare" else f"User: {prompt}\nAssistant:"
    return lm.dialogue.tokenizer(text, split_special_tokens=True)["input_ids"]


@torch.inference_mode()
def next_token_logprobs(lm: RewardModel, prompt: Prompt) -> np.ndarray:
    """Natural log-probability of every id as the next token after a prompt, float32 [vocabulary].

    One forward pass over the prompt alone; exponentials sum to one.

    Raises
    ------
    InputError
        The prompt has no ids, or a log-probability is not a number.
    """
    ids = prompt_ids(lm, prompt)
    if not ids:
        raise InputError("the prompt is empty: there is nothing that a next token could follow")
    check_readable(lm, [ids])
    logits = whole_logits(lm, torch.tensor([ids], device=lm.device))[0, -1]
    values = torch.log_softmax(logits.float(), -1).cpu().numpy()
    if np.isnan(values).any():
        raise InputError(f"{lm.spec.name}: the log-probabilities are not numbers: try dtype float32")
    return values


def scan_logprobs(
    lm: RewardModel, prompt: PromptSpec, output: Path | None = None, restart: bool = False
) -> pd.DataFrame:
    """The log-probability of every token of the vocabulary as the first of the answer.

    Parameters
    ----------
    lm
        The language model.
    prompt
        The question.
    output
        Parquet file for the scan; one that lies there is read.
    restart
        Compute it again nevertheless.

    Returns
    -------
    DataFrame
        token_id (int32), token, kind and score (float32, natural log), one row an id, as a scan of rewards.
        ``attrs["provenance"]`` says of what model and question.

    Raises
    ------
    InputError
        What lies at `output` is of another plan.
    """
    plan = {**describe(lm), "prompt": prompt.text, "history": prompt.earlier}
    with kept(output, plan, read_scan, restart) as work:
        scan = work.finished
        if scan is None:
            work.begin(note_model(lm))
            words = vocabulary(lm.tokenizer, lm.vocabulary_size)
            scan = words[["token_id", "token", "kind"]].assign(score=next_token_logprobs(lm, prompt.conversation))
            if output is not None:
                write_table(output, scan, work.provenance)
        scan.attrs["provenance"] = work.provenance
        return scan


def scan_answers(lm: RewardModel, prompt: PromptSpec) -> pd.DataFrame:
    """How probable each token is as the first of the answer, and the end of the turn after it.

    Their sum is the log-probability of the token as a whole answer. A model without a chat template of its own was
    never taught to end a turn: of it there is only the first.

    Returns
    -------
    DataFrame
        token_id (int32), token, kind, and first and end (float32, natural log), one row an id. ``attrs["provenance"]``
        says of what model and question.
    """
    scan = scan_logprobs(lm, prompt).rename(columns={"score": "first"})
    if lm.tokenizer.chat_template is None:
        return scan
    _, closing = lm.dialogue.frame_ids(prompt.conversation)
    answers = [[token_id, closing[0]] for token_id in scan["token_id"].tolist()]  # not the line break after the end
    scan["end"] = score_continuations(lm, prompt_ids(lm, prompt.conversation), answers) - scan["first"]
    scan.attrs["provenance"]["end_id"] = closing[0]
    return scan


def describe(lm: RewardModel) -> Provenance:
    """What a plan says of a language model and of how it is asked."""
    asked: Any = lm.spec.readout
    template = lm.dialogue.template
    return {
        **lm.hashes,
        "template_sha256": template_sha256(template),
        "wrapping": asked.wrapping or ("bare" if template is None else "chat"),
        "dtype": lm.spec.dtype,
        "unit": "natural log",
    }
