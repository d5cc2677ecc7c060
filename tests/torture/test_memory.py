"""Memory that runs out, and work that is out of all proportion: the same rewards, and a bounded peak."""

import itertools
import json

import numpy as np
import pytest
import torch
import transformers
import work
from checkpoints import SHAPE, randomise, tokenizer, write_decoder

import rmnb
from rmnb.errors import InputError
from rmnb.scoring.engine import PrefixScorer

PROMPT = "What, in one word, is the greatest thing ever?"
MB = 1 << 20


@pytest.fixture(scope="module")
def rm(tmp_path_factory):
    return rmnb.load_reward_model(write_decoder(tmp_path_factory.mktemp("model")))


def test_memory_that_runs_out(rm, attack, monkeypatch):
    prefix, closing = rm.dialogue.frame(PROMPT)
    rng = np.random.default_rng(0)
    continuations = [[*rng.integers(6, 300, rng.integers(1, 9)).tolist(), *closing] for _ in range(120)]
    whole = PrefixScorer(rm, prefix)(continuations, 8)
    computed = PrefixScorer._rewards
    allocator = RuntimeError("DefaultCPUAllocator: can't allocate memory")
    errors = [torch.OutOfMemoryError("no memory"), MemoryError(), allocator, MemoryError()]

    def run_out(given: tuple[int, tuple[int, Exception]]) -> str:
        at, (room, error) = given
        calls: list[int] = []

        def rewards(self, batch):
            calls.append(len(batch))
            if len(calls) >= at and len(batch) > room:
                raise error
            return computed(self, batch)

        monkeypatch.setattr(PrefixScorer, "_rewards", rewards)
        if room == 0:
            with pytest.raises(InputError, match="not enough memory for a single sequence"):
                PrefixScorer(rm, prefix)(continuations, 8)
            return "not even one sequence fits: said in one line"
        np.testing.assert_allclose(PrefixScorer(rm, prefix)(continuations, 8), whole, atol=1e-4)
        assert max(calls[at + 3 :]) <= room
        return "gone on in smaller batches, rewards the same within 1e-4"

    tries = itertools.product((1, 2, 5, 13), zip((1, 3, 7, 0), errors, strict=True))
    attack("memory runs out at the first, second, fifth or thirteenth batch", tries, run_out)


def write_long(directory, rows: int | None = None):
    """A model of one layer that reads 8,192 positions."""
    words = tokenizer()
    shape = SHAPE | {"num_hidden_layers": 1, "max_position_embeddings": 8192}
    model = transformers.AutoModelForSequenceClassification.from_config(
        transformers.LlamaConfig(**shape, vocab_size=rows or len(words))
    )
    randomise(model)
    model.save_pretrained(directory)
    words.save_pretrained(directory)
    return directory


def a_long_response_among_single_tokens(directory, many, length=5000):
    rm = rmnb.load_reward_model(directory)
    rm.score(PROMPT, ["love"])

    def work():
        rng = np.random.default_rng(0)
        prefix, closing = rm.dialogue.frame(PROMPT)
        singles = [[int(i), *closing] for i in rng.integers(6, 300, many)]
        long = [*rng.integers(6, 300, length).tolist(), *closing]
        rewards = PrefixScorer(rm, prefix)([*singles[: many // 2], long, *singles[many // 2 :]])
        alone = PrefixScorer(rm, prefix)(singles)
        np.testing.assert_allclose(np.delete(rewards, many // 2), alone, atol=1e-4)
        return f"{many:,} single tokens unchanged within 1e-4 by a response of {length:,} among them"

    return work


def a_long_prompt(directory, many, length=4000):
    rm = rmnb.load_reward_model(directory)
    rm.score(PROMPT, ["love"])

    def work():
        ids = np.random.default_rng(0).integers(6, 300, length).tolist()
        continuations = [[i, 5] for i in range(6, 6 + many)]
        shared = PrefixScorer(rm, ids)(continuations)

        def check():
            with torch.inference_mode():
                plain = [
                    PrefixScorer(rm, ids)._whole_rewards([continuation]).item()
                    for continuation in (continuations[0], continuations[-1])
                ]
            np.testing.assert_allclose(shared[[0, -1]], plain, atol=1e-3)
            return "rewards those of the plain pass within 1e-3"

        return check

    return work


def many_responses(directory, many):
    rm = rmnb.load_reward_model(directory)
    rm.score(PROMPT, ["love"])

    def work():
        texts = [f"love {i}" for i in range(many)]
        rewards = rm.score(PROMPT, texts)
        np.testing.assert_allclose(rewards[[0, many - 1]], rm.score(PROMPT, [texts[0], texts[-1]]), atol=1e-4)
        return f"{many:,} rewards, each where it belongs"

    return work


def a_large_vocabulary(directory, many):
    rm = rmnb.load_reward_model(directory)
    rm.score(PROMPT, ["love"])

    def work():
        scan = rmnb.scan_vocabulary(rm, PROMPT, limit=many, output=directory / "scan.parquet")
        assert scan["token_id"].tolist() == list(range(many)) and np.isfinite(scan["score"]).all()
        return f"{many:,} ids scanned"

    return work


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "task", "few", "many", "bound"),
    [
        (
            "a response of 5,000 tokens among single tokens",
            a_long_response_among_single_tokens,
            (300, 1500),
            (3000, 5000),
            2500,
        ),
        ("a prompt of 4,000 tokens", a_long_prompt, (20, 1000), (290, 4000), 500),
        ("100,000 responses", many_responses, (1000,), (100_000,), 1000),
        ("a vocabulary of 262,144", a_large_vocabulary, (2000,), (262_144,), 1000),
    ],
)
def test_work_out_of_proportion(what, task, few, many, bound, attack, times, tmp_path):
    directory = write_long(tmp_path, rows=262_144 if task is a_large_vocabulary else None)

    def measure(scale: tuple[int, ...]) -> str:
        result = tmp_path / "result.json"
        code, _ = work.run(work.peak_memory, result, task, directory, *scale)
        assert code == 0, result.with_suffix(".log").read_text()[-600:]
        found = json.loads(result.read_text())
        assert found["bytes"] < bound * MB, f"{found['bytes'] / MB:.0f} MB"
        return f"{found['told']}; peak memory raised by {found['bytes'] / MB:.0f} MB, bound {bound} MB"

    attack(what, [times(few, many)], measure)
