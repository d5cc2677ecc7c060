"""Texts, templates and tokenizers that nobody meant to write: refused in one line, or read as they stand."""

import random

import numpy as np
import pytest
from checkpoints import SHAPE, SPECIAL, TEMPLATE, tokenizer, write_model
from tokenizers import AddedToken
from transformers import LlamaConfig

import rmnb
from rmnb.models.dialogue import Dialogue

PROMPT = "What, in one word, is the greatest thing ever?"
PIECES = [*SPECIAL, "<|im_end|>", "<|eot_id|>", "[INST]", "</s>", "love", "{{7*7}}", "{%raise%}", "<b>", "&amp;", "$x$"]
PIECES += ["\\", "'", "<end", "end>", "<<end>>", "a<end>b", " love", "e\u0301", "👩‍👩‍👧", "\x1b[31m"]
PIECES += [*" \t\n\u00a0\u200b\u202eé你\x00\ufffd\U000f0000\U0010ffff", "\ue000response\ue000"]


@pytest.mark.parametrize("kind", ["special", "ordinary"])
def test_markers_in_prompts_and_responses_are_text(kind, attack, times):
    words = tokenizer()
    if kind == "ordinary":  # as some checkpoints have it: the template's own markers are tokens like any other
        words = tokenizer(special=SPECIAL[:3])
        words.add_tokens([AddedToken(marker, normalized=False, special=False) for marker in SPECIAL[3:]])
        words.chat_template = TEMPLATE
    dialogue = Dialogue(words, TEMPLATE)
    control = {words.convert_tokens_to_ids(marker) for marker in SPECIAL}
    assert len(control) == len(SPECIAL)
    structure = [i for i in dialogue.conversations("a", ["a"])[0] if i in control]

    def read(seed: int) -> str:
        rng = random.Random(seed)
        text = "".join(rng.choices(PIECES, k=rng.randint(0, 8)))
        prefix, closing = dialogue.frame_ids(text)
        (ids,) = dialogue.conversations(text, [text])
        assert ids[: len(prefix)] == prefix and ids[-len(closing) :] == closing
        assert [i for i in ids if i in control] == structure
        for part in (prefix, ids[len(prefix) :]):
            inside = words.decode([i for i in part if i not in control], clean_up_tokenization_spaces=False)
            assert inside == text.strip()
        return "encoded as text, character by character, between the template's own control tokens"

    name = f"texts with markers, invisible and foreign characters as prompt and response ({kind} markers)"
    attack(name, range(times(100, 4000)), read, refused="private-use characters")


def test_texts_that_are_none(attack, rm):
    def score(given: tuple[str, str]) -> str:
        prompt, response = given
        assert np.isfinite(rm.score(prompt, ["love", response])).all()
        assert not {"\ud800"} & {*prompt, *response}
        return "scored"

    texts = ("\ud800", "a\udfffb", "", " ", "\n", "\x00", "\u200b", " " * 300)
    tries = [given for text in texts for given in ((PROMPT, text), (text, "love"))]
    attack("empty, blank and broken texts", tries, score, refused="half a surrogate pair")


TEMPLATES = [
    "{% for m in messages %}",
    "{{ raise_exception('no') }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}" + TEMPLATE,
    "{{ messages.__init__.__globals__ }}" + TEMPLATE,
    "{% for i in range(10**9) %}x{% endfor %}" + TEMPLATE,
    "{{ nothing.at.all }}" + TEMPLATE,
    "{{ 1 / 0 }}" + TEMPLATE,
    "{% include '/etc/passwd' %}" + TEMPLATE,
]


def test_templates_made_to_harm(attack):
    def fill(template: str) -> tuple:
        return Dialogue(tokenizer(), template).frame_ids(PROMPT)

    attack("chat templates that fail or try to leave their sandbox", TEMPLATES, fill, refused="the chat template")


# Tokens that are added to a tokenizer, and how many rows of the embedding it does not know.
TOKENIZERS = {
    "without BOS": ([], 0),
    "with added tokens": (["<tool>", "  love", AddedToken("<x>", special=True)], 0),
    "smaller than the embedding": ([], 77),
    "with duplicate strings": (["Ġlove", " love"], 3),
}


@pytest.mark.parametrize("what", TOKENIZERS)
def test_odd_tokenizers(what, attack, tmp_path):
    added, more = TOKENIZERS[what]
    words = tokenizer()
    words.add_tokens(added)
    if what == "without BOS":
        words.chat_template = TEMPLATE.replace("{{ bos_token }}", "")
        words.bos_token = None
    size = len(words) + more
    rm = rmnb.load_reward_model(write_model(tmp_path, LlamaConfig(**SHAPE, vocab_size=size), words))
    scan = rmnb.scan_vocabulary(rm, PROMPT)
    prefix, closing = rm.dialogue.frame_ids(PROMPT)
    assert scan["token_id"].tolist() == list(range(size)) and (scan["kind"] == "unused").sum() >= more
    assert prefix.count(1) == (what != "without BOS")
    alone = rmnb.score_continuations(rm, prefix, [[i, *closing] for i in range(size)], batch_size=1)

    def compare(i: int) -> str:
        assert scan["score"][i] == pytest.approx(alone[i], abs=1e-4)
        text = scan["token"][i]
        if not text or rm.tokenizer(text, add_special_tokens=False, split_special_tokens=True).input_ids != [i]:
            return "ids that only a scan reaches"
        if i % 25 == 0 and text == text.strip():  # the template trims
            assert rm.score(PROMPT, [text])[0] == pytest.approx(alone[i], abs=1e-4)
        return "ids that their text gives back, scored by it to the same reward"

    attack(f"a tokenizer {what}: every id scanned, and scored alone", range(size), compare)
