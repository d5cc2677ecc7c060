"""Texts, templates and tokenizers that nobody meant to write: refused in one line, or read as they stand."""

import random
import unicodedata

import numpy as np
import pytest
from checkpoints import SHAPE, SPECIAL, TEMPLATE, tokenizer, write_model
from tokenizers import AddedToken
from transformers import LlamaConfig

import rmnb
from rmnb.errors import InputError
from rmnb.models.dialogue import Dialogue

PROMPT = "What, in one word, is the greatest thing ever?"
PIECES = [*SPECIAL, "<|im_end|>", "<|eot_id|>", "[INST]", "</s>", "love", "{{7*7}}", "{%raise%}", "<b>", "&amp;", "$x$"]
PIECES += ["\\", "'", "<end", "end>", "<<end>>", "a<end>b"]
PIECES += [
    *" \t\n\u00a0\u200b\u202eé你\x00\ufffd\U000f0000\U0010ffff",
    " love",
    "e\u0301",
    "👩‍👩‍👧",
    "\x1b[31m",
    "\ue000response\ue000",
]


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
    bare, closing = dialogue.frame("a")
    structure = [i for i in bare if i in control]

    def read(seed: int) -> str:
        rng = random.Random(seed)
        text = "".join(rng.choices(PIECES, k=rng.randint(0, 8)))
        try:
            ids = dialogue.conversations("a", [text])[0]
            prefix, end = dialogue.frame(text)
        except InputError as error:
            assert any(unicodedata.category(letter) == "Co" for letter in text), error
            return "refused in one line"
        assert end == closing and [i for i in prefix if i in control] == structure
        inside = words.decode([i for i in prefix if i not in control], clean_up_tokenization_spaces=False)
        assert inside == text.strip()
        assert [i for i in ids if i in control] == [*structure, *closing]
        assert words.decode(ids[len(bare) : -len(closing)], clean_up_tokenization_spaces=False) == text.strip()
        return "encoded as text, character by character, between the template's own control tokens"

    name = f"texts with markers, invisible and foreign characters as prompt and response ({kind} markers)"
    attack(name, range(times(100, 4000)), read)


def test_texts_that_are_none(attack, rm):
    def score(text: str) -> str:
        if "\ud800" in text or "\udfff" in text:
            for prompt, response in ((PROMPT, text), (text, "love")):
                with pytest.raises(InputError, match="half a surrogate pair"):
                    rm.score(prompt, ["love", response])
            return "refused in one line"
        assert np.isfinite(rm.score(PROMPT, [text])).all() and np.isfinite(rm.score(text, ["love"])).all()
        return "scored"

    texts = ("\ud800", "a\udfffb", "", " ", "\n", "\x00", "\u200b", " " * 300)
    attack("empty, blank and broken texts", texts, score)


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
    def fill(template: str) -> str:
        with pytest.raises(InputError, match=r"^the chat template[^\n]*$"):
            Dialogue(tokenizer(), template).frame(PROMPT)
        return "refused in one line"

    attack("chat templates that fail or try to leave their sandbox", TEMPLATES, fill)


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
        words = tokenizer(TEMPLATE.replace("{{ bos_token }}", ""))
        words.bos_token = None
    size = len(words) + more
    rm = rmnb.load_reward_model(write_model(tmp_path, LlamaConfig(**SHAPE, vocab_size=size), words))
    scan = rmnb.scan_vocabulary(rm, PROMPT)
    prefix, closing = rm.dialogue.frame(PROMPT)
    assert scan["token_id"].tolist() == list(range(size)) and np.isfinite(scan["score"]).all()
    assert prefix.count(1) == (what != "without BOS")
    assert (scan["kind"] == "unused").sum() >= more
    alone = rmnb.score_continuations(rm, prefix, [[i, *closing] for i in range(size)], batch_size=1)

    def compare(i: int) -> str:
        assert scan["score"][i] == pytest.approx(alone[i], abs=1e-4)
        text = scan["token"][i]
        if not text or rm.dialogue.response_ids(text) != [i]:
            return "ids that only a scan reaches"
        if i % 25 == 0 and text == text.strip():  # the template trims
            assert rm.score(PROMPT, [text])[0] == pytest.approx(alone[i], abs=1e-4)
        return "ids that their text gives back, scored by it to the same reward"

    attack(f"a tokenizer {what}: every id scanned, and scored alone", range(size), compare)
