"""What only a GPU can show: `pytest -m gpu`. The CPU's rewards are the reference."""

import dataclasses

import numpy as np
import pytest
import torch
from checkpoints import DECODERS, write_decoder

import rmnb
from rmnb.scoring.engine import PrefixScorer

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]
PROMPT = "What, in one word, is the greatest thing ever?"


def scores(model, **options) -> np.ndarray:
    return rmnb.scan_vocabulary(rmnb.load_reward_model(model, **options), PROMPT)["score"].to_numpy()


@pytest.mark.parametrize("architecture", DECODERS)
def test_a_gpu_gives_the_rewards_of_a_cpu_with_a_shared_prefix_and_without(architecture, tmp_path):
    write_decoder(tmp_path, architecture)
    expected = scores(tmp_path, device="cpu")
    on_gpu = rmnb.load_reward_model(tmp_path)
    assert on_gpu.device.type == "cuda"  # where there is a GPU it is used
    plain = dataclasses.replace(on_gpu, why_not_shared="asked for by a test")
    for rm in (on_gpu, plain):
        scan = rmnb.scan_vocabulary(rm, PROMPT)
        np.testing.assert_allclose(scan["score"], expected, atol=1e-4 * np.ptp(expected))


def test_the_host_waits_for_the_gpu_once_a_shard(directory, rm):
    on_gpu = rmnb.load_reward_model(directory)
    prefix, closing = on_gpu.dialogue.frame_ids(PROMPT)
    scorer = PrefixScorer(on_gpu, prefix)
    batch = [[i, *closing] for i in range(64)]
    scorer(batch)
    torch.cuda.set_sync_debug_mode("error")
    try:
        with torch.inference_mode():
            rewards = scorer.rewards(batch, [0] * len(batch), (), [0] * len(batch))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    np.testing.assert_allclose(rewards.cpu(), PrefixScorer(rm, prefix)(batch), atol=1e-3)


@pytest.mark.parametrize("compile", ["default", "reduce-overhead"])
def test_compiled_code_gives_the_same_rewards_batch_after_batch(directory, compile):
    rm = rmnb.load_reward_model(directory, dtype="float16")
    compiled = rmnb.load_reward_model(directory, dtype="float16", compile=compile)
    prefix, closing = rm.dialogue.frame_ids(PROMPT)
    continuations = [[i, *closing] for i in range(100)]
    expected = PrefixScorer(rm, prefix)(continuations, 32)
    scorer = PrefixScorer(compiled, prefix)
    for _ in range(2):
        np.testing.assert_allclose(scorer(continuations, 32), expected, atol=0.01 * np.ptp(expected))


@pytest.mark.parametrize(("bits", "least"), [("load_in_8bit", 0.95), ("load_in_4bit", 0.5)])
def test_quantised_weights_rank_tokens_nearly_alike(directory, bits, least):
    pytest.importorskip("bitsandbytes")
    quantised = scores(directory, dtype="float16", quantization_config={bits: True})
    assert np.corrcoef(quantised, scores(directory, device="cpu"))[0, 1] > least


def test_a_batch_that_does_not_fit_is_halved_and_nothing_else_changes(directory, rm, caplog):
    on_gpu = rmnb.load_reward_model(directory)
    prefix, closing = on_gpu.dialogue.frame_ids(PROMPT)
    continuations = [[i % 300, *closing] for i in range(200_000)]
    scorer = PrefixScorer(on_gpu, prefix)
    expected = scorer(continuations[:300])
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 200e6) / total)
    try:
        found = scorer(continuations, len(continuations))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert "memory ran out" in caplog.text
    np.testing.assert_allclose(found, np.resize(expected, len(found)), atol=1e-4)
