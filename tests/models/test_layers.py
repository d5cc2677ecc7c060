"""Compiled layers give the same rewards from one code for all sizes; where nothing can be compiled, scans go on."""

import shutil

import numpy as np
import pytest
import torch
from checkpoints import write_decoder
from torch._inductor import cpp_builder
from torch._inductor.utils import fresh_cache

import rmnb
from rmnb.errors import InputError
from rmnb.models import devices
from rmnb.scoring.engine import PrefixScorer

PROMPT = "What, in one word, is the greatest thing ever?"
counters = torch._dynamo.utils.counters


def traced(monkeypatch) -> None:
    """Layers are traced as for compilation, but run without a C++ compiler: that takes no time."""
    monkeypatch.setitem(devices.COMPILED, "default", {"backend": "eager"})
    torch._dynamo.reset()
    counters.clear()


@pytest.mark.slow
@pytest.mark.parametrize(("architecture", "dtype"), [("llama", "bfloat16-mixed"), ("gemma2", "float32")])
def test_one_code_serves_all_layers_of_a_kind_any_number_of_rows_and_any_prefix(
    architecture, dtype, tmp_path, monkeypatch
):
    traced(monkeypatch)
    directory = write_decoder(tmp_path, architecture)
    rm, forced = (rmnb.load_reward_model(directory, dtype=dtype, compile=way) for way in ("none", "default"))
    prefix, closing = rm.dialogue.frame(PROMPT)
    continuations = [[i, *closing] for i in range(140)]
    for part, size in ((prefix, 140), (prefix, 70), (prefix[:-3], 70)):
        expected = PrefixScorer(rm, part)(continuations, size)
        found = PrefixScorer(forced, part)(continuations, size)
        np.testing.assert_allclose(found, expected, atol=1e-5 if dtype == "float32" else 0.02 * np.ptp(expected))
    kinds = len(set(getattr(rm.network.config, "layer_types", None) or ["all alike"]))
    assert counters["stats"]["unique_graphs"] == kinds and not counters["graph_break"]


def test_the_last_layer_computes_only_what_is_read(rm):
    prefix, closing = rm.dialogue.frame(PROMPT)
    last, seen = rm.network.layers[-1], []
    hooks = [each.register_forward_hook(lambda *parts: seen.append(parts[2].shape[1])) for each in _last(last)]
    PrefixScorer(rm, prefix)([[7, 8, *closing]] * 4)
    for hook in hooks:
        hook.remove()
    assert seen[-len(hooks) :] == [1] * len(hooks)


def _last(layer):
    return layer.self_attn.o_proj, layer.mlp


def test_without_a_compiler_one_line_says_so(directory, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert shutil.which("g++") is None
    cpp_builder.cpp_compiler_search.cache_clear()
    torch._dynamo.reset()
    try:
        with fresh_cache():
            forced = rmnb.load_reward_model(directory, device="cpu", compile="default")
            with pytest.raises(InputError, match="nothing can be compiled here"):
                rmnb.scan_vocabulary(forced, PROMPT, limit=50)
    finally:
        cpp_builder.cpp_compiler_search.cache_clear()
        torch._dynamo.reset()
