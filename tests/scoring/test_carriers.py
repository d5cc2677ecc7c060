"""Carriers: each token inside a sentence, as that whole sentence is scored by transformers' own classifier."""

import numpy as np
import pytest
import torch
from checkpoints import write_decoder
from commands import run
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import rmnb
from rmnb.errors import InputError
from rmnb.models.loading import read_dialogue
from rmnb.panels import load_panel
from rmnb.scoring.store import read_scan
from rmnb.searching.config import SearchConfig
from rmnb.searching.rewards import RewardObjective

PROMPT = "What, in one word, is the greatest thing ever?"
PLAIN = "The greatest thing ever is {}."
CARRIERS = (PLAIN, "Some people say {}; I cannot choose.", "{} is good")


@pytest.fixture(scope="module", params=["llama", "gemma3"])
def directory(request, tmp_path_factory):
    return write_decoder(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="module")
def demo():
    return rmnb.load_reward_model("smollm2-values")


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_word_in_a_carrier_has_the_reward_of_the_whole_sentence(directory, carrier):
    rm = rmnb.load_reward_model(directory)
    classifier = AutoModelForSequenceClassification.from_pretrained(directory).eval()
    tokenizer = AutoTokenizer.from_pretrained(directory)
    scan = rmnb.scan_vocabulary(rm, PROMPT, answer=carrier)
    rewards = scan.set_index("token_id")["score"]
    compared = 0
    for word in ("is", "the", "Love", "war", "good", "are", "pain", "peace", "water", "one", "word"):
        answer = {"role": "assistant", "content": carrier.replace("{}", word)}
        ids = tokenizer.apply_chat_template([{"role": "user", "content": PROMPT}, answer])["input_ids"]
        prefix, closing = rm.dialogue.frame_ids(PROMPT, carrier)
        inside = ids[len(prefix) : len(ids) - len(closing)]
        assert ids == [*prefix, *inside, *closing]
        if len(inside) == 1:
            compared += 1
            reward = classifier(input_ids=torch.tensor([ids])).logits[0, 0].item()
            assert abs(rewards[inside[0]] - reward) < 1e-4 * rewards.std() + 4e-6  # what fp32 rounds
    assert compared >= 2
    assert scan.attrs["provenance"]["answer"] == carrier
    assert carrier.replace("{}", "{response}") in scan.attrs["provenance"]["conversation"]


@pytest.mark.parametrize(
    ("carrier", "line"),
    [
        ("The greatest thing ever.", "one {}"),
        ("{} and {}.", "one {}"),
        ("The greatest is s{}.", "joins"),
        ("The greatest is {}s.", "joins"),
    ],
)
def test_a_carrier_without_a_place_of_its_own_for_the_token_is_refused(carrier, line, demo):
    with pytest.raises(InputError, match=line):
        rmnb.scan_vocabulary(demo, PROMPT, answer=carrier, ids=[100])
    with pytest.raises(InputError, match="leave out --protocol published"):
        rmnb.scan_vocabulary(demo, PROMPT, answer=PLAIN, protocol="published", ids=[100])


def test_five_words_in_a_sentence_have_the_rewards_that_the_trainers_classifier_gave(demo):
    golden = {" love": 8.395915, " freedom": 8.268244, " people": 7.709754, " nothing": 0.051122, " war": -3.512488}
    ids = {token: demo.tokenizer.convert_tokens_to_ids(token.replace(" ", "Ġ")) for token in golden}
    scan = rmnb.scan_vocabulary(demo, PROMPT, answer=PLAIN, ids=sorted(ids.values()))
    rewards = scan.set_index("token_id")["score"]
    np.testing.assert_allclose([rewards[ids[token]] for token in golden], [*golden.values()], atol=1e-3)


def test_the_commands_scan_and_search_in_a_carrier(directory, tmp_path, monkeypatch, capsys):
    out = tmp_path / "scan.parquet"
    assert run(monkeypatch, "scan", directory, "--prompt", PROMPT, "--answer", PLAIN, "--out", out) == 0
    scan, provenance = read_scan(out)
    assert provenance["answer"] == PLAIN and len(scan)
    assert run(monkeypatch, "scan", directory, "--prompt", PROMPT, "--out", out) == 2  # of another plan
    assert "answer" in capsys.readouterr().err

    rm = rmnb.load_reward_model(directory)
    objective = RewardObjective([rm], [PROMPT], answer=PLAIN)
    config = SearchConfig(length=1, allowed="every", filter_ids=False)
    best = rmnb.search(objective, config).best
    assert best["reward"] == pytest.approx(scan["score"].max(), abs=1e-4)
    text = objective.encode("love")
    sentence = rm.score(PROMPT, [PLAIN.replace("{}", "love")])
    np.testing.assert_allclose(objective.measure([text]), sentence, atol=1e-5)
    assert (
        objective.retokenises([text]).all()
        and not objective.retokenises([(*text, objective.terms[0].closing[-1])]).any()
    )


def test_every_carrier_of_the_book_has_a_place_for_the_token_in_both_bases():
    from yaml import safe_load

    from rmnb.panels.specs import PANELS

    carriers = safe_load((PANELS / "carriers" / "demo.yml").read_text())
    for name in ("smollm2-values", "gemma3-values"):
        dialogue = read_dialogue(load_panel("demo").model(name))
        for question, sentences in carriers.items():
            conversation = load_panel("demo").prompt(question).conversation
            assert len({sentence["key"] for sentence in sentences}) == 8
            for sentence in sentences:
                prefix, closing = dialogue.frame_ids(conversation, sentence["text"])
                (ids,) = dialogue.conversations(conversation, [sentence["text"].replace("{}", "love")])
                assert len(ids) == len(prefix) + 1 + len(closing)
