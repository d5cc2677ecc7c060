"""Heads that weigh several objectives by the prompt: ArmoRM and QRM.

The last hidden state gives one reward an objective; a gate, which reads the hidden state where the last prompt ends,
says how much each counts. The gate is therefore the same for every response to a prompt: `PromptHead` computes it once.

Sources, read for the formulas only: ArmoRM's ``modeling_custom.py`` (RLHFlow/ArmoRM-Llama3-8B-v0.1, in public copies)
and its training code (RLHFlow/RLHF-Reward-Modeling, ``armo-rm/stage-2_train.py``); ``rewardbench/models/qrm.py``
(allenai/reward-bench) for QRM on Llama; for QRM on Gemma 2 a public reimplementation that checks its tensor names
against the checkpoint's index, since the original is not at hand.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rmnb.errors import InputError
from rmnb.models.dialogue import Dialogue
from rmnb.models.heads import Head, LinearHead, Mlp


@dataclass(frozen=True)
class Gate:
    """weights = scale · softmax(MLP(hidden at the end of the prompt) / temperature).

    Attributes
    ----------
    mlp, temperature, scale
        As in the formula.
    pattern : tuple of int
        Ids that end the user's turn and open the assistant's. The gate reads the first id of their last occurrence
        (``<|eot_id|>`` for Llama 3, ``<end_of_turn>`` for Gemma 2).
    """

    mlp: Mlp
    temperature: float
    scale: Float[Tensor, ""]
    pattern: tuple[int, ...]

    def __call__(self, prompt: Float[Tensor, "batch hidden"]) -> Float[Tensor, "batch objectives"]:
        return torch.softmax(self.mlp(prompt) / self.temperature, dim=-1) * self.scale

    def find(self, ids: Sequence[int]) -> int | None:
        """Where the last occurrence of the pattern begins in `ids`, or None."""
        size = len(self.pattern)
        ids = tuple(ids)
        return next((at for at in range(len(ids) - size, -1, -1) if ids[at : at + size] == self.pattern), None)

    def place(self, ids: Sequence[int]) -> int:
        """As `find`, or InputError: without it the model has no reward."""
        at = self.find(ids)
        if at is None:
            raise InputError(
                f"the gate reads where the assistant's turn opens, and the conversation lacks those ids "
                f"({', '.join(map(str, self.pattern))}): score with the model's own chat template"
            )
        return at


@dataclass(frozen=True)
class GatedHead(Head):
    """reward = Σ weights × (objectives · hidden) @ transform, the weights being the gate's for the prompt.

    For one prompt, that is linear in the hidden state: `given` makes the linear head of it.

    Attributes
    ----------
    objectives : Tensor
        One row an objective. QRM's quantiles are averaged when it is loaded: their mean is what its reward takes.
    transform : Tensor or None
        ArmoRM's correction for verbosity; None is the identity.
    gate : Gate
        Gives the weights.
    """

    objectives: Float[Tensor, "objectives hidden"]
    transform: Float[Tensor, "objectives objectives"] | None
    gate: Gate
    name: str

    def given(self, prompt: Float[Tensor, " hidden"]) -> LinearHead:
        """The head for a prompt, from the hidden state at its end."""
        weights = self.gate(prompt[None])[0]
        if self.transform is not None:
            weights = self.transform @ weights
        return LinearHead(weights @ self.objectives, name=self.name)


class PromptHead:
    """The head for all continuations of one prefix, computed once.

    Parameters
    ----------
    head
        The model's head.
    prefix_ids
        Ids of the prefix.
    hidden
        Last hidden states of the prefix, Float[Tensor, "length hidden"].

    Attributes
    ----------
    linear : LinearHead or None
        None if the prefix does not hold the end of a prompt.
    """

    def __init__(self, head: GatedHead, prefix_ids: Sequence[int], hidden: Float[Tensor, "length hidden"]):
        self._gate = head.gate
        self._at = head.gate.find(prefix_ids)
        # What inference mode computes, autograd cannot keep; a search takes gradients through this head.
        with torch.inference_mode(False), torch.no_grad():
            self.linear = None if self._at is None else head.given(hidden[self._at])
        self._tail = self._end(prefix_ids)

    def beginning(self, prefix_ids: Sequence[int]) -> "PromptHead":
        """The same for the first ids of the prefix, as they are given."""
        shorter = copy.copy(self)
        shorter._tail = self._end(prefix_ids)
        if self._gate.find(prefix_ids) != self._at:
            shorter.linear = None
        return shorter

    def holds_for(self, continuation: Sequence[int]) -> bool:
        """Whether the prompt that the gate reads for this continuation is the one in the prefix."""
        return self.linear is not None and self._gate.find((*self._tail, *continuation)) is None

    def _end(self, prefix_ids: Sequence[int]) -> tuple[int, ...]:
        """The ids of a prefix with which a continuation could complete the pattern."""
        return tuple(prefix_ids[max(0, len(prefix_ids) - len(self._gate.pattern) + 1) :])


def gate_pattern(dialogue: Dialogue) -> tuple[int, ...]:
    """The ids that a dialogue's template puts between a prompt and the response to it.

    For the templates of Llama 3 (128009, 128006, 78191, 128007, 271) and Gemma 2 (107, 108, 106, 2516, 108) these are
    the ids that ArmoRM and QRM carry as constants.
    """
    user, assistant = "\ue000user\ue000", "\ue000assistant\ue000"
    text = dialogue.render([{"role": "user", "content": user}, {"role": "assistant", "content": assistant}])
    between = text.rpartition(user)[2].partition(assistant)[0]
    pattern = dialogue.tokenizer(between, add_special_tokens=False)["input_ids"]
    if not pattern or user not in text or assistant not in text:
        raise InputError("the chat template writes nothing between prompt and response: the gate has no place to read")
    return tuple(pattern)
