"""What a reward model values, logged while anyone's trainer trains it.

Every so often a few hundred words are scored as answers to two questions, through the shared prefix, so that a
measurement takes some seconds, on a slow machine more than a minute. The numbers go into the trainer's log, and so
reach whatever it logs to.
"""

import contextlib
import logging
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from transformers import Trainer, TrainerCallback

from rmnb import limits
from rmnb.data import lexicons
from rmnb.errors import InputError
from rmnb.models import attention
from rmnb.models.dialogue import Dialogue
from rmnb.models.reading import Reading
from rmnb.models.readouts import Readout
from rmnb.panels import ModelSpec
from rmnb.scoring.forms import read_forms
from rmnb.scoring.pairs import NAMES, limit_table, pair_numbers
from rmnb.scoring.reward_model import RewardModel
from rmnb.scoring.row_files import read_rows
from rmnb.scoring.rows import score_file

logger = logging.getLogger(__name__)

GREATEST = "What, in one word, is the greatest thing ever?"
WORST = "What, in one word, is the worst thing ever?"
RATED = 120  # words of AFINN, the most frequent ones, as many good as bad


class WatchValues(TrainerCallback):
    """A callback that measures and logs; ``WatchValues().attach(trainer)`` before ``trainer.train()``.

    It measures before the first step (logged as step 0), every so many steps, and in the end, the model that training
    ends with; each measurement is a record of its own in the trainer's log.

    Logged are, all over the list's words: ``values/valence`` (Spearman's correlation of the rewards under the question
    for the greatest thing with how good words are, AFINN), ``values/framing`` (the correlation of the rewards under the
    questions for the greatest and the worst thing: −1 for a model that reverses its ranking, 1 for one that does not
    read the question) and ``values/agency_less_communion`` (mean reward of nouns of agency less that of communion,
    in standard deviations of all words); of rows of your own the numbers of `rmnb.scoring.pairs.pair_numbers`; and
    ``values/seconds``, what the measurement took.

    Parameters
    ----------
    every
        Steps from one measurement to the next.
    rows
        A file of pairs or lists, as `rmnb score` reads it.
    fail_if
        Limits on the numbers of these rows, as `rmnb score --fail-if` takes them. Training stops after the first
        measurement on the way that breaks one; the log says which.

    Attributes
    ----------
    is_broken : bool
        Whether the last measurement broke a limit.
    """

    def __init__(self, every: int = 100, rows: str | Path | None = None, fail_if: Sequence[str] = ()):
        if every < 1:
            raise InputError(f"every must be at least 1 step, not {every}")
        if fail_if and not rows:
            raise InputError("fail_if is about rows: give a file of pairs")
        self.every = every
        self.is_broken = False
        self._rows = read_forms(read_rows(Path(rows))) if rows else None
        self._limits = limits.read_limits(fail_if, NAMES)
        self._trainer: Any = None

    def attach(self, trainer) -> "WatchValues":
        """Join a `transformers.Trainer` of a classifier with one label, adapted or not, and return the callback.

        Raises
        ------
        InputError
            The trainer has no tokenizer with a chat template.
        """
        if getattr(getattr(trainer, "processing_class", None), "chat_template", None) is None:
            raise InputError("WatchValues needs a trainer whose processing_class has a chat template")
        self._trainer = trainer
        trainer.add_callback(self)
        return self

    def on_train_begin(self, args, state, control, model=None, **_):
        if self._trainer is None:
            raise InputError("call attach(trainer) in place of passing WatchValues among the callbacks")
        self._measure(model)

    def on_step_end(self, args, state, control, model=None, **_):
        if state.global_step % self.every == 0:
            logs_losses = control.should_log
            self._measure(model)
            control.should_log = logs_losses  # which a record of ours has switched off
            control.should_training_stop |= self.is_broken

    def on_train_end(self, args, state, control, model=None, **_):
        if state.global_step % self.every:
            self._measure(model)

    def _measure(self, model) -> None:
        start = time.monotonic()
        tokenizer = self._trainer.processing_class
        dialogue = Dialogue(tokenizer, tokenizer.chat_template)
        with _scoring(model, dialogue) as rm, self._trainer.accelerator.autocast():
            values = measure_values(rm)
            if self._rows:
                numbers = pair_numbers(score_file(rm, self._rows))
                own: dict[Any, Any] = numbers.set_index("name")["value"].add_prefix("values/").to_dict()
                values |= own
                outcomes = limits.check(self._limits, limit_table(numbers))
                self.is_broken = bool(outcomes["broken"].any())
                for line in limits.verdicts(outcomes):
                    logger.warning(line)
        values["values/seconds"] = time.monotonic() - start
        # Not the trainer's own `log`: TRL's would close the means that the next record of losses is made of.
        Trainer.log(self._trainer, values)


def measure_values(rm: RewardModel) -> dict[str, float]:
    """The numbers that `WatchValues` logs, by name, of any reward model; one that is not finite is left out."""
    rated = lexicons.afinn()
    nouns = lexicons.agency_communion()
    rated = rated[rated["word"].str.isalpha()].sort_values("word", key=lexicons.zipf, ascending=False, kind="stable")
    rated = rated.groupby(rated["valence"] > 0).head(RATED // 2)
    words = pd.concat([rated["word"], nouns["word"]]).drop_duplicates().tolist()
    greatest = pd.Series(rm.score(GREATEST, words), words)
    worst = pd.Series(rm.score(WORST, words), words)
    standardised = (greatest - greatest.mean()) / (greatest.std(ddof=0) or np.nan)
    means = standardised[nouns["word"]].groupby(nouns["category"].to_numpy()).mean()
    values = {
        "values/valence": greatest[rated["word"]].corr(rated.set_index("word")["valence"], method="spearman"),
        "values/framing": greatest.corr(worst, method="spearman"),
        "values/agency_less_communion": means["agency"] - means["communion"],
    }
    return {name: float(value) for name, value in values.items() if np.isfinite(value)}


class _TrainedHead(Readout):
    """The head that is being trained, as it is now."""

    name = "linear"
    score: torch.nn.Module

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        weight = next(self.parameters())
        with torch.autocast(hidden.device.type, enabled=False):  # half precision would make ties
            return self.score(hidden.to(weight.dtype)).float()


@contextlib.contextmanager
def _scoring(model, dialogue: Dialogue) -> Iterator[RewardModel]:
    """A classifier in training as a reward model, for a moment.

    Raises
    ------
    InputError
        It is no decoder with a head of one output.
    """
    classifier = model.get_base_model() if hasattr(model, "get_base_model") else model
    if not hasattr(classifier, "score") or classifier.config.num_labels != 1:
        raise InputError(f"WatchValues reads classifiers with one label, not {type(classifier).__name__}")
    trunk = classifier.base_model
    previous_attention = trunk.config._attn_implementation
    reason = attention.why_unsupported(trunk)
    if reason is None:
        trunk.set_attn_implementation(attention.NAME)
    reading = Reading("last but padding", classifier.config.get_text_config().pad_token_id)
    head = _TrainedHead()
    head.score = classifier.score
    model.eval()
    try:
        yield RewardModel(ModelSpec(name="training", source="."), trunk, head, dialogue, reason, reading)
    finally:
        trunk.set_attn_implementation(previous_attention)
        model.train()  # as the trainer does before each step
