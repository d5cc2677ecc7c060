"""Scans: every id once, what is not finite named, the store and its audit. Kills and damage: see tests/torture."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from checkpoints import write_decoder, write_panel

import rmnb
from rmnb.errors import InputError
from rmnb.panels import Panel, load_panel
from rmnb.report import audit
from rmnb.report.audit import audit_panel
from rmnb.scoring import store
from rmnb.training import evaluation
from rmnb.training.recipes import load_recipe

PROMPT = "What, in one word, is the greatest thing ever?"


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Path:
    return write_decoder(tmp_path_factory.mktemp("model"), rows=5000)


def test_a_scan_has_one_row_for_each_id_of_the_embedding(rm):
    scan = rmnb.scan_vocabulary(rm, PROMPT)
    assert scan["token_id"].tolist() == list(range(5000)) and scan.notna().all(axis=None)
    assert set(scan["kind"][:6]) == {"special"} and set(scan["kind"][-1000:]) == {"unused"}
    known = [rm.tokenizer.decode([i]) for i in range(len(rm.tokenizer))]
    assert scan["token"].tolist() == known + [""] * (5000 - len(known))
    assert scan["score"].dtype == np.float32
    assert "{response}" in scan.attrs["provenance"]["conversation"]
    for wrong in ({"rm": "path"}, {"limit": 0}, {"protocol": "none"}, {"ids": []}, {"ids": [5, 100000]}, {"ids": [-1]}):
        with pytest.raises(InputError):
            rmnb.scan_vocabulary(**{"rm": rm, "prompt": PROMPT, **wrong})


@pytest.fixture
def panel(directory, tmp_path) -> Panel:
    return load_panel(write_panel(tmp_path, {"tiny": directory}))


def test_the_store_gives_back_what_was_scanned_and_the_audit_tells_other_weights(panel, rm):
    scan = rmnb.scan_vocabulary(rm, panel.prompt("worst"))
    provenance = scan.attrs["provenance"] | {"model": "tiny"}
    file = store.scores_path(panel, "tiny", "worst")
    store.write_scores(file, scan, provenance)
    pd.testing.assert_frame_equal(store.read_scores(panel, "tiny", "worst"), scan, check_categorical=False)
    assert audit_panel(panel, sample=40)["verdict"].tolist() == ["ok"]
    store.write_scores(file, scan, provenance | {"weights_sha256": "0" * 64})
    assert audit_panel(panel, sample=40)["verdict"].tolist() == ["weights differ"]
    file.unlink()
    with pytest.raises(InputError, match="no scores of tiny for prompt worst"):
        store.read_scores(panel, "tiny", "worst")


@pytest.mark.parametrize(
    ("name", "rows"), [("smollm2-values", 49_152), pytest.param("gemma3-values", 262_144, marks=pytest.mark.slow)]
)
def test_the_shipped_scores_are_whole_and_are_what_the_weights_give(name, rows):
    panel = load_panel("demo")
    scan = store.read_scores(panel, name, "greatest")
    assert scan["token_id"].tolist() == list(range(rows))
    assert np.isfinite(scan["score"]).all() and scan["score"].std() > 0.1
    report = audit_panel(panel, sample=3, models=[name])
    assert (report["verdict"] == "ok").all()
    kinds = {"greatest.exact", "lists/words", "max-2-surrogate-0"}
    assert kinds <= {*report["file"]}


def test_the_audit_measures_recorded_accuracies_again(monkeypatch):
    panel = load_panel("demo").model_copy(update={"scores": "no/scores"})
    pairs = pd.DataFrame(
        {
            "prompt": "Name something wonderful.",
            "chosen": ["Love", "Joy", "War"],
            "rejected": ["War", "Murder", "Peace"],
        }
    )
    monkeypatch.setattr(evaluation, "build_pairs", lambda recipe: (None, pairs.assign(source=["a", "a", "b"])))
    loaded = rmnb.load_reward_model("smollm2-values")
    monkeypatch.setattr(audit, "load_reward_model", lambda spec: loaded)
    measured = evaluation.held_out_accuracy(loaded, load_recipe("values"))
    assert [measured[source]["value"] for source in ("a", "b")] == [1, 0]  # of source b, war is the chosen answer
    for recorded, verdict in [(measured, "ok"), (measured | {"b": measured["a"]}, "accuracy differs")]:
        monkeypatch.setattr(audit, "recorded", lambda spec, recorded=recorded: {"held_out": recorded})
        (row,) = audit_panel(panel, models=["smollm2-values"], accuracy=True).itertuples()
        assert (row.file, row.tokens, row.verdict) == ("held-out pairs", 3, verdict)
