"""How a network's layers run for the engine: the last one only where it is read, the others compiled if asked for.

What comes after the last layer's attention is needed only where the reward is read. On a processor, torch.compile
makes one code of a layer's small steps (norms, rotary embedding, softmax, activation), which are what a scan does
beside matrix products. Each layer is compiled by itself, so that all of one shape share one code, made once for any
number of rows; the last one, which sees less, runs as it is.
"""

import contextlib
from collections.abc import Callable, Iterator
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from rmnb.errors import InputError
from rmnb.models.devices import COMPILED

_CODES = 64  # of one class of layers in one process: shapes of models, formats, one row or many
BREAK_EVEN = {"float32": 3.5e9, "half": 1.2e9}  # states of a scan: see `gains`
_compiled: WeakKeyDictionary[torch.nn.Module, dict[str, list[tuple[torch.nn.Module, Callable]]]] = WeakKeyDictionary()


class CannotCompile(InputError):
    """This machine lacks what compiling needs."""


def decoder_layers(network) -> list[torch.nn.Module]:
    """A decoder's layers in order; none where they are no list of modules."""
    count = network.config.get_text_config().num_hidden_layers
    lists = [module for module in network.modules() if isinstance(module, torch.nn.ModuleList)]
    return next((list(layers) for layers in lists if len(layers) == count), [])


@contextlib.contextmanager
def compiled(network, mode: str | None) -> Iterator[None]:
    """For a while, run all layers but the last as compiled code, which is made the first time.

    For calls that pass a filled `rmnb.models.attention.SharedPrefix` on. One code for each number of ids a row; numbers
    of rows and the prefix's length are not compiled in. So the same batch gets the same bits whatever ran before.

    Parameters
    ----------
    network : PreTrainedModel
        A decoder, whole on one device.
    mode
        A key of `rmnb.models.devices.COMPILED`; None: nothing is compiled.

    Raises
    ------
    CannotCompile
        There is no C++ compiler, say.
    """
    if mode is None:
        yield
        return
    from torch._dynamo.exc import TorchDynamoException  # only now: it takes a second
    from torch.fx.experimental import _config as of_sizes

    known = _compiled.setdefault(network, {})
    if mode not in known:
        known[mode] = [(layer, _forward(layer, at, mode)) for at, layer in enumerate(decoder_layers(network)[:-1])]
    try:
        for layer, forward in known[mode]:
            layer.forward = forward
        # Two sizes that happen to be equal at first are still two sizes.
        with of_sizes.patch(use_duck_shape=False):  # pyright: ignore[reportAttributeAccessIssue]
            yield
    except TorchDynamoException as error:
        raise CannotCompile(
            "nothing can be compiled here (is a C++ compiler such as g++ installed?): begin with --compile none"
        ) from error
    finally:
        for layer, _ in known[mode]:
            vars(layer).pop("forward", None)


def _forward(layer: torch.nn.Module, at: int, mode: str) -> Callable:
    code = torch.compile(layer.forward, **{"dynamic": True, "recompile_limit": _CODES, **COMPILED[mode]})

    # The layer's own keys and values, not its index, go into the code: with the index, each layer would need its own.
    def forward(hidden: Tensor, *args, shared_prefix, **kwargs):
        torch._dynamo.mark_static(hidden, 1)  # else it would depend on the first lengths whether they are compiled in
        return code(hidden, *args, shared_prefix=shared_prefix.layers[at], **kwargs)

    return forward


@contextlib.contextmanager
def last_layer_at(network, rows: Tensor, last: Tensor) -> Iterator[None]:
    """For a while, let what follows the last layer's attention see only the positions that are read.

    What it gives, one position a row, is added to the residual stream by broadcasting: right where the reward is read,
    and nobody looks elsewhere.

    Parameters
    ----------
    network : PreTrainedModel
    rows, last
        Int64[Tensor, "batch"]: each row, and the position that is read in it.
    """
    layer = (decoder_layers(network) or [None])[-1]
    attention = getattr(layer, "self_attn", None)
    modules = [module for module in (getattr(attention, "o_proj", None), getattr(layer, "mlp", None)) if module]

    def only_read(_, inputs):
        states = inputs[0]
        return states[rows.to(states.device), last.to(states.device)][:, None], *inputs[1:]

    hooks = [module.register_forward_pre_hook(only_read) for module in modules]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def gains(positions: int, layers: int, width: int, dtype: str) -> bool:
    """Whether a scan on a processor, with a prefix that is shared, gains more time than compiling takes.

    Compiling took 23 s of processor time, once for a model and a number of ids (2 to 7 s from torch's cache, where the
    same was compiled before). In three runs on an idle machine SmolLM2 gained 0.2 to 0.6 ms a token in fp32 and 0.5 ms
    in bfloat16-mixed, Gemma 3 0.1 to 0.2 ms and 0.5 ms: break-even at 40,000 to 230,000 tokens. What is gained grows
    with the states that pass through the compiled layers, which are counted here; the bounds are 105,000 tokens of
    SmolLM2 in fp32, 35,000 in half precision.

    Parameters
    ----------
    positions
        Sequences times the ids that each feeds.
    layers, width
        Of the network: how many, and the size of a state.
    dtype
        Number format of the trunk.
    """
    return positions * (layers - 1) * width > BREAK_EVEN["float32" if dtype == "float32" else "half"]
