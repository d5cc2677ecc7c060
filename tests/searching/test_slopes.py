"""The gradient that a search follows must be that of what it seeks."""

import dataclasses

import numpy as np
import pytest
from checkpoints import TEMPLATE, pair_tokenizer, write_base, write_decoder, write_encoder
from head_checkpoints import write_head

import rmnb
from rmnb.searching.rewards import ModelPromptReward, RewardObjective

PROMPT = "What is the greatest thing?"
IDS = (70, 90, 45)
JUDGE = {"template": "{{ messages[0]['content'] }} {{ messages[-1]['content'] }}\n?", "answers": {"a": 1, "b": -1}}
DECODERS, ENCODERS = ("llama", "gemma2", "gemma3"), ("with a template", "of pairs")


@pytest.mark.parametrize("kind", [*DECODERS, "whole sequences", "judge", *ENCODERS])
def test_slopes_are_how_fast_the_reward_rises(kind, tmp_path):
    """Of an encoder: that of its label, and of the segments that are scored."""
    if kind in ENCODERS:
        write_encoder(tmp_path, labels=3)
        rm = rmnb.load_reward_model(tmp_path, label=2, template=TEMPLATE if kind == "with a template" else None)
        rm.tokenizer.model_input_names = pair_tokenizer().model_input_names  # which transformers does not save
    elif kind == "judge":
        base = write_base(tmp_path, shape={"tie_word_embeddings": False})
        rm = rmnb.load_reward_model(base, judge=JUDGE)
    else:
        rm = rmnb.load_reward_model(write_decoder(tmp_path, kind if kind in DECODERS else "llama"))
    if kind == "whole sequences":
        rm = dataclasses.replace(rm, why_not_shared="on purpose")
    term = ModelPromptReward(rm, PROMPT)
    assert sum((*term.prefix, *IDS, *term.closing).count(token) for token in IDS) == len(IDS)
    assert_rises(rm, term)


@pytest.mark.parametrize("why_not_shared", [None, "on purpose"])
def test_a_gate_that_reads_the_prompt_has_slopes(why_not_shared, tmp_path):
    rm = rmnb.load_reward_model(write_head(tmp_path / "armorm", "armorm"))
    rm = dataclasses.replace(rm, why_not_shared=why_not_shared)
    term = ModelPromptReward(rm, PROMPT)
    # A change of their vectors changes no prompt.
    others = set(range(rm.vocabulary_size)) - {*term.prefix, *term.closing}
    assert_rises(rm, term, sorted(others)[-3:])


def assert_rises(rm, term, ids=IDS):
    slopes, weight = term.slopes(ids), rm.network.get_input_embeddings().weight.data
    assert slopes.shape == (3, rm.vocabulary_size)
    for position, token in enumerate(ids):
        for other in (7, 33, 200):
            direction, row = weight[other].clone(), weight[token].clone()
            values = []
            for amount in (0.005, -0.005):
                weight[token] = row + amount * direction
                values.append(ModelPromptReward(rm, PROMPT).rewards([ids], None)[0])
            weight[token] = row
            assert slopes[position, other] == pytest.approx((values[0] - values[1]) / 0.01, rel=0.02, abs=2e-3)


def test_slopes_are_averaged_as_rewards_are_over_models_and_questions(tmp_path):
    directories = [write_decoder(tmp_path / str(seed), seed=seed) for seed in (0, 1)]
    models, prompts = [rmnb.load_reward_model(directory) for directory in directories], [PROMPT, "What is bad?"]
    objective = RewardObjective(models, prompts)
    first, second = (RewardObjective([rm], prompts).slopes(IDS) for rm in models)
    np.testing.assert_allclose(objective.slopes(IDS), (first + second) / 2, atol=1e-6)
    text = models[0].tokenizer.decode(list(IDS))
    rewards = [rm.score(prompt, [text])[0] for rm in models for prompt in prompts]
    assert objective.measure([IDS])[0] == pytest.approx(np.mean(rewards), abs=1e-4)
