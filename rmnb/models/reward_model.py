"""A reward model that is ready to score: what loading gives and everything else takes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from transformers import PreTrainedModel

from rmnb.models.devices import input_device
from rmnb.models.dialogue import Dialogue, Prompt
from rmnb.models.heads import Head
from rmnb.models.reading import Reading
from rmnb.panels import ModelSpec


@dataclass(frozen=True)
class Parity:
    """How close a model's rewards are to what its own classifier gives.

    Attributes
    ----------
    against : str
        The name of a transformers class, ``attention in full``, or why nothing was compared.
    difference : float or None
        The largest of three conversations, in units of reward; None if nothing was compared.
    tolerance : float or None
        How far they may differ, see `rmnb.scoring.parity`.
    exact : bool
        Whether they differ by no more than that.
    """

    against: str
    difference: float | None = None
    tolerance: float | None = None
    exact: bool = True


@dataclass(frozen=True)
class RewardModel:
    """A reward model that is ready to score.

    Attributes
    ----------
    spec : ModelSpec
        Name, origin, dtype.
    network : PreTrainedModel
        The trunk without head; or, where `head` is None, a whole classifier (an encoder).
    head : Head or None
        From the hidden state at the id that is read to the reward, in fp32.
    dialogue : Dialogue
        Tokenizer and template.
    plain_because : str or None
        Why the engine scores whole sequences instead of sharing the prefix, or None if it shares it.
    reading : Reading
        At which id of a conversation the reward is read.
    hashes : dict
        weights_sha256, config_sha256 and tokenizer_sha256, for provenance.
    options : dict
        What loading passed on to ``from_pretrained``: a device map, say; ``compile``, the mode of torch.compile.
    parity : Parity or None
        What `rmnb.load_reward_model` found.
    """

    spec: ModelSpec
    network: PreTrainedModel
    head: Head | None
    dialogue: Dialogue
    plain_because: str | None
    reading: Reading = field(default_factory=Reading)
    hashes: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    parity: Parity = Parity("nothing")

    #: ``score(prompt, responses, protocol="exact")``: one reward for each response, float32 [responses]. Bound by
    #: `rmnb.scoring.rows`, where model and engine are both known.
    score: ClassVar[Callable[..., np.ndarray]]

    def __repr__(self) -> str:
        head = "whole classifier" if self.head is None else self.head.name
        return f"RewardModel({self.name}: {head}, {self.spec.dtype} on {self.device})"

    @property
    def shares_prefix(self) -> bool:
        """Whether continuations share the prefix; else whole sequences are scored."""
        return self.plain_because is None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def tokenizer(self):
        return self.dialogue.tokenizer

    @property
    def device(self) -> torch.device:
        """Where ids go in and rewards come out."""
        return input_device(self.network)

    def read_at(self, prompt: Prompt) -> tuple[str, int | None]:
        """Where the reward of an ordinary answer is read: the token there, and its place from the end (-1: the last).

        A whole classifier sees to that itself: the place is then None.
        """
        if self.reading.rule == "own":
            return "where its own classifier reads", None
        prefix, closing = self.dialogue.frame(prompt)
        ids = [*prefix, -1, *closing]  # -1: an answer that is no padding
        at = self.reading.end([], ids) - 1
        token = "the answer's last token" if at == len(prefix) else repr(self.tokenizer.decode([ids[at]]))
        return token, at - len(ids)

    @property
    def vocabulary_size(self) -> int:
        """Rows of the embedding, one for every id that the model can read."""
        return self.network.get_input_embeddings().weight.shape[0]  # pyright: ignore[reportIndexIssue, reportReturnType]

    @property
    def context(self) -> int | None:
        """The most ids that the model's positions are made for, or None if its configuration sets no limit."""
        config = self.network.config.get_text_config()
        limit = getattr(config, "max_position_embeddings", None) or 0
        if limit <= 0:
            return None
        scaling = getattr(config, "rope_parameters", None) or {}
        stretched = scaling.get("factor", 1) * scaling.get("original_max_position_embeddings", 0)
        limit = max(limit, int(stretched))
        for name, module in self.network.named_modules():
            if name.endswith("position_embeddings"):
                padding = getattr(module, "padding_idx", None)  # RoBERTa's positions begin after it
                return limit if padding is None else limit - padding - 1
        return limit
