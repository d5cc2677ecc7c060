"""The gradient that a search follows must be that of what it seeks."""

import dataclasses

import numpy as np
import pytest
import torch
from checkpoints import TEMPLATE, pair_tokenizer, randomise, write_decoder
from transformers import AutoModelForSequenceClassification, BertConfig

import rmnb
from rmnb.models.attention import Prefix
from rmnb.panels import ModelSpec
from rmnb.search.config import SearchConfig
from rmnb.search.rewards import ModelPromptReward, RewardObjective
from rmnb.search.state import SearchState

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
    rm = dataclasses.replace(rm, head=Head64(rm.head.score.weight[0]))
    prefix, closing = rm.dialogue.frame(PROMPT)

    def reward(position: int, token: int, amount: float) -> float:
        """The whole conversation in one pass, nothing shared."""
        vectors = blended(rm, prefix, closing, position, token, amount)
        whole = Prefix()
        with torch.no_grad():
            hidden = rm.network(inputs_embeds=vectors, use_cache=False, shared_prefix=whole).last_hidden_state
        return rm.head(hidden[0, -1]).item()

    term = ModelPromptReward(rm, PROMPT, 1.0)
    assert term.shared is not None
    got = term.gradient(IDS)
    assert got.dtype == np.float64 and got.shape == (3, rm.vocabulary_size)
    places = [(position, token) for position in range(3) for token in (7, 70, 200, 300)]
    expected = [(reward(p, t, STEP) - reward(p, t, -STEP)) / (2 * STEP) for p, t in places]
    assert np.std(expected) > 1e-3
    np.testing.assert_allclose([got[place] for place in places], expected, rtol=1e-5, atol=1e-8)


def test_models_that_cannot_share_a_prefix_have_the_same_gradient(tmp_path):
    rm = rmnb.load_reward_model(write_decoder(tmp_path / "decoder"))
    shared = ModelPromptReward(rm, PROMPT, 1.0).gradient(IDS)
    plain = dataclasses.replace(rm, plain_because="on purpose")
    np.testing.assert_allclose(ModelPromptReward(plain, PROMPT, 1.0).gradient(IDS), shared, atol=1e-4)


@pytest.mark.parametrize("template", [None, TEMPLATE])
def test_the_gradient_of_an_encoder_is_that_of_the_label_and_of_the_segments_that_are_scored(template, tmp_path):
    rm = labelled_encoder(tmp_path, template)
    term = ModelPromptReward(rm, PROMPT, 1.0)
    at_once = term.gradient(IDS)
    embedding = rm.network.get_input_embeddings()
    row = embedding.weight.data[IDS[1]]
    direction = embedding.weight.data[33].clone()

    def reward(amount):  # of the token at the second place, which stands nowhere else, moved a little
        row.add_(amount * direction)
        (value,) = term.rewards([IDS], None)
        row.sub_(amount * direction)
        return value

    assert at_once[1, 33] == pytest.approx((reward(0.01) - reward(-0.01)) / 0.02, rel=0.02, abs=2e-3)


def labelled_encoder(directory, template):
    """An encoder of three labels, of which the third is the reward, whose tokenizer knows segments."""
    words = pair_tokenizer()
    words.chat_template = template
    shape = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_labels=3)
    network = AutoModelForSequenceClassification.from_config(BertConfig(vocab_size=len(words), **shape))
    randomise(network)
    network.save_pretrained(directory)
    words.save_pretrained(directory)
    rm = rmnb.load_reward_model(ModelSpec(name="labelled", source=str(directory), label=2))
    rm.tokenizer.model_input_names = words.model_input_names  # which transformers does not save
    return rm


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    return [write_decoder(tmp_path_factory.mktemp(f"model{seed}"), seed=seed) for seed in (0, 1)]


def test_what_is_differentiated_is_what_is_sought(directories):
    """Minimising, and a model that is subtracted, have in the gradient the sign that they have in the objective."""
    models, prompts = [rmnb.load_reward_model(directory) for directory in directories], [PROMPT, "What is bad?"]
    objective = RewardObjective(models, prompts, weights=[1, -1])
    measured = objective.measure([IDS])
    first, second = (RewardObjective([rm], prompts).gradient(IDS) for rm in models)
    for direction, sign in (("max", 1), ("min", -1)):
        state = SearchState(objective, SearchConfig(length=3, direction=direction))
        np.testing.assert_allclose(state.gradient(IDS), sign * (first - second), atol=1e-6)
        assert state.score([IDS]) == pytest.approx(sign * measured)
    text = models[0].tokenizer.decode(list(IDS))
    (one, other), (one_bad, other_bad) = ([rm.score(prompt, [text])[0] for rm in models] for prompt in prompts)
    assert measured[0] == pytest.approx((one - other) / 2 + (one_bad - other_bad) / 2, abs=1e-4)
