"""The reward of a growing response is that of each beginning alone."""

import numpy as np
import pytest
from checkpoints import write_decoder, write_encoder

import rmnb
from rmnb.errors import InputError
from rmnb.scoring.rows import score_sequences, trace

PROMPT = "What, in one word, is the greatest thing ever?"


@pytest.mark.parametrize("write", (write_decoder, write_encoder))
def test_each_row_is_the_reward_of_a_closed_beginning(write, tmp_path):
    rm = rmnb.load_reward_model(write(tmp_path), device="cpu")
    response = "Love, peace and water are good"
    table = trace(rm, PROMPT, response)
    prefix, closing = rm.dialogue.frame(PROMPT)
    alone = [
        score_sequences(rm, [[*prefix, *table["token_id"][:end], *closing]], prefix)[0] for end in range(len(table) + 1)
    ]
    assert "".join(table["token"]) == response and len(table) > 5
    np.testing.assert_allclose(table["reward"], alone[1:], atol=1e-5)
    np.testing.assert_allclose(table["change"], np.diff(alone), atol=1e-5)
    assert table["reward"].iloc[-1] == pytest.approx(rm.score(PROMPT, [response])[0], abs=1e-5)


def test_nothing_cannot_be_traced(tmp_path):
    with pytest.raises(InputError, match="empty"):
        trace(rmnb.load_reward_model(write_decoder(tmp_path), device="cpu"), PROMPT, "")
