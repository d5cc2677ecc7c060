"""Log-probabilities are transformers' own."""

import numpy as np
import pytest
import torch
import transformers
from checkpoints import EARLIER, TEMPLATE, asked_ids, edit_tensors, user, write_base

from rmnb.errors import InputError
from rmnb.panels import BaseSpec, PromptSpec
from rmnb.scoring import logprobs

PROMPT = "What, in one word, is the greatest thing ever?"


@pytest.mark.parametrize("architecture", ["llama", "gemma2"])
def test_every_wrapping_gives_the_models_own_distribution(architecture, tmp_path):
    directory = write_base(tmp_path, architecture, rows=320)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(directory, attn_implementation="eager").eval()
    words = transformers.AutoTokenizer.from_pretrained(directory)
    expected = {
        "chat": asked_ids(words, PROMPT),
        "bare": words(PROMPT)["input_ids"],
        "user_assistant": words(f"User: {PROMPT}\nAssistant:")["input_ids"],
    }
    for wrapping, ids in expected.items():
        lm = logprobs.load_language_model(directory, wrapping)
        with torch.inference_mode():
            logits = theirs(input_ids=torch.tensor([ids])).logits[0, -1]
        values = logprobs.next_token_logprobs(lm, PROMPT)
        assert values.shape == (320,) and values.dtype == np.float32
        np.testing.assert_allclose(values, torch.log_softmax(logits, -1).numpy(), atol=1e-5)
    half = logprobs.load_language_model(directory, dtype="bfloat16")
    assert half.network.dtype == torch.bfloat16
    assert np.exp(logprobs.next_token_logprobs(half, PROMPT).astype(np.float64)).sum() == pytest.approx(1, abs=1e-4)


def test_a_model_without_template_is_asked_barely_and_never_by_chat(tmp_path):
    directory = write_base(tmp_path)
    (directory / "chat_template.jinja").unlink()
    assert logprobs.describe(logprobs.load_language_model(directory))["wrapping"] == "bare"
    with pytest.raises(InputError, match="has no chat template"):
        logprobs.load_language_model(directory, "chat")
    with pytest.raises(InputError, match=r"wrapping: .*'chat', 'bare' or 'user_assistant'"):
        logprobs.load_language_model(directory, "shout")
    spec = BaseSpec(name="mine", source=str(directory), kind="instruct", wrapping="chat", template=TEMPLATE)
    assert logprobs.load_language_model(spec).dialogue.template == TEMPLATE
    silent = logprobs.load_language_model(spec.model_copy(update={"template": "{{ '' }}"}))
    with pytest.raises(InputError, match="the prompt is empty"):
        logprobs.next_token_logprobs(silent, PROMPT)


def test_a_head_that_is_not_there_is_never_made_up(tmp_path):
    edit_tensors(write_base(tmp_path), lambda found: {name: found[name] for name in found if name != "lm_head.weight"})
    with pytest.raises(InputError, match="the weights lack lm_head"):
        logprobs.load_language_model(tmp_path)


def test_earlier_turns_are_read(tmp_path):
    lm = logprobs.load_language_model(write_base(tmp_path))
    asked = PromptSpec(key="after", text=PROMPT, framing="positive", history=EARLIER)
    messages = [*EARLIER, user(PROMPT)]
    expected = lm.dialogue.tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
    assert logprobs.prompt_ids(lm, asked.conversation) == expected
    found = logprobs.scan_logprobs(lm, asked)["score"]
    np.testing.assert_array_equal(found, logprobs.next_token_logprobs(lm, messages))
    with pytest.raises(InputError, match="takes one question"):
        logprobs.scan_logprobs(logprobs.load_language_model(tmp_path, "bare"), asked)
