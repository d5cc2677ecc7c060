"""Where a model lies never changes what it says; what a machine cannot do is said in one line."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from checkpoints import write_decoder
from transformers import PreTrainedModel

import rmnb
from rmnb.errors import InputError
from rmnb.models import devices
from rmnb.scoring.engine import PrefixScorer

PROMPT = "What, in one word, is the greatest thing ever?"
WORDS = ["love", "war", "peace and water", "a"]


SPREAD = {"embed_tokens": "cpu", "rotary_emb": "cpu", "norm": "cpu"}
MAPS = {
    "auto": "auto",
    # Half of the layers fetched from disk when they are due: every layer's inputs pass through accelerate's hooks.
    "offloaded": SPREAD | {f"layers.{i}": "cpu" if i < 2 else "disk" for i in range(4)},
}


@pytest.mark.parametrize("device_map", MAPS.values(), ids=MAPS)
def test_a_model_spread_over_devices_gives_the_same_rewards(directory, rm, device_map):
    spread = rmnb.load_reward_model(directory, device_map=device_map)
    if device_map == MAPS["offloaded"]:
        assert any(parameter.device.type == "meta" for parameter in spread.network.parameters())
    np.testing.assert_array_equal(spread.score(PROMPT, WORDS), rm.score(PROMPT, WORDS))
    scan = rmnb.scan_vocabulary(spread, PROMPT, limit=50)
    assert scan.attrs["provenance"]["device_map"] == device_map
    np.testing.assert_array_equal(scan["score"], rmnb.scan_vocabulary(rm, PROMPT, limit=50)["score"])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_holds_the_trunk_and_not_the_head(directory, rm, dtype):
    half = rmnb.load_reward_model(directory, dtype=dtype)
    assert {str(parameter.dtype) for parameter in half.network.parameters()} == {f"torch.{dtype}"}
    rewards = half.score(PROMPT, WORDS)
    exact = rm.score(PROMPT, WORDS)
    assert rewards.dtype == np.float32 and not np.array_equal(rewards, exact)
    # The head's products are not rounded to half precision: such rewards would all be numbers of that format.
    assert not np.array_equal(rewards, torch.tensor(rewards).to(devices.DTYPES[dtype]).float().numpy())
    np.testing.assert_allclose(rewards, exact, atol=0.2 * np.ptp(exact))


def test_compiled_code_gives_the_same_rewards_and_is_not_compiled_for_every_batch(rm):
    torch._dynamo.reset()
    counters = torch._dynamo.utils.counters
    counters.clear()
    prefix, closing = rm.dialogue.frame_ids(PROMPT)
    continuations = [[i, *closing] for i in range(64)]
    expected = PrefixScorer(rm, prefix)(continuations, batch_size=16)
    compiled = dataclasses.replace(rm, network=copy.deepcopy(rm.network), options={"compile": "default"})
    compiled.network.compile(backend="eager")
    scorer = PrefixScorer(compiled, prefix)
    first = scorer(continuations, batch_size=16)
    graphs = counters["stats"]["unique_graphs"]
    again = scorer(continuations, batch_size=16)
    assert graphs > 0 and counters["stats"]["unique_graphs"] == graphs and not counters["graph_break"]
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(first, expected, atol=1e-5)


def test_a_model_too_large_for_its_device_is_told_what_may_help(directory, monkeypatch):
    def full(self, *args, **kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(PreTrainedModel, "to", full)
    with pytest.raises(InputError, match="on cpu: CUDA out of memory: try device_map=auto"):
        rmnb.load_reward_model(directory, device="cpu")


@pytest.mark.parametrize(
    ("architecture", "on_cpu", "on_gpu"), [("llama", "eager", "sdpa"), ("gemma2", "eager", "flex_attention")]
)
def test_attention_scores_are_capped_wherever_the_model_caps_them(architecture, on_cpu, on_gpu, tmp_path, monkeypatch):
    network = rmnb.load_reward_model(write_decoder(tmp_path, architecture)).network
    assert devices.plain_attention(network) == on_cpu
    monkeypatch.setattr(devices, "input_device", lambda network: torch.device("cuda"))
    assert devices.plain_attention(network) == on_gpu
