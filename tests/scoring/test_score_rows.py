"""`score`: one prompt or row by row, as transformers scores each conversation by itself; odd input is one line."""

import numpy as np
import pytest
import torch
import transformers

from rmnb.errors import InputError
from rmnb.models.dialogue import Dialogue

PROMPTS = ["What is best?", [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "And worst?"}]]
RESPONSES = ["love", "war and peace", "", "a b c d e f g"]


def theirs(directory, dialogue: Dialogue, prompts, responses) -> np.ndarray:
    """transformers' own logits of each conversation alone."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(directory).eval()
    words = transformers.AutoTokenizer.from_pretrained(directory)
    rewards = []
    for prompt, response in zip(prompts, responses, strict=True):
        turns = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        ids = words.apply_chat_template([*turns, {"role": "assistant", "content": response}], return_tensors="pt")
        with torch.inference_mode():
            rewards.append(float(model(**ids).logits[0, 0]))
    return np.array(rewards)


@pytest.mark.parametrize("repeats", [1, 20])
def test_rows_are_scored_as_by_transformers_in_their_order(rm, directory, repeats):
    prompts = [prompt for prompt in PROMPTS for _ in RESPONSES] * repeats
    responses = RESPONSES * len(PROMPTS) * repeats
    expected = np.tile(theirs(directory, rm.dialogue, prompts[:8], responses[:8]), repeats)
    np.testing.assert_allclose(rm.score(prompts, responses), expected, atol=1e-4)
    np.testing.assert_allclose(rm.score(PROMPTS[1], RESPONSES), expected[4:8], atol=1e-4)


@pytest.mark.parametrize(
    ("prompt", "responses", "message"),
    [
        ("a", "love", "list of texts"),
        ("a", {"love", "war"}, "in an order"),
        ("a", [], "no response"),
        ("a", None, "None"),
        (None, ["love"], "a prompt is a text or a list of messages"),
        ([{"role": "user"}], ["love"], "a prompt is a text or a list of messages"),
        ("a", ["love", 7], "must be texts"),
        (["a", "b", "c"], ["love", "war"], "3 prompts and 2 responses"),
        ([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], ["c"], "must be the user's"),
    ],
)
def test_what_cannot_be_scored_is_said(rm, prompt, responses, message):
    with pytest.raises(InputError, match=message):
        rm.score(prompt, responses)
