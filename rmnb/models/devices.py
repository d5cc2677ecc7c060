"""Where a model's weights lie and in which number format: devices, half precision, quantisation, compilation.

On a CPU nothing here changes a number. The lines that only a GPU runs are listed in the book (book/gpu.md).
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import psutil
import torch

from rmnb.errors import InputError

MIXED = "bfloat16-mixed"  # loaded in fp32, then `rmnb.models.precision`
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, MIXED: torch.float32}
QUANTISED = ("8bit", "4bit")
COMPILED: dict[str, dict[str, Any]] = {"default": {}, "graphs": {"mode": "reduce-overhead"}}
NEVER = "none"  # compiled, however long the scan
_MAPS = ("auto", "balanced", "sequential")
_ROOM = 0.75  # of a device's memory for weights; the rest is for activations


@dataclass(frozen=True)
class Placement:
    """Where the trunk goes and how it is held.

    Attributes
    ----------
    device : str
        Where everything is, unless `device_map` spreads the trunk.
    device_map : str, dict or None
        ``auto``, ``balanced``, ``sequential`` (accelerate decides), or a device for each module.
    quantise : {"8bit", "4bit"} or None
        bitsandbytes' LLM.int8() (Dettmers et al. 2022) or NF4 (Dettmers et al. 2023) for the trunk's linear layers.
    compile : {"default", "graphs", "none"} or None
        torch.compile, or torch.compile with CUDA graphs, or neither, which is None, too.
    """

    device: str = "cpu"
    device_map: str | dict[str, Any] | None = None
    quantise: str | None = None
    compile: str | None = None

    def load_options(self, dtype: torch.dtype) -> dict[str, Any]:
        """Keyword arguments for ``from_pretrained``; none if the model is loaded as a whole and moved."""
        options: dict[str, Any] = {}
        if self.device_map is not None:
            options["device_map"] = self.device_map
        if self.quantise:
            options.setdefault("device_map", {"": self.device})
            options["quantization_config"] = _bitsandbytes(self.quantise, dtype)
        return options

    def settle(self, network: torch.nn.Module) -> None:
        """Move a loaded network to its device, where loading has not put it there; compile it whole if asked to.

        Raises
        ------
        InputError
            The device has not enough memory.
        """
        if self.device_map is None and not self.quantise:
            try:
                network.to(self.device)
            except torch.OutOfMemoryError as error:
                raise InputError(
                    f"the weights do not fit on {self.device}: "
                    "try device_map=auto, quantise=8bit or a half-precision dtype"
                ) from error
        if self.compile in COMPILED:
            network.compile(**COMPILED[self.compile])


def placement(
    device: str | None = None,
    device_map: str | Mapping[str, Any] | None = None,
    quantise: str | None = None,
    compile: str | None = None,
) -> Placement:
    """A checked `Placement`; without a device, the first GPU if there is one, else the CPU.

    Raises
    ------
    InputError
        An unknown option, a device that this machine lacks, or quantisation without GPU or without bitsandbytes.
    """
    if isinstance(device_map, str) and device_map not in _MAPS:
        raise InputError(f"unknown device map {device_map!r}: choose one of {', '.join(_MAPS)}, or give a mapping")
    if quantise is not None and quantise not in QUANTISED:
        raise InputError(f"cannot quantise to {quantise!r}: choose one of {', '.join(QUANTISED)}")
    compile = None if compile == "auto" else compile
    if compile not in (None, NEVER, *COMPILED):
        raise InputError(f"unknown way to compile {compile!r}: choose one of auto, {NEVER}, {', '.join(COMPILED)}")
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    _check_device(device)
    if quantise:
        _check_quantisation(device)
    spread = dict(device_map) if isinstance(device_map, Mapping) else device_map
    return Placement(device, spread, quantise, compile)


def preset(name: str, parameters: float | None = None) -> dict[str, Any]:
    """Options of `rmnb.load_reward_model` that make a model fit a well-known machine.

    Parameters
    ----------
    name
        ``t4``: one GPU of 16 GB without bfloat16, as Colab lends it.
    parameters
        Of the model, in billions, if known: what does not fit in float16 is quantised.

    Raises
    ------
    InputError
        Unknown name.
    """
    memory = {"t4": 15.0}  # usable GB
    if name not in memory:
        raise InputError(f"unknown preset {name!r}: choose one of {', '.join(memory)}")
    room = _ROOM * memory[name]
    options: dict[str, Any] = {"dtype": "float16"}
    if parameters and 2 * parameters > room:
        options["quantise"] = "8bit" if 1.1 * parameters <= room else "4bit"  # embeddings stay in float16
    return options


def _check_device(device: str) -> None:
    try:
        asked = torch.device(device)
    except RuntimeError as error:
        raise InputError(f"unknown device {device!r}: choose cpu, cuda, cuda:1 or mps") from error
    if asked.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (asked.index or 0) >= count:
            raise InputError(f"device {device}: this machine has {count or 'no'} usable CUDA GPU{'s' * (count > 1)}")
    if asked.type == "mps" and not torch.backends.mps.is_available():
        raise InputError("device mps: this machine has no usable Apple GPU")


def _check_quantisation(device: str) -> None:
    if torch.device(device).type != "cuda":
        raise InputError("quantisation needs a CUDA GPU: leave it out here")
    if find_spec("bitsandbytes") is None:
        raise InputError("quantisation needs the package bitsandbytes: pip install bitsandbytes")


def _bitsandbytes(quantise: str, dtype: torch.dtype):
    from transformers import BitsAndBytesConfig

    keep = ["score", "classifier"]  # heads that are part of the network stay exact
    if quantise == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True, llm_int8_skip_modules=keep)
    return BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype, llm_int8_skip_modules=keep
    )


def input_embedding(network: torch.nn.Module):
    """The module that holds one row for each id; InputError for a network that reads something else."""
    try:
        return network.get_input_embeddings()  # pyright: ignore[reportCallIssue]
    except NotImplementedError as error:
        raise InputError(f"{type(network).__name__} has no embedding of tokens: it reads something else") from error


def input_device(network: torch.nn.Module) -> torch.device:
    """Where the network reads its ids: the embedding's device, or where accelerate brings that for its work."""
    embedding = input_embedding(network)
    where = getattr(getattr(embedding, "_hf_hook", None), "execution_device", None)
    if where is not None:
        return torch.device(f"cuda:{where}" if isinstance(where, int) else where)
    return embedding.weight.device


def free_memory(network: torch.nn.Module) -> int:
    """Bytes that are free for activations: of the tightest GPU that holds a part of the network, else of the host."""
    devices = {parameter.device for parameter in network.parameters() if parameter.device.type == "cuda"}
    if devices:
        return min(torch.cuda.mem_get_info(device)[0] for device in devices)
    return psutil.virtual_memory().available


def upload(rows: list[list[int]] | list[int], device: torch.device) -> torch.Tensor:
    """Ids as an int64 tensor on a device; to a GPU through a pinned buffer, so that the host does not wait."""
    ids = torch.tensor(rows)
    if device.type == "cuda":
        return ids.pin_memory().to(device, non_blocking=True)
    return ids.to(device)


def plain_attention(network) -> str:
    """transformers' attention for whole sequences: exact with the model's soft-capping, and fast where that is free.

    On a CPU always ``eager``, the reference. On a GPU ``sdpa``; for models that cap their attention scores, which sdpa
    leaves out, ``flex_attention`` where the model has it, else ``eager``.
    """
    if input_device(network).type != "cuda":
        return "eager"
    if getattr(network.config.get_text_config(), "attn_logit_softcapping", None):
        return "flex_attention" if getattr(network, "_supports_flex_attn", False) else "eager"
    return "sdpa" if getattr(network, "_supports_sdpa", False) else "eager"


@contextlib.contextmanager
def own_attention(network):
    """The network's own attention for a while (`plain_attention`), in place of the shared-prefix one."""
    before = network.config._attn_implementation
    network.set_attn_implementation(plain_attention(network))
    try:
        yield
    finally:
        network.set_attn_implementation(before)
