"""Every causal class of transformers that can be made tiny: log-probabilities are its own, shared, whole, or refused.

``pytest -s -m slow`` prints the table.
"""

import inspect

import numpy as np
import pytest
import torch
from checkpoints import randomise, tokenizer
from test_families import LATENT, SIZES
from transformers import AutoConfig, AutoModelForCausalLM

from rmnb.errors import InputError
from rmnb.scoring import logprobs
from rmnb.scoring.engine import score_continuations

pytestmark = pytest.mark.slow
WORDS = tokenizer(None)
QUESTION = "What, in one word, is the greatest thing ever?"
# Made visible where the tiny values would hide them.
SCALES = dict(lm_head_multiplier=0.3, logits_scaling=0.1, logit_scale=0.2, final_logit_softcapping=5.0)
SCALES |= dict(logits_soft_cap=5.0, output_logit_soft_cap=5.0, mamba_d_ssm=32, mamba_n_heads=4, mamba_d_head=8)


def families() -> list[str]:
    mapping = AutoModelForCausalLM._model_mapping
    return sorted({config.model_type for config in mapping})


@pytest.mark.parametrize("family", families())
def test_log_probabilities_are_those_of_the_causal_class(family, tmp_path):
    try:
        kind = type(AutoConfig.for_model(family))
        keys = inspect.signature(kind.__init__).parameters.keys()
        sizes = SIZES | (LATENT if "kv_lora_rank" in keys else {}) | SCALES
        config = kind(**{key: size for key, size in sizes.items() if key in keys})
        with torch.device("meta"):
            assert sum(parameter.numel() for parameter in AutoModelForCausalLM.from_config(config).parameters()) < 2e6
        model = AutoModelForCausalLM.from_config(config)
        randomise(model)
        ids = WORDS(QUESTION)["input_ids"]
        model.eval()(input_ids=torch.tensor([ids]), use_cache=False)
        model.save_pretrained(tmp_path)
    except Exception as error:
        pytest.skip(f"no few keys make it tiny: {type(error).__name__}")
    WORDS.save_pretrained(tmp_path)
    try:
        lm = logprobs.load_language_model(tmp_path)
    except InputError as error:
        print(f"| {family} | refused | {error} |")
        return
    with torch.no_grad():
        rows = [[*ids[:-3], *WORDS(" love and peace")["input_ids"][1:]], ids]
        expected = [model(torch.tensor([row]), use_cache=False).logits[0].double().log_softmax(-1) for row in rows]
    difference = np.abs(logprobs.next_token_logprobs(lm, QUESTION) - expected[1][-1].numpy()).max()
    prefix = ids[:-3]
    sums = [
        sum(float(scores[place - 1, row[place]]) for place in range(len(prefix), len(row)))
        for scores, row in zip(expected, rows, strict=True)
    ]
    shared = np.abs(score_continuations(lm, prefix, [row[len(prefix) :] for row in rows]) - sums).max()
    way = "shared" if lm.shares_prefix else "whole states" if lm.readout.isolated else "whole logits"
    print(f"| {family} | {way} | {difference:.1e} | {shared:.1e} | {lm.why_not_shared or ''} |")
    allowed = max(1e-4, lm.parity.tolerance or 0)  # rounding of the deepest is larger
    assert difference < allowed and shared < allowed * max(1, len(rows[0]) - len(prefix))
