"""Memory that runs out, and work that is out of all proportion: the same rewards, and a bounded peak."""

import itertools
import json

import numpy as np
import pytest
import torch
import work
from checkpoints import write_decoder

import rmnb
from rmnb.errors import InputError
from rmnb.files import cache_dir
from rmnb.scoring.engine import PrefixScorer

PROMPT = "What, in one word, is the greatest thing ever?"


def test_memory_that_runs_out(rm, attack, monkeypatch):
    prefix, closing = rm.dialogue.frame_ids(PROMPT)
    rng = np.random.default_rng(0)
    continuations = [[*rng.integers(6, 300, rng.integers(1, 9)).tolist(), *closing] for _ in range(120)]
    whole = PrefixScorer(rm, prefix)(continuations, 8)
    computed = PrefixScorer.rewards
    allocator = RuntimeError("DefaultCPUAllocator: can't allocate memory")
    gpu = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB")
    errors = {1: gpu, 3: MemoryError(), 7: allocator, 0: MemoryError()}

    def run_out(given: tuple[int, int]) -> str:
        at, room = given
        calls: list[int] = []

        def rewards(self, batch, *shared):
            calls.append(len(batch))
            if len(calls) >= at and len(batch) > room:
                raise errors[room]
            return computed(self, batch, *shared)

        monkeypatch.setattr(PrefixScorer, "rewards", rewards)
        if room == 0:
            with pytest.raises(InputError, match="not enough memory for a single sequence"):
                PrefixScorer(rm, prefix)(continuations, 8)
            return "not even one sequence fits: said in one line"
        np.testing.assert_allclose(PrefixScorer(rm, prefix)(continuations, 8), whole, atol=1e-4)
        assert max(calls[at + 3 :]) <= room
        return "gone on in smaller batches, rewards the same within 1e-4"

    tries = itertools.product((1, 2, 5, 13), errors)
    attack("memory runs out at the first, second, fifth or thirteenth batch", tries, run_out)


def a_long_response_among_single_tokens(rm, many, length):
    prefix, closing = rm.dialogue.frame_ids(PROMPT)
    rng = np.random.default_rng(0)
    singles = [[int(i), *closing] for i in rng.integers(6, 300, many)]
    long = [*rng.integers(6, 300, length).tolist(), *closing]
    rewards = PrefixScorer(rm, prefix)([*singles[: many // 2], long, *singles[many // 2 :]])
    yield
    np.testing.assert_allclose(np.delete(rewards, many // 2), PrefixScorer(rm, prefix)(singles), atol=1e-4)
    yield f"{many:,} single tokens unchanged within 1e-4 by a response of {length:,} among them"


def a_long_prompt(rm, many, length):
    ids = np.random.default_rng(0).integers(6, 300, length).tolist()
    continuations = [[i, 5] for i in range(6, 6 + many)]
    shared = PrefixScorer(rm, ids)(continuations)
    yield
    with torch.inference_mode():
        for place in (0, -1):
            batch = [ids + continuations[place]]
            whole = PrefixScorer(rm, ids).whole_rewards(batch, [length])
            np.testing.assert_allclose(shared[place], whole.item(), atol=1e-3)
    yield "rewards those of the plain pass within 1e-3"


def many_responses(rm, many):
    texts = [f"love {i}" for i in range(many)]
    rewards = rm.score(PROMPT, texts)
    yield
    np.testing.assert_allclose(rewards[[0, -1]], rm.score(PROMPT, [texts[0], texts[-1]]), atol=1e-4)
    yield f"{many:,} rewards, each where it belongs"


def a_large_vocabulary(rm, many):
    scan = rmnb.scan_vocabulary(rm, PROMPT, limit=many, output=cache_dir() / "scan.parquet")
    yield
    assert scan["token_id"].tolist() == list(range(many)) and np.isfinite(scan["score"]).all()
    yield f"{many:,} ids scanned"


WORK = {
    "a response of 5,000 tokens among single tokens": (a_long_response_among_single_tokens, 2500, 3000, 5000),
    "a prompt of 4,000 tokens": (a_long_prompt, 500, 290, 4000),
    "100,000 responses": (many_responses, 1000, 100_000),
    "a vocabulary of 262,144": (a_large_vocabulary, 1000, 262_144),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", WORK)
def test_work_out_of_proportion(what, attack, tmp_path):
    """By a model of one layer that reads 8,192 positions."""
    task, bound, *scale = WORK[what]
    rows = 262_144 if task is a_large_vocabulary else 320
    shape = {"num_hidden_layers": 1, "max_position_embeddings": 8192}
    model = write_decoder(tmp_path / "model", rows=rows, shape=shape)

    def measure(task) -> str:
        result = tmp_path / "result"
        code, _ = work.run(work.peak_memory, result, task, model, *scale)
        assert code == 0, work.log(result).read_text()[-600:]
        measured = json.loads(result.read_text())
        megabytes = measured["bytes"] / (1 << 20)
        assert megabytes < bound
        return f"{measured['outcome']}; peak memory raised by {megabytes:.0f} MB, bound {bound} MB"

    attack(what, [task], measure)
