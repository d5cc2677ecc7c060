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

    It measures before the first step (logged as step 0), every so often, and at the end; the trainer writes a record of
    its losses at each of these steps, besides those that it writes anyway.

    Logged are, all over the list's words: ``values/valence`` (Spearman's correlation of the rewards under the question
    for the greatest thing with how good words are, AFINN), ``values/framing`` (the correlation of the rewards under the
    questions for the greatest and the worst thing: −1 for a model that turns its ranking with the question, 1 for one
    that does not read it) and ``values/agency_less_communion`` (mean reward of nouns of agency less that of communion,
    in standard deviations of all words); and ``values/seconds``, what the measurement took.

    Parameters
    ----------
    every
        Steps from one measurement to the next. Default: as often as costs no more than `share` of the time.
    share
        Of the training time, that measurements may take; the first one, before the first step, not counted.
    """

    def __init__(self, every: int | None = None, share: float = 0.05):
        if every is not None and every < 1:
            raise InputError(f"every must be at least 1 step, not {every}")
        if not 0 < share < 1:
            raise InputError(f"share must lie between 0 and 1, not {share}")
        self.every, self.share = every, share
        self.history: list[dict[str, float]] = []
        self._words: Dialogue | None = None
        self._pending: dict[str, float] = {}
        self._free_at = 0.0  # clock, from when on a measurement keeps to the share

    def attach(self, trainer) -> "WatchValues":
        """Join a `transformers.Trainer`, before the callbacks that write its records; returns the callback.

        Raises
        ------
        InputError
            The trainer has no tokenizer with a chat template.
        """
        tokenizer: Any = getattr(trainer, "processing_class", None)
        if getattr(tokenizer, "chat_template", None) is None:
            raise InputError("WatchValues needs a trainer whose processing_class has a chat template")
        self._words = Dialogue(tokenizer, tokenizer.chat_template)
        trainer.callback_handler.callbacks.insert(0, self)
        self._log = trainer.log
        return self

    def on_train_begin(self, args, state, control, model=None, **_):
        if self._words is None:
            raise InputError("call attach(trainer) in place of passing WatchValues among the callbacks")
        self._measure(model, state.global_step)
        self._free_at = 0.0 if self.every else self._pay()
        self._log(self._pending)
        self._pending = {}

    def on_step_end(self, args, state, control, model=None, **_):
        due = state.global_step % self.every == 0 if self.every else time.monotonic() >= self._free_at
        if due or state.global_step == state.max_steps:
            self._measure(model, state.global_step)
            self._free_at = self._pay()
            control.should_log = True

    def on_log(self, args, state, control, logs=None, **_):
        if logs is not None and self._pending and "loss" in logs:
            logs.update(self._pending)
            state.log_history[-1].update(self._pending)
            self._pending = {}

    def _pay(self) -> float:
        """When the next measurement may begin: this one's seconds are the share of those until then."""
        return time.monotonic() + self.history[-1]["values/seconds"] * (1 - self.share) / self.share

    def _measure(self, model, step: int) -> None:
        began = time.monotonic()
        assert self._words is not None
        with _scoring(model, self._words) as rm:
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
