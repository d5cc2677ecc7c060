"""Memory that runs out, and work that is out of all proportion: the same rewards, and a bounded peak."""

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
    errors = [torch.OutOfMemoryError("no memory"), MemoryError(), RuntimeError("can't allocate memory: 1 byte")]
    with attack("memory runs out at the first, second, fifth or thirteenth batch") as tries:
        for at in (1, 2, 5, 13):
            for room, error in zip((1, 3, 7), errors, strict=True):
                calls: list[int] = []

                def rewards(self, batch, at=at, room=room, error=error, calls=calls):
                    calls.append(len(batch))
                    if len(calls) >= at and len(batch) > room:
                        raise error
                    return computed(self, batch)

                with tries.attempt((at, room)), monkeypatch.context() as context:
                    context.setattr(PrefixScorer, "_rewards", rewards)
                    found = PrefixScorer(rm, prefix)(continuations, 8)
                    np.testing.assert_allclose(found, whole, atol=1e-4)
                    assert max(calls[at + 3 :]) <= room
                    tries.came_to("gone on in smaller batches, rewards the same within 1e-4")
        with tries.attempt("no room"), monkeypatch.context() as context:
            context.setattr(PrefixScorer, "_rewards", lambda self, batch: (_ for _ in ()).throw(MemoryError()))
            with pytest.raises(InputError, match="not enough memory for a single sequence"):
                PrefixScorer(rm, prefix)(continuations, 8)
            tries.came_to("not even one sequence fits: said in one line")


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
                    PrefixScorer(rm, ids)._plain_rewards([continuation]).item()
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
    with attack(what) as tries, tries.attempt(what):
        result = tmp_path / "result.json"
        code, _ = work.run(work.peak_memory, result, task, directory, *times(few, many))
        assert code == 0, result.with_suffix(".log").read_text()[-600:]
        found = json.loads(result.read_text())
        assert found["bytes"] < bound * MB, f"{found['bytes'] / MB:.0f} MB"
        tries.note = f"{found['told']}; peak memory raised by {found['bytes'] / MB:.0f} MB, bound {bound} MB"
