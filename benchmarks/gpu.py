"""Scans on a GPU: how fast, and how far from the scores that ship, which were made on a CPU.

Run as ``python benchmarks/gpu.py demo --out FILE`` and ``python benchmarks/gpu.py papers --out FILE`` on a machine with
one CUDA GPU. Beside FILE a JSON file says which device it was.

demo
    Two models of the demo panel, the whole vocabulary, greatest prompt, in several number formats: tokens a second of
    a scan (loading and the first scan, which finds the batch, left out), Kendall's tau-b and the largest difference
    from the shipped scores, and those scores' standard deviation. Empty where rewards are not finite.
papers
    The architectures of the papers' models with random weights, bfloat16: speed hardly depends on the values of
    weights. The whole vocabulary is scored shard by shard as `rmnb.scan_vocabulary` does it; beside it, on 4,096
    tokens, whole conversations in padded batches as the papers' code runs them (its forward passes alone, without its
    tokenisation). Share of peak: of the rate of bfloat16 matrix products measured in the same process.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pandas as pd
import torch
import typer
from scipy.stats import kendalltau
from transformers import AutoConfig, AutoModel

import rmnb
from rmnb.errors import InputError
from rmnb.files import atomic_path, write_json
from rmnb.models.attention import NAME
from rmnb.models.devices import own_attention, upload
from rmnb.models.readouts import LinearHead
from rmnb.panels import ModelSpec, load_panel
from rmnb.scoring.engine import PrefixScorer
from rmnb.scoring.loading import load_reward_model
from rmnb.scoring.reward_model import RewardModel
from rmnb.scoring.scanning import scan_vocabulary
from rmnb.scoring.store import SHARD, read_scan, scores_path, versions
from rmnb.yaml_files import read_yaml

DEMO = ("smollm2-values", "gemma3-values")
WAYS = ("float32", "bfloat16", "float16")
#: Decimals that are written of a column; a difference gets three significant figures.
DECIMALS = {
    "tokens a second": 0, "tau with the CPU": 6, "score sd": 3, "seconds": 1, "share of peak": 2,
    "times whole conversations": 1, "GPU memory, GB": 1,
}  # fmt: skip
SHAPES = Path(rmnb.__file__).parent / "scoring" / "plan.yml"
PREFIX = 30  # ids of a question in its template
WHOLE = 4096  # tokens that are also scored as whole conversations
#: Of the papers' models: name, shape in rmnb/scoring/plan.yml, the papers' batch size.
PAPERS = (
    ("Llama 3B", "llama-3.2-3b", 128),
    ("Llama 8B", "llama-3-8b", 64),
    ("Gemma 2B", "gemma-2-2b", 256),
    ("Gemma 27B", "gemma-2-27b", 32),
)


def seconds(work: Callable[[], object]) -> float:
    """How long the GPU takes for it."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def demo(name: str, dtype: str) -> dict:
    """One row: a model of the demo panel in one number format."""
    panel = load_panel("demo")
    prompt = panel.prompt("greatest")
    shipped = read_scan(scores_path(panel, name, prompt.key))[0]["score"].to_numpy(float)
    rm = load_reward_model(name, panel, dtype=dtype, device="cuda")
    row = {"model": name, "number format": dtype, "score sd": shipped.std(ddof=1)}
    try:
        scan = scan_vocabulary(rm, prompt)
    except InputError as error:  # float16 overflows in Gemma 3
        print(f"{name}, {dtype}: {error}", flush=True)
        return row
    batch = scan.attrs["provenance"]["batch_size"]
    duration = seconds(lambda: scan_vocabulary(rm, prompt, batch_size=batch))
    scores = scan["score"].to_numpy(float)
    return row | {
        "tokens a second": len(scores) / duration,
        "tau with the CPU": kendalltau(scores, shipped)[0],
        "largest difference": float(f"{np.abs(scores - shipped).max():.3g}"),
    }


def random_model(name: str, config) -> RewardModel:
    """An architecture with random weights, bfloat16, on the GPU, as a reward model that can score ids alone."""
    torch.manual_seed(0)
    with torch.device("cuda"):
        trunk = AutoModel.from_config(config, dtype=torch.bfloat16).eval().requires_grad_(False)
        head = LinearHead(config.hidden_size).requires_grad_(False)
    trunk.set_attn_implementation(NAME)
    spec = ModelSpec(name=name.replace(" ", "-"), source="random weights", dtype="bfloat16")
    return RewardModel(spec, trunk, head, None, None)  # pyright: ignore[reportArgumentType]


def matrix_peak() -> float:
    """Floating-point operations a second of bfloat16 products of 8192 × 8192, median of ten."""
    left, right = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    times = [seconds(lambda: left @ right) for _ in range(13)][3:]
    return 2 * 8192**3 / float(np.median(times))


@torch.inference_mode()
def whole_conversations(rm: RewardModel, rows: list[list[int]], batch: int) -> None:
    """Each conversation in full, transformers' own attention."""
    with own_attention(rm.network):
        for start in range(0, len(rows), batch):
            hidden = rm.network(input_ids=upload(rows[start : start + batch], rm.device), use_cache=False)
            rm.readout(hidden.last_hidden_state[:, -1])
    torch.cuda.synchronize()


def papers(name: str, shape: str, papers_batch: int, peak: float) -> dict:
    """One row: an architecture."""
    sizes = read_yaml(SHAPES)["shapes"][shape]
    config, ids = AutoConfig.for_model(**sizes["config"]), 1 + sizes["closing"]  # a token, and what closes the turn
    rm = random_model(name, config)
    rng = np.random.default_rng(0)
    prefix, closing = (rng.integers(10, config.vocab_size, size).tolist() for size in (PREFIX, ids - 1))
    continuations = [[token, *closing] for token in range(config.vocab_size)]
    torch.cuda.reset_peak_memory_stats()
    scorer = PrefixScorer(rm, prefix)
    batch = min(scorer.batch_size(ids), SHARD)
    scorer(continuations[:SHARD], batch)

    def scan() -> None:
        for start in range(0, len(continuations), SHARD):
            scorer(continuations[start : start + SHARD], batch)

    duration = seconds(scan)
    memory = torch.cuda.max_memory_allocated()
    rows = [prefix + continuation for continuation in continuations[:WHOLE]]
    whole_conversations(rm, rows[: 2 * papers_batch], papers_batch)
    whole = seconds(lambda: whole_conversations(rm, rows, papers_batch))
    products = sum(m.weight.numel() for m in rm.network.modules() if isinstance(m, torch.nn.Linear))
    rate = len(continuations) / duration
    return {
        "architecture": name,
        "seconds": duration,
        "tokens a second": rate,
        "share of peak": 2 * products * ids * rate / peak,
        "times whole conversations": rate * whole / WHOLE,
        "GPU memory, GB": memory / 1e9,
    }


def main(what: Literal["demo", "papers"], out: Annotated[Path, typer.Option()]) -> None:
    """Measure, and write a row after the other."""
    if not torch.cuda.is_available():
        raise InputError("this benchmark needs a CUDA GPU")
    peak = matrix_peak()
    machine = {
        "device": torch.cuda.get_device_name(),
        "versions": versions(),
        "peak_tflops_bfloat16": round(peak / 1e12),
        "time": datetime.now(UTC).date().isoformat(),
    }
    print(machine, flush=True)
    write_json(out.with_suffix(".json"), machine)
    rows = []
    ways = [(name, dtype) for name in DEMO for dtype in WAYS]
    for job in ways if what == "demo" else PAPERS:
        rows.append(demo(*job) if what == "demo" else papers(*job, peak=peak))
        torch.cuda.empty_cache()
        print(rows[-1], flush=True)
        with atomic_path(out) as path:
            pd.DataFrame(rows).round(DECIMALS).astype({"tokens a second": "Int64"}).to_csv(path, index=False)


if __name__ == "__main__":
    typer.run(main)
