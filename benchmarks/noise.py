"""The noise floor: how far rewards move when nothing about meaning changes.

The same model, prompt and tokens, scored in another number format, in batches of another size, with another
implementation of attention or on another number of threads, on the CPU. Any difference is rounding, and a difference
between two models or prompts says something only beyond it. What is slow on a CPU (float16, a batch of 1, whole
sequences) is scored on an even part of the sample.

Run as ``python benchmarks/noise.py [MODEL …] --out data/demo/noise``: a file of scores a model, and ``table.csv`` of
all models whose files lie there.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import torch
import typer
from scipy.stats import kendalltau, spearmanr
from tqdm import tqdm

import rmnb
from rmnb.errors import InputError
from rmnb.files import atomic_path
from rmnb.models.devices import own_attention
from rmnb.scoring.engine import score_continuations
from rmnb.scoring.reward_model import RewardModel
from rmnb.scoring.store import read_table, versions, write_table

REFERENCE, BATCH = "float32", 512  # shared prefix, one thread
BATCHES = (64, 333, 1024)
DTYPES = ("bfloat16", "float16")
TOKENS, SLOW_TOKENS = 4096, 256


def ways(rm: RewardModel, prompt: str) -> Iterator[tuple[str, str, bool, Callable[[np.ndarray], np.ndarray]]]:
    """Name, reference, whether it is slow, and the function from ids to rewards, of every way."""
    prefix, closing = rm.dialogue.frame_ids(prompt)

    def in_batches(model: RewardModel, size: int, threads: int = 1):
        def score(ids: np.ndarray) -> np.ndarray:
            torch.set_num_threads(threads)
            return score_continuations(model, prefix, [[int(i), *closing] for i in ids], size)

        return score

    yield REFERENCE, REFERENCE, False, in_batches(rm, BATCH)
    yield "batch 1", REFERENCE, True, in_batches(rm, 1)
    for size in BATCHES:
        yield f"batch {size}", REFERENCE, False, in_batches(rm, size)
    for name in ("eager", "sdpa"):
        yield f"attention {name}", REFERENCE, True, lambda ids, name=name: whole(rm, prompt, ids, name)
    yield "2 threads", REFERENCE, False, in_batches(rm, BATCH, threads=2)
    for dtype in DTYPES:
        other = rmnb.load_reward_model(rm.name, dtype=dtype, device="cpu")
        yield dtype, REFERENCE, dtype == "float16", in_batches(other, BATCH)
        if dtype != "float16":
            yield f"{dtype}, batch 64", dtype, False, in_batches(other, 64)


@torch.inference_mode()
def whole(rm: RewardModel, prompt: str, ids: np.ndarray, attention: str) -> np.ndarray:
    """Rewards of whole sequences with one of transformers' own implementations of attention."""
    torch.set_num_threads(1)
    prefix, closing = rm.dialogue.frame_ids(prompt)
    rewards = []
    with own_attention(rm.network):
        rm.network.set_attn_implementation(attention)
        for start in range(0, len(ids), 32):
            answers = [[int(i), *closing] for i in ids[start : start + 32]]
            read = [rm.reading.ids_read([*prefix, *answer]) - 1 for answer in answers]
            rows = torch.tensor([[*prefix, *answer] for answer in answers])
            hidden = rm.network(input_ids=rows, use_cache=False).last_hidden_state
            rewards.append(rm.readout(hidden[torch.arange(len(rows)), read])[:, 0])
    return torch.cat(rewards).numpy()


def measure(model: str, out: Path) -> None:
    """Score one random sample of a model's vocabulary in every way, and write change, reference, token_id, score."""
    rm = rmnb.load_reward_model(model, dtype=REFERENCE, device="cpu")
    prompt = rmnb.load_panel("demo").prompt("greatest").text
    ids = np.sort(np.random.default_rng(0).choice(rm.vocabulary_size, TOKENS, replace=False))
    parts = []
    # One way after the other, so that no more than two models are in memory.
    for change, reference, slow, score in tqdm(ways(rm, prompt), desc=model):
        sample = ids[:: TOKENS // SLOW_TOKENS] if slow else ids
        rewards = np.full(len(sample), np.nan, dtype=np.float32)
        with contextlib.suppress(InputError):  # float16 overflows in some models: that, too, is a result
            rewards = score(sample)
        part = {"change": change, "reference": reference, "token_id": sample.astype(np.int32), "score": rewards}
        parts.append(pd.DataFrame(part))
    provenance = {"model": model} | {name: rm.hashes[name] for name in ("weights_sha256", "tokenizer_sha256")}
    provenance |= {"prompt": prompt, "protocol": "exact", "seed": 0, "sample": TOKENS, "versions": versions()}
    provenance["processor"] = {"vector": torch.backends.cpu.get_cpu_capability()}
    write_table(out / f"{model}.parquet", pd.concat(parts, ignore_index=True), provenance)


def rows(scores: pd.DataFrame, model: str) -> list[dict]:
    """What each change does to the scores of a model; NaN where it gave rewards that are not finite."""
    by_way = {way: part.set_index("token_id")["score"] for way, part in scores.groupby("change", sort=False)}
    table = []
    for change, reference in scores[["change", "reference"]].drop_duplicates().itertuples(index=False):
        if change == reference:
            continue
        both = pd.concat([by_way[change], by_way[reference]], axis=1, join="inner").to_numpy(float)
        finite = np.isfinite(both).all()
        row = {"model": model, "change": change, "reference": reference, "tokens": len(both)}
        row["kendall_tau"] = kendalltau(both[:, 0], both[:, 1])[0] if finite else np.nan
        row["spearman"] = spearmanr(both)[0] if finite else np.nan
        row["largest_difference"] = np.abs(both[:, 0] - both[:, 1]).max()
        row["median_difference"] = np.median(np.abs(both[:, 0] - both[:, 1]))
        table.append(row | {"score_sd": both[:, 1].std(ddof=1)})
    return table


def main(out: Annotated[Path, typer.Option()], models: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Score, and write the table of all models."""
    for name in models or ["smollm2-values", "gemma3-values"]:
        measure(name, out)
    files = sorted(out.glob("*.parquet"))
    table = pd.DataFrame([row for file in files for row in rows(read_table(file)[0], file.stem)])
    with atomic_path(out / "table.csv") as path:
        table.to_csv(path, index=False, float_format="%.6g")
    print(table.to_string(index=False, float_format="{:.5g}".format))


if __name__ == "__main__":
    typer.run(main)
