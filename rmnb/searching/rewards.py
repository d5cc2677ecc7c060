"""The objective that models give: rewards of one or several models to one or several prompts."""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rmnb.conversation import Prompt
from rmnb.errors import InputError
from rmnb.models.dialogue import SLOT
from rmnb.models.readouts import AnswerLikelihood
from rmnb.models.vocabulary import vocabulary
from rmnb.panels import PromptSpec
from rmnb.scoring.engine import PrefixScorer
from rmnb.scoring.reward_model import RewardModel
from rmnb.scoring.store import describe_model, note_model
from rmnb.searching.config import Ids


@dataclass
class ModelPromptReward:
    """One model's reward of responses to one prompt.

    Parameters
    ----------
    rm, prompt, answer
        The model, the question, and the carrier of what is sought.
    """

    rm: RewardModel
    prompt: Prompt
    answer: str = SLOT

    def __post_init__(self):
        dialogue = self.rm.dialogue
        self.prefix, self.closing = dialogue.frame_ids(self.prompt, self.answer)
        self.start = len(dialogue.ids_before(self.prompt))
        # What template or carrier write before an answer and the tokenizer joins to it.
        before = dialogue.frame_text(self.prompt)[0] + self.answer.partition(SLOT)[0]
        blanks = before[len(before.rstrip()) :]
        self.blank = "" if str(dialogue.tokenizer.decode(self.prefix)).endswith(blanks) else blanks
        nothing = "(?!)"  # what no text matches
        self.control = re.compile("|".join(map(re.escape, dialogue.control_tokens)) or nothing)
        self.scorer = PrefixScorer(self.rm, self.prefix)

    def conversations(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of whole conversations in which each text is sought."""
        answers = [self.answer.replace(SLOT, text) for text in texts]
        return self.rm.dialogue.conversations(self.prompt, answers)

    def rewards(self, sequences: Sequence[Ids], parent: Ids | None) -> np.ndarray:
        """float32 [sequences]; what they share with the parent is run once."""
        starts = [self.start] * len(sequences)
        return self.scorer([[*ids, *self.closing] for ids in sequences], parent=parent or (), starts=starts)

    def slopes(self, ids: Ids) -> np.ndarray:
        """How fast the reward rises as each token is blended into each position, float32 [length, vocabulary].

        The gradient with respect to the one-hot of each position: a vector of the network is the one-hot times the
        table of embeddings, times a factor for models that scale it (Gemma: the root of the hidden size).
        """
        rm = self.rm
        embedding: Any = rm.network.get_input_embeddings()
        conversation = rm.reading.truncated([*self.prefix, *ids, *self.closing])
        if len(conversation) <= len(self.prefix):  # the reward is read before the response
            return np.zeros((len(ids), len(embedding.weight)), np.float32)
        vectors = []

        def embed(_, __, output: Tensor) -> Tensor:
            vectors.append(output.detach().requires_grad_())
            return vectors[0]

        before = 0 if self.scorer.prefix is None else len(self.prefix)
        with torch.enable_grad(), embedding.register_forward_hook(embed):
            rewards = self.scorer.rewards([conversation], [self.start], (), [before])
            (slopes,) = torch.autograd.grad(rewards[0, 0], vectors)
        of_response = slopes[0, len(self.prefix) - before :][: len(ids)]
        slopes = (of_response @ embedding.weight.T).float() * getattr(embedding, "embed_scale", 1)
        unread = len(ids) - len(slopes)
        return np.pad(slopes.cpu().numpy(), ((0, unread), (0, 0)))  # with 0


class RewardObjective:
    """What a search needs to know: rewards of models to prompts. An objective of your own has the same members.

    Parameters
    ----------
    models
        Reward models that share a tokenizer.
    prompts
        Questions (text, messages, or of a panel). Rewards are averaged over them and over the models.
    answer
        A carrier, as of `rmnb.scan_vocabulary`: what is sought stands at its ``{}``.

    Raises
    ------
    InputError
        There is no prompt or no model, or the models' vocabularies differ.

    Attributes
    ----------
    words : DataFrame
        The vocabulary, as `rmnb.models.vocabulary.vocabulary` gives it.
    before : set of int
        Ids that stand before the answer.
    plan, notes : dict
        JSON values that say what is measured, and what else is worth knowing of it (`rmnb.plans`).

    Examples
    --------
    >>> from rmnb import load_reward_model
    >>> objective = RewardObjective([load_reward_model("checkpoint")], ["What is good?"])
    >>> objective.measure([(7, 8), (9, 10)]).shape
    (2,)
    """

    def __init__(
        self,
        models: Sequence[RewardModel],
        prompts: Sequence[Prompt | PromptSpec],
        answer: str = SLOT,
    ):
        if isinstance(prompts, str) or not prompts:
            raise InputError(f"prompts must be a list of at least one question, not {prompts!r}")
        if not models:
            raise InputError("no model given: name at least one")
        first = models[0]
        for rm in models:
            rm.refuse_several("a search")
            if rm.tokenizer.get_vocab() != first.tokenizer.get_vocab():
                raise InputError(f"{first.name} and {rm.name} have different tokenizers: search with each alone")
        asked = [prompt.conversation if isinstance(prompt, PromptSpec) else prompt for prompt in prompts]
        self.terms = [ModelPromptReward(rm, prompt, answer) for prompt in asked for rm in models]
        self.words = vocabulary(first.tokenizer, min(rm.vocabulary_size for rm in models))
        self.before = set().union(*(term.prefix for term in self.terms))
        self.plan = {
            "models": [describe_model(rm) for rm in models],
            "prompts": [term.prompt for term in self.terms],
            "conversation": [repr((term.prefix, term.closing)) for term in self.terms],
        }
        self.notes = {"noted": [note_model(rm) for rm in models], "attention": self.terms[0].scorer.attention}

    @functools.cached_property
    def vectors(self) -> np.ndarray:
        """The first model's embedding of each token, float32 [vocabulary, hidden size]: by them tokens are alike."""
        embedding: Any = self.terms[0].rm.network.get_input_embeddings()
        ids = torch.arange(len(self.words), device=self.terms[0].rm.device)
        with torch.inference_mode():
            return embedding(ids).float().cpu().numpy()

    def measure(self, sequences: Sequence[Ids], parent: Ids | None = None) -> np.ndarray:
        """Reward of each sequence, float64 [sequences].

        `parent` is a sequence that the others mostly begin like: a hint that saves work and changes no result beyond
        rounding.
        """
        return np.stack([term.rewards(sequences, parent) for term in self.terms]).mean(0, dtype=np.float64)

    def slopes(self, ids: Ids) -> np.ndarray | None:
        """How fast the reward rises as each token is blended into each position, [length, vocabulary].

        None where rewards are log-probabilities, which ids have as they are chosen.
        """
        if any(isinstance(term.rm.readout, AnswerLikelihood) for term in self.terms):
            return None
        return np.mean([term.slopes(ids)[:, : len(self.words)] for term in self.terms], axis=0)

    def retokenises(self, sequences: Sequence[Ids]) -> np.ndarray:
        """Whether the text of each sequence has the same ids as an answer, in every conversation: bool [sequences].

        A reward that only exists for ids that no text gives is an artefact. So the text, which a template may trim and
        whose tokens may merge with the words around it, must be what `Dialogue.conversations` reads as these very ids;
        and it neither is nor spells a control token.
        """
        verdicts = np.ones(len(sequences), dtype=bool)
        texts = self.texts(sequences)
        for term in self.terms:
            verdicts &= [term.control.search(text) is None for text in texts]
            remaining = np.flatnonzero(verdicts).tolist()
            conversations = term.conversations([texts[i] for i in remaining])
            for i, conversation in zip(remaining, conversations, strict=True):
                verdicts[i] = conversation == [*term.prefix, *sequences[i], *term.closing]
        return verdicts

    def texts(self, sequences: Sequence[Ids]) -> list[str]:
        """The text of each sequence: special tokens by name, without a blank that the template writes before it."""
        term = self.terms[0]
        tokenizer: Any = term.rm.tokenizer
        texts = tokenizer.batch_decode(sequences, clean_up_tokenization_spaces=False)
        return [text.removeprefix(term.blank) for text in texts]

    def encode(self, text: str) -> Ids:
        """The ids of a text as the answer to the first prompt."""
        term = self.terms[0]
        (conversation,) = term.conversations([text])
        return tuple(conversation[len(term.prefix) : len(conversation) - len(term.closing)])
