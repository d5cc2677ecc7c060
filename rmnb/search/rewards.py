"""The objective that models give: rewards of one or several models to one or several prompts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rmnb.errors import InputError
from rmnb.models.dialogue import Dialogue, Prompt
from rmnb.models.reward_model import RewardModel
from rmnb.models.vocabulary import vocabulary
from rmnb.scoring.engine import NonFiniteReward, PrefixScorer
from rmnb.scoring.store import versions
from rmnb.search.gradient import RewardGradient
from rmnb.search.problem import Ids

_WORTH_IT = 4  # from so many sequences on, running what they begin with once pays
# What a pass costs before its first position, in positions: the weights must be read once (measured on a CPU with both
# demo bases; elsewhere a guess, large because starting a pass is what takes time there).
_PASS, _PASS_ELSEWHERE = 20, 4096


@dataclass(frozen=True)
class _Term:
    """One model's reward of responses to one prompt."""

    prompt: Prompt
    weight: float
    closing: list[int]
    scorer: PrefixScorer
    gradient: RewardGradient
    batch_size: int | None

    def rewards(self, sequences: Sequence[Ids], parent: Ids | None) -> np.ndarray:
        """float32 [sequences]; what each shares with the parent is run once for all."""
        whole = [[*ids, *self.closing] for ids in sequences]
        if parent is None or self.scorer.prefix is None or len(sequences) < _WORTH_IT:
            return self.scorer(whole, self.batch_size)
        start = len(self.scorer.prefix_ids)
        along_parent = PrefixScorer(self.scorer.rm, [*self.scorer.prefix_ids, *parent])
        shared = np.array([_agreement(ids, parent) for ids in sequences])
        rewards = np.empty(len(sequences), dtype=np.float32)
        pass_costs = _PASS if self.scorer.rm.device.type == "cpu" else _PASS_ELSEWHERE
        for group in _groups(shared, pass_costs):
            length = int(shared[group].min())
            try:
                rewards[group] = along_parent.beginning(start + length)(
                    [whole[i][length:] for i in group], self.batch_size
                )
            except NonFiniteReward as error:
                raise NonFiniteReward(int(group[error.index]), error.reward, error.dtype) from error
        return rewards


class RewardObjective:
    """Rewards of models to prompts; see `Objective`.

    Parameters
    ----------
    models
        Reward models that share a tokenizer, each with a weight.
    prompts
        Questions, averaged.
    batch_size
        Sequences at once. Default: from free memory.

    Raises
    ------
    InputError
        The models' vocabularies differ.
    """

    def __init__(
        self,
        models: Sequence[tuple[RewardModel, float]],
        prompts: Sequence[Prompt],
        batch_size: int | None = None,
    ):
        first = models[0][0]
        for rm, _ in models[1:]:
            if (
                rm.tokenizer_sha256 != first.tokenizer_sha256
                and rm.tokenizer.get_vocab() != first.tokenizer.get_vocab()
            ):
                raise InputError(f"{first.name} and {rm.name} have different tokenizers: search with each alone")
        self._terms = []
        self._dialogues = []
        for prompt in prompts:
            for rm, weight in models:
                prefix, closing = rm.dialogue.frame(prompt)
                scorer = PrefixScorer(rm, prefix)
                gradient = RewardGradient(scorer, closing)
                self._terms.append(_Term(prompt, weight / len(prompts), closing, scorer, gradient, batch_size))
                if (rm.dialogue.template, prompt) not in [(d.template, p) for d, p in self._dialogues]:
                    self._dialogues.append((rm.dialogue, prompt))
        self.words = vocabulary(first.tokenizer, min(rm.vocabulary_size for rm, _ in models))
        self.provenance = {
            "models": [
                {
                    "name": rm.name,
                    "weight": weight,
                    "weights_sha256": rm.weights_sha256,
                    "tokenizer_sha256": rm.tokenizer_sha256,
                    "dtype": rm.spec.dtype,
                    "read": rm.spec.read,
                    "label": rm.spec.label,
                    "softcap": rm.spec.softcap,
                    "quantise": rm.placement.quantise,
                    "device": rm.device.type,
                }
                for rm, weight in models
            ],
            "prompts": list(prompts),
            "conversation": [repr(rm.dialogue.frame(prompt)) for rm, _ in models for prompt in prompts],
            "attention": self._terms[0].scorer.attention,
            "versions": versions(),
        }

    def measure(self, sequences: Sequence[Ids], parent: Ids | None = None) -> np.ndarray:
        """See `Objective.measure`."""
        measured = np.zeros(len(sequences))
        try:
            for term in self._terms:
                measured += term.weight * term.rewards(sequences, parent)
        except NonFiniteReward as error:
            ids = sequences[error.index]
            raise InputError(f"the reward of the ids {list(ids)} is {error.reward}: {error.advice}") from error
        return measured

    def gradient(self, ids: Ids) -> np.ndarray:
        """See `Objective.gradient`."""
        slopes = sum(term.weight * term.gradient(ids)[:, : len(self.words)] for term in self._terms)
        return np.asarray(slopes, dtype=np.float64)

    def survives(self, sequences: Sequence[Ids]) -> np.ndarray:
        """See `Objective.survives`: in every conversation."""
        kept = np.ones(len(sequences), dtype=bool)
        for dialogue, prompt in self._dialogues:
            kept[kept] = survives(dialogue, prompt, [ids for ids, keep in zip(sequences, kept, strict=True) if keep])
        return kept

    def texts(self, sequences: Sequence[Ids]) -> list[str]:
        """See `Objective.texts`."""
        dialogue, prompt = self._dialogues[0]
        return texts_of(dialogue, prompt, sequences)

    def encode(self, text: str) -> Ids:
        """See `Objective.encode`: as the answer to the first prompt, or alone if it would join the words around it."""
        (dialogue, prompt), term = self._dialogues[0], self._terms[0]
        (whole,) = dialogue.conversations(prompt, [text])
        ids = whole[len(term.scorer.prefix_ids) : len(whole) - len(term.closing)]
        joined = [*term.scorer.prefix_ids, *ids, *term.closing] != whole
        return tuple(dialogue.response_ids(text) if joined else ids)


def survives(dialogue: Dialogue, prompt: Prompt, sequences: Sequence[Sequence[int]]) -> np.ndarray:
    """Whether each sequence comes back as the same ids when it is written as text, bool [sequences].

    A reward that only exists for ids that no text gives is an artefact. So a sequence must be what the tokenizer makes
    of its own text as the answer, between the words of its conversation, where a token could merge with its neighbours;
    whether markers in it are text, as `rmnb score` reads them, or count.
    """
    if not len(sequences):
        return np.zeros(0, dtype=bool)
    prefix, closing = dialogue.frame(prompt)
    texts = texts_of(dialogue, prompt, sequences)
    as_text, as_it_stands = dialogue.conversations(prompt, texts), dialogue.ids_in_context(prompt, texts)
    return np.array(
        [
            [*prefix, *ids, *closing] == whole == marked
            for ids, whole, marked in zip(sequences, as_text, as_it_stands, strict=True)
        ]
    )


def texts_of(dialogue: Dialogue, prompt: Prompt, sequences: Sequence[Sequence[int]]) -> list[str]:
    """The text of each sequence, special tokens by their name; without a blank that the template writes before it."""
    rows = [list(ids) for ids in sequences]
    texts = dialogue.tokenizer.batch_decode(rows, clean_up_tokenization_spaces=False, skip_special_tokens=False)
    blank = dialogue.joined_blank(prompt)
    return [text.removeprefix(blank) for text in texts]


def _agreement(ids: Ids, parent: Ids) -> int:
    """How many ids two sequences have in common from the start."""
    return next((i for i, (a, b) in enumerate(zip(ids, parent, strict=False)) if a != b), min(len(ids), len(parent)))


def _groups(shared: np.ndarray, pass_costs: int) -> list[np.ndarray]:
    """Sequences that are scored together, as indices: the cheapest division by how much they share with their parent.

    A group shares what its least alike member shares; one group for all wastes positions, one a length wastes passes.
    """
    lengths, counts = np.unique(shared, return_counts=True)
    cost, starts = [0.0], [0]  # of the first so many lengths; where their last group starts
    for stop in range(1, len(lengths) + 1):
        wasted = [counts[i:stop] @ (lengths[i:stop] - lengths[i]) for i in range(stop)]
        ways = [cost[i] + pass_costs + wasted[i] for i in range(stop)]
        starts.append(int(np.argmin(ways)))
        cost.append(min(ways))
    groups, stop = [], len(lengths)
    while stop:
        first = starts[stop]
        groups.append(np.flatnonzero((shared >= lengths[first]) & (shared <= lengths[stop - 1])))
        stop = first
    return groups
