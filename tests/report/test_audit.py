"""The audit finds a wrong score whatever the unit of a model's rewards."""

import numpy as np
import pytest
from checkpoints import write_decoder, write_panel
from safetensors.torch import load_file, save_file

import rmnb
from rmnb.report import audit
from rmnb.report.audit import audit_panel
from rmnb.scoring import store


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_a_hundredth_of_the_spread_is_found_whatever_the_unit_of_rewards(unit, tmp_path):
    directory = write_decoder(tmp_path / "model", rows=400)
    weights = load_file(directory / "model.safetensors")
    weights["score.weight"] *= unit
    save_file(weights, directory / "model.safetensors", {"format": "pt"})
    panel = rmnb.load_panel(write_panel(tmp_path, {"tiny": directory}))
    scan = rmnb.scan_vocabulary(rmnb.load_reward_model("tiny", panel=panel), panel.prompt("best"))
    hundredth = np.float32(0.01 * scan["score"].std())
    wrong = scan.assign(score=scan["score"] + hundredth * (scan["token_id"] % 2))
    for scores, verdict in ((scan, "ok"), (wrong, "scores differ")):
        store.write_scores(store.scores_path(panel, "tiny", "best"), scores, scan.attrs["provenance"])
        assert audit_panel(panel)["verdict"].tolist() == [verdict]


def test_in_half_precision_rounding_is_no_disagreement_and_a_shift_beyond_it_is_found(tmp_path):
    made = write_panel(tmp_path, {"tiny": write_decoder(tmp_path / "model", rows=400)}, dtype="bfloat16")
    panel = rmnb.load_panel(made)
    scan = rmnb.scan_vocabulary(rmnb.load_reward_model("tiny", panel=panel), panel.prompt("best"))
    for shift, verdict in ((0.0, "ok"), (2.0, "scores differ")):
        shifted = scan.assign(score=scan["score"] + np.float32(shift * scan["score"].std()))
        store.write_scores(store.scores_path(panel, "tiny", "best"), shifted, scan.attrs["provenance"])
        assert audit_panel(panel)["verdict"].tolist() == [verdict]


def test_pairs_of_words_are_audited_as_scans_are(tmp_path, monkeypatch):
    """One shipped square, and a copy of it in which every score has moved by a fifth of the spread."""
    demo = rmnb.load_panel("demo")
    loaded = rmnb.load_reward_model("smollm2-values")
    monkeypatch.setattr(audit, "load_reward_model", lambda spec: loaded)
    kept = {}

    def stored(panel, rm):
        for row in whole(panel, rm):
            if row[0].startswith("pairs/greatest"):
                kept[row[0]] = row
                yield row

    whole = audit._stored
    monkeypatch.setattr(audit, "_stored", stored)
    report = audit_panel(demo, sample=4, models=["smollm2-values"]).set_index("file")
    assert report["verdict"].to_dict() == {"pairs/greatest.exact": "ok", "pairs/greatest": "ok"}
    assert report.loc["pairs/greatest.exact", "largest_difference"] < 1e-5
    name, provenance, scores, spread, rounding = kept["pairs/greatest"]
    moved = name, provenance, scores.assign(score=scores["score"] + 0.2 * spread), spread, rounding
    monkeypatch.setattr(audit, "_stored", lambda *_: [moved])
    assert audit_panel(demo, sample=4, models=["smollm2-values"])["verdict"].tolist() == ["scores differ"]
