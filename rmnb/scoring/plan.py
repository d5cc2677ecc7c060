"""What a scan will take, before anything is fetched: operations, weights, and a range of times.

    operations / rate of products  ≤  time  ≤  the same + passes × bytes between products / rate of bytes

Operations are counted by torch on the meta device. Both rates are measured here, by one product and one multiplication
of a batch's shape, or read off a GPU's data sheet. Between products (norms, rotations, softmax, gates) a layer's states
are read and written several times; how often is the largest number that any measured scan needed (`data/gpu`).
"""

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter as clock
from typing import Any

import psutil
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedConfig, PreTrainedModel

from rmnb.errors import InputError, first_line
from rmnb.files import shipped
from rmnb.models.attention import why_unsupported
from rmnb.models.bases import BASES, base_directory, base_tokenizer
from rmnb.models.checkpoint_files import is_adapter
from rmnb.models.devices import DTYPES, MIXED, placement
from rmnb.models.dialogue import Dialogue, Prompt, as_messages
from rmnb.models.loading import chosen_template, quiet_transformers, trained_template
from rmnb.models.peft_adapters import base_of, is_decoder
from rmnb.models.precision import CentredLinear
from rmnb.panels import ModelSpec
from rmnb.scoring.engine import IDS_AT_ONCE, values_a_sequence
from rmnb.yaml_files import read_yaml

_KNOWN = Path(__file__).parents[1] / "data" / "lists" / "plan.yml"
PASSES = 6  # of a layer's states between products, each read and written
OF_DATA_SHEET = 0.6  # share of the data sheet's rate that products reach at most
_LETTERS = 4  # of an English text to an id, where no tokenizer is at hand
_TIMED = 0.2  # seconds


@dataclass(frozen=True)
class ScanPlan:
    """What one scan takes, whatever runs it.

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
    width, inner : int
        Of a layer's states, and of those inside it.
    """

    tokens: int
    fed: int
    operations: float
    values: float
    parameters: int
    width: int
    inner: int


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

    def seconds(self, plan: ScanPlan, dtype: str) -> tuple[float, float]:
        """The shortest and the longest time that is to be expected of a scan; loading is not in it."""
        low = plan.operations / self.products
        return low, low + 2 * PASSES * plan.values * DTYPES[dtype].itemsize / self.moved


def plan_scan(spec: ModelSpec, prompt: Prompt) -> ScanPlan | None:
    """The plan of a scan of the whole vocabulary, from files on this machine or what is public; None without either.

    Raises
    ------
    InputError
        A directory whose files cannot be read.
    """
    with quiet_transformers():
        found = _files(spec)
    if found is None:
        return None
    config, frame = found
    network = _network(json.dumps(config.to_dict(), default=str), type(config))
    before, closing = frame(prompt)
    is_shared = is_decoder(config) and why_unsupported(network) is None
    fed = 1 + closing if is_shared else before + 1 + closing
    whole, prefix = _operations(network, before + 1 + closing), _operations(network, before) if is_shared else 0
    text = config.get_text_config()
    tokens = network.get_input_embeddings().weight.shape[0]  # type: ignore[union-attr]
    values = tokens * text.num_hidden_layers * values_a_sequence(text, before + 1 + closing, fed)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    inner = getattr(text, "intermediate_size", 4 * text.hidden_size)
    return ScanPlan(tokens, fed, prefix + tokens * (whole - prefix), values, parameters, text.hidden_size, inner)


def _files(spec: ModelSpec) -> tuple[PreTrainedConfig, Callable[[Prompt], tuple[int, int]]] | None:
    """A model's configuration, and how many ids come before and behind an answer."""
    if spec.base:
        directory = base_directory(spec.base) if spec.base in BASES else Path(spec.base)
        tokenizer = base_tokenizer(spec.base)
        template = spec.template or trained_template(shipped(Path(str(spec.adapter)) / "provenance.json").parent)
        return AutoConfig.from_pretrained(directory), functools.partial(_lengths, Dialogue(tokenizer, template))
    source, revision = str(spec.source), spec.revision
    if is_adapter(Path(source)):
        source, revision = base_of(Path(source), spec.base_model)
    here = {"local_files_only": True, "trust_remote_code": False}
    words = spec.source if any(Path(str(spec.source)).glob("tokenizer*")) else source
    try:
        config = AutoConfig.from_pretrained(source, revision=revision, **here)
        tokenizer = AutoTokenizer.from_pretrained(words, **here)
    except OSError as error:
        if Path(source).is_dir():
            raise InputError(f"{source}: {first_line(error)}", source) from error
        return _public(source)
    template = chosen_template(tokenizer.chat_template, spec, Path(str(words)))
    return config, functools.partial(_lengths, Dialogue(tokenizer, template))


def _public(source: str) -> tuple[PreTrainedConfig, Callable[[Prompt], tuple[int, int]]] | None:
    known = read_yaml(_KNOWN)
    shape = known["shapes"].get(known["models"].get(source))
    if shape is None:
        return None

    def lengths(prompt: Prompt) -> tuple[int, int]:
        letters = sum(len(message["content"]) for message in as_messages(prompt))
        return shape["opening"] + letters // _LETTERS + 1, shape["closing"]

    return AutoConfig.for_model(**shape["config"]), lengths


def _lengths(dialogue: Dialogue, prompt: Prompt) -> tuple[int, int]:
    prefix, closing = dialogue.frame(prompt)
    return len(prefix), len(closing)


@functools.lru_cache(maxsize=8)
def _network(described: str, kind: type[PreTrainedConfig]) -> PreTrainedModel:
    """A network without weights; models of one shape share it."""
    with torch.device("meta"):
        return AutoModel.from_config(kind(**json.loads(described)), attn_implementation="eager", dtype=torch.bfloat16)


@functools.lru_cache(maxsize=64)
def _operations(network: PreTrainedModel, length: int) -> float:
    """Of one sequence, as torch counts them; where the network does not run on shapes, two a weight and id."""
    layers = getattr(network.config, "layer_types", None)
    with FlopCounterMode(display=False) as count, torch.device("meta"):
        mask: Any = dict.fromkeys(layers) if layers else torch.zeros(1, 1, length, length, dtype=torch.bfloat16)
        ids, place = torch.zeros(1, length, dtype=torch.long), torch.arange(length)[None]
        try:
            network(input_ids=ids, attention_mask=mask, position_ids=place, use_cache=False)
        except Exception:  # architectures that look at values raise anything
            return 2.0 * length * sum(parameter.numel() for parameter in network.parameters())
    return count.get_total_flops()


def named_machine(name: str, dtype: str) -> Machine | None:
    """A GPU by its name in ``rmnb/data/lists/plan.yml``, as its data sheet has it; None if there is none such.

    Raises
    ------
    InputError
        It has no such number format.
    """
    sheet = read_yaml(_KNOWN)["gpus"].get(name.lower())
    if sheet is None:
        return None
    rate = sheet.get(dtype.removesuffix("-mixed"))
    if rate is None:
        raise InputError(f"the {sheet['name']} has no {dtype}: choose --dtype float16 or float32", dtype)
    products = OF_DATA_SHEET * 1e12 * rate
    return Machine(f"NVIDIA {sheet['name']}", products, 1e9 * sheet["bandwidth"], 1e9 * sheet["memory"])


@torch.inference_mode()
def this_machine(plan: ScanPlan, dtype: str, device: str | None = None) -> Machine:
    """This machine's CPU or GPU, timed now with one product and one multiplication of a batch's shape."""
    where = torch.device(placement(device).device)
    rows = IDS_AT_ONCE["cpu"] if where.type == "cpu" else 8 * IDS_AT_ONCE["cpu"]
    states = torch.ones(rows, plan.width, dtype=DTYPES[dtype], device=where)
    layer: Any = torch.nn.Linear(plan.width, plan.inner, bias=False, dtype=DTYPES[dtype], device=where)
    if dtype == MIXED:
        layer = CentredLinear(layer)
    wide = layer(states)
    products = 2 * rows * plan.width * plan.inner / _seconds(lambda: layer(states), where)
    moved = 2 * wide.nbytes / _seconds(lambda: wide * wide, where)
    if where.type == "cpu":
        name = f"this machine's CPU, threads: {torch.get_num_threads()}"
        return Machine(name, products, moved, psutil.virtual_memory().total)
    name = f"this machine's {torch.cuda.get_device_name(where)}"
    return Machine(name, products, moved, torch.cuda.get_device_properties(where).total_memory)


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    """The mean of as many repetitions as fit into a moment, after one that does not count."""
    repetitions, start = -1, clock()
    while repetitions < 3 or clock() - start < _TIMED:
        work()
        if device.type != "cpu":
            torch.accelerator.synchronize(device)
        repetitions += 1
        if repetitions == 0:
            start = clock()
    return (clock() - start) / repetitions
