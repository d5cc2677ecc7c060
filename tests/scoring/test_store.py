"""The store of scores: what is stale is said, and each panel's scores lie where its file says."""

import numpy as np
import pytest
from checkpoints import TEMPLATE, edit_tensors, write_base, write_decoder, write_panel
from commands import run

import rmnb
from rmnb.errors import InputError
from rmnb.files import write_json
from rmnb.findings.sequences import searches
from rmnb.findings.tables import load_scores
from rmnb.scoring import store


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path / "cache"))


def scan(panel, model):
    """Scan a model into its panel's store."""
    panel = rmnb.load_panel(panel)
    path = store.scores_path(panel, model, "best")
    rm = rmnb.load_reward_model(model, panel=panel)
    rmnb.scan_vocabulary(rm, panel.prompt("best"), path, restart=True, write=store.write_scores)
    return path


CHANGES = {
    "weights": lambda directory: edit_tensors(directory, lambda old: old | {"score.weight": 2 * old["score.weight"]}),
    "template": lambda directory: (directory / "chat_template.jinja").write_text(TEMPLATE + " "),
    "tokenizer": lambda directory: (directory / "merges.txt").write_text("a b"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_has_changed_since_a_scan_is_said_by_whoever_reads_or_repeats_it(what, tmp_path, monkeypatch, capsys):
    directory = write_decoder(tmp_path / "tiny", rows=400)
    panel = write_panel(tmp_path, {"tiny": directory})
    file = scan(panel, "tiny")
    assert len(load_scores(panel, "best")) > 100
    CHANGES[what](directory)
    with pytest.raises(InputError, match=rf"not what the panel asks for: it differs in {what}:") as refused:
        load_scores(panel, "best")
    assert refused.value.about == str(file)
    words = ("scan", "tiny", "--panel", panel, "--prompt", "best")
    assert run(monkeypatch, *words) == 2
    said = capsys.readouterr().err
    assert f"{file} holds other work: it differs in {what}" in said and said.count("rmnb: ") == 1
    assert run(monkeypatch, *words, "--restart") == 0
    assert len(load_scores(panel, "best")) > 100


def test_another_head_reading_template_or_number_format_of_the_panel_makes_scores_stale(tmp_path, directory):
    panel = write_panel(tmp_path, {"tiny": directory})
    scan(panel, "tiny")
    assert len(store.read_scores(write_panel(tmp_path, {"tiny": directory}, head="linear"), "tiny", "best")) == 400
    for key, value in {"head": "urm", "read": "last", "template": TEMPLATE + " ", "dtype": "bfloat16"}.items():
        with pytest.raises(InputError, match=rf"differs in {key}:"):
            store.read_scores(write_panel(tmp_path, {"tiny": directory}, **{key: value}), "tiny", "best")


def test_scores_of_one_readout_are_not_those_of_another_that_says_less(tmp_path):
    base, reference = write_base(tmp_path / "base"), write_base(tmp_path / "reference", seed=1)
    for first in ({"reference": str(reference), "beta": 0.5}, {"head": "lm_head.weight", "label": 7}):
        scan(write_panel(tmp_path, {"tiny": base}, **first), "tiny")
        panel = write_panel(tmp_path, {"tiny": base}, readout={"kind": "log-probability"})
        with pytest.raises(InputError, match=r"differs in .*(beta|label)"):
            load_scores(panel, "best")


def test_models_of_one_tokenizer_whose_embeddings_are_padded_differently_share_a_panel(tmp_path):
    sizes = {"small": 400, "large": 448}
    panel = write_panel(tmp_path, {name: write_decoder(tmp_path / name, rows=n) for name, n in sizes.items()})
    for name in sizes:
        scan(panel, name)
    assert {name: len(store.read_scores(panel, name, "best")) for name in sizes} == sizes
    both = load_scores(panel, "best")
    assert list(both) == list(sizes) and np.isfinite(both.to_numpy()).all()


def test_scores_lie_where_the_panel_says_also_at_home(tmp_path, directory, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    panel = write_panel(tmp_path, {"tiny": directory})
    panel.write_text(panel.read_text().replace("scores: scores", "scores: ~/x"))
    assert store.store_directory(rmnb.load_panel(panel)) == tmp_path / "home" / "x"
    assert store.store_directory(rmnb.load_panel("demo")).parts[-2:] == ("demo", "scores")


def test_panels_without_a_place_for_scores_share_no_searches():
    demo = rmnb.load_panel("demo")
    one, two = (demo.model_copy(update={"name": name, "scores": None}) for name in ("one", "two"))
    assert store.panel_directory(one, "sequences") != store.panel_directory(two, "sequences")


def test_searches_of_other_weights_are_refused_by_whoever_reads_them(tmp_path, directory):
    panel = rmnb.load_panel(write_panel(tmp_path, {"tiny": directory}))
    content = {"provenance": {"models": [{"weights_sha256": "0"}]}, "config": {}}
    content |= {"sequences": [{"ids": [1]}], "history": [], "steps": 1}
    write_json(store.panel_directory(panel, "sequences") / "tiny" / "max-08-surrogate-0.json", content)
    with pytest.raises(InputError, match="with other weights"):
        searches(panel, "tiny")
