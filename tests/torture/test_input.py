"""Panels, texts, templates and tokenizers that nobody meant to write: refused in one line, or read as they stand."""

import copy
import random
import time

import numpy as np
import pytest
import transformers
import yaml
from checkpoints import SHAPE, SPECIAL, TEMPLATE, randomise, tokenizer
from tokenizers import AddedToken

import rmnb
from rmnb import store
from rmnb.dialogue import Dialogue
from rmnb.errors import InputError
from rmnb.panel import PANELS, Panel, load_panel

PROMPT = "What, in one word, is the greatest thing ever?"
SECONDS = 5.0  # for one file, however it is made


def read(path, text: str | bytes) -> Panel | None:
    """The panel that a text makes, None if it is refused as it should be."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    begun = time.process_time()
    try:
        panel = load_panel(path)
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error) and len(str(error)) < 1000, error
        panel = None
    assert time.process_time() - begun < SECONDS
    return panel


HOSTILE = {
    "a bomb of merges": "a0: &a0 {k: v}\n"
    + "".join(f"a{i}: &a{i}\n  <<: [*a{i - 1}, *a{i - 1}, *a{i - 1}]\n" for i in range(1, 40)),
    "a bomb of aliases": "a0: &a0 [x, x]\n"
    + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40))
    + "name: *a39\ntitle: *a39\nmodels: *a39\nprompts: *a39\n",
    "an anchor in itself": "name: x\ntitle: X\nmodels: &a [*a]\nprompts: &b {b: *b}\n",
    "a merge with itself": "&a\n<<: *a\nname: x\n",
    "brackets ten thousand deep": "name: " + "[" * 10_000,
    "a mapping hundreds deep": "".join(" " * i + "a:\n" for i in range(600)),
    "a number of ten thousand digits": "name: x\ntitle: X\nmodels: [{name: a, source: b, rank: "
    + "9" * 10_000
    + "}]\n",
    "a date that is none": "name: 2001-99-99\n",
    "an object of Python": "name: !!python/object/apply:os.system ['true']\n",
    "a key that is a list": "? [name]\n: x\n",
    "not UTF-8": b"name: \xff\xfe\xfa",
    "a control character": "name: \x00",
    "nothing": "",
    "a list": "- name\n",
    "half a surrogate pair": 'name: "\\ud800"\ntitle: X\n',
}


def test_files_made_to_harm(tmp_path, attack):
    with attack("panels made to fill memory and stack, and files that are no panels") as tries:
        for what, text in HOSTILE.items():
            with tries.attempt(what):
                assert read(tmp_path / "panel.yml", text) is None
                tries.came_to("refused in one line")


def test_names_that_lead_out_of_the_store(tmp_path, attack):
    names = ["../x", "..", ".", "/etc/x", "a/b", "a\\b", "", " ", ".hidden", "a\nb", "a\0b", "x" * 300]
    with attack("panels, models and prompts named as paths") as tries:
        for name in names:
            for key in ("panel", "model", "prompt"):
                with tries.attempt((key, name)):
                    panel = valid()
                    if key == "panel":
                        panel["name"] = name
                    elif key == "model":
                        panel["models"][0]["name"] = name
                    else:
                        panel["prompts"][0]["key"] = name
                    assert read(tmp_path / "panel.yml", yaml.safe_dump(panel)) is None
                    tries.came_to("refused in one line")


def valid() -> dict:
    return {
        "name": "mine",
        "title": "Mine",
        "models": [
            {"name": "a", "source": "o/a", "colour": "#aabbcc", "parameters": 8, "rank": 1},
            {"name": "b", "base": "smollm2-135m-instruct", "adapter": "x", "template": TEMPLATE},
        ],
        "prompts": [{"key": "greatest", "text": PROMPT, "framing": "positive"}],
    }


JUNK = [None, True, -1, 0, 1.5, float("nan"), float("inf"), 10**30, "", " ", "../..", "<|im_end|>", "\u202e", "💥" * 50]
JUNK += [
    [],
    {},
    [[]],
    {"a": 1},
    ["greatest"],
    {"<<": "a"},
    "#ffffff",
    "float32",
    "exact",
    "${HOME}",
    "{{ 7*7 }}",
    "=",
    "~",
]


def test_panels_with_something_wrong_in_them(tmp_path, attack, times):
    rng = random.Random(0)
    with attack("a panel with one to three values replaced, keys added, or letters changed") as tries:
        for _ in range(times(150, 4000)):
            panel: object = valid()
            for _ in range(rng.randint(1, 3)):
                panel = changed(panel, rng)
            text = yaml.safe_dump(panel, allow_unicode=rng.random() < 0.5, sort_keys=False)
            if rng.random() < 0.3:
                at = rng.randrange(len(text) + 1)
                text = (
                    text[:at]
                    + rng.choice([*"\t{}[]&*!|>'\"%@`:,-?#\x07\u2028", "<<: "])
                    + text[at + rng.randint(0, 2) :]
                )
            with tries.attempt(text):
                found = read(tmp_path / "panel.yml", text)
                tries.came_to("refused in one line" if found is None else "read, every score inside its store")
                if found is not None:
                    home = store.store_directory(found).resolve()
                    for spec in found.models:
                        for prompt in found.all_prompts:
                            assert home in store.scores_path(found, spec.name, prompt.key).resolve().parents


def changed(value: object, rng: random.Random) -> object:
    """The value with one thing in it replaced, removed, doubled or added."""
    value = copy.deepcopy(value)
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        what = rng.random()
        if what < 0.1:
            del value[key]
        elif what < 0.2:
            value[rng.choice(["sauce", "trust_remote_code", 7, key + "_"])] = rng.choice(JUNK)
        else:
            value[key] = changed(value[key], rng)
        return value
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        if rng.random() < 0.15:
            return [*value, copy.deepcopy(value[at])]
        value[at] = changed(value[at], rng)
        return value
    return copy.deepcopy(rng.choice(JUNK))


def test_the_shipped_panels_are_read():
    assert all(load_panel(file.stem).name for file in PANELS.glob("*.yml"))


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
