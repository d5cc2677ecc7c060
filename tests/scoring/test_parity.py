"""Whatever a checkpoint's attention is, its rewards are those of its own classifier, or one line says why not."""

import numpy as np
import pytest
import torch
import transformers
from checkpoints import TEMPLATE, own_rewards, write_decoder, write_encoder
from head_checkpoints import write_head
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

import rmnb
from rmnb.errors import InputError
from rmnb.models import attention
from rmnb.scoring import engine, parity
from rmnb.scoring.rows import trace

PROMPT = "What, in one word, is the greatest thing ever?"
TEXTS = ["love", "war and pain", "peace, water and good words"]
# What cannot share a prefix: class of the configuration, its own keys. What can is in test_families.
OTHERS = {
    "diffllama": (transformers.DiffLlamaConfig, {}),
    "gpt2": (transformers.GPT2Config, {}),
    "gpt-neo": (
        transformers.GPTNeoConfig,
        dict(attention_types=[[["global", "local"], 2]], num_layers=4, num_heads=4, window_size=6),
    ),
    "gpt-neox": (transformers.GPTNeoXConfig, {}),
    "falcon": (transformers.FalconConfig, {}),
    "bloom": (transformers.BloomConfig, {}),
    "longformer": (transformers.LongformerConfig, dict(attention_window=8)),
}


def test_a_template_that_writes_more_of_an_answer_scores_whole_answers_and_takes_no_token(tmp_path):
    directory = write_decoder(tmp_path)
    for more in ("{{ m['content'] }}", "{{ m['content'] | length }}"):
        template = TEMPLATE.replace("<end>{% endfor", more + "<end>{% endfor")
        rm = rmnb.load_reward_model(directory, template=template)
        expected = own_rewards(directory, rm.dialogue.conversations(PROMPT, TEXTS))
        np.testing.assert_allclose(rm.score(PROMPT, TEXTS), expected, atol=1e-4)
        with pytest.raises(InputError, match="depends on it"):
            rmnb.scan_vocabulary(rm, PROMPT)
        with pytest.raises(InputError, match="depends on it"):
            trace(rm, PROMPT, "love")


@pytest.mark.parametrize("kind", OTHERS)
def test_an_architecture_of_another_kind_gets_the_rewards_of_its_own_classifier(kind, tmp_path, caplog):
    config, shape = OTHERS[kind]
    rm = rmnb.load_reward_model(write_decoder(tmp_path / kind, config, shape=shape))
    expected = own_rewards(tmp_path / kind, rm.dialogue.conversations(PROMPT, TEXTS))
    assert np.std(expected) > 0.02
    np.testing.assert_allclose(rm.score(PROMPT, TEXTS), expected, atol=1e-4)
    assert rm.parity.difference <= rm.parity.tolerance and not rm.shares_prefix
    assert caplog.text.count("slower") == 1  # a slow path is announced, once


def without_window(module, query, key, value, attention_mask, **options):
    # A window that ours does not know of.
    causal = attention.keep_rule(mask_function=lambda batch, head, query, key: key <= query)
    return attention.attend(module, query, key, value, causal, **options)


def failing(*_, **__):
    raise RuntimeError("shape '[1]' is invalid\nand more")


@pytest.mark.parametrize(
    ("attend", "reason"),
    [(without_window, "would change its hidden states by"), (failing, "shape '[1]' is invalid")],
)
def test_what_differs_or_fails_goes_by_whole_sequences(attend, reason, tmp_path, monkeypatch, caplog):
    directory = write_decoder(tmp_path / "gemma2", "gemma2")
    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, attention.NAME, attend)
    rm = rmnb.load_reward_model(directory)
    np.testing.assert_allclose(
        rm.score(PROMPT, TEXTS), own_rewards(directory, rm.dialogue.conversations(PROMPT, TEXTS)), atol=1e-4
    )
    (said,) = caplog.messages
    assert said.startswith("gemma2: scoring whole sequences, which is slower: sharing the prefix") and reason in said
    assert rmnb.scan_vocabulary(rm, PROMPT, limit=9).attrs["provenance"]["attention"] == "plain"


def test_a_mistake_in_our_own_code_is_no_property_of_the_network(directory, monkeypatch):
    monkeypatch.delattr(engine, "upload")
    with pytest.raises(NameError, match="upload"):
        rmnb.load_reward_model(directory)


def test_a_model_that_cannot_be_run_is_one_line(tmp_path):
    bart = write_decoder(tmp_path / "bart", transformers.BartConfig, shape={"d_model": 32})
    with pytest.raises(InputError, match=r"^bart: the model fails on a short conversation: Each example must contain"):
        rmnb.load_reward_model(bart)


def test_what_a_model_is_compared_with(rm, tmp_path):
    classifier = parity._classifier(rm)
    mine = {parameter.data_ptr() for parameter in rm.network.parameters()}
    assert {parameter.data_ptr() for parameter in classifier.parameters()} == mine
    assert rm.parity.against == "LlamaForSequenceClassification" and rm.parity.difference < 1e-4
    urm = rmnb.load_reward_model(write_head(tmp_path / "urm", "urm"))
    assert urm.parity.against == "attention in full"
    encoder = rmnb.load_reward_model(write_encoder(tmp_path / "encoder"))
    assert not encoder.shares_prefix and encoder.parity.against == "BertForSequenceClassification"
    assert encoder.parity.difference < 1e-4
    rm.network.norm.weight.data[:] = torch.nan
    assert parity.check_parity(rm).parity.difference is None
    with pytest.raises(InputError, match="is nan") as error:
        rm.score(PROMPT, TEXTS)
    assert "try --dtype" not in str(error.value)  # it is float32 already


def rope(kind):
    parameters = {"rope_type": kind, "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 256}
    if kind == "longrope":
        parameters |= {"short_factor": [1.0] * 4, "long_factor": [4.0] * 4, "attention_factor": 1.0}
    return parameters


LONG = {
    "window in the mask alone": (
        transformers.PhimoeConfig, dict(sliding_window=100, num_local_experts=2, max_position_embeddings=1024),
    ),
    "dynamic": (transformers.LlamaConfig, dict(max_position_embeddings=256, rope_parameters=rope("dynamic"))),
    "longrope": (
        transformers.Phi3Config,
        dict(max_position_embeddings=1024, original_max_position_embeddings=256, rope_parameters=rope("longrope")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", LONG)
def test_long_conversations_get_the_rewards_that_each_has_alone(kind, tmp_path):
    """Longer than a window, than what is run at once, and than the length that rotary frequencies are made for."""
    config, shape = LONG[kind]
    directory = write_decoder(tmp_path / "long", config, shape=shape)
    rm = rmnb.load_reward_model(directory)
    ids = np.random.default_rng(0).integers(6, 300, 640).tolist()
    rows = [[*ids[:end], *ids[:8]] for end in (640, 20, 320)]
    expected = [own_rewards(directory, [row])[0] for row in rows]  # each by a classifier that has read nothing before
    assert np.std(expected) > 0.02 and rm.shares_prefix
    for row, reward in zip(rows, expected, strict=True):
        assert engine.score_continuations(rm, row[:-8], [row[-8:]])[0] == pytest.approx(reward, abs=1e-4)
        short = min(200, len(row) // 2)  # a prefix within the length that frequencies are made for, or within a window
        assert engine.score_continuations(rm, row[:short], [row[short:]])[0] == pytest.approx(reward, abs=1e-4)


@pytest.mark.parametrize("options", [{}, {"device_map": "cpu"}, {"dtype": "bfloat16"}, {"compile": "default"}])
def test_parity_is_measured_with_every_loading_option(options, tmp_path, monkeypatch):
    directory = write_decoder(tmp_path / "gemma2", "gemma2")
    if "compile" in options:
        monkeypatch.setattr(torch.nn.Module, "compile", lambda self, mode: None)
    rm = rmnb.load_reward_model(directory, **options)
    assert rm.shares_prefix and rm.parity.difference <= rm.parity.tolerance
    assert rm.parity.tolerance < (0.3 if "dtype" in options else 1e-3)
    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, attention.NAME, without_window)
    parity._difference_of_cut.cache_clear()
    assert not rmnb.load_reward_model(directory, **options).shares_prefix
    monkeypatch.setattr(parity, "_difference_of_cut", lambda *_: 0)  # the loaded network alone shows it, too
    assert not rmnb.load_reward_model(directory, **options).shares_prefix


def test_a_cut_is_small_and_has_a_layer_of_each_kind(monkeypatch):
    made = []
    build = transformers.AutoModel.from_config
    monkeypatch.setattr(
        parity.AutoModel, "from_config", lambda config, **options: made.append(config) or build(config, **options)
    )
    config = transformers.Gemma3TextConfig(sliding_window=4096, vocab_size=262144, intermediate_size=21504)
    parity._difference_of_cut.cache_clear()
    assert parity.difference_of_cut(config) < 1e-5
    (cut,) = made
    assert cut.layer_types == ["sliding_attention", "full_attention"]
    assert cut.vocab_size < 1000 and cut.intermediate_size < 1000 and cut.sliding_window < 100


CONTEXTS = {
    "llama": (transformers.LlamaConfig, 64),
    "bert": (transformers.BertConfig, 64),
    "roberta": (transformers.RobertaConfig, 63),
}


@pytest.mark.parametrize("kind", CONTEXTS)
def test_a_conversation_beyond_the_context_is_one_line(kind, tmp_path):
    config, limit = CONTEXTS[kind]
    rm = rmnb.load_reward_model(write_decoder(tmp_path / kind, config, shape={"max_position_embeddings": 64}))
    whole = len(rm.dialogue.conversations(PROMPT, ["love"])[0])
    love = len(rm.dialogue.conversations(PROMPT, ["love" * 2])[0]) - whole
    fits = "love" * (1 + (limit - whole) // love)
    assert np.isfinite(rm.score(PROMPT, [fits])).all()
    for prompt, responses in ((PROMPT, ["love", fits + "love" * 3]), (PROMPT * 9, ["love"])):
        with pytest.raises(InputError, match=rf"have \d+ tokens, more than the {limit} that {kind} is made for"):
            rm.score(prompt, responses)
