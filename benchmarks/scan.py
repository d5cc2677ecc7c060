"""Tokens a second of a vocabulary scan, in several ways, on the same tokens in one run.

(a) papers: padded batches of whole conversations through AutoModelForSequenceClassification, as in the papers' code,
    with the batch size that it has for the smallest model of the same family; padded: the same at the batch size that
    was fastest here, which the papers did not use for models of this size;
(b) expanded: the prefix's keys and values computed once and expanded into each batch (transformers' cache, SDPA);
(c) shared: this engine.

With ``--prompts 6``, `rmnb scan` of the first six of the 54 prompts in one process against a process a prompt, from the
start of the command to its end.

Run as ``python benchmarks/scan.py``. Each way runs in a process of its own, because the engine tells the allocator of
its process to keep memory; the ways take turns, so that a noisy machine disturbs all of them alike. Figures are medians
over the rounds; the share of the peak is of the matrix-product rate measured in the same process.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, DynamicCache

import rmnb
from rmnb.models.reward_model import RewardModel
from rmnb.panels import load_prompts
from rmnb.scoring.engine import PrefixScorer

# The papers' configuration: 128 for its 3B Llama, 256 for its 2B Gemma; 32 and 64 only for models of 8B and more.
PAPERS_BATCH = {"llama": 128, "gemma3_text": 256}
PADDED_BATCH = 64
WAYS = ("papers", "padded", "expanded", "shared")
WHOLE = WAYS[:2]  # the ways that run whole conversations


def prepare(rm: RewardModel, way: str, prompt: str) -> Callable[[list[int]], np.ndarray]:
    """One of the ways as a function from token ids to rewards, float32 [tokens]."""
    prefix, closing = rm.dialogue.frame(prompt)
    batch = PrefixScorer(rm, prefix).batch_size(1 + len(closing))
    if way == "shared":
        scorer = PrefixScorer(rm, prefix)
        return lambda ids: scorer([[i, *closing] for i in ids], batch)
    classifier = as_classifier(rm)
    if way == "expanded":
        return lambda ids: score_expanded(rm, classifier, prefix, closing, ids, batch)
    whole = PAPERS_BATCH[rm.network.config.model_type] if way == "papers" else PADDED_BATCH
    return lambda ids: score_whole(rm, classifier, prompt, ids, whole)


def as_classifier(rm: RewardModel) -> torch.nn.Module:
    """The same weights as transformers' own sequence classifier with SDPA; nothing is copied."""
    config = type(rm.network.config).from_dict({**rm.network.config.to_dict(), "num_labels": 1})
    config._attn_implementation = "sdpa"
    config.pad_token_id = rm.tokenizer.unk_token_id  # SmolLM2 pads with the closing id: see the traps
    with torch.device("meta"):
        classifier = AutoModelForSequenceClassification.from_config(config)
    classifier.load_state_dict({f"model.{k}": v for k, v in rm.network.state_dict().items()}, strict=False, assign=True)
    classifier.score.weight = rm.head.score.weight
    # Tables that are not weights (rotary frequencies, embedding scales) have no place in a state dict.
    ours = dict(rm.network.named_buffers())
    for name, _ in list(classifier.model.named_buffers()):
        owner, _, leaf = name.rpartition(".")
        setattr(classifier.model.get_submodule(owner), leaf, ours[name])
    return classifier.eval()


@torch.inference_mode()
def score_whole(rm: RewardModel, classifier, prompt: str, ids: list[int], batch: int) -> np.ndarray:
    """(a): decode, fill the template, tokenise, pad, run, read the logits."""
    rewards = []
    tokenizer = rm.tokenizer
    tokenizer.pad_token_id, tokenizer.padding_side = classifier.config.pad_token_id, "right"
    for start in range(0, len(ids), batch):
        texts = [
            rm.dialogue.render(
                [{"role": "user", "content": prompt}, {"role": "assistant", "content": tokenizer.decode([i])}]
            )
            for i in ids[start : start + batch]
        ]
        inputs = tokenizer(texts, return_tensors="pt", padding=True)
        rewards.append(classifier(**inputs).logits[:, 0])
    return torch.cat(rewards).numpy()


@torch.inference_mode()
def score_expanded(rm: RewardModel, classifier, prefix, closing, ids: list[int], batch: int) -> np.ndarray:
    """(b): the prefix's cache expanded to the batch, then the continuations."""
    trunk = classifier.model
    first = DynamicCache(config=trunk.config)
    trunk(input_ids=torch.tensor([prefix]), past_key_values=first, use_cache=True)
    rewards = []
    for start in range(0, len(ids), batch):
        rows = torch.tensor([[i, *closing] for i in ids[start : start + batch]])
        cache = DynamicCache(config=trunk.config)
        for layer, (keys, values) in enumerate((layer.keys, layer.values) for layer in first.layers):
            cache.update(keys.expand(len(rows), -1, -1, -1), values.expand(len(rows), -1, -1, -1), layer)
        position = len(prefix) + torch.arange(rows.shape[1])[None]
        hidden = trunk(input_ids=rows, past_key_values=cache, position_ids=position, use_cache=True).last_hidden_state
        rewards.append(rm.head(hidden[:, -1]))
    return torch.cat(rewards).numpy()


@torch.inference_mode()
def unbatched(rm: RewardModel, classifier, prompt: str, ids: list[int]) -> np.ndarray:
    """The reference: each conversation alone, unpadded."""
    prefix, closing = rm.dialogue.frame(prompt)
    rows = [torch.tensor([[*prefix, i, *closing]]) for i in ids]
    return np.array([rm.head(classifier.model(input_ids=row).last_hidden_state[:, -1]).item() for row in rows])


def matrix_peak(rm: RewardModel, rows: int) -> float:
    """The rate of fp32 matrix products in floating-point operations a second.

    The best of three shapes, two of them the model's own largest, each the median of its repetitions.
    """
    config = rm.network.config.get_text_config()
    wide, narrow = config.intermediate_size, config.hidden_size
    rates = []
    for inner, outer in ((narrow, wide), (wide, narrow), (2048, 2048)):
        left, right = torch.randn(rows, inner), torch.randn(outer, inner)
        times = []
        for _ in range(12):
            start = time.perf_counter()
            torch.nn.functional.linear(left, right)
            times.append(time.perf_counter() - start)
        rates.append(2 * rows * inner * outer / statistics.median(times))
    return max(rates)


def operations_a_token(rm: RewardModel, positions: int) -> int:
    """Multiplications and additions of the linear layers for one token of the vocabulary."""
    linear = sum(m.weight.numel() for m in rm.network.modules() if isinstance(m, torch.nn.Linear))
    return 2 * linear * positions


def measure(model: str, way: str, tokens: int) -> dict[str, float]:
    """One way in this process: tokens a second, share of the peak, largest difference from the reference, memory."""
    rm = rmnb.load_reward_model(model, device="cpu")
    prompt = rmnb.load_panel("demo").prompt("greatest").text
    prefix, closing = rm.dialogue.frame(prompt)
    score = prepare(rm, way, prompt)
    rng = np.random.default_rng(0)
    ids = np.sort(rng.choice(rm.vocabulary_size, tokens, replace=False)).tolist()
    sample = ids[:: max(1, tokens // 32)]
    rewards = score(sample)  # the first batch also warms up
    positions = 1 + len(closing)
    before = matrix_peak(rm, PrefixScorer(rm, prefix).batch_size(positions) * positions)
    start = time.perf_counter()
    score(ids)
    rate = tokens / (time.perf_counter() - start)
    peak = (before + matrix_peak(rm, PrefixScorer(rm, prefix).batch_size(positions) * positions)) / 2
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    classifier = as_classifier(rm)
    # (a) tokenises the decoded text again and so scores other ids: it is compared with itself, one at a time.
    alone = (
        score_whole(rm, classifier, prompt, sample, 1) if way in WHOLE else unbatched(rm, classifier, prompt, sample)
    )
    return {
        "rate": rate,
        "peak": peak,
        "share": rate * operations_a_token(rm, positions) / peak,
        "difference": float(np.abs(rewards - alone).max()),
        "memory": memory - sum(p.numel() * p.element_size() for p in rm.network.parameters()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["smollm2-values", "gemma3-values"])
    parser.add_argument("--tokens", type=int, default=2048, help="for (b) and (c); an eighth of them for (a)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--prompts", type=int, help="compare so many prompts in one process with one a process")
    options = parser.parse_args()
    if options.prompts:
        for model in options.models:
            compare_prompts(model, options.prompts, options.tokens, options.rounds)
        return
    if options.way:
        print(json.dumps(measure(options.models[0], options.way, options.tokens)))
        return
    print(f"{torch.get_num_threads()} threads, {options.tokens} tokens, {options.rounds} rounds")
    for model in options.models:
        rounds = [
            {way: in_own_process(model, way, options.tokens // 8 if way in WHOLE else options.tokens) for way in WAYS}
            for _ in range(options.rounds)
        ]
        median = {
            way: {key: statistics.median(turn[way][key] for turn in rounds) for key in rounds[0][way]} for way in WAYS
        }
        print(f"\n{model}: matrix-product peak {median['shared']['peak'] / 1e9:.0f} GFLOP/s")
        heads = ("tokens/s", "(c) is x times", "share of peak", "difference", "memory - weights")
        print(f"{'way':<10}" + "".join(f"{head:>18}" for head in heads))
        for way, row in median.items():
            ratio = statistics.median(turn["shared"]["rate"] / turn[way]["rate"] for turn in rounds)
            print(
                f"{way:<10}{row['rate']:>18.1f}{ratio:>18.2f}{row['share']:>18.2f}"
                f"{row['difference']:>18.1e}{row['memory'] / 1e9:>15.2f} GB"
            )
        longer = in_own_process(model, "shared", 8 * options.tokens)
        print(f"shared, eight times as many tokens: {longer['memory'] / 1e9:.2f} GB")


def compare_prompts(model: str, prompts: int, tokens: int, rounds: int) -> None:
    """Print tokens a second of `rmnb scan` with several prompts in one process, and with a process a prompt."""
    keys = [prompt.key for prompt in load_prompts("iclr2026")[:prompts]]
    ways = {"one process": [keys], "a process a prompt": [[key] for key in keys]}
    seconds = {way: [] for way in ways}
    for _ in range(rounds):
        for way, commands in ways.items():
            with tempfile.TemporaryDirectory() as directory:
                start = time.perf_counter()
                for group in commands:
                    asked = [word for key in group for word in ("--prompt", key)]
                    scan = ["scan", model, *asked, "--first", str(tokens), "--out", directory, "--device", "cpu"]
                    command = [sys.executable, "-c", "from rmnb.cli.main import main; main()", *scan]
                    subprocess.run(command, check=True, capture_output=True)
                seconds[way].append(time.perf_counter() - start)
    for way, taken in seconds.items():
        rate = prompts * tokens / statistics.median(taken)
        print(f"{model}, {prompts} prompts of {tokens} tokens, {way}: {rate:.1f} tokens/s")


def in_own_process(model: str, way: str, tokens: int) -> dict[str, float]:
    """`measure` in a process of its own."""
    command = [sys.executable, str(Path(__file__)), "--models", model, "--way", way, "--tokens", str(tokens)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
