"""The papers' panels and prompts: what is scanned is what they asked, model by model and word by word."""

import itertools

import pandas as pd
import pytest
import yaml

from rmnb.data import sources
from rmnb.errors import InputError
from rmnb.panels import ModelSpec, find_base, load_panel, load_prompts
from rmnb.panels.specs import validate
from rmnb.scoring.loading import load_reward_model
from rmnb.scoring.store import read_scores


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
    with pytest.raises(
        InputError, match=r"mine.yml: .*unknown prompt set 'iclr2062': choose one of facct2025, iclr2026"
    ):
        load_panel(file)


def test_the_ten_models_are_the_papers_in_their_order(mirror):
    """Names, sizes and order as in the released tables."""
    panel = load_panel("facct2025")
    moments = pd.read_csv(sources.locate(next(name for name in sources.pins() if "table_3" in name)))
    assert panel.model_names == list(moments.iloc[:, 0])
    assert [model.rank for model in panel.models] == [2, 3, 5, 10, 11, 12, 17, 19, 20, 31]
    scored = {name.split("rewards_")[1].removesuffix(".csv") for name in sources.pins() if "dict_big2_nouns/" in name}
    assert {model.source.replace("/", "_") for model in panel.models} == scored


def test_reference_scores_are_complete_examples():
    references = {model.name: model.card for model in load_panel("facct2025").models if model.card}
    assert set(references) == {"S-Gem-27B", "S-Lla-8B-v0.2", "L-Lla-8B"}
    for better_first, (one, other) in [(True, references["S-Gem-27B"]), (False, references["L-Lla-8B"])]:
        assert one.prompt == other.prompt and (one.score > other.score) == better_first
        assert one.tolerance < abs(one.score - other.score) / 10  # a swap of the two, or of the sign, must not pass


def test_base_models_are_wrapped_as_each_paper_did():
    """The papers put pretrained models the question differently; instruct models always get their template."""
    for name, wrapping, count in [("iclr2026", "bare", 12), ("facct2025", "user_assistant", 10)]:
        panel = load_panel(name)
        assert len(panel.bases) == count and len(panel.prompt_sets) == 1
        for base in panel.bases:
            assert base.wrapping == {"instruct": "chat", "pretrained": wrapping}[base.kind]
            assert (base.kind == "instruct") == base.source.lower().endswith(("-it", "-instruct"))


def test_a_panel_of_language_models_says_that_it_has_no_reward_model():
    panel = load_panel("iclr2026")
    assert find_base(panel, "google/gemma-2-2b-it") is find_base(panel, "Gemma 2 2B IT")
    with pytest.raises(InputError, match="has no model 'R-Gem-2B': choose one of none"):
        panel.model("R-Gem-2B")


def test_directories_are_relative_to_the_panels_file_and_advice_names_it(tmp_path):
    (tmp_path / "there").mkdir()
    file = tmp_path / "other_name.yml"
    file.write_text("""
        name: mine
        title: Mine
        scores: kept
        models:
          - {name: a, base: there, adapter: to-be-trained}
          - {name: e, base: there, adapter: demo/adapters/smollm2-values}
          - {name: b, source: there, base_model: there}
          - {name: c, source: o/c}
        bases: [{name: d, source: there, kind: pretrained, wrapping: bare}]
        prompts: [{key: greatest, text: "What is the greatest thing?", framing: positive}]
    """)
    panel, there = load_panel(file), str(tmp_path / "there")
    own, demos, adapted, hub = panel.models
    assert [own.base, adapted.source, adapted.base_model, panel.bases[0].source] == [there] * 4
    assert own.adapter == str(tmp_path / "to-be-trained") and panel.scores == str(tmp_path / "kept")
    assert demos.adapter == "demo/adapters/smollm2-values" and hub.source == "o/c"  # of the project's data, of the hub
    with pytest.raises(InputError, match=f"^a: nothing at {own.adapter}[^:]*$"):
        load_reward_model("a", panel=file)
    with pytest.raises(InputError, match=f"rmnb scan c --panel {file} --prompt greatest"):
        read_scores(panel, "c", "greatest")
    assert load_panel("demo").called == "demo"


def test_every_scan_that_ships_is_still_what_its_panel_asks_for():
    """A key that `Judge` or a plan gains would make them stale."""
    for name in ("demo", "demo-judge"):
        panel = load_panel(name)
        for model, prompt in itertools.product(panel.model_names, panel.scanned_prompts):
            assert len(read_scores(panel, model, prompt.key)) > 40_000


def test_a_panel_with_a_key_twice_or_ranks_for_some_models_is_refused_and_a_tokenizer_lies_beside_it(tmp_path):
    model = {"name": "a", "source": "owner/a", "tokenizer": "words"}
    panel = {"name": "mine", "title": "Mine", "models": [model], "prompt_sets": ["iclr2026"]}
    file = tmp_path / "mine.yml"
    file.write_text(yaml.safe_dump(panel))
    (tmp_path / "words").mkdir()
    assert load_panel(file).model("a").tokenizer == str(tmp_path / "words")
    file.write_text(yaml.safe_dump(panel) + "models: []\n")
    with pytest.raises(InputError, match="the key models is there twice"):
        load_panel(file)
    file.write_text(yaml.safe_dump(panel | {"models": [model | {"rank": 1}, model | {"name": "b"}]}))
    with pytest.raises(InputError, match="rank: only a of 2 models"):
        load_panel(file)


def test_no_name_in_a_panel_leads_out_of_its_store(tmp_path):
    """Of models, prompts and the panel itself: tests/torture."""
    base = {"name": "../../x", "source": "owner/a", "kind": "instruct", "wrapping": "chat"}
    (tmp_path / "mine.yml").write_text(yaml.safe_dump({"name": "mine", "title": "Mine", "bases": [base]}))
    with pytest.raises(InputError, match=r"mine.yml: bases.0.name: .*no slash"):
        load_panel(tmp_path / "mine.yml")


@pytest.mark.parametrize(
    ("keys", "readout"),
    [
        ({"label": 1}, {"kind": "head", "label": 1}),
        ({"judge": "yes-no", "label": "all"}, {"judge": "yes-no", "label": "all"}),
        ({"reference": "x/y"}, {"kind": "implicit", "reference": "x/y", "beta": 0.1}),
        ({"head": "log-probability", "wrapping": "bare"}, {"kind": "log-probability", "wrapping": "bare"}),
    ],
)
def test_keys_of_a_readout_may_stand_among_the_models_own(keys, readout):
    spec = ModelSpec(name="m", source="x/y", **keys)
    assert spec == ModelSpec(name="m", source="x/y", readout=readout)
    assert spec == validate(ModelSpec, {**spec.model_dump(), **dict.fromkeys(keys)}, "m")
    with pytest.raises(InputError, match="readout"):
        validate(ModelSpec, {"name": "m", "source": "x/y", "readout": "judge"}, "m")
