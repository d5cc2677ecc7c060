"""Mixed precision stays near fp32 and says that it was used."""

import numpy as np
import pytest
import torch
from checkpoints import write_decoder, write_encoder

import rmnb
from rmnb.models.precision import CentredLinear
from rmnb.panels import PromptSpec

PROMPT = PromptSpec(key="greatest", text="What, in one word, is the greatest thing ever?", framing="positive")


@pytest.mark.parametrize("architecture", ["llama", "gemma3", "phi3"])
def test_mixed_rewards_are_nearer_to_fp32_than_bfloat16_ones(architecture, tmp_path):
    """Of six random models each, at worst: 0.26 of bfloat16's mean error, which is 0.013 of the rewards' spread."""
    shares, errors, largest = [], [], []
    for seed in range(3):
        directory = write_decoder(tmp_path / str(seed), architecture, seed=seed)
        score = {}
        for dtype in ("float32", "bfloat16", "bfloat16-mixed"):
            rm = rmnb.load_reward_model(directory, dtype=dtype)
            score[dtype] = rmnb.scan_vocabulary(rm, PROMPT, batch_size=100)["score"].to_numpy()
        spread = score["float32"].std()
        mixed, plain = (np.abs(score[dtype] - score["float32"]) / spread for dtype in ("bfloat16-mixed", "bfloat16"))
        shares.append(mixed.mean() / plain.mean())
        errors.append(mixed.mean())
        largest.append(mixed.max())
    assert min(shares) > 0 and max(shares) < 0.35
    assert max(errors) < 0.02
    assert np.median(largest) < 0.15  # of single models up to 0.18: one token in the far tail


def test_only_the_linear_layers_of_the_trunk_are_mixed_and_the_scan_says_so(directory, tmp_path):
    rm = rmnb.load_reward_model(directory, dtype="bfloat16-mixed")
    layer = rm.network.layers[0]
    assert isinstance(layer.mlp.down_proj, CentredLinear) and isinstance(layer.self_attn.q_proj, CentredLinear)
    assert rm.network.embed_tokens.weight.dtype == layer.input_layernorm.weight.dtype == torch.float32
    assert rmnb.scan_vocabulary(rm, PROMPT, limit=20).attrs["provenance"]["dtype"] == "bfloat16-mixed"
    encoder = rmnb.load_reward_model(write_encoder(tmp_path), dtype="bfloat16-mixed")
    assert type(encoder.network.classifier) is torch.nn.Linear
    assert isinstance(encoder.network.bert.encoder.layer[0].intermediate.dense, CentredLinear)
    assert np.isfinite(encoder.score(PROMPT.text, ["love", "war", "water"])).all()
