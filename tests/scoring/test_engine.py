"""Rewards must be those of the plain model, whatever the batch, the lengths and the architecture."""

import dataclasses

import numpy as np
import pytest
from checkpoints import DECODERS, WINDOW, own_rewards, write_decoder

import rmnb
from rmnb.errors import InputError
from rmnb.models import attention
from rmnb.scoring.engine import PrefixScorer, score_continuations

PROMPT = "What, in one word, is the greatest thing ever?"


@pytest.mark.parametrize("architecture", DECODERS)
def test_sharing_the_prefix_gives_the_reward_of_the_plain_pass(architecture, tmp_path, monkeypatch):
    rm = rmnb.load_reward_model(write_decoder(tmp_path, architecture))
    assert rm.shares_prefix
    prefix, closing = rm.dialogue.frame_ids(PROMPT)
    assert len(prefix) > WINDOW
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 2 * WINDOW, 12)
    continuations = [[*rng.integers(6, 300, size), *closing] for size in sizes]
    # No id is padding: the last one is read.
    expected = own_rewards(tmp_path, [[*prefix, *ids] for ids in continuations], pad_token_id=None)
    assert PrefixScorer(rm, prefix).attention == "shared prefix"
    assert expected.std() > 0.1
    for batch_size in (1, 7):
        np.testing.assert_allclose(score_continuations(rm, prefix, continuations, batch_size), expected, atol=1e-4)
    parent = continuations[0]
    sharing = [*continuations, *([*parent[:at], 7, *closing] for at in range(len(parent)))]
    alone = score_continuations(rm, prefix, sharing, 1)
    for batch_size in (None, 4):
        np.testing.assert_allclose(PrefixScorer(rm, prefix)(sharing, batch_size, parent), alone, atol=1e-4)
    monkeypatch.setattr(attention, "CHUNK", WINDOW - 1)  # a long prefix is run in parts
    np.testing.assert_allclose(score_continuations(rm, prefix, continuations), expected, atol=1e-4)
    whole = dataclasses.replace(rm, why_not_shared="on purpose")
    np.testing.assert_allclose(score_continuations(whole, prefix, continuations), expected, atol=1e-4)


def test_an_empty_continuation_and_an_id_beyond_the_embedding_have_no_reward(rm):
    with pytest.raises(InputError, match="continuation 1 is empty"):
        score_continuations(rm, [1], [[7], []])
    with pytest.raises(InputError, match="do not go together"):
        score_continuations(rm, [1], [[rm.vocabulary_size]])


def test_a_progress_bar_is_told_of_each_batch(rm):
    told = []
    continuations = [[7], [8], [9], [10], [11]]
    PrefixScorer(rm, [1])(continuations, batch_size=2, advance=told.append)
    assert told == [2, 2, 1]


def test_batches_fit_the_memory_that_is_free(rm, monkeypatch):
    scorer = PrefixScorer(rm, [1] * 20)
    roomy = scorer.batch_size(2)
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 5e6}))
    assert 1 <= scorer.batch_size(2) < roomy
