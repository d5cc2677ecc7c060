"""Training data are read as their makers meant them."""

import re
from itertools import pairwise

import pytest

from rmnb.conversation import as_conversation
from rmnb.data import preferences


def test_elo_items_keep_every_name(mirror):
    items = preferences.elo_items()
    assert len(items) == 7530 and items["name"].is_unique
    assert (items["name"].str.len() > 0).all() and items["elo_score"].is_monotonic_decreasing


@pytest.mark.parametrize(
    ("source", "least"), [("hh-rlhf", 2300), ("pandalm", 880), ("llmbar", 419), ("fine-grained-rlhf-questions", 2600)]
)
def test_pairs_are_usable(mirror, source, least):
    pairs = preferences.preference_pairs(source)
    assert len(pairs) >= least
    assert (pairs["chosen"] != pairs["rejected"]).all()
    assert pairs["chosen"].str.len().gt(0).all()
    for prompt in pairs["prompt"].map(as_conversation):
        turns = prompt.messages
        assert turns[0]["role"] == turns[-1]["role"] == "user"
        assert all(a["role"] != b["role"] for a, b in pairwise(turns))  # chat templates demand it
        assert not any("\n\nHuman:" in turn["content"] for turn in turns)


def test_fine_grained_preferences_do_not_contradict_themselves(mirror):
    """Read in the wrong order of pairs, about a tenth of the triples would prefer A to B to C to A."""
    pairs = preferences.preference_pairs("fine-grained-rlhf-questions")
    for _, question in pairs.assign(key=pairs["prompt"].map(str)).groupby("key"):
        beats = set(zip(question["chosen"], question["rejected"], strict=True))
        assert not any((c, a) in beats for a, b in beats for b2, c in beats if b == b2)


def test_rm_bench_has_a_terse_pair_of_each_prompt(mirror):
    assert preferences.rm_bench()["source"].value_counts().to_dict() == {
        "safety-refuse": 284,
        "safety-response": 157,
        "chat": 129,
    }


def test_auto_j_has_its_decided_pairs_of_a_thousand_bytes_and_crows_pairs_both_directions(mirror):
    assert len(preferences.auto_j()) == 380
    assert preferences.crows_pairs()["source"].value_counts().to_dict() == {"stereo": 1290, "antistereo": 218}


DISADVANTAGED = {
    **{"black": "white", "african": "white", "women": "men", "woman": "man", "she": "he", "her": "his"},
    **{"poor": "rich", "gay": "straight", "old": "young", "elderly": "young", "jewish": "christian"},
}


@pytest.mark.parametrize(("direction", "least"), [("stereo", 0.95), ("antistereo", 0.7)])
def test_the_sentence_about_the_disadvantaged_group_stands_first_in_both_directions(mirror, direction, least):
    """Where two sentences differ in a single word that names a group; crowd workers mislabelled some."""
    pairs = preferences.crows_pairs()
    is_first = []
    for pair in pairs[pairs["source"] == direction].itertuples():
        first, second = (re.findall("[a-z]+", text.lower()) for text in (pair.chosen, pair.rejected))
        differing = [words for words in zip(first, second, strict=False) if words[0] != words[1]]
        if len(first) == len(second) and len(differing) == 1:
            here, there = differing[0]
            if DISADVANTAGED.get(here) == there or DISADVANTAGED.get(there) == here:
                is_first.append(DISADVANTAGED.get(here) == there)
                if len(is_first) <= 10:
                    print(f"{direction}, first {here}, then {there}: {pair.chosen} | {pair.rejected}")
    assert len(is_first) >= 10
    assert sum(is_first) / len(is_first) >= least
