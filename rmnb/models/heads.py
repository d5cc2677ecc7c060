"""Which readout a checkpoint's tensors are: the known head whose tensors' names differ least from them."""

import textwrap
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rmnb.errors import InputError, list_some
from rmnb.models.readouts import GatedHead, LayersHead, LinearHead, Readout, UrmHead, mlp

ALL = "all"  # the label that stands for every output by itself
Label = int | str | Sequence[float] | Mapping[str, float] | None


def _known_heads(config: Mapping[str, Any], shapes: Mapping[str, torch.Size]) -> Iterator[Readout]:
    """Every head that these tensors could belong to, without weights; sizes that the configuration lacks are theirs."""
    width = config["hidden_size"]

    def rows(name: str) -> int:
        return shapes[name][0] if shapes.get(name) else 1

    # OpenRLHF's name is in the configuration; its first versions wrote `value_head` without saying so.
    for layer in (config.get("value_head_prefix") or "score", "score", "value_head"):
        yield LinearHead(width, layer, rows(f"{layer}.weight"), f"{layer}.bias" in shapes)
    hidden = [rows("v_head.summary.0.weight")] * (config.get("vhead_num_layers") or 1)
    for summary in (nn.Linear(width, 1), mlp([width, *hidden, 1])):
        head = LayersHead("value-head", "v_head", nn.Sequential(OrderedDict(summary=summary)))
        head.rule = "last"
        yield head
    yield LayersHead("inform", "score", mlp([width, rows("score.0.weight"), 1]))
    yield UrmHead(width, max(2, rows("score.weight")))
    hidden = [rows("gating.layers.0.weight")] * config.get("gating_n_hidden", 3)
    outputs = rows("regression_layer.weight")
    # Without a temperature in the configuration, what the public code assumes.
    temperature = config.get("gating_temperature", 1 if config.get("model_type") == "gemma2" else 10)
    sizes = [width, *hidden, outputs]
    layers = nn.Sequential()
    for place, layer in enumerate(mlp(sizes)):  # ArmoRM's names: 0, relu1, 1, relu3, 2
        layers.add_module(f"relu{place}" if place % 2 else str(place // 2), layer)
    yield GatedHead("armorm", layers, sizes, quantiles=1, temperature=temperature, transform=True)
    quantiles = config.get("num_quantiles", 19)
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
    """The head of a checkpoint; one with a gate still needs its `rmnb.models.readouts.opening_ids`.

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
        tensors best. (The first output of URM alone, what transformers computes without URM's own code, is
        ``score.weight`` with the label 0.)
    label
        See `choose_outputs`. The outputs of a gated head are its objectives, those of URM the means of its attributes.

    Raises
    ------
    InputError
        A tensor is missing, left over, or of another shape; each time it is named.
    """
    # Saved out of PEFT's wrapper, a head that was trained has its old weights beside it.
    state = {
        key.replace("modules_to_save.default.", ""): tensor.float()
        for key, tensor in tensors.items()
        if "original_module." not in key
    }
    kind = name
    if name and "." in name:
        layer = name.removesuffix("weight")
        if f"{layer}weight" not in state:
            others = list_some(state) or "none"
            raise InputError(f"{source}: beside its trunk is no tensor {layer}weight, but {others}", name)
        parts = ("weight", "bias")
        state = {f"score.{part}": state[layer + part] for part in parts if layer + part in state}
        kind = "linear"
    shapes = {key: tensor.shape for key, tensor in state.items()}
    with torch.device("meta"):
        heads = [head for head in _known_heads(config, shapes) if kind in (None, head.name)]
    head: Any = min(heads, key=lambda head: len(head.state_dict().keys() ^ state.keys()))
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
    *_, last = head.parameters()
    names = output_names(len(last), config)
    if isinstance(head, UrmHead):
        names = output_names(len(head.score.weight), config)[::2]
    elif isinstance(head, GatedHead):
        names = output_names(len(head.regression_layer.weight) // head.quantiles, config)
    choose_outputs(head, names, label, source)
    if isinstance(head, LinearHead) and config.get("normalize_reward"):
        if not {"mean", "std"} <= config.keys():
            raise InputError(f"{source}: config.json says normalize_reward, and not by which mean and std")
        head.mean = float(config["mean"])
        head.std = float(config["std"])
        head.name = "linear-normalised"
        head.rule = "last"
    head.name = name or head.name
    return head.eval().requires_grad_(False)


def choose_outputs(readout: Readout, names: Sequence[str], label: Label, source: object) -> None:
    """Set what a readout gives of the outputs that its head has.

    Parameters
    ----------
    readout
        Of any kind.
    names
        Of the head's outputs, in order: see `output_names`.
    label
        The output that is the reward, by number or name; or weights, in order or by name or number; or `ALL` of them.
        None: the only one, or as a head weighs them by itself.
    source
        The checkpoint, for messages.

    Raises
    ------
    InputError
        There are several and no label is given, or there is no such output.
    """
    known = list_some(f"{number} ({name})" for number, name in enumerate(names))
    if label is None:
        if len(names) > 1 and not readout.weighs_itself:
            raise InputError(
                f"{source}: the head has {len(names)} outputs, {known}, where a reward model has one: choose one with "
                "--label (`label` in a panel), or weigh several"
            )
        return
    if label == ALL:
        readout.outputs = tuple(names)
        readout.chosen = torch.eye(len(names))
        return
    given = {label: 1.0} if isinstance(label, int | str) else label
    if isinstance(given, Mapping):
        places = [_place(key, names, known, source) for key in given]
        weights = list(given.values())
        if len(set(places)) < len(places):
            raise InputError(f"{source}: labels {list_some(given)}: two are one output of {known}", label)
    else:
        places = list(range(len(given)))
        weights = list(given)
        if len(given) > len(names):
            raise InputError(f"{source}: {len(given)} weights for the outputs {known}", label)
    readout.chosen = torch.zeros(len(names), 1)
    readout.chosen[places, 0] = torch.tensor(weights, dtype=torch.float32)


def _place(key: int | str, names: Sequence[str], known: str, source: object) -> int:
    """Which output a label means, by its name or its number."""
    found = [number for number, name in enumerate(names) if str(key) in (name, str(number))]
    if not found:
        raise InputError(f"{source}: no label {key!r}: the head's are {known}", key)
    if len(found) > 1:
        raise InputError(f"{source}: the label {key!r} may be either of {known}: give weights in order", key)
    return found[0]


def output_names(outputs: int, config: Mapping[str, Any]) -> list[str]:
    """What the configuration calls a head's outputs, if it names all; one named as another is called by its number."""
    given = {int(number): str(name) for number, name in (config.get("id2label") or {}).items()}
    names = [given.get(number, str(number)) for number in range(outputs)]
    if len(given) < outputs:
        return list(map(str, range(outputs)))
    return [str(number) if names.count(name) > 1 else name for number, name in enumerate(names)]
