"""Rewards are those of a checkpoint's own classifier on its own template's ids, whatever pads, splits or opens a turn.

The checkpoints are written by transformers and by TRL; the reference is ``AutoModelForSequenceClassification`` on
``apply_chat_template`` of the whole conversation, one at a time and without padding.
"""

from itertools import product

import numpy as np
import pytest
import transformers
from checkpoints import (
    OPENINGS,
    SHAPE,
    SPLITTING,
    own_ids,
    own_rewards,
    splitting_tokenizer,
    write_model,
    write_splitting,
)
from transformers import AutoTokenizer

import rmnb

PROMPT = "What, in one word, is the greatest thing ever?"
ANSWERS = ["love", "War and peace", " love", "it's 7", "42", "é世界", "(so).", "a"]
PADDING = {"closing": "<end>", "apart": "<pad>", "unset": None}


def checked(directory):
    """The loaded model, its scores and its scan compared with those of its own classifier."""
    rm, words = rmnb.load_reward_model(directory), AutoTokenizer.from_pretrained(directory)
    expected = own_rewards(directory, own_ids(words, PROMPT, ANSWERS))
    assert rm.score(PROMPT, ANSWERS).tolist() == pytest.approx(expected, abs=1e-4)
    assert rm.score(PROMPT, ANSWERS, "published").tolist() == pytest.approx(expected, abs=1e-4)  # BOS is not doubled
    scan = rmnb.scan_vocabulary(rm, PROMPT)
    prefix, closing = rm.dialogue.frame_ids(PROMPT)
    texts = scan["token"].str.strip()
    reached = [i for i, ids in enumerate(own_ids(words, PROMPT, texts)) if ids == [*prefix, i, *closing]]
    assert (texts[reached].str.len() > 1).sum() > 15
    some = [*reached[::15], words.convert_tokens_to_ids("<end>")]
    expected = own_rewards(directory, [[*prefix, i, *closing] for i in some])
    np.testing.assert_allclose(scan["score"][some], expected, atol=1e-4)
    return rm


FAST = {("metaspace", "blank", "closing"), ("byte-level", "newline", "apart"), ("gpt2", "think", "unset")}
FAST |= {("gpt2", "nothing", "closing"), ("metaspace", "nothing", "unset")}
CASES = [
    pytest.param(*case, marks=() if case in FAST else pytest.mark.slow)
    for case in product(SPLITTING, OPENINGS, PADDING)
]


@pytest.mark.parametrize(("splitting", "opening", "padding"), CASES)
def test_rewards_are_those_of_the_classifier_on_the_template_of_the_whole(splitting, opening, padding, tmp_path):
    rm = checked(write_splitting(tmp_path, splitting, opening, PADDING[padding]))
    after = OPENINGS[opening].rpartition("{}")[2]
    if padding == "closing" and after == "<end>":
        assert rm.read_at(PROMPT) == ("the answer's last token", -2)
    else:
        assert rm.read_at(PROMPT)[1] == -1


def test_a_whole_classifier_sees_to_its_reading_itself(tmp_path):
    words = splitting_tokenizer("gpt2", "nothing")
    for padding in (words.convert_tokens_to_ids("<end>"), None):
        config = transformers.GPT2Config(**SHAPE | {"vocab_size": len(words), "pad_token_id": padding})
        write_model(tmp_path, config, words)
        assert checked(tmp_path).read_at(PROMPT)[1] is None


@pytest.mark.parametrize("config", [transformers.LlamaConfig, transformers.GPT2Config])
def test_reading_last_is_asked_for(config, tmp_path):
    words = splitting_tokenizer("gpt2", "nothing")
    padding = words.convert_tokens_to_ids("<end>")
    write_model(tmp_path, config(**SHAPE | {"vocab_size": len(words), "pad_token_id": padding}), words)
    ids = own_ids(words, PROMPT, ANSWERS)
    expected = own_rewards(tmp_path, ids, pad_token_id=-1)
    assert np.abs(expected - own_rewards(tmp_path, ids)).max() > 0.1
    assert rmnb.load_reward_model(tmp_path, read="last").score(PROMPT, ANSWERS) == pytest.approx(expected, abs=1e-4)
