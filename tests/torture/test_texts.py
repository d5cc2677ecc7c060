"""Texts, templates and tokenizers that nobody meant to write: refused in one line, or read as they stand."""

import random

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


@pytest.mark.parametrize("special", [True, False], ids=["special", "ordinary"])
def test_markers_in_prompts_and_responses_are_text(special, attack, times):
    words = tokenizer()
    if not special:  # as some checkpoints have it: the template's own markers are tokens like any other
        words = tokenizer(special=SPECIAL[:3])
        words.add_tokens([AddedToken(marker, normalized=False, special=False) for marker in SPECIAL[3:]])
        words.chat_template = TEMPLATE
    dialogue = Dialogue(words, TEMPLATE)
    control = {words.convert_tokens_to_ids(marker) for marker in SPECIAL}
    assert len(control) == len(SPECIAL)
    bare, closing = dialogue.frame("a")
    structure = [i for i in bare if i in control]
    rng = random.Random(int(special))
    kind = "special" if special else "ordinary"
    with attack(
        f"texts with markers, invisible and foreign characters as prompt and response ({kind} markers)"
    ) as tries:
        for _ in range(times(200, 4000)):
            text = random_text(rng)
            with tries.attempt(repr(text)):
                ids = dialogue.response_ids(text)
                assert not control & set(ids)
                assert words.decode(ids, clean_up_tokenization_spaces=False) == text
                try:
                    prefix, end = dialogue.frame(text)
                except InputError as error:
                    assert "\ue000" in text, error  # the mark of the assistant's words: no template could be told apart
                    tries.came_to("refused in one line")
                    continue
                assert end == closing and [i for i in prefix if i in control] == structure
                inside = words.decode([i for i in prefix if i not in control], clean_up_tokenization_spaces=False)
                assert inside == text.strip()
                tries.came_to("encoded as text, character by character, between the template's own control tokens")


def test_texts_that_are_none(attack, tmp_path_factory):
    rm = rmnb.load_reward_model(write(tmp_path_factory.mktemp("model"), tokenizer()))
    with attack("empty, blank and broken texts") as tries:
        for text in ("", "\ud800", "a\udfffb"):
            with tries.attempt(repr(text)):
                with pytest.raises(InputError, match=r"is empty|half a surrogate pair"):
                    rm.score(PROMPT, ["love", text])
                tries.came_to("refused in one line")
        for text in (" ", "\n", "\x00", "\u200b", " " * 300):
            with tries.attempt(repr(text)):
                assert np.isfinite(rm.score(PROMPT, [text])).all() and np.isfinite(rm.score(text, ["love"])).all()
                tries.came_to("scored")
        with tries.attempt("prompt"):
            with pytest.raises(InputError, match="half a surrogate pair"):
                rm.score("\ud800", ["love"])
            tries.came_to("refused in one line")


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
    with attack("chat templates that fail or try to leave their sandbox") as tries:
        for what, template in TEMPLATES.items():
            with tries.attempt(what):
                with pytest.raises(InputError, match=r"^the chat template") as refused:
                    Dialogue(tokenizer(), template).frame(PROMPT)
                assert "\n" not in str(refused.value)
                tries.came_to("refused in one line")


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
def test_odd_tokenizers(what, attack, tmp_path, monkeypatch):
    make, more = TOKENIZERS[what]
    words = make()
    size = len(words) + more
    rm = rmnb.load_reward_model(write(tmp_path / "model", words, rows=size))
    with attack(f"a tokenizer {what}: every id scanned, and scored alone") as tries:
        scan = rmnb.scan_vocabulary(rm, PROMPT)
        prefix, closing = rm.dialogue.frame(PROMPT)
        with tries.attempt("scan"):
            assert scan["token_id"].tolist() == list(range(size)) and np.isfinite(scan["score"]).all()
            assert prefix.count(1) == (0 if what == "without BOS" else 1)
            assert (scan["kind"] == "unused").sum() >= more
            tries.came_to("scan with every id in it")
        alone = rmnb.score_continuations(rm, prefix, [[i, *closing] for i in range(size)], batch_size=1)
        for i in range(size):
            with tries.attempt(i):
                assert scan["score"][i] == pytest.approx(alone[i], abs=1e-4)
                text = scan["token"][i]
                ids = rm.dialogue.response_ids(text) if text else []
                if ids == [i]:
                    tries.came_to("ids that their text gives back, scored by it to the same reward")
                    if i % 25 == 0:
                        assert rm.score(PROMPT, [text])[0] == pytest.approx(alone[i], abs=1e-4)
                else:
                    tries.came_to("ids that only a scan reaches")
