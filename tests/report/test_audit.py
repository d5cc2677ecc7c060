"""The audit finds a wrong score whatever the unit of a model's rewards."""

import numpy as np
import pytest
from checkpoints import write_decoder, write_panel
from safetensors.torch import load_file, save_file

import rmnb
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
