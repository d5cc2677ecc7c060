"""What a reward model values, logged while anyone's trainer trains it.

Every so often a few hundred words are scored as answers to two questions, through the shared prefix, so that a
measurement takes seconds; the numbers join the trainer's next record of losses, and so reach whatever it logs to.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from transformers import TrainerCallback

from rmnb.data import lexicons
from rmnb.errors import InputError
from rmnb.models import attention
from rmnb.models.dialogue import Dialogue
from rmnb.models.heads import Head
from rmnb.models.reading import Reading
from rmnb.models.reward_model import RewardModel
from rmnb.panels import ModelSpec
from rmnb.scoring.conversations import score_sequences

GREATEST = "What, in one word, is the greatest thing ever?"
WORST = "What, in one word, is the worst thing ever?"
RATED = 120  # words of AFINN, the most frequent ones, as many good as bad


class WatchValues(TrainerCallback):
    """A callback that measures and logs; ``WatchValues().attach(trainer)`` before ``trainer.train()``.

    It measures before the first step (logged as step 0), at even distances, and at the end; the trainer writes a record
    of its losses at each of these steps, besides those that it writes anyway.

    Logged are, all over the list's words: ``values/valence`` (Spearman's correlation of the rewards under the question
    for the greatest thing with how good words are, AFINN), ``values/framing`` (the correlation of the rewards under the
    questions for the greatest and the worst thing: −1 for a model that turns its ranking with the question, 1 for one
    that does not read it) and ``values/agency_less_communion`` (mean reward of nouns of agency less that of communion,
    in standard deviations of all words); and ``values/seconds``, what the measurement took.

    Parameters
    ----------
    every
        Steps from one measurement to the next. Default: as few as costs no more than `share` of the time, by what steps
        and measurements have taken so far.
    share
        Of the whole training's time, that measurements may take, the first and the last included: these two are made
        also where they alone take more.

    Attributes
    ----------
    history : list of dict
        A measurement each: step, and what was logged.
    taken : float
        Share of the training's time that all measurements took, once it has ended; NaN before.
    """

    def __init__(self, every: int | None = None, share: float = 0.05):
        if every is not None and every < 1:
            raise InputError(f"every must be at least 1 step, not {every}")
        if not 0 < share < 1:
            raise InputError(f"share must lie between 0 and 1, not {share}")
        self.every, self.share = every, share
        self.history: list[dict[str, float]] = []
        self.taken = np.nan
        self._words: Dialogue | None = None
        self._pending: dict[str, float] = {}
        self._began = 0, 0.0  # step and clock

    def attach(self, trainer, dialogue: Dialogue | None = None) -> "WatchValues":
        """Join a `transformers.Trainer`, before the callbacks that write its records; returns the callback.

        Parameters
        ----------
        trainer
            Of a classifier with one label, with or without an adapter.
        dialogue
            How conversations are written, where it is not by the chat template of the trainer's tokenizer.

        Raises
        ------
        InputError
            The trainer has no tokenizer with a chat template.
        """
        tokenizer: Any = getattr(trainer, "processing_class", None)
        if dialogue is None and getattr(tokenizer, "chat_template", None) is None:
            raise InputError("WatchValues needs a trainer whose processing_class has a chat template")
        self._words = dialogue or Dialogue(tokenizer, tokenizer.chat_template)
        trainer.callback_handler.callbacks.insert(0, self)
        self._log, self._precision = trainer.log, trainer.accelerator.autocast
        return self

    def on_train_begin(self, args, state, control, model=None, **_):
        if self._words is None:
            raise InputError("call attach(trainer) in place of passing WatchValues among the callbacks")
        self._began = state.global_step, time.monotonic()
        self.history.clear()
        self._measure(model, state.global_step)
        self._log(self._pending)
        self._pending = {}

    def on_step_end(self, args, state, control, model=None, **_):
        step, last = state.global_step, state.max_steps
        due = step % self.every == 0 if self.every else self._affordable(step, last)
        if due or step == last:
            self._measure(model, step)
            control.should_log = True

    def on_log(self, args, state, control, logs=None, **_):
        if logs is not None and self._pending and "loss" in logs:
            logs.update(self._pending)
            state.log_history[-1].update(self._pending)
            self._pending = {}

    def on_train_end(self, args, state, control, **_):
        self.taken = self._spent() / (time.monotonic() - self._began[1])

    def _spent(self) -> float:
        return sum(entry["values/seconds"] for entry in self.history)

    def _affordable(self, step: int, last: int) -> bool:
        """Whether it is time to measure, if those that the share still pays for are spread over the steps to come."""
        spent, (first, began) = self._spent(), self._began
        trained = time.monotonic() - began - spent
        paid = trained / (step - first) * (last - first) * self.share / (1 - self.share)
        still = (paid - spent) // self.history[-1]["values/seconds"]  # the one at the end among them
        since = self.history[-1]["step"]
        return still >= 2 and (step - since) * still >= last - since

    def _measure(self, model, step: int) -> None:
        began = time.monotonic()
        assert self._words is not None
        with _scoring(model, self._words) as rm, self._precision():
            values = measure_values(rm)
        self._pending = {**values, "values/seconds": time.monotonic() - began}
        self.history.append({"step": step, **self._pending})


def measure_values(rm: RewardModel) -> dict[str, float]:
    """The three numbers that `WatchValues` logs, of any reward model."""
    words = _watched()
    frame = words.drop_duplicates("word")
    asked = {}
    for question in (GREATEST, WORST):
        ids = rm.dialogue.conversations(question, list(frame["word"]))
        asked[question] = pd.Series(score_sequences(rm, ids, rm.dialogue.frame(question)[0]), frame["word"])
    greatest = asked[GREATEST]
    rated = words[words["group"] == "rated"]
    z = (greatest - greatest.mean()) / (greatest.std(ddof=0) or np.nan)
    groups = {name: z[list(of["word"])].mean() for name, of in words.groupby("group")}
    found = {
        "values/valence": greatest[list(rated["word"])].corr(rated.set_index("word")["valence"], method="spearman"),
        "values/framing": greatest.corr(asked[WORST], method="spearman"),
        "values/agency_less_communion": groups["agency"] - groups["communion"],
    }
    return {name: float(value) for name, value in found.items() if np.isfinite(value)}


def _watched() -> pd.DataFrame:
    """word, group (rated, agency or communion), valence (of rated words)."""
    rated = lexicons.afinn()
    rated = rated[rated["word"].str.isalpha()].assign(zipf=lambda table: lexicons.zipf(table["word"]))
    rated = rated.sort_values("zipf", ascending=False, kind="stable")
    sides = [rated[rated["valence"] > 0].head(RATED // 2), rated[rated["valence"] < 0].head(RATED // 2)]
    nouns = lexicons.agency_communion().rename(columns={"category": "group"})
    return pd.concat([*(side.assign(group="rated") for side in sides), nouns], ignore_index=True)


@dataclass(frozen=True)
class _Module(Head):
    """The head that is being trained, as it is now."""

    module: torch.nn.Module
    name: str = "linear"

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        weight = next(self.module.parameters())
        with torch.autocast(hidden.device.type, enabled=False):  # half precision would make ties
            return self.module(hidden.to(weight.dtype)).float()[:, 0]


@contextlib.contextmanager
def _scoring(model, words: Dialogue) -> Iterator[RewardModel]:
    """A classifier in training as a reward model, for a moment; then it trains on as if nothing had been.

    Raises
    ------
    InputError
        It is no decoder with a head of one output.
    """
    classifier = model.get_base_model() if hasattr(model, "get_base_model") else model
    trunk = getattr(classifier, classifier.base_model_prefix, None)
    head = getattr(classifier, "score", None)
    if trunk is None or head is None or classifier.config.num_labels != 1:
        raise InputError(f"WatchValues reads classifiers with one label, not {type(classifier).__name__}")
    padding = classifier.config.get_text_config().pad_token_id
    before, modes = trunk.config._attn_implementation, {each: each.training for each in model.modules()}
    reason = attention.why_unsupported(trunk)
    if reason is None:
        trunk.set_attn_implementation(attention.NAME)
    model.eval()
    spec = ModelSpec(name="training", source=".")
    reading = Reading("last but padding", padding)
    try:
        yield RewardModel(spec, trunk, _Module(head), words, reason, "", "", reading)
    finally:
        if reason is None:
            trunk.set_attn_implementation(before)
        for each, training in modes.items():
            each.training = training
