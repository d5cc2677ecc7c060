"""The gradient that a search follows must be that of what it seeks."""

import dataclasses

import numpy as np
import pytest
import torch
from checkpoints import write_decoder, write_encoder

import rmnb
from rmnb.models.attention import SharedPrefix
from rmnb.scoring.engine import PrefixScorer
from rmnb.search.config import SearchConfig
from rmnb.search.gradient import RewardGradient
from rmnb.search.journal import Journal
from rmnb.search.problem import Problem
from rmnb.search.rewards import RewardObjective

PROMPT = "What is the greatest thing?"
IDS = (70, 90, 45)
STEP = 1e-5


class Head64:
    """The linear head in fp64."""

    name = "linear in fp64"

    def __init__(self, weight):
        self.weight = weight.double()

    def __call__(self, hidden):
        return hidden @ self.weight


def in_fp64(network: torch.nn.Module) -> None:
    """Everything in fp64; transformers' RMS norms would go through fp32."""
    network.double()
    for norm in network.modules():
        if "RMSNorm" in type(norm).__name__:
            weight = norm.weight + (1 if "Gemma" in type(norm).__name__ else 0)
            epsilon = getattr(norm, "variance_epsilon", None) or norm.eps
            norm.forward = lambda x, w=weight, e=epsilon: torch.nn.functional.rms_norm(x, (x.shape[-1],), w, e)


def blended(rm, prefix, closing, position: int, token: int, amount: float) -> torch.Tensor:
    """Embeddings of the whole conversation, some of one token's one-hot added at one position of the response."""
    embedding = rm.network.get_input_embeddings()
    vectors = embedding(torch.tensor([[*prefix, *IDS, *closing]])).clone()
    vectors[0, len(prefix) + position] += amount * embedding(torch.tensor(token))
    return vectors


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "gemma3"])
def test_the_gradient_equals_finite_differences(architecture, tmp_path):
    rm = rmnb.load_reward_model(write_decoder(tmp_path, architecture))
    in_fp64(rm.network)
    rm = dataclasses.replace(rm, head=Head64(rm.head.weight))
    prefix, closing = rm.dialogue.frame(PROMPT)

    def reward(position: int, token: int, amount: float) -> float:
        """The whole conversation in one pass, nothing shared."""
        vectors = blended(rm, prefix, closing, position, token, amount)
        whole = SharedPrefix(vectors.shape[1])
        with torch.no_grad():
            hidden = rm.network(inputs_embeds=vectors, use_cache=False, shared_prefix=whole).last_hidden_state
        return rm.head(hidden[0, -1]).item()

    scorer = PrefixScorer(rm, prefix)
    assert scorer.prefix is not None
    got = RewardGradient(scorer, closing)(IDS)
    assert got.dtype == np.float64 and got.shape == (3, rm.vocabulary_size)
    places = [(position, token) for position in range(3) for token in (7, 70, 200, 300)]
    expected = [(reward(p, t, STEP) - reward(p, t, -STEP)) / (2 * STEP) for p, t in places]
    assert np.std(expected) > 1e-3
    np.testing.assert_allclose([got[place] for place in places], expected, rtol=1e-5, atol=1e-8)


def test_models_that_cannot_share_a_prefix_have_the_same_gradient_and_encoders_have_one_too(tmp_path):
    rm = rmnb.load_reward_model(write_decoder(tmp_path / "decoder"))
    prefix, closing = rm.dialogue.frame(PROMPT)
    shared = RewardGradient(PrefixScorer(rm, prefix), closing)(IDS)
    plain = dataclasses.replace(rm, plain_because="on purpose")
    np.testing.assert_allclose(RewardGradient(PrefixScorer(plain, prefix), closing)(IDS), shared, atol=1e-4)
    encoder = rmnb.load_reward_model(write_encoder(tmp_path / "encoder"))
    prefix, closing = encoder.dialogue.frame(PROMPT)
    slopes = RewardGradient(PrefixScorer(encoder, prefix), closing)(IDS)

    def reward(amount: float) -> float:
        vectors = encoder.network.get_input_embeddings()(torch.tensor([[*prefix, *IDS, *closing]])).clone()
        vectors[0, len(prefix) + 1] += amount * encoder.network.get_input_embeddings()(torch.tensor(33))
        types = torch.ones(vectors.shape[:2], dtype=torch.long)
        types[:, : len(prefix)] = 0
        segments = {"token_type_ids": types} if "token_type_ids" in encoder.tokenizer(PROMPT, "love") else {}
        with torch.no_grad():
            return encoder.network(inputs_embeds=vectors, **segments).logits.item()

    assert slopes[1, 33] == pytest.approx((reward(0.002) - reward(-0.002)) / 0.004, rel=0.02, abs=1e-3)


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    return [write_decoder(tmp_path_factory.mktemp(f"model{seed}"), seed=seed) for seed in (0, 1)]


def test_what_is_differentiated_is_what_is_sought(directories):
    """Minimising, and a model that is subtracted, have in the gradient the sign that they have in the objective."""
    models = [rmnb.load_reward_model(directory) for directory in directories]
    weighted = [(models[0], 1.0), (models[1], -1.0)]
    objective = RewardObjective(weighted, [PROMPT, "What is bad?"])
    measured = objective.measure([IDS])
    each = [RewardObjective([(rm, weight)], [PROMPT, "What is bad?"]).gradient(IDS) for rm, weight in weighted]
    for direction, sign in (("max", 1), ("min", -1)):
        config = SearchConfig(length=3, direction=direction)
        problem = Problem(objective, config, np.arange(6, 300))
        np.testing.assert_allclose(problem.gradient(IDS), sign * (each[0] + each[1]), atol=1e-6)
        assert Journal(objective, config, None, {}).values([IDS]) == pytest.approx(sign * measured)
    alone = [
        sum(w / 2 * rm.score(prompt, rm.tokenizer.batch_decode([list(IDS)]))[0] for rm, w in weighted)
        for prompt in (PROMPT, "What is bad?")
    ]
    assert measured[0] == pytest.approx(sum(alone), abs=1e-4)
