"""Panels that nobody meant to write: refused in one line, or read with every score inside their store."""

import copy
import itertools
import random
import time

import pytest
import yaml
from checkpoints import TEMPLATE

from rmnb.panels import Panel, load_panel
from rmnb.scoring import store

JUNK = [None, True, -1, 0, 1.5, float("nan"), float("inf"), 10**30, "", " ", "../..", "<|im_end|>", "\u202e", "💥" * 50]
JUNK += [[], {}, [[]], {"a": 1}, ["greatest"], {"<<": "a"}, "#ffffff", "float32", "exact", "${HOME}", "{{ 7*7 }}", "~"]


@pytest.fixture
def read(tmp_path):
    """The panel that a text makes."""
    path = tmp_path / "panel.yml"

    def read(text: str | bytes) -> Panel:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        begun = time.process_time()
        try:
            return load_panel(path)
        finally:
            assert time.process_time() - begun < 60  # seconds; a bomb takes for ever

    return read


def bomb(of: str) -> str:
    return "a0: &a0 {k: v}\n" + "".join(f"a{i}: &a{i} {of.replace('*', f'*a{i - 1}')}\n" for i in range(1, 40))


HOSTILE = [
    bomb("{<<: [*, *, *]}"),
    bomb("[*, *]") + "name: *a39\ntitle: *a39\nmodels: *a39\nprompts: *a39\n",
    "name: x\ntitle: X\nmodels: &a [*a]\nprompts: &b {b: *b}\n",  # an anchor in itself
    "&a\n<<: *a\nname: x\n",  # a merge with itself
    "name: " + "[" * 10_000,
    "".join(" " * i + "a:\n" for i in range(600)),
    "name: x\ntitle: X\nmodels: [{name: a, source: b, rank: " + "9" * 10_000 + "}]\n",
    "name: 2001-99-99\n",
    "name: !!python/object/apply:os.system ['true']\n",
    "? [name]\n: x\n",
    b"name: \xff\xfe\xfa",
    "name: \x00",
    "",
    "- name\n",
    'name: "\\ud800"\ntitle: X\n',
]


def test_files_made_to_harm(read, attack):
    name = "panels made to fill memory and stack, and files that are no panels"
    attack(name, HOSTILE, read, refused="panel.yml")


def valid() -> dict:
    models = [
        {"name": "a", "source": "o/a", "colour": "#aabbcc", "parameters": 8, "rank": 1},
        {"name": "b", "base": "smollm2-135m-instruct", "adapter": "x", "template": TEMPLATE},
    ]
    prompts = [{"key": "greatest", "text": "What is the greatest thing?", "framing": "positive"}]
    return {"name": "mine", "title": "Mine", "models": models, "prompts": prompts}


def test_names_that_lead_out_of_the_store(read, attack):
    names = ["../x", "..", ".", "/etc/x", "a/b", "a\\b", "", " ", ".hidden", "a\nb", "a\0b", "x" * 300]

    def write(given: tuple[str, str]) -> Panel:
        what, name = given
        panel = valid()
        named = {"panel": panel, "model": panel["models"][0], "prompt": panel["prompts"][0]}[what]
        named["key" if what == "prompt" else "name"] = name
        return read(yaml.safe_dump(panel))

    named = itertools.product(("panel", "model", "prompt"), names)
    attack("panels, models and prompts named as paths", named, write, refused="panel.yml")


def test_panels_with_something_wrong_in_them(read, attack, times):
    def write(seed: int) -> str:
        rng = random.Random(seed)
        panel: object = valid()
        for _ in range(rng.randint(1, 3)):
            panel = changed(panel, rng)
        text = yaml.safe_dump(panel, allow_unicode=rng.random() < 0.5, sort_keys=False)
        if rng.random() < 0.3:
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice("\t{}[]&*!|>'\"%@`:,-?#\x07\u2028") + text[at + rng.randint(0, 2) :]
        found = read(text)
        home = store.store_directory(found).resolve()
        for spec, prompt in itertools.product(found.models, found.all_prompts):
            assert home in store.scores_path(found, spec.name, prompt.key).resolve().parents
        return "read, every score inside its store"

    name = "a panel with one to three values replaced, keys added, or letters changed"
    attack(name, range(times(150, 4000)), write, refused="panel.yml")


def changed(value: object, rng: random.Random) -> object:
    """The value with one thing in it replaced, removed or added."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.15:
        return copy.deepcopy(rng.choice(JUNK))
    key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
    chance = rng.random()
    if chance > 0.2:
        value[key] = changed(value[key], rng)
    elif chance > 0.1 or isinstance(value, list):
        del value[key]
    else:
        value[rng.choice(["sauce", "trust_remote_code", 7])] = copy.deepcopy(rng.choice(JUNK))
    return value
