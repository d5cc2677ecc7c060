"""Every family that transformers pools at the last token: a shared prefix is exact for it, or it is not shared.

Tiny networks with random weights, 648 ids, plain and with a window of 100. ``pytest -s`` prints the table.
"""

import dataclasses
import inspect

import numpy as np
import pytest
import torch
from checkpoints import randomise, tokenizer
from transformers import AutoModel, AutoModelForSequenceClassification
from transformers.modeling_layers import GenericForSequenceClassification

from rmnb.models import attention
from rmnb.models.dialogue import Dialogue
from rmnb.models.reading import Reading
from rmnb.models.readouts import LinearHead
from rmnb.panels import ModelSpec
from rmnb.scoring.engine import score_continuations
from rmnb.scoring.parity import _moved_embeddings, check_parity
from rmnb.scoring.reward_model import RewardModel

pytestmark = pytest.mark.slow
WORDS = tokenizer()
SIZES = dict(
    hidden_size=32, intermediate_size=64, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
    max_position_embeddings=4096, vocab_size=len(WORDS), head_dim=8, kv_channels=8, pad_token_id=None,
    num_experts=4, num_local_experts=4, n_routed_experts=4, num_routed_experts=4, num_experts_per_tok=2, n_group=1,
    topk_group=1, first_k_dense_replace=1, n_shared_experts=1, moe_intermediate_size=16, moe_num_experts=4, moe_k=2,
    shared_expert_intermediate_size=16, sliding_window=4096, linear_num_key_heads=2, linear_num_value_heads=2,
    linear_key_head_dim=8, linear_value_head_dim=8,
)  # fmt: skip
LATENT = dict(
    kv_lora_rank=8, q_lora_rank=8, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=8, num_key_value_heads=4,
    head_dim=None,
)  # fmt: skip
WINDOW = dict(sliding_window=100, use_sliding_window=True, max_window_layers=1)
# Whose attention is of another kind, or goes past transformers' interface: scored whole.
WHOLE = {
    "diffllama", "doge", "gpt_oss", "jamba", "minimax", "nemotron", "qwen3_5_text", "qwen3_next", "stablelm",
}  # fmt: skip
# A configuration of several networks: the text's own is in the list. Or one that no few keys make tiny.
LEFT_OUT = {"gemma3", "qwen3_5", "cohere_compass_text", "axk2"}


def families() -> dict[str, type]:
    mapping = AutoModelForSequenceClassification._model_mapping
    pooled = {config.model_type: config for config, kind in mapping.items() if _is_pooled(kind)}
    return {name: config for name, config in sorted(pooled.items()) if name not in LEFT_OUT}


def _is_pooled(kind) -> bool:
    return isinstance(kind, type) and issubclass(kind, GenericForSequenceClassification)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("family", families())
def test_shared_is_whole_or_is_not_shared(family, windowed, dtype):
    config = families()[family]
    keys = inspect.signature(config.__init__).parameters.keys()
    sizes = SIZES | (LATENT if "kv_lora_rank" in keys else {}) | (WINDOW if windowed else {})
    if windowed and "sliding_window" not in keys:
        pytest.skip("has no windows")
    network = AutoModel.from_config(config(**{key: size for key, size in sizes.items() if key in keys}))
    randomise(network)
    network.to(getattr(torch, dtype)).eval().requires_grad_(False)
    reason = attention.why_unsupported(network)
    if reason is None:
        network.set_attn_implementation(attention.NAME)
    head = LinearHead(32)
    randomise(head)
    spec = ModelSpec(name=family, source=".", dtype=dtype)
    rm = check_parity(RewardModel(spec, network, head, Dialogue(WORDS, WORDS.chat_template), reason, Reading()))
    assert rm.shares_prefix == (family not in WHOLE)
    random = np.random.default_rng(0)
    prefix = random.integers(6, len(WORDS), 640).tolist()
    rows = random.integers(6, len(WORDS), (8, 8)).tolist()
    shared = score_continuations(rm, prefix, rows)
    alone = dataclasses.replace(rm, why_not_shared="to compare with")
    whole = score_continuations(alone, prefix, rows)
    with _moved_embeddings(rm):
        rounding = np.abs(score_continuations(alone, prefix, rows) - whole).max() / whole.std()
    difference = np.abs(shared - whole).max() / whole.std()
    kind = "window" if windowed else "plain"
    print(f"{family}, {kind}, {dtype}: {difference:.1e} of the spread, {rounding:.1e} rounding")
    assert difference < (1e-4 if dtype == "float32" else 3 * rounding)
