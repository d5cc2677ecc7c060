"""Log-probabilities are transformers' own, and what is made of two models' is what was planted in them."""

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from checkpoints import SHAPE, TEMPLATE, randomise, tokenizer

from rmnb.data.released_logprobs import read_released, released_file
from rmnb.errors import InputError
from rmnb.findings import log_ratios
from rmnb.panels import BaseSpec
from rmnb.scoring import logprobs

PROMPT = "What, in one word, is the greatest thing ever?"
_SHAPE = SHAPE | {"num_hidden_layers": 2}


def write_language_model(directory, architecture: str = "llama", template: str | None = TEMPLATE, seed: int = 0):
    words = tokenizer(template)
    kinds = {
        "llama": (transformers.LlamaConfig, {}),
        "gemma2": (
            transformers.Gemma2Config,
            dict(head_dim=16, attn_logit_softcapping=2.0, final_logit_softcapping=5.0),
        ),
    }
    kind, special = kinds[architecture]
    special = special | {"head_dim": 16} if special else special
    model = transformers.AutoModelForCausalLM.from_config(kind(**_SHAPE, **special, vocab_size=len(words) + 2))
    randomise(model, seed)
    model.save_pretrained(directory)
    words.save_pretrained(directory)
    return directory


@pytest.mark.parametrize("architecture", ["llama", "gemma2"])
def test_every_wrapping_gives_the_models_own_distribution(architecture, tmp_path):
    directory = write_language_model(tmp_path, architecture)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(directory, attn_implementation="eager").eval()
    words = transformers.AutoTokenizer.from_pretrained(directory)
    chat = words.apply_chat_template([{"role": "user", "content": PROMPT}], add_generation_prompt=True)["input_ids"]
    expected = {
        "chat": chat,
        "bare": words(PROMPT)["input_ids"],
        "user_assistant": words(f"User: {PROMPT}\nAssistant:")["input_ids"],
    }
    for wrapping, ids in expected.items():
        lm = logprobs.load_language_model(directory, wrapping)
        with torch.inference_mode():
            logits = theirs(input_ids=torch.tensor([ids])).logits[0, -1]
        values = logprobs.next_token_logprobs(lm, PROMPT)
        assert values.shape == (len(words) + 2,) and values.dtype == np.float32
        np.testing.assert_allclose(values, torch.log_softmax(logits, -1).numpy(), atol=1e-5)
        assert np.exp(values.astype(np.float64)).sum() == pytest.approx(1, abs=1e-5)
        assert ids.count(words.bos_token_id) == 1


def test_half_precision_weights_still_give_a_distribution(tmp_path):
    lm = logprobs.load_language_model(write_language_model(tmp_path), dtype="bfloat16")
    assert lm.network.dtype == torch.bfloat16
    assert np.exp(logprobs.next_token_logprobs(lm, PROMPT).astype(np.float64)).sum() == pytest.approx(1, abs=1e-4)


def test_a_model_without_template_is_asked_barely_and_never_by_chat(tmp_path):
    directory = write_language_model(tmp_path, template=None)
    assert logprobs.load_language_model(directory).spec.wrapping == "bare"
    with pytest.raises(InputError, match="has no chat template"):
        logprobs.load_language_model(directory, "chat")
    with pytest.raises(InputError, match="unknown wrapping 'shout': choose one of chat, bare, user_assistant"):
        logprobs.load_language_model(directory, "shout")
    spec = BaseSpec(name="mine", source=str(directory), kind="instruct", wrapping="chat", template=TEMPLATE)
    assert logprobs.load_language_model(spec).dialogue.template == TEMPLATE


def scan(probabilities: dict[str, float]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "token_id": np.arange(len(probabilities), dtype=np.int32),
            "token": list(probabilities),
            "kind": "word_start",
            "score": np.log(np.array(list(probabilities.values()), dtype=np.float32)),
        }
    )


def test_the_planted_difference_between_two_models_is_found():
    """What counts is mass times ratio: a rare word that one model likes a hundred times more counts little."""
    llama = scan({"Freedom": 0.4, "Love": 0.1, "rare": 1e-3, "same": 0.2, "only": 0.299})
    gemma = scan({"Love": 0.4, "Freedom": 0.1, "rare": 1e-5, "same": 0.2, "else": 0.29999})
    pairs = log_ratios.mwlr_pairs({"Llama": llama, "Gemma": gemma}, ["Llama"], ["Gemma", "Llama"])
    by_token = pairs.set_index("token")
    assert set(by_token.index) == {"Freedom", "Love", "rare", "same"}
    assert by_token["mwlr"]["Freedom"] == pytest.approx(0.25 * np.log(4), rel=1e-5)
    assert by_token["mwlr"]["Love"] == pytest.approx(-0.25 * np.log(4), rel=1e-5)
    assert by_token["mwlr"]["same"] == pytest.approx(0, abs=1e-9)
    assert list(by_token["rank"].sort_values().index) == ["Freedom", "rare", "same", "Love"]
    back = log_ratios.mwlr_pairs({"Llama": llama, "Gemma": gemma}, ["Gemma"], ["Llama"]).set_index("token")
    np.testing.assert_allclose(back["mwlr"], -by_token["mwlr"].loc[back.index])
    with pytest.raises(InputError, match="no scan of Qwen"):
        log_ratios.mwlr_pairs({"Llama": llama}, ["Llama"], ["Qwen"])


def test_impossible_tokens_have_no_weight():
    nothing, half = np.array([-np.inf]), np.array([np.log(0.5)])
    assert log_ratios.mwlr(nothing, nothing)[0] == 0
    assert log_ratios.mwlr(half, nothing)[0] == np.inf


def test_the_implicit_reward_undoes_the_tuning_it_describes():
    """π ∝ π_ref exp(r/β): the reward comes back up to the constant of the prompt."""
    rng = np.random.default_rng(0)
    reference = np.log(rng.dirichlet(np.ones(50)))
    reward, beta = rng.normal(size=50), 0.3
    tuned = reference + reward / beta
    tuned -= np.log(np.exp(tuned).sum())
    found = log_ratios.implicit_reward(tuned, reference, beta)
    np.testing.assert_allclose(found - found.mean(), reward - reward.mean(), atol=1e-12)
    with pytest.raises(InputError, match="beta must be positive"):
        log_ratios.implicit_reward(tuned, reference, 0)


def test_words_must_be_one_token_in_both_vocabularies_spelt_just_so():
    first, second = scan({"love": 0.5, " power": 0.2, "care": 0.1}), scan({"care": 0.5, "love": 0.2, "power": 0.1})
    words = log_ratios.word_logprobs({"a": first, "b": second}, ["power", "love", "care", "love"])
    assert list(words.index) == ["love", "care"] and list(words.columns) == ["a", "b"]
    with pytest.raises(InputError, match="none of the 1 words is a single token in the vocabulary of a and b"):
        log_ratios.word_logprobs({"a": first, "b": second}, ["power"])


def test_the_released_layout_is_read_without_losing_odd_tokens(tmp_path):
    """Written as the authors' script writes it; "null" and "NA" are words, a carriage return is a token."""
    tokens = ["love", " love", "null", "NA", "\r", "\n", '"', ",", "nan", ""]
    values = np.log(np.random.default_rng(0).dirichlet(np.ones(len(tokens))))
    table = pd.DataFrame(
        {"token_id": range(10), "token_name": tokens, "token_decoded": tokens, "best_ever_one": values}
    )
    table.to_csv(tmp_path / "google--gemma-2-2b.csv", index=False)
    file = released_file("google/gemma-2-2b", tmp_path)
    found = read_released(file, ["best_ever_one"])["best_ever_one"]
    assert list(found["token"]) == tokens
    np.testing.assert_allclose(found["score"], values, rtol=1e-6)
    assert len(log_ratios.word_logprobs({"a": found, "b": found}, ["null", "love"])) == 2
    with pytest.raises(InputError, match="has no column worst_ever_one"):
        read_released(file, ["worst_ever_one"])
    with pytest.raises(InputError, match=r"has no file meta-llama--Llama-3.2-3B.csv"):
        released_file("meta-llama/Llama-3.2-3B", tmp_path)
    table.assign(best_ever_one=[*values[:-1], None]).to_csv(file, index=False)
    with pytest.raises(InputError, match="holds something that is no log-probability"):
        read_released(file, ["best_ever_one"])


def test_the_real_base_knows_a_capital():
    lm = logprobs.load_language_model("smollm2-135m-instruct", "bare")
    found = logprobs.scan_logprobs(lm, "The capital of France is")
    assert found["token"][found["score"].idxmax()] == " Paris"
    assert len(found) == lm.vocabulary_size == len(lm.dialogue.tokenizer)
