"""A pair is worth what the whole conversation is; for scans that were cut off see `test_resumption`."""

import numpy as np

from rmnb.panels import PromptSpec
from rmnb.scoring import scanning
from rmnb.scoring.engine import score_continuations

PROMPT = PromptSpec(key="greatest", text="What, in one word, is the greatest thing ever?", framing="positive")
IDS = [7, 250, 31, 12, 99]


def test_a_pair_is_worth_what_the_whole_conversation_is(rm, tmp_path, monkeypatch):
    monkeypatch.setattr(scanning, "PAIRS", 2)
    rewards, provenance = scanning.scan_pairs(rm, PROMPT, IDS, tmp_path / "pairs.parquet")
    prefix, closing = rm.dialogue.frame(PROMPT.text)
    whole = [[*prefix, first, second, *closing] for first in IDS for second in IDS]
    expected = np.reshape([score_continuations(rm, [], [ids])[0] for ids in whole], rewards.shape)
    assert expected.std() > 0.01
    np.testing.assert_allclose(rewards, expected, atol=1e-4)
    assert not np.allclose(rewards, rewards.T, atol=1e-3), "which token is first must matter"
    assert provenance["prompt_key"] == "greatest"
