"""`rmnb plan`: nothing is fetched, what was measured is in the range, what cannot be planned is one clear line."""

import json
import socket
from pathlib import Path

import pandas as pd
import pytest
from commands import run
from torch.utils.flop_counter import FlopCounterMode

import rmnb

ROOT = Path(__file__).parents[2]


@pytest.fixture
def cut_off(monkeypatch):
    """No way to the network."""

    def refuse(*_):
        raise AssertionError("something was to be fetched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_the_papers_panel_is_planned_without_a_network_and_held_what_was_measured(cut_off, monkeypatch, capsys):
    assert run(monkeypatch, "plan", "--panel", "facct2025", "--device", "h100", "--dtype", "bfloat16", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    measured = pd.read_csv(ROOT / "data/gpu/papers.csv").set_index("architecture")
    specs = rmnb.load_panel("facct2025").models
    for spec, row in zip(specs, rows, strict=True):
        known = measured.loc[f"{spec.family.split()[0]} {spec.parameters:g}B"]
        assert row["low"] < known["seconds"] < row["high"] < 4 * row["low"]
        assert row["GB"] < known["GPU memory, GB"] < 1.1 * row["GB"] and row["fits"]
    assert run(monkeypatch, "plan", "--panel", "facct2025", "--device", "l4", "S-Gem-27B", "R-Lla-3B") == 0
    named = [line.split()[0] for line in capsys.readouterr().out.splitlines() if "does not fit" in line]
    assert named == ["S-Gem-27B"]


def test_the_operations_of_a_checkpoint_are_those_of_its_scan(directory, rm, monkeypatch, capsys):
    assert run(monkeypatch, "plan", directory, "--prompt", "best", "--device", "cpu", "--json") == 0
    [row] = json.loads(capsys.readouterr().out)
    rm.score("a?", ["b"])  # proves the model, which is no part of the scan
    with FlopCounterMode(display=False) as counter:
        rmnb.scan_vocabulary(rm, rmnb.load_panel("demo").prompt("best"))
    assert 1 <= row["TFLOP"] / (counter.get_total_flops() / 1e12) < 1.3  # a scan leaves out some of the last layer
    assert (row["tokens"], row["ids"]) == (400, 2)


def test_a_model_that_is_not_here_is_named(directory, cut_off, monkeypatch, tmp_path, capsys):
    models = [{"name": "mine", "source": str(directory)}, {"name": "theirs", "source": "nobody/knows-this"}]
    prompts = [{"key": "best", "text": "What is the best thing?", "framing": "positive"}]
    path = tmp_path / "own.yml"
    path.write_text(json.dumps({"name": "own", "title": "Own", "models": models, "prompts": prompts}))
    assert run(monkeypatch, "plan", "--panel", path, "--prompt", "best", "--device", "cpu") == 0
    assert "theirs" in capsys.readouterr().out.split("Left out")[1]
    assert run(monkeypatch, "plan", "theirs", "--panel", path, "--prompt", "best") == 2
    assert "theirs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--panel", "nowhere"], "unknown panel 'nowhere'"),
        (["--prompt", "greatestt"], "unknown prompt 'greatestt'"),
        (["--device", "abacus"], "unknown device"),
        (["--dtype", "float7"], "unknown dtype 'float7'"),
        (["--panel", "facct2025", "--device", "t4"], "the T4 has no bfloat16"),
        (["--panel", "iclr2026"], "no reward models"),
        (["no-such-model"], "unknown model 'no-such-model'"),
    ],
)
def test_what_cannot_be_planned_is_one_line_and_code_2(monkeypatch, capsys, words, message):
    assert run(monkeypatch, "plan", *words) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
