"""Readouts: from the hidden state at the position that is read to the reward, in fp32, as modules.

The heads that checkpoints bring have parameters of the names that checkpoints use, so a checkpoint's head is the one
whose names differ least from its tensors. Nothing of a checkpoint's own code runs.

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

import functools
import itertools
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from rmnb.errors import InputError, few
from rmnb.models.dialogue import Dialogue, as_messages, common_prefix, with_response

ALL = "all"  # the label that stands for every output by itself
Label = int | str | Sequence[float] | Mapping[str, float] | None


_AT_ONCE = 64  # states whose logits over the whole vocabulary are in memory together


class Readout(nn.Module):
    """What all readouts share.

    Attributes
    ----------
    name : str
        As in a panel's key ``head``; `find_head` may put a more special one there.
    shape : tuple of int
        Of what is read of one conversation: () for a reward, (outputs,) where each output is read by itself.
    """

    name: str
    shape: tuple[int, ...] = ()


class ClassifierOutputs(Readout):
    """reward = Σ weight × logit of a whole classifier, which pools by itself: an encoder."""

    name = "classifier"

    def __init__(self, weights: Tensor):
        super().__init__()
        self.register_buffer("weights", weights)
        self.shape = tuple(weights.shape[1:])

    def forward(self, logits: Float[Tensor, "*batch outputs"]) -> Float[Tensor, "*batch"]:
        return logits.float() @ self.get_buffer("weights")


class LayersHead(Readout):
    """reward = one output of MLP(hidden): TRL's and GRM's value head, INF-ORM."""

    def __init__(self, name: str, path: str, layers: nn.Module):
        super().__init__()
        self.name = name
        self.path = path  # of the layers, before their tensors' names
        self.mean = 0.0
        self.std = 1.0
        parent, _, child = path.rpartition(".")
        if parent:
            self.add_module(parent, nn.Module())
        self.get_submodule(parent).add_module(child, layers)

    def forward(self, hidden: Float[Tensor, "*batch hidden"]) -> Float[Tensor, "*batch"]:
        outputs = (self.get_submodule(self.path)(hidden.float()) - self.mean) / self.std
        return outputs if self.shape else outputs[..., 0]


class LinearHead(LayersHead):
    """reward = a linear layer: ``score`` of transformers and TRL, or what OpenRLHF calls it.

    Of several outputs it is their weighted sum. OpenRLHF's normalisation, (reward - mean) / std, is applied where the
    configuration says ``normalize_reward``.
    """

    def __init__(self, width: int, layer: str = "score", outputs: int = 1, bias: bool = False):
        super().__init__("linear", layer, nn.Linear(width, outputs, bias=bias))


class LanguageHead(Readout):
    """The head of a language model: logits and log-probabilities of ids, in fp32.

    Parameters
    ----------
    tensors
        By name, those outside the trunk: the head's weight, perhaps a bias.
    config
        ``config.json``: how the model caps its logits (Gemma 2), or scales them (Cohere, Granite).
    source
        The checkpoint, for messages.

    Raises
    ------
    InputError
        There is no such head.
    """

    name = "log-probability"

    def __init__(self, tensors: Mapping[str, Tensor], config: Mapping[str, Any], source: object):
        super().__init__()
        matrices = [name for name, tensor in tensors.items() if tensor.ndim == 2]
        if len(matrices) != 1:
            raise InputError(f"{source}: no language model's head among {few(tensors) or 'its tensors'}")
        self.weight = nn.Parameter(tensors[matrices[0]], False)
        self.bias = tensors.get(matrices[0].removesuffix("weight") + "bias")
        self.cap = config.get("final_logit_softcapping")
        self.scale = config.get("logit_scale") or 1 / (config.get("logits_scaling") or 1)

    def logits(self, hidden: Float[Tensor, "*batch hidden"], ids: Tensor | None = None) -> Float[Tensor, "*batch ids"]:
        """Of some ids, or of all, as the token that comes next."""
        chosen = slice(None) if ids is None else ids
        bias = None if self.bias is None else self.bias.to(hidden.device)[chosen].float()
        logits = nn.functional.linear(hidden.float(), self.weight[chosen].float(), bias) * self.scale
        return logits if self.cap is None else torch.tanh(logits / self.cap) * self.cap


class AnswerTokens(LanguageHead):
    """reward of a judge: Σ weight × logit of the ids of its replies, or × their probability among these.

    Parameters
    ----------
    tensors, config, source
        As `LanguageHead`.
    answers
        Ids and their weights.
    expected
        Probabilities in place of logits.
    each
        Every reply by itself, in place of the weighted sum.
    """

    name = "judge"

    def __init__(self, tensors, config, source: object, answers: Mapping[int, float], expected=False, each=False):
        super().__init__(tensors, config, source)
        self.ids = torch.tensor(list(answers))
        weights = torch.eye(len(answers)) if each else torch.tensor(list(answers.values()), dtype=torch.float32)
        self.register_buffer("weights", weights)
        self.shape = tuple(weights.shape[1:])
        self.expected = expected

    def forward(self, hidden: Float[Tensor, "*batch hidden"]) -> Float[Tensor, "*batch"]:
        return self.read(self.logits(hidden, self.ids.to(hidden.device)))

    def read(self, logits: Float[Tensor, "*batch replies"]) -> Float[Tensor, "*batch"]:
        """The reward, from the logits of the replies."""
        return (logits.softmax(-1) if self.expected else logits) @ self.get_buffer("weights")


class AnswerLikelihood(LanguageHead):
    """reward = Σ log-probability of an answer's ids and of the id that closes it.

    Attributes
    ----------
    opening : tuple of int
        The ids that open the assistant's turn, from `opening_ids`; the answer begins behind their last occurrence.
    """

    opening: tuple[int, ...] = ()

    def begin(self, ids: Sequence[int]) -> int:
        """Where the answer begins in a conversation; InputError if nothing says so."""
        at = last_occurrence(self.opening, ids)
        if not self.opening or at is None:
            raise InputError("nothing in the conversation says where the answer begins: give a chat template")
        return at + len(self.opening)

    def forward(self, hidden: Float[Tensor, "ids hidden"], ids: Int[Tensor, " ids"]) -> Float[Tensor, " ids"]:
        """Natural log-probability of each id, from the state before it."""
        logprobs = []
        for states, targets in zip(hidden.split(_AT_ONCE), ids.split(_AT_ONCE), strict=True):
            logits = self.logits(states).double()  # in fp32 the normaliser is off by 1e-5
            logprobs.append(-nn.functional.cross_entropy(logits, targets, reduction="none"))
        return torch.cat(logprobs)


class UrmHead(Readout):
    """reward = Σ weights(hidden) × means(hidden) over URM's attributes.

    The outputs of ``score`` are the mean and the logarithm of the variance of each attribute in turn; the weights are
    an MLP over the very hidden state that is scored, and are not normalised.
    """

    name = "urm"

    def __init__(self, width: int, outputs: int):
        super().__init__()
        self.score = nn.Linear(width, outputs, bias=False)
        self.weights = nn.ModuleDict({"fc": mlp([width, width, width, outputs // 2], nn.SELU)})

    def objectives(self) -> "LinearHead":
        """Each attribute's mean by itself."""
        return linear_outputs(self.name, self.score.weight[::2])

    def forward(self, hidden: Float[Tensor, "*batch hidden"]) -> Float[Tensor, "*batch"]:
        hidden = hidden.float()
        return (self.score(hidden)[..., ::2] * self.weights["fc"](hidden)).sum(-1)


class GatedHead(Readout):
    """reward = Σ weights × (objectives · hidden) @ transform: ArmoRM and QRM.

    A gate gives the weights: scale · softmax(layers(hidden at the end of the prompt) / temperature). For one prompt
    the reward is linear in the hidden state: see `PromptHead`. Rows of the regression layer are ordered by objective,
    then quantile; the mean over quantiles, which QRM's reward takes, is linear too.

    Attributes
    ----------
    pattern : tuple of int
        Ids that end the user's turn and open the assistant's, from `gate_pattern`. The gate reads the first id of their
        last occurrence (``<|eot_id|>`` for Llama 3, ``<end_of_turn>`` for Gemma 2).
    """

    def __init__(
        self, name: str, layers: nn.Module, sizes: Sequence[int], quantiles: int, temperature: float, transform: bool
    ):
        super().__init__()
        self.name = name
        self.quantiles = quantiles
        self.temperature = temperature
        self.pattern: tuple[int, ...] = ()
        self.regression_layer = nn.Linear(sizes[0], sizes[-1] * quantiles, bias=False)
        self.gating = nn.ModuleDict({"layers": layers})
        self.gating.register_parameter("logit_scale", nn.Parameter(torch.ones(1)))
        if transform:
            self.reward_transform_matrix = nn.Parameter(torch.eye(sizes[-1]))

    def weights_after(self, prompt: Float[Tensor, " hidden"]) -> Float[Tensor, " hidden"]:
        """The weights of the reward that is linear in the hidden state, from the state at the end of a prompt."""
        logits = self.gating["layers"](prompt[None].float())[0] / self.temperature
        weights = logits.softmax(-1) * self.get_parameter("gating.logit_scale")
        if hasattr(self, "reward_transform_matrix"):
            weights = self.reward_transform_matrix @ weights
        objectives = self.regression_layer.weight.unflatten(0, (-1, self.quantiles)).mean(1)
        return weights @ objectives

    def find(self, ids: Sequence[int]) -> int | None:
        """Where the last occurrence of the pattern begins in `ids`, or None."""
        return last_occurrence(self.pattern, ids)

    def objectives(self) -> "LinearHead":
        """Each objective by itself: of QRM the mean over its quantiles."""
        return linear_outputs(self.name, self.regression_layer.weight.unflatten(0, (-1, self.quantiles)).mean(1))

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
class PromptHead:
    """A gated head for all continuations of one prefix: the gate runs once.

    Parameters
    ----------
    head
        The model's head.
    prefix_ids
        Ids of the prefix.
    hidden
        Last hidden states of the prefix, Float[Tensor, "length hidden"].
    """

    head: GatedHead
    prefix_ids: Sequence[int]
    hidden: Float[Tensor, "length hidden"]

    @functools.cached_property
    def weights(self) -> Float[Tensor, " hidden"] | None:
        """Of the linear reward; None if the prefix does not hold the end of a prompt."""
        at = self.head.find(self.prefix_ids)
        # What inference mode computes, autograd cannot keep; a search takes gradients through this head.
        with torch.inference_mode(False), torch.no_grad():
            return None if at is None else self.head.weights_after(self.hidden[at].clone())

    def linear(self, hidden: Float[Tensor, "*batch hidden"]) -> Float[Tensor, "*batch"]:
        """The reward of continuations that `holds_for`."""
        assert self.weights is not None
        return hidden.float() @ self.weights

    def holds_for(self, continuation: Sequence[int]) -> bool:
        """Whether the prompt that the gate reads for this continuation is the one in the prefix."""
        # A continuation could complete the pattern with the prefix's last ids.
        tail = self.prefix_ids[max(0, len(self.prefix_ids) - len(self.head.pattern) + 1) :]
        return self.weights is not None and self.head.find((*tail, *continuation)) is None


def gate_pattern(dialogue: Dialogue) -> tuple[int, ...]:
    """The ids that a dialogue's template puts between a prompt and the response to it.

    For the templates of Llama 3 (128009, 128006, 78191, 128007, 271) and Gemma 2 (107, 108, 106, 2516, 108) these are
    the ids that ArmoRM and QRM carry as constants.
    """
    user = "\ue000user\ue000"
    assistant = "\ue000assistant\ue000"
    text = dialogue.render(with_response(user, assistant))
    between = text.rpartition(user)[2].partition(assistant)[0]
    pattern = dialogue.tokenizer(between, add_special_tokens=False)["input_ids"]
    if not pattern or user not in text or assistant not in text:
        raise InputError("the chat template writes nothing between prompt and response: the gate has no place to read")
    return tuple(pattern)


def linear_outputs(name: str, weight: Float[Tensor, "outputs hidden"]) -> LinearHead:
    """Each row of a linear layer as an output of its own."""
    head = LinearHead(weight.shape[1], outputs=len(weight))
    head.score.weight = nn.Parameter(weight, False)  # pyright: ignore[reportAttributeAccessIssue]
    head.name = f"{name}, each output"
    head.shape = (len(weight),)
    return head


def opening_ids(dialogue: Dialogue) -> tuple[int, ...]:
    """The ids that a dialogue's template puts between any prompt and the response to it."""
    starts = []
    for prompt in ("love", "War", "7?"):
        text = dialogue.render(as_messages(prompt), generation=True)
        generation = dialogue.tokenizer(text, add_special_tokens=False)["input_ids"]
        (conversation,) = dialogue.conversations(prompt, ["love"])
        starts.append(common_prefix([[*generation, -1], conversation])[::-1])
    return tuple(common_prefix(starts)[::-1])


def last_occurrence(pattern: tuple[int, ...], ids: Sequence[int]) -> int | None:
    """Where the last occurrence of a pattern begins, or None."""
    size = len(pattern)
    return max((at for at in range(len(ids)) if tuple(ids[at : at + size]) == pattern), default=None)


def mlp(
    sizes: Sequence[int], activation: type[nn.Module] = nn.ReLU, norm: bool = False, dropout: bool = False
) -> nn.Sequential:
    """Linear layers with an activation between them.

    The layers' indices are the checkpoint's tensor names, so norm and dropout, which QRM has, are included although
    dropout does nothing here; QRM-Gemma-2-27B has it between hidden layers.
    """
    layers: list[nn.Module] = []
    for place, (inner, outer) in enumerate(itertools.pairwise(sizes[:-1])):
        layers += [nn.Linear(inner, outer, bias=not norm), activation()]
        if norm:
            layers.append(nn.BatchNorm1d(outer))
        if dropout and place < len(sizes) - 3:
            layers.append(nn.Dropout())
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


def _known_heads(config: Mapping[str, Any], shapes: Mapping[str, torch.Size]) -> Iterator[Readout]:
    """Every head that these tensors could belong to, without weights; sizes that the configuration lacks are theirs.

    `layer` is that of a head which is called by its layer.
    """
    width = config["hidden_size"]

    def rows(name: str) -> int:
        return next(iter(shapes.get(name, ())), 1)

    # OpenRLHF's name is in the configuration; its first versions wrote `value_head` without saying so.
    for layer in (config.get("value_head_prefix") or "score", "score", "value_head"):
        yield LinearHead(width, layer, rows(f"{layer}.weight"), f"{layer}.bias" in shapes)
    yield LayersHead("value-head", "v_head.summary", nn.Linear(width, 1))
    hidden = [rows("v_head.summary.0.weight")] * (config.get("vhead_num_layers") or 1)
    yield LayersHead("value-head", "v_head.summary", mlp([width, *hidden, 1]))
    yield LayersHead("inform", "score", mlp([width, rows("score.0.weight"), 1]))
    yield UrmHead(width, max(2, rows("score.weight")))
    hidden = [rows("gating.layers.0.weight")] * config.get("gating_n_hidden", 3)
    outputs = rows("regression_layer.weight")
    quantiles = config.get("num_quantiles", 19)
    # Without a temperature in the configuration, what the public code assumes.
    temperature = config.get("gating_temperature", 1 if config.get("model_type") == "gemma2" else 10)
    sizes = [width, *hidden, outputs]
    layers = nn.Sequential()
    for place, layer in enumerate(mlp(sizes)):  # ArmoRM's names: 0, relu1, 1, relu3, 2
        layers.add_module(f"relu{place}" if place % 2 else str(place // 2), layer)
    yield GatedHead("armorm", layers, sizes, quantiles=1, temperature=temperature, transform=True)
    sizes = [width, *hidden, max(1, outputs // quantiles)]
    for dropout in (False, True):
        layers = mlp(sizes, norm=True, dropout=dropout)
        yield GatedHead("qrm", layers, sizes, quantiles, temperature, "reward_transform_matrix" in shapes)


def find_head(
    tensors: Mapping[str, Tensor],
    config: Mapping[str, Any],
    source: object,
    name: str | None = None,
    label: Label = None,
) -> Readout:
    """The head of a checkpoint; one with a gate still needs its `gate_pattern`.

    Parameters
    ----------
    tensors
        By name, those that the trunk did not take.
    config
        ``config.json``, with ``hidden_size``.
    source
        The checkpoint, for messages.
    name
        A head's name, or the name of a linear layer's weight among the tensors; without it, the head that fits the
        tensors best. ``linear-normalised`` and ``urm-plain`` (the first output of URM alone, what transformers computes
        without URM's own code) must be asked for by name.
    label
        Which output is the reward, or the outputs' weights, where a linear head has several: see `label_weights`.

    Raises
    ------
    InputError
        A tensor is missing, left over, or of another shape; each time it is named.
    """
    state = {key: tensor.float() for key, tensor in tensors.items()}
    is_layer = "." in (name or "")
    if is_layer:
        layer = str(name).removesuffix(".weight")
        if f"{layer}.weight" not in state:
            raise InputError(
                f"{source}: beside its trunk is no tensor {layer}.weight, but {few(state) or 'none'}", name
            )
        parts = ("weight", "bias")
        state = {f"score.{part}": state[f"{layer}.{part}"] for part in parts if f"{layer}.{part}" in state}
    if name == "urm-plain":
        state = {key: tensor for key, tensor in state.items() if not key.startswith("weights.")}
    shapes = {key: tensor.shape for key, tensor in state.items()}
    kind = "linear" if is_layer or name in ("linear-normalised", "urm-plain") else name
    with torch.device("meta"):
        heads = [head for head in _known_heads(config, shapes) if kind in (None, head.name)]
    head = min(heads, key=lambda head: len(head.state_dict().keys() ^ state.keys()))
    try:
        head.load_state_dict(state, assign=True)
    except RuntimeError as error:
        difference = textwrap.shorten(str(error).partition("\n")[2], 400)
        line = (
            f"{source}: the tensors of the head are of no {name or 'known'} kind; nearest is {head.name}: {difference}"
        )
        layers = [key for key, shape in shapes.items() if len(shape) == 2 and shape[1] == config["hidden_size"]]
        if name is None and layers:
            line += f"; a linear layer of another name is the head by --head {layers[0]}"
        raise InputError(line) from error
    if isinstance(head, LinearHead):
        head.name = name or "linear"
        layer = head.get_submodule(head.path)
        weights = label_weights(len(layer.get_parameter("weight")), 0 if name == "urm-plain" else label, config, source)
        if weights.ndim > 1:
            head.shape = (len(weights),)
        elif len(weights) > 1:
            for part, values in list(layer.named_parameters()):
                setattr(layer, part, nn.Parameter((weights @ values)[None]))
        if name == "linear-normalised" or config.get("normalize_reward"):
            head.name = "linear-normalised"
            if not {"mean", "std"} <= config.keys():
                raise InputError(f"{source}: normalised rewards need mean and std in config.json: use head: linear")
            head.mean = float(config["mean"])
            head.std = float(config["std"])
    return head.eval().requires_grad_(False)


def label_weights(outputs: int, label: Label, config: Mapping[str, Any], source: object) -> Tensor:
    """The weight of each of a classifier's outputs in the reward.

    Parameters
    ----------
    outputs
        How many there are.
    label
        The one that is the reward, by number or name; or weights, in order or by name or number; or `ALL` of them.
        None: the only one.
    config
        ``config.json``, whose ``id2label`` names the outputs.
    source
        The checkpoint, for messages.

    Returns
    -------
    Float[Tensor, " outputs"]
        Of `ALL` a unit matrix.

    Raises
    ------
    InputError
        There are several and no label is given, or there is no such output.
    """
    names = output_names(outputs, config)
    known = few(f"{number} ({name})" for number, name in enumerate(names))
    if label is None and outputs != 1:
        raise InputError(
            f"{source}: the head has {outputs} outputs: it is a classifier with the labels {known}, where a "
            "reward model has one: choose one with --label (`label` in a panel), or weigh several"
        )
    if label == ALL:
        return torch.eye(outputs)
    chosen: Mapping[Any, float] = {0 if label is None else label: 1.0} if isinstance(label, int | str | None) else {}
    if isinstance(label, Mapping):
        chosen = label
    elif not chosen:
        chosen = dict(enumerate(label))  # type: ignore[arg-type]
    weights = torch.zeros(outputs)
    for key, weight in chosen.items():
        number = names.index(key) if key in names else int(key) if str(key).isdecimal() else outputs
        if number >= outputs:
            raise InputError(f"{source}: no label {key!r}: the head's are {known}", key)
        weights[number] = weight
    return weights


def output_names(outputs: int, config: Mapping[str, Any]) -> list[str]:
    """What the configuration calls a head's outputs."""
    names = config.get("id2label") or {}
    return [str(names.get(number, names.get(str(number), number))) for number in range(outputs)]
