"""What a language model would say, in a report: whatever the vocabularies, and one line where it cannot be said."""

import numpy as np
import pandas as pd
import pytest
import torch
from checkpoints import write_base
from scipy.special import log_softmax
from transformers import AutoModelForCausalLM

from rmnb.errors import InputError
from rmnb.models.devices import own_attention
from rmnb.panels import load_panel
from rmnb.report import policy
from rmnb.scoring.logprobs import load_language_model, prompt_ids, scan_answers

TOKENS = [" love", "love", "Love", " war", " river", "a", " b", "<end>"]


def rewards(tokens=TOKENS, first=0):
    kinds = ["special" if token.startswith("<") else "word_start" for token in tokens]
    words = [token.strip().casefold() for token in tokens]
    scores = np.linspace(3, -3, len(tokens))
    return pd.DataFrame(
        {"token_id": range(first, first + len(tokens)), "token": tokens, "kind": kinds, "word": words}
    ).assign(greatest=scores)


def scan():
    first = log_softmax(np.arange(len(TOKENS)) / 2)
    return pd.DataFrame({"token_id": range(len(TOKENS)), "token": TOKENS, "first": first, "end": -1.0})


def test_spellings_are_one_word_and_special_tokens_no_answer():
    said = policy.said(scan(), rewards())
    before = said[said["nats"] == 0].set_index("word")["probability"]
    assert "<end>" not in before and before.sum() == pytest.approx(1)
    answers = np.exp(scan()["first"][:-1])
    assert before["love"] == pytest.approx(answers[:3].sum() / answers.sum())
    assert said["covered"].iloc[0] == pytest.approx(np.log(answers.sum()) - 1)
    after = said[said["nats"] == 2]
    assert after["word"].iloc[0] == "love" and after["reward"].iloc[0] > said["reward"].iloc[0]
    assert 4 not in set(said["nats"])  # the best answer of all is nearer


def test_vocabularies_with_other_ids_are_matched_by_text():
    other = rewards(TOKENS[::-1], first=100).assign(greatest=np.linspace(-3, 3, len(TOKENS)))
    pd.testing.assert_frame_equal(policy.said(scan(), other), policy.said(scan(), rewards()))
    with pytest.raises(InputError, match="share no token"):
        policy.said(scan().assign(token="x"), rewards())


def test_whole_answers_are_what_the_model_gives_token_and_end_one_by_one(tmp_path):
    directory = write_base(tmp_path / "lm", "llama")
    lm = load_language_model(directory)
    prompt = load_panel("demo").prompt("greatest")
    found = scan_answers(lm, prompt)
    ids = prompt_ids(lm, prompt.conversation)
    end = found.attrs["provenance"]["end_id"]
    assert end == lm.dialogue.frame_ids(prompt.conversation)[1][0]
    network = AutoModelForCausalLM.from_pretrained(directory)
    for token in (7, 100, 300):
        with torch.no_grad(), own_attention(lm.network):
            logits = network(torch.tensor([[*ids, token]])).logits[0].double().log_softmax(-1)
        assert found["first"][token] == pytest.approx(logits[-2, token].item(), abs=1e-4)
        assert found["end"][token] == pytest.approx(logits[-1, end].item(), abs=1e-4)
