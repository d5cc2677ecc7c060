"""What a scan will take, before anything is fetched: operations, weights, and a range of times.

    operations / rate of products  ≤  time  ≤  the same + passes × bytes between products / rate of bytes

Operations are counted by torch on the meta device. Both rates are measured here, by one product and one multiplication
of a batch's shape, or read off a GPU's data sheet. Between products (norms, rotations, softmax, gates) a layer's states
are read and written several times; how often is the largest number that a measured scan of the papers' architectures
needed (`data/gpu/papers.csv`).
"""

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch
from torch.utils.benchmark import Timer
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel

from rmnb.conversation import Prompt, as_conversation
from rmnb.errors import InputError
from rmnb.models.attention import why_unsupported
from rmnb.models.bases import BASES
from rmnb.models.checkpoint_files import read_config
from rmnb.models.devices import DTYPES, find_device
from rmnb.models.loading import dialogue_of, quiet_transformers
from rmnb.models.origin import find_files
from rmnb.models.reading import is_decoder
from rmnb.panels import ModelSpec
from rmnb.panels.specs import ImplicitSpec
from rmnb.scoring.engine import IDS_AT_ONCE, values_a_sequence
from rmnb.yaml_files import read_yaml

_KNOWN = Path(__file__).with_name("plan.yml")
PASSES = 6  # of a layer's states between products, each read and written
OF_DATA_SHEET = 0.6  # share of the data sheet's rate that products are taken to reach
_LETTERS = 4  # of English text to an id, where the tokenizer is not on this machine


@dataclass(frozen=True)
class Work:
    """What a scan takes, whatever runs it.

    Attributes
    ----------
    tokens, fed : int
        Tokens of the vocabulary, and ids that each sends through the network.
    operations : float
        Floating-point operations.
    values : float
        Numbers that the layers' states hold between products, over all tokens.
    parameters : int
        Of the network.
    """

    tokens: int
    fed: int
    operations: float
    values: float
    parameters: int


@dataclass(frozen=True)
class Machine:
    """What scans run on.

    Attributes
    ----------
    name : str
    products, moved : float
        Floating-point operations, and bytes read or written, a second.
    memory : float
        Bytes.
    """

    name: str
    products: float
    moved: float
    memory: float


def plan_scan(
    spec: ModelSpec, prompt: Prompt, device: str | None = None, dtype: str | None = None
) -> dict[str, Any] | None:
    """What a scan of the whole vocabulary takes, from files on this machine or what is public.

    Parameters
    ----------
    spec
        The model.
    prompt
        The question.
    device
        As `find_machine` takes it.
    dtype
        Default: the model's own.

    Returns
    -------
    dict or None
        model, machine, format, tokens, ids (that each token sends through the network), TFLOP, GB (of weights), low and
        high (the shortest and the longest time to be expected, in seconds, without loading), fits (into memory). None
        where neither files nor anything public is known.

    Raises
    ------
    InputError
        A directory whose files cannot be read, an unknown device or dtype.
    """
    number_format = dtype or spec.dtype
    if number_format not in DTYPES:
        raise InputError(f"unknown dtype {dtype!r}: choose one of {', '.join(DTYPES)}", dtype)
    with quiet_transformers():
        shape = _read(spec, prompt)
    if shape is None:
        return None
    config, before, closing = shape
    work = _count(json.dumps(config.to_dict(), default=str), type(config), before, closing)
    machine = find_machine(device, number_format, config.get_text_config())
    itemsize = DTYPES[number_format].itemsize
    networks = 2 if isinstance(spec.readout, ImplicitSpec) else 1  # the model, and the one that it is compared with
    size = networks * work.parameters * itemsize
    operations = networks * work.operations
    low = operations / machine.products
    return {
        "model": spec.name,
        "machine": machine.name,
        "format": number_format,
        "tokens": work.tokens,
        "ids": work.fed,
        "TFLOP": operations / 1e12,
        "GB": size / 1e9,
        "low": low,
        "high": low + 2 * PASSES * networks * work.values * itemsize / machine.moved,
        "fits": size < 0.95 * machine.memory,
    }


def _read(spec: ModelSpec, prompt: Prompt) -> tuple[PreTrainedConfig, int, int] | None:
    """A model's configuration, and how many ids come before and behind an answer."""
    files = find_files(spec, download=False)
    if files.source in BASES:
        files = find_files(spec)
    source, directory = files.source, files.network
    if directory is None:
        public = read_yaml(_KNOWN)
        shape = public["shapes"].get(public["models"].get(source))
        if shape is None:
            return None
        letters = sum(len(message["content"]) for message in as_conversation(prompt).messages)
        return AutoConfig.for_model(**shape["config"]), shape["opening"] + letters // _LETTERS + 1, shape["closing"]
    config = read_config(directory)
    prefix, closing = dialogue_of(files).frame_ids(prompt)
    return config, len(prefix), len(closing)


@functools.lru_cache(maxsize=64)
def _count(settings: str, kind: type[PreTrainedConfig], before: int, closing: int) -> Work:
    """Of a configuration as JSON; models of one shape share it."""
    config = kind(**json.loads(settings))
    with torch.device("meta"):
        network = AutoModel.from_config(config, attn_implementation="eager", dtype=torch.bfloat16)
    width = before + 1 + closing
    is_shared = is_decoder(config) and why_unsupported(network) is None
    prefix = _operations(network, before) if is_shared else 0
    fed = 1 + closing if is_shared else width
    text, tokens = config.get_text_config(), network.get_input_embeddings().weight.shape[0]  # type: ignore[union-attr]
    return Work(
        tokens=tokens,
        fed=fed,
        operations=prefix + tokens * (_operations(network, width) - prefix),
        values=tokens * text.num_hidden_layers * values_a_sequence(text, width, fed),
        parameters=network.num_parameters(),
    )


def _operations(network: PreTrainedModel, length: int) -> float:
    """Of one sequence, as torch counts them; where the network does not run on shapes, two a weight and id."""
    layers = getattr(network.config, "layer_types", None)
    with FlopCounterMode(display=False) as count, torch.device("meta"):
        mask: Any = dict.fromkeys(layers) if layers else torch.zeros(1, 1, length, length, dtype=torch.bfloat16)
        ids = torch.zeros(1, length, dtype=torch.long)
        place = torch.arange(length)[None]
        try:
            network(input_ids=ids, attention_mask=mask, position_ids=place, use_cache=False)
        except Exception:  # architectures that look at values raise anything
            return 2.0 * length * network.num_parameters()
    return count.get_total_flops()


def find_machine(device: str | None, dtype: str, config: PreTrainedConfig) -> Machine:
    """A GPU by its name in ``rmnb/scoring/plan.yml``, as its data sheet has it; else this machine, timed now.

    Raises
    ------
    InputError
        It has no such number format, or there is no such device.
    """
    gpus = read_yaml(_KNOWN)["gpus"]
    sheet = gpus.get((device or "").lower())
    if sheet is None:
        try:
            return _this_machine(find_device(device), dtype, config)
        except InputError as error:
            raise InputError(f"{error}; GPUs of other machines: {', '.join(gpus)}", device) from error
    rate = sheet.get(dtype)
    if rate is None:
        raise InputError(f"the {sheet['name']} has no {dtype}: choose --dtype float16 or float32", dtype)
    products = OF_DATA_SHEET * 1e12 * rate
    return Machine(f"NVIDIA {sheet['name']}", products, 1e9 * sheet["bandwidth"], 1e9 * sheet["memory"])


@torch.inference_mode()
def _this_machine(device: torch.device, dtype: str, config: Any) -> Machine:
    """Its rates by one product and one multiplication of a batch's shape, in the mode that is asked for."""
    is_cpu = device.type == "cpu"
    rows = IDS_AT_ONCE["cpu"] * (1 if is_cpu else 8)
    width = config.hidden_size
    inner = getattr(config, "intermediate_size", 4 * config.hidden_size)
    states = torch.ones(rows, width, dtype=DTYPES[dtype], device=device)
    layer: Any = torch.nn.Linear(width, inner, bias=False, dtype=DTYPES[dtype], device=device)
    wide = layer(states)

    def seconds(statement: str) -> float:
        named = {"layer": layer, "states": states, "wide": wide}
        return Timer(statement, globals=named, num_threads=torch.get_num_threads()).blocked_autorange().mean

    products = 2 * rows * width * inner / seconds("layer(states)")
    moved = wide.nbytes / seconds("wide * wide")  # half of what is moved: a scan's states do not stay in the cache
    if is_cpu:
        name = f"CPU, threads: {torch.get_num_threads()}"
        memory = psutil.virtual_memory().total
    else:
        name = torch.cuda.get_device_name(device)
        memory = torch.cuda.get_device_properties(device).total_memory
    return Machine(f"this machine's {name}", products, moved, memory)
