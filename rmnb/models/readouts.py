"""Readouts: from the hidden state at the position that is read to the reward, in fp32, as modules.

`rmnb.models.heads` finds which of them a checkpoint's tensors are. Nothing of a checkpoint's own code runs.

Sources, read for the formulas only: ``AutoModelForSequenceClassification`` (transformers) and OpenRLHF's
``get_llm_for_sequence_regression`` for the linear head; ``rewardbench/models/inform.py`` (allenai/reward-bench) for
INF-ORM; ``rewardbench/models/grm.py`` and ``rm_eval/grm_utils.py`` (YangRui2015/Generalizable-Reward-Model) for GRM's
value head, which is TRL's with hidden layers; SGLang's ``LlamaForSequenceClassificationWithNormal_Weights``, which
SGLang tests against the model's own code, for URM; ArmoRM's ``modeling_custom.py`` (RLHFlow/ArmoRM-Llama3-8B-v0.1, in
public copies) and its training code (RLHFlow/RLHF-Reward-Modeling, ``armo-rm/stage-2_train.py``);
``rewardbench/models/qrm.py`` for QRM on Llama; for QRM on Gemma 2 a public reimplementation that checks its tensor
names against the checkpoint's index.

Not confirmed, because the published checkpoints could not be opened: QRM's configuration files (the temperature is the
configuration's; without one what the public code assumes), the values of ``vhead_*`` in GRM's -sftreg checkpoints, and
URM's names beyond those that SGLang loads. QRM-Gemma-2-27B's own code is said to drop a doubled BOS when it scores one
sequence alone, which is not done here. ArmoRM's own code computes its head in the trunk's half precision, the authors
of QRM in fp32, as here.
"""

import copy
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import MoeModelOutputWithPast

from rmnb.errors import InputError
from rmnb.models.devices import upload
from rmnb.models.dialogue import Dialogue, common_prefix
from rmnb.models.reading import Rule

_AT_ONCE = 64  # states whose logits over the whole vocabulary are in memory together


class Span(NamedTuple):
    """Where the hidden states of one conversation lie among those of a batch.

    Those of its first `shared` ids are the batch's first ones; the others follow each other from `start` on.
    """

    shared: int
    start: int

    def place(self, index: int) -> int:
        """Where the state of the conversation's id of an index is."""
        return index if index < self.shared else self.start + index - self.shared


class Readout(nn.Module):
    """What all readouts share: from states to [conversations, outputs].

    Attributes
    ----------
    name : str
        As in a panel's key ``head``; `rmnb.models.heads.find_head` may put a more special one there.
    rule : str
        Where the code that such heads come from reads a conversation, see `rmnb.models.reading.Reading`.
    outputs : tuple of str
        What is read of one conversation: ``reward``, or the names of several outputs.
    chosen : Float[Tensor, "given outputs"] or None
        What each number that the head gives counts in each output (`rmnb.models.heads.choose_outputs`); None: the head
        gives one number, or weighs several by itself.
    weighs_itself : bool
        Whether that is so: of a head with a gate, say.
    unfed : int
        How many ids at the end of a conversation need not be run, because they are only predicted.
    """

    name: str
    rule: Rule = "before padding"
    outputs: tuple[str, ...] = ("reward",)
    weighs_itself = False
    isolated = True
    unfed = 0
    chosen: Tensor | None

    def __init__(self):
        super().__init__()
        self.register_buffer("chosen", None, persistent=False)

    def weighed(self, given: Float[Tensor, "*batch given"]) -> Float[Tensor, "*batch outputs"]:
        """The outputs, of all numbers that the head gives."""
        return given if self.chosen is None else given @ self.chosen

    def rewards(
        self,
        states: Float[Tensor, "ids hidden"],
        conversations: Sequence[list[int]],
        spans: Sequence[Span],
        starts: Sequence[int],
    ) -> Float[Tensor, "conversations outputs"]:
        """The outputs for each conversation of a batch, read at its last id; its answer begins at its start."""
        return self(states_at(states, spans, [len(ids) - 1 for ids in conversations]))


def states_at(states: Tensor, spans: Sequence[Span], indices: list[int]) -> Float[Tensor, "conversations hidden"]:
    """The state of one id of each conversation, by its index there."""
    places = [span.place(index) for span, index in zip(spans, indices, strict=True)]
    return states[upload(places, states.device)]


class ClassifierOutputs(Readout):
    """reward = Σ weight × logit of a whole classifier, which pools by itself: an encoder."""

    name = "classifier"

    def forward(self, logits: Float[Tensor, "*batch given"]) -> Float[Tensor, "*batch outputs"]:
        return self.weighed(logits.float())


class LayersHead(Readout):
    """reward = Σ weight × output of an MLP or a linear layer: TRL's and GRM's value head, INF-ORM, `LinearHead`.

    Parameters
    ----------
    name
        See `Readout`.
    attribute
        What a checkpoint calls the layers.
    layers
        From hidden state to outputs.
    """

    def __init__(self, name: str, attribute: str, layers: nn.Module):
        super().__init__()
        self.name = name
        self.attribute = attribute
        self.add_module(attribute, layers)
        self.mean = 0.0
        self.std = 1.0

    def forward(self, hidden: Float[Tensor, "*batch hidden"]) -> Float[Tensor, "*batch outputs"]:
        given = self.get_submodule(self.attribute)(hidden.float())
        return self.weighed((given - self.mean) / self.std)


class LinearHead(LayersHead):
    """reward = a linear layer: ``score`` of transformers and TRL, or what OpenRLHF calls it.

    OpenRLHF's normalisation, (reward - mean) / std, is applied where the configuration says ``normalize_reward``.
    """

    rule = "last but padding"

    def __init__(self, width: int, layer: str = "score", outputs: int = 1, bias: bool = False):
        super().__init__("linear", layer, nn.Linear(width, outputs, bias=bias))


class _States(MoeModelOutputWithPast):
    """What a trunk gives: hidden states, and None for all else that some trunks give."""

    def __getattr__(self, name: str) -> None:
        return None


class _GivenStates(nn.Module):
    """Stands where a model has its trunk, and gives the hidden states that it is given; else it has what that has."""

    def __init__(self, trunk: nn.Module):
        super().__init__()
        self.replaced = [trunk]  # in a list: no part of this module

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.replaced[0], name)

    def forward(self, *_, inputs_embeds: Tensor, **__) -> _States:
        return _States(last_hidden_state=inputs_embeds)  # pyright: ignore[reportArgumentType]


def _with_parts(model: Any, parts: Mapping[str, nn.Module]) -> Any:
    """A copy of a module in which some parts are others; the rest is shared."""
    copied = copy.copy(model)
    copied._modules = {**model._modules, **parts}
    copied.__dict__.pop("forward", None)  # of accelerate, bound to the module that was copied
    return copied


def trunk_name(whole: PreTrainedModel) -> str:
    """Which part of a model is its trunk; the class of some (Llama 4's text model) names another."""
    if hasattr(whole, whole.base_model_prefix):
        return whole.base_model_prefix
    [name] = [name for name, part in whole.named_children() if isinstance(part, PreTrainedModel)]
    return name


class LanguageHead(Readout):
    """The head of a language model: logits and log-probabilities of ids, in fp32.

    A model's own code makes logits of hidden states: its class runs over states that are given in place of its trunk,
    and so scales, caps or shifts them as it always does.

    Parameters
    ----------
    whole
        The language model as transformers loads it, trunk and head.

    Attributes
    ----------
    isolated : bool
        Whether that gives its own logits, as `rmnb.scoring.parity` finds; else it is run as a whole.
    """

    name = "log-probability"

    def __init__(self, whole: PreTrainedModel):
        super().__init__()
        self.whole = [whole]  # in a list: loading sees to it
        trunk = trunk_name(whole)
        full = {name: part for name, part in whole.named_children() if name != trunk}
        if whole.dtype != torch.float32:
            full = {name: copy.deepcopy(part).float() for name, part in full.items()}
        self.head = _with_parts(whole, {**full, trunk: _GivenStates(whole.get_submodule(trunk))})

    def logits(self, hidden: Float[Tensor, "ids hidden"], head: Any = None) -> Float[Tensor, "ids vocabulary"]:
        """Of all ids, as the token that comes next; or of those that a cut of the head has."""
        return (head or self.head)(inputs_embeds=hidden.float()[None]).logits[0].float()

    def rewards_from_logits(
        self, logits: Float[Tensor, "ids vocabulary"], ids: list[int], start: int
    ) -> Float[Tensor, " outputs"]:
        """The outputs of one conversation whose answer begins at `start`, from the logits at each of its ids."""
        raise NotImplementedError


class AnswerTokens(LanguageHead):
    """reward of a judge: Σ weight × logit of the ids of its replies, or × their probability among these.

    Parameters
    ----------
    whole
        As `LanguageHead`.
    ids
        Of the replies.
    expected
        Probabilities in place of logits.
    """

    name = "judge"
    ids: Tensor

    def __init__(self, whole: PreTrainedModel, ids: Sequence[int], expected: bool = False):
        super().__init__(whole)
        self.register_buffer("ids", torch.tensor(ids))
        self.expected = expected
        self.rows = self.head
        layer = self.head.get_output_embeddings()
        names = [name for name, part in self.head.named_children() if part is layer]
        if names and type(layer) is nn.Linear:  # only the rows that count are multiplied
            rows = nn.utils.skip_init(nn.Linear, layer.in_features, len(ids), bias=layer.bias is not None)
            rows.load_state_dict({name: tensor[self.ids] for name, tensor in layer.state_dict().items()}, assign=True)
            self.rows = _with_parts(self.head, {names[0]: rows})

    def forward(self, hidden: Float[Tensor, "conversations hidden"]) -> Float[Tensor, "conversations outputs"]:
        logits = self.logits(hidden, self.rows)
        return self._read(logits[:, self.ids] if self.rows is self.head else logits)

    def _read(self, logits: Float[Tensor, "*batch replies"]) -> Float[Tensor, "*batch outputs"]:
        return self.weighed(logits.softmax(-1) if self.expected else logits)

    def rewards_from_logits(self, logits, ids, start):
        return self._read(logits[-1, self.ids].float())


class AnswerLikelihood(LanguageHead):
    """reward = Σ log-probability of an answer's ids and of the ids that close it."""

    unfed = 1

    def rewards(self, states, conversations, spans, starts):
        places = []
        targets = []
        lengths = []
        for ids, span, start in zip(conversations, spans, starts, strict=True):
            places += [span.place(index - 1) for index in range(start, len(ids))]
            targets += ids[start:]
            lengths.append(len(ids) - start)
        places, targets, lengths = (upload(numbers, states.device) for numbers in (places, targets, lengths))
        return torch.segment_reduce(self(states[places], targets), "sum", lengths=lengths, unsafe=True)[:, None]

    def forward(self, hidden: Float[Tensor, "ids hidden"], ids: Int[Tensor, " ids"]) -> Float[Tensor, " ids"]:
        """Natural log-probability of each id, from the state before it."""
        parts = zip(hidden.split(_AT_ONCE), ids.split(_AT_ONCE), strict=True)
        return torch.cat([_logprobs(self.logits(states), targets) for states, targets in parts])

    def rewards_from_logits(self, logits, ids, start):
        return _logprobs(logits[start - 1 : -1], upload(ids[start:], logits.device)).sum(0, keepdim=True)


def _logprobs(logits: Float[Tensor, "ids vocabulary"], ids: Int[Tensor, " ids"]) -> Float[Tensor, " ids"]:
    """Natural log-probabilities; in fp32 the normaliser is off by 1e-5."""
    return -nn.functional.cross_entropy(logits.double(), ids, reduction="none")


class UrmHead(Readout):
    """reward = Σ weights(hidden) × means(hidden) over URM's attributes.

    The outputs of ``score`` are the mean and the logarithm of the variance of each attribute in turn; the weights are
    an MLP over the very hidden state that is scored, and are not normalised.
    """

    name = "urm"
    weighs_itself = True

    def __init__(self, width: int, outputs: int):
        super().__init__()
        self.score = nn.Linear(width, outputs, bias=False)
        self.weights = nn.ModuleDict({"fc": mlp([width, width, width, outputs // 2], nn.SELU)})

    def forward(self, hidden: Float[Tensor, "*batch hidden"]) -> Float[Tensor, "*batch outputs"]:
        hidden = hidden.float()
        means = self.score(hidden)[..., ::2]
        if self.chosen is None:
            return (means * self.weights["fc"](hidden)).sum(-1, keepdim=True)
        return self.weighed(means)


class GatedHead(Readout):
    """reward = Σ weights × (objectives · hidden) @ transform: ArmoRM and QRM.

    A gate gives the weights: scale · softmax(layers(hidden at the end of the prompt) / temperature). Rows of the
    regression layer are ordered by objective, then quantile; QRM's reward takes the mean over quantiles.

    Attributes
    ----------
    opening : tuple of int
        Ids that end the user's turn and open the assistant's, from `opening_ids`. The gate reads the first id of their
        last occurrence (``<|eot_id|>`` for Llama 3, ``<end_of_turn>`` for Gemma 2).
    """

    opening: tuple[int, ...] = ()
    weighs_itself = True

    def __init__(
        self, name: str, layers: nn.Module, sizes: Sequence[int], quantiles: int, temperature: float, transform: bool
    ):
        super().__init__()
        self.name = name
        self.quantiles = quantiles
        self.temperature = temperature
        self.regression_layer = nn.Linear(sizes[0], sizes[-1] * quantiles, bias=False)
        self.gating = nn.ModuleDict({"layers": layers})
        self.gating.register_parameter("logit_scale", nn.Parameter(torch.ones(1)))
        if transform:
            self.reward_transform_matrix = nn.Parameter(torch.eye(sizes[-1]))

    def rewards(self, states, conversations, spans, starts):
        last = states_at(states, spans, [len(ids) - 1 for ids in conversations])
        gates = [opening_place(self.opening, ids) for ids in conversations]
        return self(last, states_at(states, spans, gates))

    def forward(
        self, hidden: Float[Tensor, "*batch hidden"], prompt: Float[Tensor, "*batch hidden"]
    ) -> Float[Tensor, "*batch outputs"]:
        """From the states at the last ids, and those at the ends of the prompts."""
        objectives = self.regression_layer(hidden.float()).unflatten(-1, (-1, self.quantiles)).mean(-1)
        if self.chosen is not None:
            return self.weighed(objectives)
        weights = (self.gating["layers"](prompt.float()) / self.temperature).softmax(-1)
        weights = weights * self.get_parameter("gating.logit_scale")
        if hasattr(self, "reward_transform_matrix"):
            weights = weights @ self.reward_transform_matrix.T
        return (objectives * weights).sum(-1, keepdim=True)


def opening_ids(dialogue: Dialogue) -> tuple[int, ...]:
    """The ids that a dialogue's template puts between any prompt and the response to it.

    For the templates of Llama 3 (128009, 128006, 78191, 128007, 271) and Gemma 2 (107, 108, 106, 2516, 108) these are
    the ids that ArmoRM and QRM carry as constants.

    Raises
    ------
    InputError
        There are none.
    """
    opening = common_prefix([dialogue.ids_before(prompt)[::-1] for prompt in ("love", "War", "7?")])[::-1]
    if not opening:
        raise InputError("the chat template writes nothing between prompt and response, where the model has to read")
    return tuple(opening)


def opening_place(opening: tuple[int, ...], ids: Sequence[int]) -> int:
    """Where the last occurrence of the ids that open the assistant's turn begins; InputError if there is none."""
    for place in reversed(range(len(ids) if opening else 0)):
        if tuple(ids[place : place + len(opening)]) == opening:
            return place
    raise InputError(
        f"the model reads where the assistant's turn opens, and the conversation lacks those ids "
        f"({', '.join(map(str, opening))}): score with the model's own chat template"
    )


def mlp(
    sizes: Sequence[int], activation: type[nn.Module] = nn.ReLU, norm: bool = False, dropout: bool = False
) -> nn.Sequential:
    """Linear layers with an activation between them.

    The layers' indices are the checkpoint's tensor names, so norm and dropout, which QRM has, are included although
    dropout does nothing here; QRM-Gemma-2-27B has it between hidden layers.
    """
    layers = []
    for place, (inner, outer) in enumerate(itertools.pairwise(sizes[:-1])):
        layers += [nn.Linear(inner, outer, bias=not norm), activation()]
        if norm:
            layers.append(nn.BatchNorm1d(outer))
        if dropout and place < len(sizes) - 3:
            layers.append(nn.Dropout())
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))
