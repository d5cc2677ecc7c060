"""The audit finds a wrong score whatever the unit of a model's rewards."""

import numpy as np
import pytest
from checkpoints import write_decoder
from safetensors.torch import load_file, save_file

import rmnb
from rmnb.panels import Panel
from rmnb.report.audit import audit_panel
from rmnb.scoring import store


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_a_hundredth_of_the_spread_is_found_whatever_the_unit_of_rewards(unit, tmp_path):
    directory = write_decoder(tmp_path / "model", rows=400)
    weights = load_file(directory / "model.safetensors")
    weights["score.weight"] *= unit
    save_file(weights, directory / "model.safetensors", {"format": "pt"})
    prompt = {"key": "greatest", "text": "What is best?", "framing": "positive"}
    panel = Panel.model_validate(
        {
            "name": "tiny",
            "title": "Tiny",
            "models": [{"name": "tiny", "source": str(directory)}],
            "prompts": [prompt],
            "scores": str(tmp_path / "scores"),
        }
    )
    scan = rmnb.scan_vocabulary(rmnb.load_reward_model("tiny", panel=panel), panel.prompt("greatest"))
    hundredth = np.float32(0.01 * scan["score"].std())
    wrong = scan.assign(score=scan["score"] + hundredth * (scan["token_id"] % 2))
    for scores, verdict in ((scan, "ok"), (wrong, "scores differ")):
        store.write_scores(panel, scores, scan.attrs["provenance"])
        assert audit_panel(panel)["verdict"].tolist() == [verdict]
