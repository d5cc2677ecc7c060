"""The gradient that a search follows must be that of what it seeks."""

import dataclasses

import numpy as np
import pytest
from checkpoints import TEMPLATE, pair_tokenizer, write_decoder, write_encoder

import rmnb
from rmnb.panels import ModelSpec
from rmnb.search.config import SearchConfig
from rmnb.search.rewards import ModelPromptReward, RewardObjective
from rmnb.search.state import SearchState

PROMPT = "What is the greatest thing?"
IDS = (70, 90, 45)
DECODERS, ENCODERS = ("llama", "gemma2", "gemma3"), ("with a template", "of pairs")


@pytest.mark.parametrize("kind", DECODERS + ENCODERS)
def test_the_gradient_is_how_fast_the_reward_rises(kind, tmp_path):
    """Of an encoder: that of its label, and of the segments that are scored."""
    if kind in DECODERS:
        rm = rmnb.load_reward_model(write_decoder(tmp_path, kind))
    else:
        rm = labelled_encoder(tmp_path, TEMPLATE if kind == "with a template" else None)
    term = ModelPromptReward(rm, PROMPT, 1.0)
    assert sum((*term.prefix, *IDS, *term.closing).count(token) for token in IDS) == len(IDS)
    at_once, weight = term.gradient(IDS), rm.network.get_input_embeddings().weight.data
    assert at_once.shape == (3, rm.vocabulary_size)
    for position, token in enumerate(IDS):
        for other in (7, 33, 200):
            direction, row = weight[other].clone(), weight[token].clone()
            values = []
            for amount in (0.005, -0.005):
                weight[token] = row + amount * direction
                values.append(ModelPromptReward(rm, PROMPT, 1.0).rewards([IDS], None)[0])
            weight[token] = row
            assert at_once[position, other] == pytest.approx((values[0] - values[1]) / 0.01, rel=0.02, abs=2e-3)


def test_models_that_cannot_share_a_prefix_have_the_same_gradient(tmp_path):
    rm = rmnb.load_reward_model(write_decoder(tmp_path / "decoder"))
    shared = ModelPromptReward(rm, PROMPT, 1.0).gradient(IDS)
    plain = dataclasses.replace(rm, plain_because="on purpose")
    np.testing.assert_allclose(ModelPromptReward(plain, PROMPT, 1.0).gradient(IDS), shared, atol=1e-4)


def labelled_encoder(directory, template):
    """An encoder of three labels, of which the third is the reward, whose tokenizer knows segments."""
    write_encoder(directory, labels=3)
    rm = rmnb.load_reward_model(ModelSpec(name="labelled", source=str(directory), label=2, template=template))
    rm.tokenizer.model_input_names = pair_tokenizer().model_input_names  # which transformers does not save
    return rm


def test_what_is_differentiated_is_what_is_sought(tmp_path):
    """Minimising, and a model that is subtracted, have in the gradient the sign that they have in the objective."""
    directories = [write_decoder(tmp_path / str(seed), seed=seed) for seed in (0, 1)]
    models, prompts = [rmnb.load_reward_model(directory) for directory in directories], [PROMPT, "What is bad?"]
    objective = RewardObjective(models, prompts, weights=[1, -1])
    measured = objective.measure([IDS])
    first, second = (RewardObjective([rm], prompts).gradient(IDS) for rm in models)
    for direction, sign in (("max", 1), ("min", -1)):
        state = SearchState(objective, SearchConfig(length=3, direction=direction))
        np.testing.assert_allclose(state.gradient(IDS), sign * (first - second), atol=1e-6)
        state.score([IDS])
        assert state.value(IDS) == pytest.approx(sign * measured[0])
    text = models[0].tokenizer.decode(list(IDS))
    (one, other), (one_bad, other_bad) = ([rm.score(prompt, [text])[0] for rm in models] for prompt in prompts)
    assert measured[0] == pytest.approx((one - other) / 2 + (one_bad - other_bad) / 2, abs=1e-4)
