"""A pair is worth what the whole conversation is, and a scan that was cut off ends as if it had not been."""

import numpy as np
import pandas as pd
import pytest

from rmnb.errors import InputError
from rmnb.panels import PromptSpec
from rmnb.scoring import pairs
from rmnb.scoring.engine import score_continuations

PROMPT = PromptSpec(key="greatest", text="What, in one word, is the greatest thing ever?", framing="positive")
IDS = [7, 250, 31, 12, 99]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(pairs, "BLOCK", 2)


def whole_rewards(rm, firsts, seconds) -> np.ndarray:
    """Each conversation run alone, from its first id."""
    prefix, closing = rm.dialogue.frame(PROMPT.text)
    whole = [[*prefix, first, second, *closing] for first in firsts for second in seconds]
    rewards = [score_continuations(rm, [], [ids])[0] for ids in whole]
    return np.array(rewards).reshape(len(firsts), len(seconds))


def test_a_pair_is_worth_what_the_whole_conversation_is(rm, tmp_path):
    rewards, provenance = pairs.scan_pairs(rm, PROMPT, IDS, tmp_path / "pairs.parquet")
    expected = whole_rewards(rm, IDS, IDS)
    assert expected.std() > 0.01
    np.testing.assert_allclose(rewards, expected, atol=1e-4)
    assert not np.allclose(rewards, rewards.T, atol=1e-3), "which token is first must matter"
    assert provenance["prompt_key"] == "greatest"


def test_some_pairs_are_worth_the_same_as_among_all(rm, tmp_path):
    rewards, _ = pairs.scan_pairs(rm, PROMPT, IDS, tmp_path / "pairs.parquet")
    places = np.array([[4, 0], [1, 1], [4, 3], [0, 2]])
    again = pairs.score_pairs(rm, PROMPT, np.array(IDS)[places])
    np.testing.assert_allclose(again, rewards[places[:, 0], places[:, 1]], atol=1e-5)


def test_a_scan_that_was_cut_off_or_is_enlarged_ends_bit_identical(rm, tmp_path, monkeypatch):
    through, _ = pairs.scan_pairs(rm, PROMPT, IDS, tmp_path / "through.parquet")
    output, calls = tmp_path / "cut.parquet", []
    rewards = pairs._rewards

    def fails_at_the_sixth(*given):
        calls.append(given)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return rewards(*given)

    square, _ = pairs.scan_pairs(rm, PROMPT, IDS, output, count=2)
    np.testing.assert_array_equal(square, through[:2, :2])
    monkeypatch.setattr(pairs, "_rewards", fails_at_the_sixth)
    with pytest.raises(KeyboardInterrupt):
        pairs.scan_pairs(rm, PROMPT, IDS, output)
    whole, _ = pairs.scan_pairs(rm, PROMPT, IDS, output)
    np.testing.assert_array_equal(whole, through)
    assert len(calls) == 5 * 3 - 2 + 1, "a piece was scored twice"


def test_shared_words_are_whole_words_of_all_vocabularies_the_frequent_ones_first():
    one = {" of": 5, " The": 6, " the": 7, "the": 8, " s": 9, " i": 10, " love": 11, " xyzzy": 12, " I": 13, " May": 14}
    other = {" the": 3, " I": 4, " love": 5, " The": 6, "of": 7, " s": 8, " xyzzy": 9, " May": 10, " may": 11, " i": 12}
    frames = [
        pd.DataFrame({"token": list(ids), "token_id": list(ids.values())}).assign(
            kind=["word_start" if token[0] == " " else "word_continuation" for token in ids]
        )
        for ids in (one, other)
    ]
    found = pairs.shared_words(frames, 4)
    assert found["token"].tolist() == [" the", " I", " May", " love"]
    assert found[[0, 1]].to_numpy().tolist() == [[7, 3], [13, 4], [14, 10], [11, 5]]
    with pytest.raises(InputError, match="share 4 frequent words"):
        pairs.shared_words(frames, 5)
