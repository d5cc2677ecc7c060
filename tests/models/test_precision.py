"""Mixed precision stays near fp32 and says that it was used."""

import numpy as np
import pytest
import torch
from checkpoints import write_decoder, write_encoder

import rmnb
from rmnb.models.precision import CentredLinear
from rmnb.panels import PromptSpec

PROMPT = PromptSpec(key="greatest", text="What, in one word, is the greatest thing ever?", framing="positive")


def test_what_rows_share_is_not_rounded():
    torch.manual_seed(0)
    linear = torch.nn.Linear(64, 48)
    shared = torch.randn(1, 2, 64)
    shared[..., :2] *= 100
    rows = shared + 0.1 * torch.randn(200, 2, 64)  # what all rows share, some of it huge, and a little of their own
    with torch.no_grad():
        exact = linear(rows)
        plain = torch.nn.functional.linear(rows.bfloat16(), linear.weight.bfloat16(), linear.bias.bfloat16()).float()
        centred = CentredLinear(linear)(rows)
    assert centred.dtype == torch.float32
    assert torch.equal(CentredLinear(linear)(rows[:1]), linear(rows[:1]))
    assert (centred - exact).abs().max() < 0.02 * (plain - exact).abs().max()


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


def test_mixed_precision_leaves_embeddings_and_norms_alone_and_is_recorded(directory):
    rm = rmnb.load_reward_model(directory, dtype="bfloat16-mixed")
    layer = rm.network.layers[0]
    assert isinstance(layer.mlp.down_proj, CentredLinear) and isinstance(layer.self_attn.q_proj, CentredLinear)
    assert rm.network.embed_tokens.weight.dtype == layer.input_layernorm.weight.dtype == torch.float32
    scan = rmnb.scan_vocabulary(rm, PROMPT, limit=20)
    assert scan.attrs["provenance"]["dtype"] == "bfloat16-mixed"


def test_an_encoders_classifier_stays_in_fp32(tmp_path):
    rm = rmnb.load_reward_model(write_encoder(tmp_path), dtype="bfloat16-mixed")
    assert type(rm.network.classifier) is torch.nn.Linear
    assert isinstance(rm.network.bert.encoder.layer[0].intermediate.dense, CentredLinear)
    assert np.isfinite(rm.score(PROMPT.text, ["love", "war", "water"])).all()
