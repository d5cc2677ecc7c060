"""Texts, templates and tokenizers that nobody meant to write: refused in one line, or read as they stand."""

import random
import unicodedata

import numpy as np
import pytest
import transformers
from checkpoints import SHAPE, SPECIAL, TEMPLATE, randomise, tokenizer
from tokenizers import AddedToken

import rmnb
from rmnb.errors import InputError
from rmnb.models.dialogue import Dialogue

PROMPT = "What, in one word, is the greatest thing ever?"


PIECES = [
    *SPECIAL,
    "<|im_end|>",
    "<|eot_id|>",
    "[INST]",
    "</s>",
    "love",
    " love",
    "war ",
    " ",
    "\n",
    "\t",
    "\u00a0",
    "\u200b",
]
PIECES += [
    "\u202e",
    "é",
    "e\u0301",
    "你好",
    "🙂",
    "👩‍👩‍👧",
    "\x00",
    "\x1b[31m",
    "{{ 7*7 }}",
    "{% raise %}",
    "<b>",
    "&amp;",
    "$x$",
    "\\",
    "'",
    "\ufffd",
]
PIECES += ["\ue000response\ue000", "\U000f0000", "\U0010ffff", "<end", "end>", "<<end>>", "a<end>b"]


def random_text(rng: random.Random) -> str:
    return "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 8)))


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
        text = random_text(random.Random(seed))
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


def test_texts_that_are_none(attack, tmp_path_factory):
    rm = rmnb.load_reward_model(write(tmp_path_factory.mktemp("model"), tokenizer()))

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


TEMPLATES = {
    "a syntax error": "{% for m in messages %}",
    "an error of its own": "{{ raise_exception('no') }}",
    "a way out of the sandbox": "{{ ''.__class__.__mro__[1].__subclasses__() }}" + TEMPLATE,
    "an attribute of Python's": "{{ messages.__init__.__globals__ }}" + TEMPLATE,
    "a loop without end": "{% for i in range(10**9) %}x{% endfor %}" + TEMPLATE,
    "an unknown name": "{{ nothing.at.all }}" + TEMPLATE,
    "a division by zero": "{{ 1 / 0 }}" + TEMPLATE,
    "an include": "{% include '/etc/passwd' %}" + TEMPLATE,
}


def test_templates_made_to_harm(attack):
    def fill(what: str) -> str:
        with pytest.raises(InputError, match=r"^the chat template") as refused:
            Dialogue(tokenizer(), TEMPLATES[what]).frame(PROMPT)
        assert "\n" not in str(refused.value)
        return "refused in one line"

    attack("chat templates that fail or try to leave their sandbox", TEMPLATES, fill)


def write(directory, words, rows: int | None = None):
    """A tiny model with one layer and a tokenizer of one's own."""
    config = transformers.LlamaConfig(**(SHAPE | {"num_hidden_layers": 1}), vocab_size=rows or len(words))
    model = transformers.AutoModelForSequenceClassification.from_config(config)
    randomise(model)
    model.save_pretrained(directory)
    words.save_pretrained(directory)
    return directory


def without_bos():
    words = tokenizer(TEMPLATE.replace("{{ bos_token }}", ""))
    words.bos_token = None
    return words


def with_added_tokens():
    words = tokenizer()
    words.add_tokens(
        [AddedToken("<tool>", special=False), AddedToken("  love", special=False), AddedToken("<x>", special=True)]
    )
    return words


def with_duplicate_strings():
    words = tokenizer()
    words.add_tokens([AddedToken("Ġlove", special=False), AddedToken(" love", special=False)])
    return words


TOKENIZERS = {
    "without BOS": (without_bos, 0),
    "with added tokens": (with_added_tokens, 0),
    "smaller than the embedding": (tokenizer, 77),
    "with duplicate strings": (with_duplicate_strings, 3),
}


@pytest.mark.parametrize("what", TOKENIZERS)
def test_odd_tokenizers(what, attack, tmp_path):
    make, more = TOKENIZERS[what]
    words = make()
    size = len(words) + more
    rm = rmnb.load_reward_model(write(tmp_path / "model", words, rows=size))
    scan = rmnb.scan_vocabulary(rm, PROMPT)
    prefix, closing = rm.dialogue.frame(PROMPT)
    assert scan["token_id"].tolist() == list(range(size)) and np.isfinite(scan["score"]).all()
    assert prefix.count(1) == (0 if what == "without BOS" else 1)
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
