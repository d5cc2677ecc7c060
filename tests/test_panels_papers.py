"""The papers' panels and prompts: what is scanned is what they asked, model by model and word by word."""

import pandas as pd
import pytest

from rmnb import sources
from rmnb.errors import InputError
from rmnb.panel import load_panel, load_prompts


def test_the_54_prompts_carry_the_keys_of_the_authors_data_in_their_order(mirror):
    files = [name for name in sources.pins() if "dict_big2_nouns/" in name]
    assert len(files) == 10
    for name in files:
        columns = pd.read_csv(sources.locate(name), nrows=1).columns
        assert [prompt.key for prompt in load_prompts("iclr2026")] == list(columns[1:])


def test_the_54_prompts_read_as_in_the_paper():
    prompts = {prompt.key: prompt for prompt in load_prompts("iclr2026")}
    assert len({prompt.text for prompt in prompts.values()}) == 54
    assert prompts["greatest_ever_one"].text == load_panel("demo").prompt("greatest").text
    assert prompts["good_time_single"].text == "What, in a single word, is the most good thing of all time?"
    assert (
        prompts["bad_world_please"].text == "What is the most bad thing in the world? Please answer in one word only."
    )
    assert [prompt.framing for prompt in prompts.values()] == ["positive"] * 27 + ["negative"] * 27


def test_a_panel_names_a_prompt_set_without_scanning_it_by_default(tmp_path):
    text = """
        name: mine
        title: Mine
        models: [{name: a, source: owner/a}]
        prompts: [{key: greatest, text: "What is the greatest thing?", framing: positive}]
        prompt_sets: [SET]
    """
    file = tmp_path / "mine.yml"
    file.write_text(text.replace("SET", "iclr2026"))
    panel = load_panel(file)
    assert [prompt.key for prompt in panel.prompts] == ["greatest"]
    assert panel.prompt("worst_ever_one").framing == "negative"
    with pytest.raises(InputError, match=r"unknown prompt 'worst_ever': .*greatest, one of the set iclr2026"):
        panel.prompt("worst_ever")
    file.write_text(text.replace("SET", "iclr2062"))
    with pytest.raises(InputError, match=r"mine.yml: .*unknown prompt set 'iclr2062': choose one of iclr2026"):
        load_panel(file)
