"""Tokens a second of a vocabulary scan, in several ways, on the same tokens in one run.

papers: padded batches of whole conversations through AutoModelForSequenceClassification, as in the papers' code, with
the batch size that it has for the smallest model of the same family; padded: the same at the batch size that was
fastest here; expanded: the prefix's keys and values computed once and expanded into each batch (transformers' cache,
SDPA); shared: this engine.

Run as ``python benchmarks/scan.py``. Figures are medians over the rounds.
"""

import itertools
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
import typer
from transformers import AutoModelForSequenceClassification, DynamicCache

import rmnb
from rmnb.scoring.engine import PrefixScorer
from rmnb.scoring.reward_model import RewardModel

# The papers' configuration: 128 for its 3B Llama, 256 for its 2B Gemma; 32 and 64 only for models of 8B and more.
PAPERS_BATCH = {"llama": 128, "gemma3_text": 256}
PADDED_BATCH = 64
WAYS = ("papers", "padded", "expanded", "shared")
MODELS = ["smollm2-values", "gemma3-values"]


class BehindPrefix:
    """Runs what follows a prefix, whose keys and values are computed once and expanded into each batch."""

    def __init__(self, trunk, prefix: list[int]):
        self.trunk, self.length = trunk, len(prefix)
        self.cache = DynamicCache(config=trunk.config)
        with torch.no_grad():
            trunk(input_ids=torch.tensor([prefix]), past_key_values=self.cache, use_cache=True)

    def __call__(self, **inputs: torch.Tensor) -> torch.Tensor:
        """The hidden states [rows, hidden size] at the last place of a batch."""
        rows, length = next(iter(inputs.values())).shape[:2]
        cache = DynamicCache(config=self.trunk.config)
        for index, layer in enumerate(self.cache.layers):
            keys, values = (kept.expand(rows, -1, -1, -1) for kept in (layer.keys, layer.values))
            cache.update(keys, values, index)
        position = self.length + torch.arange(length)[None]
        output = self.trunk(**inputs, past_key_values=cache, position_ids=position, use_cache=True)
        return output.last_hidden_state[:, -1]


def memory_beside_weights(rm: RewardModel) -> float:
    """The most memory that this process has held so far, in GB, less the model's weights."""
    unit = 1 if sys.platform == "darwin" else 1024
    weights = sum(p.numel() * p.element_size() for p in rm.network.parameters())
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit - weights) / 1e9


def prepare(rm: RewardModel, way: str, prompt: str) -> Callable[[list[int]], np.ndarray]:
    """One of the ways as a function from token ids to rewards, float32 [tokens]."""
    prefix, closing = rm.dialogue.frame_ids(prompt)
    scorer = PrefixScorer(rm, prefix)
    batch = scorer.batch_size(1 + len(closing))
    if way == "shared":
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
    classifier.score.weight = rm.readout.score.weight
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
        answers = [tokenizer.decode([i]) for i in ids[start : start + batch]]
        texts = [rm.dialogue.render(prompt, answer) for answer in answers]
        inputs = tokenizer(texts, return_tensors="pt", padding=True)
        rewards.append(classifier(**inputs).logits[:, 0])
    return torch.cat(rewards).numpy()


@torch.inference_mode()
def score_expanded(rm: RewardModel, classifier, prefix, closing, ids: list[int], batch: int) -> np.ndarray:
    """(b): the prefix's cache expanded to the batch, then the continuations."""
    behind_prefix = BehindPrefix(classifier.model, prefix)
    rewards = []
    for start in range(0, len(ids), batch):
        rows = torch.tensor([[i, *closing] for i in ids[start : start + batch]])
        rewards.append(rm.readout(behind_prefix(input_ids=rows))[:, 0])
    return torch.cat(rewards).numpy()


def measure(model: str, way: str, tokens: int) -> dict[str, float]:
    """One way in this process: tokens a second, largest difference from each conversation alone, memory."""
    rm = rmnb.load_reward_model(model, device="cpu")
    prompt = rmnb.load_panel("demo").prompt("greatest").text
    prefix, closing = rm.dialogue.frame_ids(prompt)
    score = prepare(rm, way, prompt)
    whole = way in WAYS[:2]
    tokens = tokens // 8 if whole else tokens
    ids = np.sort(np.random.default_rng(0).choice(rm.vocabulary_size, tokens, replace=False)).tolist()
    sample = ids[:: max(1, tokens // 32)]
    rewards = score(sample)  # the first batch also warms up
    start = time.perf_counter()
    score(ids)
    rate = tokens / (time.perf_counter() - start)
    memory, classifier = memory_beside_weights(rm), as_classifier(rm)
    if whole:  # decoded text, tokenised again, has other ids: it is compared with itself
        alone = score_whole(rm, classifier, prompt, sample, 1)
    else:
        alone = np.concatenate([score_expanded(rm, classifier, prefix, closing, [i], 1) for i in sample])
    return {"rate": rate, "difference": float(np.abs(rewards - alone).max()), "GB": memory}


def main(models: list[str] = MODELS, rounds: int = 3, tokens: int = 2048, way: str | None = None) -> None:
    """Measure every way of every model in some rounds, and print medians beside those of this engine.

    Of whole conversations an eighth of the tokens is scored. With --way this process measures that one, of the last
    model: ways take turns, each in a process of its own, so that a noisy machine disturbs all of them alike.
    """
    if way:
        print(json.dumps(measure(models[-1], way, tokens)))
        return
    for model in models:
        rows = []
        for turn, way in itertools.product(range(rounds), WAYS):
            command = [sys.executable, *sys.argv, "--models", model, "--way", way]
            ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            rows.append({"round": turn, "way": way} | json.loads(ended.stdout.splitlines()[-1]))
        table = pd.DataFrame(rows)
        shared = table[table["way"] == WAYS[-1]].set_index("round")["rate"]
        table["ratio"] = table["rate"] / table["round"].map(shared)
        print(f"\n{model}\n{table.groupby('way', sort=False).median().drop(columns='round').to_string()}", flush=True)


if __name__ == "__main__":
    typer.run(main)
