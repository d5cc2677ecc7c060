"""A reward model that is ready to score: what loading gives and everything else takes."""

import functools
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_list_like
from tqdm import tqdm

from rmnb.conversation import Conversation, Prompt, Response, as_conversation
from rmnb.errors import InputError, list_some
from rmnb.models.dialogue import PROBES, SLOT, check_protocol, common_prefix
from rmnb.models.loading import Checkpoint
from rmnb.models.readouts import LanguageHead
from rmnb.panels import load_panel
from rmnb.plans import Work
from rmnb.scoring import store
from rmnb.scoring.engine import Ids, score_sequences

logger = logging.getLogger(__name__)
_MANY = 8  # rows a prompt, from which on running each prompt once pays


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
    """

    against: str
    difference: float | None = None
    tolerance: float | None = None


@dataclass(frozen=True)
class RewardModel(Checkpoint):
    """A reward model that is ready to score: a checkpoint in memory (`rmnb.models.loading.Checkpoint`), and more.

    Attributes
    ----------
    parity : Parity or None
        What `rmnb.load_reward_model` found.
    """

    parity: Parity = Parity("nothing")

    def __repr__(self) -> str:
        return f"RewardModel({self.name}: {self.readout.name}, {self.spec.dtype} on {self.device})"

    def columns(self, name: str) -> list[str]:
        """What a table calls the outputs: by this name where there is one, else NAME_OUTPUT each."""
        return [name] if len(self.outputs) == 1 else [f"{name}_{output}" for output in self.outputs]

    def refuse_several(self, what: str) -> None:
        """Raise InputError where there are several outputs and one number is needed."""
        if len(self.outputs) > 1:
            raise InputError(f"{what} needs one number of {self.name}, not {list_some(self.outputs)}: choose a --label")

    def score(
        self,
        prompt: Prompt | Sequence[Prompt],
        responses: Sequence[Response],
        protocol: str = "exact",
        work: Work | None = None,
        progress: bool = False,
    ) -> np.ndarray:
        """Rewards of texts as responses to a prompt, or row by row to several.

        Rows of like length are scored together, or those of one prompt, where each has many.

        Parameters
        ----------
        prompt
            A text or messages, for all responses; or a list of as many of these as there are responses. A text is asked
            as it stands: the key of a panel's prompt is not looked up, but warned of.
        responses
            Texts; an empty one is a conversation that ends at once.
        protocol
            ``exact`` or ``published``.
        work
            Where rewards are kept as they are computed; called again after an interruption, the work goes on.
        progress
            Show a progress bar.

        Returns
        -------
        np.ndarray
            float32 [responses]; [responses, outputs] of a model that was loaded with the label ``all``.

        Raises
        ------
        InputError
            No response, one that is no text, no order among them, prompts of another number, messages that end with the
            assistant's, an unknown protocol, or a reward that is not finite.
        """
        if isinstance(responses, Mapping) or not is_list_like(responses, allow_sets=False):
            raise InputError(f"responses must be a list of texts, in an order, not {str(responses)[:60]!r}")
        responses = list(responses)  # a pandas Series and an array are lists too
        if not responses:
            raise InputError("no response given: name at least one")
        if isinstance(prompt, str) and prompt in _known_keys():
            logger.warning("%r is scored as a text: `load_panel(...).prompt(%r).text` is the question", prompt, prompt)
        given: Any = prompt
        is_many = is_list_like(given) and not isinstance(next(iter(given), {}), dict)  # else it is one's messages
        prompts = list(given) if is_many else [given] * len(responses)
        if len(prompts) != len(responses):
            raise InputError(f"{len(prompts)} prompts and {len(responses)} responses: give one prompt, or one for each")
        for response in responses:
            if not isinstance(response, str | dict):
                raise InputError(f"responses must be texts, found {response!r}")
        check_protocol(protocol)
        asked = [check_prompt(question) for question in prompts]
        work = work or Work()
        # Equal conversations are scored once, so that their rewards are equal: another batch rounds differently.
        whole = pd.Series([question.then(response) for question, response in zip(asked, responses, strict=True)])
        places, _ = pd.factorize(whole)
        distinct = np.flatnonzero(~whole.duplicated())
        rewards = np.empty((len(distinct), len(self.outputs)), dtype=np.float32)
        with tqdm(total=len(distinct), unit=" rows", disable=not progress) as bar:
            groups = _groups(self, [asked[row] for row in distinct], [responses[row] for row in distinct], protocol)
            done = 0
            for number, (rows, sequences, starts) in enumerate(groups):
                scored = work.rewards(number, score_sequences, self, sequences, starts, bar.update)
                rewards[rows] = scored.reshape(len(rows), -1)
                done += len(rows)
                bar.update(done - bar.n)  # of a piece that was there before
        rewards = rewards[places]
        return rewards if len(self.outputs) > 1 else rewards[:, 0]

    def answer_start(self, prompt: Prompt, protocol: str = "exact") -> int:
        """Where the answer's ids begin; InputError for a language model without a template, which writes no answers."""
        is_pair = self.dialogue.template is None
        if not isinstance(self.readout, LanguageHead):
            return len(self.dialogue.ids_before(prompt)) if is_pair else 0  # which nothing else asks
        if is_pair:
            raise InputError(f"{self.name} has no chat template that says where an answer begins: give --template")
        if protocol == "exact":
            return len(self.dialogue.ids_before(prompt))
        return len(common_prefix(self.dialogue.published_ids(prompt, PROBES)))

    def read_at(self, prompt: Prompt, carrier: str = SLOT) -> tuple[str, int | None]:
        """Where the reward of an ordinary answer is read: the token there, and its place from the end (-1: the last).

        A whole classifier sees to that itself: the place is then None.
        """
        if self.reading.rule == "own":
            return "where its own classifier reads", None
        prefix, closing = self.dialogue.frame_ids(prompt, carrier)
        ids = [*prefix, -1, *closing]  # -1: an answer that is no padding
        at = self.reading.ids_read(ids) - 1
        token = "the answer's last token" if at == len(prefix) else repr(self.tokenizer.decode([ids[at]]))
        return token, at - len(ids)


@functools.cache
def _known_keys() -> set[str]:
    return {prompt.key for prompt in load_panel("demo").all_prompts}


def _groups(
    rm: RewardModel, prompts: list[Conversation], responses: list[Response], protocol: str
) -> Iterator[tuple[list[int], list[Ids], list[int]]]:
    """Rows to score at once, their ids, and where answers begin."""
    by_prompt: dict[Conversation, list[int]] = {}
    for row, prompt in enumerate(prompts):
        by_prompt.setdefault(prompt, []).append(row)
    rm.dialogue.frame_text(prompts[0])  # a template that drops the responses is refused
    tokenise: Any = rm.dialogue.conversations if protocol == "exact" else rm.dialogue.published_ids
    sequences: dict[int, Ids] = {}
    starts: dict[int, int] = {}
    for prompt, rows in by_prompt.items():
        starts.update(dict.fromkeys(rows, rm.answer_start(prompt, protocol)))
        sequences.update(zip(rows, tokenise(prompt, [responses[row] for row in rows]), strict=True))
    groups = list(by_prompt.values())
    if len(groups) > 1 and len(responses) < _MANY * len(groups):
        groups = [sorted(sequences, key=lambda row: len(sequences[row]))]
    for rows in groups:
        for first in range(0, len(rows), store.SHARD):
            shard = rows[first : first + store.SHARD]
            yield shard, [sequences[row] for row in shard], [starts[row] for row in shard]


def check_prompt(prompt: Prompt) -> Conversation:
    """The prompt as a conversation; InputError if its last message is the assistant's, as the response is."""
    asked = as_conversation(prompt)
    if asked.messages[-1]["role"] == "assistant":
        raise InputError("the last message must be the user's: it is the question", "messages")
    return asked
