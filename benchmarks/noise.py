"""The noise floor: how far rewards move when nothing about meaning changes.

The same model, prompt and tokens, scored in another number format, in batches of another size, with another
implementation of attention or on another number of threads. Any difference is rounding, and a difference between two
models or prompts says something only beyond it.

Run as ``python benchmarks/noise.py [MODEL …] --out data/demo/noise``.
"""

import argparse
import contextlib
import json
import platform
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from rmnb.errors import InputError
from rmnb.files import atomic_path, sha256
from rmnb.panels import ModelSpec, PromptSpec, load_panel
from rmnb.scoring.store import Provenance, read_table, versions, write_table
from rmnb.stats import kendall_tau, spearman

REFERENCE = "float32"  # shared prefix, batches of 512, one thread
BATCH = 512
BATCHES = (64, 333, 1024)
DTYPES = ("bfloat16-mixed", "bfloat16", "float16")
COLUMNS = [
    "model", "change", "reference", "tokens", "kendall_tau", "spearman",
    "largest_difference", "median_difference", "score_sd",
]  # fmt: skip


def measure_noise(
    spec: ModelSpec,
    prompt: PromptSpec,
    tokens: int = 4096,
    slow_tokens: int = 256,
    seed: int = 0,
    progress: bool = False,
) -> tuple[pd.DataFrame, Provenance]:
    """Score one random sample of the vocabulary in every way, on the CPU.

    Parameters
    ----------
    spec
        The model.
    prompt
        The question, protocol ``exact``.
    tokens
        Size of the sample.
    slow_tokens
        Tokens, evenly spread over the sample, for what is slow on a CPU: float16, a batch of 1, whole sequences.
    seed
        Of the sample.
    progress
        Show a progress bar.

    Returns
    -------
    scores : DataFrame
        change, reference, token_id (int32), score (float32), one row a way and a token. `change` and `reference` name
        ways; the reference of `REFERENCE` is itself. NaN for a way that gave rewards which are not finite.
    provenance : dict
        Model, weights, prompt, sample, processor, versions.

    Raises
    ------
    InputError
        A sample of fewer than two tokens, an encoder, or a head that is not linear.
    """
    if min(tokens, slow_tokens) < 2:
        raise InputError("a noise floor needs a sample of at least two tokens")
    from rmnb.models.heads import LinearHead
    from rmnb.scoring.engine import NonFiniteReward
    from rmnb.scoring.parity import load_reward_model

    rm = load_reward_model(spec, dtype=REFERENCE, device="cpu")
    if not rm.shares_prefix or not isinstance(rm.head, LinearHead):
        raise InputError(f"{spec.name}: the noise floor is for decoders with a linear head that can share a prefix")
    tokens = min(tokens, rm.vocabulary_size)
    ids = np.sort(np.random.default_rng(seed).choice(rm.vocabulary_size, tokens, replace=False))
    few = ids[:: -(-tokens // min(slow_tokens, tokens))]
    parts = []
    # One way after the other, so that no more than two models are in memory.
    for change, reference, slow, score in tqdm(_ways(rm, prompt.conversation), disable=not progress, desc=spec.name):
        sample = few if slow else ids
        try:
            rewards = score(sample)
        except NonFiniteReward:  # float16 overflows in some models: that, too, is a result
            rewards = np.full(len(sample), np.nan, dtype=np.float32)
        part = {"change": change, "reference": reference, "token_id": sample.astype(np.int32), "score": rewards}
        parts.append(pd.DataFrame(part))
    provenance = {
        "model": spec.name,
        "weights_sha256": rm.weights_sha256,
        "tokenizer_sha256": rm.tokenizer_sha256,
        "prompt": prompt.text,
        "protocol": "exact",
        "seed": seed,
        "sample": tokens,
        "processor": processor(),
        "versions": versions(),
    }
    return pd.concat(parts, ignore_index=True), provenance


def noise_table(scores: pd.DataFrame, model: str) -> pd.DataFrame:
    """What each change does to the scores of a model.

    Parameters
    ----------
    scores
        As `measure_noise` returns them.
    model
        Its name, for the table.

    Returns
    -------
    DataFrame
        `COLUMNS`, one row a change: the tokens that both ways scored, Kendall's tau-b and Spearman's rho between them,
        largest and median absolute difference, and the standard deviation of the reference's scores. NaN where the
        change gave rewards that are not finite.
    """
    by_way = {way: part.set_index("token_id")["score"] for way, part in scores.groupby("change", sort=False)}
    pairs = scores[["change", "reference"]].drop_duplicates()
    rows = []
    for change, reference in pairs[pairs["change"] != pairs["reference"]].itertuples(index=False):
        both = pd.concat([by_way[change], by_way[reference]], axis=1, join="inner").to_numpy(float)
        changed, kept = both.T
        difference = np.abs(changed - kept)
        correlations = (np.nan, np.nan)
        if np.isfinite(both).all():
            correlations = kendall_tau(changed, kept), spearman(changed, kept)
        row = (model, change, reference, len(both), *correlations, difference.max(), np.median(difference))
        rows.append((*row, kept.std(ddof=1)))
    return pd.DataFrame(rows, columns=pd.Index(COLUMNS))


def write_noise(model: str, scores: pd.DataFrame, provenance: Provenance, directory: Path) -> Path:
    """Write a model's scores, and the table of all models whose scores lie there; return the table's path."""
    write_table(directory / f"{model}.parquet", scores, provenance)
    tables, described = [], {}
    for file in sorted(directory.glob("*.parquet")):
        frame, described[file.stem] = read_table(file)
        tables.append(noise_table(frame, file.stem))
    table = directory / "table.csv"
    with atomic_path(table) as path:
        pd.concat(tables).to_csv(path, index=False, float_format="%.6g")
    record = {"sha256": sha256(table), "time": datetime.now(UTC).isoformat(timespec="seconds"), "models": described}
    with atomic_path(directory / "table.json") as path:
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return table


def processor() -> dict[str, str]:
    """Architecture, the vector instructions that torch uses, and which half-precision instructions there are."""
    import torch

    flags = ""
    with contextlib.suppress(OSError):  # Linux only
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        flags = next((line for line in lines if line.startswith("flags")), "")
    half = sorted(flag for flag in flags.split() if flag in {"avx512_bf16", "avx512_fp16", "amx_bf16", "amx_fp16"})
    return {
        "machine": platform.machine(),
        "vector": torch.backends.cpu.get_cpu_capability(),
        "half": " ".join(half),
    }


def _ways(rm, prompt: str) -> Iterator[tuple[str, str, bool, Callable[[np.ndarray], np.ndarray]]]:
    """Name, reference, whether it is slow, and the function from ids to rewards, of every way."""
    from rmnb.scoring.parity import load_reward_model

    def in_batches(model, size: int, threads: int = 1):
        return lambda ids: _shared(model, prompt, ids, size, threads)

    yield REFERENCE, REFERENCE, False, in_batches(rm, BATCH)
    yield "batch 1", REFERENCE, True, in_batches(rm, 1)
    for size in BATCHES:
        yield f"batch {size}", REFERENCE, False, in_batches(rm, size)
    for name in ("eager", "sdpa"):
        yield f"attention {name}", REFERENCE, True, lambda ids, name=name: _whole(rm, prompt, ids, name)
    yield "2 threads", REFERENCE, False, in_batches(rm, BATCH, threads=2)
    for dtype in DTYPES:
        other = load_reward_model(rm.spec, dtype=dtype, device="cpu")
        yield dtype, REFERENCE, dtype == "float16", in_batches(other, BATCH)
        if dtype != "float16":
            yield f"{dtype}, batch 64", dtype, False, in_batches(other, 64)


def _shared(rm, prompt: str, ids: np.ndarray, size: int, threads: int) -> np.ndarray:
    """Rewards over one shared prefix, as a scan computes them."""
    from rmnb.scoring.engine import score_continuations

    prefix, closing = rm.dialogue.frame(prompt)
    with _threads(threads):
        return score_continuations(rm, prefix, [[int(i), *closing] for i in ids], size)


def _whole(rm, prompt: str, ids: np.ndarray, attention: str) -> np.ndarray:
    """Rewards of whole sequences with one of transformers' own implementations of attention."""
    import torch

    prefix, closing = rm.dialogue.frame(prompt)
    before, rewards = rm.network.config._attn_implementation, []
    rm.network.set_attn_implementation(attention)
    try:
        with _threads(1), torch.inference_mode():
            for start in range(0, len(ids), 32):
                answers = [[int(i), *closing] for i in ids[start : start + 32]]
                read = [rm.reading.end(prefix, answer) - 1 for answer in answers]
                rows = torch.tensor([[*prefix, *answer] for answer in answers])
                hidden = rm.network(input_ids=rows, use_cache=False).last_hidden_state
                rewards.append(rm.head(hidden[torch.arange(len(rows)), read]))
    finally:
        rm.network.set_attn_implementation(before)
    return torch.cat(rewards).numpy()


@contextlib.contextmanager
def _threads(number: int):
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=["smollm2-values", "gemma3-values"])
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    panel = load_panel("demo")
    for name in asked.models:
        scores, provenance = measure_noise(panel.model(name), panel.prompt("greatest"), progress=True)
        write_noise(name, scores, provenance, asked.out)
        print(noise_table(scores, name).to_string(index=False, float_format="{:.5g}".format))


if __name__ == "__main__":
    main()
