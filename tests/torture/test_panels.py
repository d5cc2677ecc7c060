"""Panels that nobody meant to write: refused in one line, or read with every score inside their store."""

import copy
import itertools
import random
import time

import yaml
from checkpoints import TEMPLATE

from rmnb.errors import InputError
from rmnb.panels import PANELS, Panel, load_panel
from rmnb.scoring import store

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
    def write(what: str) -> str:
        assert read(tmp_path / "panel.yml", HOSTILE[what]) is None
        return "refused in one line"

    attack("panels made to fill memory and stack, and files that are no panels", HOSTILE, write)


def test_names_that_lead_out_of_the_store(tmp_path, attack):
    names = ["../x", "..", ".", "/etc/x", "a/b", "a\\b", "", " ", ".hidden", "a\nb", "a\0b", "x" * 300]

    def write(named: tuple[str, str]) -> str:
        key, name = named
        panel = valid()
        if key == "panel":
            panel["name"] = name
        elif key == "model":
            panel["models"][0]["name"] = name
        else:
            panel["prompts"][0]["key"] = name
        assert read(tmp_path / "panel.yml", yaml.safe_dump(panel)) is None
        return "refused in one line"

    named = itertools.product(("panel", "model", "prompt"), names)
    attack("panels, models and prompts named as paths", named, write)


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
    def write(seed: int) -> str:
        rng = random.Random(seed)
        panel: object = valid()
        for _ in range(rng.randint(1, 3)):
            panel = changed(panel, rng)
        text = yaml.safe_dump(panel, allow_unicode=rng.random() < 0.5, sort_keys=False)
        if rng.random() < 0.3:
            at = rng.randrange(len(text) + 1)
            letter = rng.choice([*"\t{}[]&*!|>'\"%@`:,-?#\x07\u2028", "<<: "])
            text = text[:at] + letter + text[at + rng.randint(0, 2) :]
        found = read(tmp_path / "panel.yml", text)
        if found is None:
            return "refused in one line"
        home = store.store_directory(found).resolve()
        for spec in found.models:
            for prompt in found.all_prompts:
                assert home in store.scores_path(found, spec.name, prompt.key).resolve().parents
        return "read, every score inside its store"

    attack("a panel with one to three values replaced, keys added, or letters changed", range(times(150, 4000)), write)


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
