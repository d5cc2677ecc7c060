"""How long a scan will take: a machine's pace, measured here or read off a GPU's data sheet.

    time = operations / rate of products + passes × values / rate of values

The first term cannot be saved: products of weights with every position that is fed. The second is all between them
(norms, rotations, attention's softmax, gates), which reads and writes a layer's states several times. Both rates are
measured by products and a multiplication of the model's own shapes; how many passes there are was measured once
(`PASSES`). A GPU waits for the host where a layer is short (`LAUNCH`). ``benchmarks/plan.py`` holds all this against
scans.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter as clock

import psutil
import torch

from rmnb.errors import InputError
from rmnb.models.devices import COMPILED, DTYPES, MIXED, placement
from rmnb.models.dialogue import Prompt
from rmnb.models.gpus import GPUS, Gpu
from rmnb.models.layers import gains
from rmnb.models.precision import CentredLinear
from rmnb.models.reward_model import RewardModel
from rmnb.scoring.estimate import Work, work_of
from rmnb.scoring.store import SHARD

#: How often a layer's states are read and written between products, by device, number format and whether compiled:
#: what brings the estimates nearest to the scans of the demo models (CPU) and of the papers' architectures (H100).
PASSES = {
    ("cpu", "float32", False): 5.0,
    ("cpu", MIXED, False): 6.0,
    ("cpu", "float32", True): 2.0,
    ("cpu", MIXED, True): 0.3,  # what centring does between products is compiled with it
    ("cuda", "bfloat16", False): 5.5,
}
OF_DATA_SHEET = 0.66  # share of the data sheet's rate that products of a batch's shape reach: an H100's
LAUNCH = 0.0017  # seconds that the host needs at least for a layer of one batch: beside an H100
_LARGEST = 4096  # sides of the products that are timed: beyond, the rate hardly changes
_TIMED = 0.1  # seconds a shape


@dataclass(frozen=True)
class Pace:
    """How fast a device works on one network.

    Attributes
    ----------
    products : float
        Floating-point operations a second, of products.
    values : float
        Numbers a second that are read and written between products, all passes together.
    launch : float
        Seconds that a layer takes at least for a batch of `SHARD` tokens.
    """

    products: float
    values: float
    launch: float = 0.0

    def seconds(self, work: Work) -> float:
        """An estimate of how long a scan takes; loading the model is not in it."""
        at_least = math.ceil(work.tokens / SHARD) * work.shape.layers * self.launch
        return max(at_least, work.operations / self.products + work.values / self.values)


def data_sheet(gpu: Gpu, dtype: str) -> Pace:
    """What is to be expected of a GPU that is not here, as an H100 held its own data sheet.

    Raises
    ------
    InputError
        The GPU has no such number format.
    """
    values = 1e9 * gpu.bandwidth / DTYPES[dtype].itemsize
    return Pace(OF_DATA_SHEET * gpu.rate(dtype), values / passes("cuda", dtype), LAUNCH)


def passes(device: str, dtype: str, compiled: bool = False) -> float:
    """The nearest of `PASSES`: of the same device, then of the same way to run."""
    nearest = sorted(PASSES, key=lambda key: (key[0] != device, key[2] != compiled, key[1] != dtype))
    return PASSES[nearest[0]]


@torch.inference_mode()
def measured(work: Work, dtype: str, device: torch.device | str = "cpu", compiled: bool = False) -> Pace:
    """How fast this machine works now on a network of this shape: a second or so of products and a multiplication."""
    device, shape = torch.device(device), work.shape
    rows = (work.batch if device.type == "cpu" else SHARD, work.fed)
    spent = {
        (i, o): _product_seconds(rows, min(i, _LARGEST), min(o, _LARGEST), dtype, device) for i, o in shape.products
    }
    per_operation = {
        (i, o): seconds / (2 * rows[0] * rows[1] * min(i, _LARGEST) * min(o, _LARGEST))
        for (i, o), seconds in spent.items()
    }
    weights = {(i, o): i * o * count for (i, o), count in shape.products.items()}
    rate = sum(weights.values()) / sum(per_operation[side] * weight for side, weight in weights.items())
    states = torch.ones(*rows, max(outer for _, outer in shape.products), dtype=DTYPES[dtype], device=device)
    values = states.numel() / _seconds(lambda: states * states, device)
    launch = LAUNCH if device.type == "cuda" and not compiled else 0.0
    return Pace(rate, values / passes(device.type, dtype, compiled), launch)


def _product_seconds(rows: tuple[int, int], inner: int, outer: int, dtype: str, device: torch.device) -> float:
    linear = torch.nn.Linear(inner, outer, bias=False, device=device)
    linear = CentredLinear(linear) if dtype == MIXED else linear.to(DTYPES[dtype])
    states = torch.randn(*rows, inner, device=device).to(DTYPES[dtype])
    return _seconds(lambda: linear(states), device)


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    """The mean of as many repetitions as fit into a moment, three at least: what else runs counts, as in a scan."""
    repetitions, start = -1, 0.0
    while repetitions < 3 or clock() - start < _TIMED:
        work()
        if device.type != "cpu":
            torch.accelerator.synchronize(device)
        repetitions += 1
        if not repetitions:  # the first is left out
            start = clock()
    return (clock() - start) / repetitions


@dataclass
class Machine:
    """What scans run on: this machine's CPU or GPU, or a GPU that is known by name.

    Parameters
    ----------
    device
        ``cpu``, ``cuda:1`` …, or a key of `rmnb.models.gpus.GPUS`. Default: a GPU of this machine, else its CPU.
    compile
        A key of `rmnb.models.devices.COMPILED`, ``none``, or ``auto``: where a scan is long enough to repay it.

    Raises
    ------
    InputError
        No such device, or way to compile.
    """

    device: str | None = None
    compile: str = "auto"
    _paces: dict[object, Pace] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.gpu = GPUS.get((self.device or "").lower())
        placement("cpu", compile=self.compile)
        try:
            self._here = torch.device("cuda" if self.gpu else placement(self.device).device)
        except InputError as error:
            raise InputError(f"{error}; or a GPU by name: {', '.join(GPUS)}") from error

    @property
    def kind(self) -> str:
        """``cpu`` or ``cuda``."""
        return self._here.type

    @property
    def memory(self) -> float:
        """Bytes."""
        if self.gpu:
            return 1e9 * self.gpu.memory
        if self.kind == "cuda":
            return torch.cuda.get_device_properties(self._here).total_memory
        return psutil.virtual_memory().total

    def compiles(self, work: Work, dtype: str, scans: int = 1) -> bool:
        """Whether so many scans by one process are compiled, as `rmnb.models.layers.gains` decides on a CPU."""
        if self.kind != "cpu" or not work.shared or self.compile != "auto":
            return self.compile in COMPILED and (work.shared or self.kind != "cpu")
        return gains(scans * work.tokens * work.ids, work.shape.layers, work.shape.config.hidden_size, dtype)

    def pace(self, work: Work, dtype: str, scans: int = 1) -> Pace:
        """Its pace on networks of a shape, measured once; InputError if it has no such number format."""
        compiled = self.compiles(work, dtype, scans)
        key = (dtype, compiled, work.fed, *sorted(work.shape.products.items()))
        if key not in self._paces:
            if self.gpu:
                self._paces[key] = data_sheet(self.gpu, dtype)
            else:
                self._paces[key] = measured(work, dtype, self._here, compiled)
        return self._paces[key]

    def __str__(self) -> str:
        if self.gpu:
            return f"NVIDIA {self.gpu.name}"
        if self.kind == "cuda":
            return f"this machine's {torch.cuda.get_device_name(self._here)}"
        threads = torch.get_num_threads()
        return f"this machine's CPU, {threads} thread{'s' * (threads > 1)}"

    @property
    def source(self) -> str:
        """Where its pace is known from."""
        if self.gpu:
            return (
                f"an estimate from the maker's data sheet, with products at {100 * OF_DATA_SHEET:.0f} % of its rate as "
                "on the H100 that was measured. No other GPU has been measured."
            )
        rates = [pace.products / 1e12 for pace in self._paces.values()]
        return (
            f"an estimate from matrix products of these shapes, timed just now ({max(rates, default=0):.2g} TFLOP/s). "
            "Other programs slow both down."
        )


@dataclass(frozen=True)
class ScanEstimate:
    """What one scan takes a machine.

    Attributes
    ----------
    work : Work
    dtype : str
        Number format of the trunk.
    machine : Machine
    half : bool
        Whether the weights are stored in bfloat16.
    loaded : int
        Bytes of the weights if they are loaded.
    scans : int
        How many such scans the process makes.
    """

    work: Work
    dtype: str
    machine: Machine
    half: bool = False
    loaded: int = 0
    scans: int = 1

    @property
    def seconds(self) -> float:
        """Of one scan alone: fetching, loading and compiling the model are not in it."""
        return self.machine.pace(self.work, self.dtype, self.scans).seconds(self.work)

    @property
    def operations(self) -> int:
        return self.work.operations

    @property
    def weights(self) -> int:
        """Bytes of the weights."""
        return self.loaded or self.work.stored(self.dtype, self.half)

    @property
    def memory(self) -> int:
        """Bytes of weights and of one batch's states."""
        return self.weights + self.work.states(self.dtype, self.machine.kind)


def estimate(rm: RewardModel, prompt: Prompt, tokens: int, scans: int = 1) -> ScanEstimate:
    """Of a scan that is about to begin, one of so many."""
    machine = Machine(str(rm.device), rm.placement.compile or "auto")
    tensors = [*rm.network.parameters(), *rm.network.buffers()]
    loaded = sum({tensor.data_ptr(): tensor.nbytes for tensor in tensors}.values())
    return ScanEstimate(work_of(rm, prompt, tokens), rm.spec.dtype, machine, loaded=loaded, scans=scans)


def in_a_line(estimates: list[ScanEstimate]) -> str:
    """What scans of one model take together, in a line."""
    first = estimates[0]
    prompts = f"{len(estimates)} prompts × " if len(estimates) > 1 else ""
    return (
        f"{prompts}{first.work.tokens:,} tokens × {first.work.fed} ids: {tera(sum(e.operations for e in estimates))} "
        f"TFLOP, {first.memory / 1e9:.1f} GB of memory, about {duration(sum(e.seconds for e in estimates))} "
        f"on {first.machine}"
    )


def tera(operations: float) -> str:
    """Floating-point operations in units of 10¹², three figures."""
    return f"{operations / 1e12:,.0f}" if operations >= 1e14 else f"{operations / 1e12:.3g}"


def duration(seconds: float) -> str:
    """A time as people say it: two figures are enough for an estimate."""
    for size, unit, smaller, smaller_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            whole, rest = divmod(round(seconds / smaller), size // smaller)
            return f"{whole} {unit} {rest} {smaller_unit}" if rest and whole < 10 else f"{whole} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else "1 s"
