"""`rmnb plan`: nothing is fetched, a line fits a terminal, and what cannot be planned is one clear line."""

import json
import socket
from pathlib import Path

import pytest
from commands import run

ROOT = Path(__file__).parents[2]


@pytest.fixture
def cut_off(monkeypatch):
    """No way to the network."""

    def refuse(*_):
        raise AssertionError("something was to be fetched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_the_papers_panel_is_planned_without_a_network_and_fits_a_terminal(cut_off, monkeypatch, capsys):
    assert run(monkeypatch, "plan", "--panel", "facct2025", "--device", "h100") == 0
    told = capsys.readouterr().out
    assert told in (ROOT / "book" / "gpu.md").read_text(encoding="utf-8")
    lines = told.splitlines()
    assert max(map(len, lines)) <= 80
    rows = {line.split()[0]: line for line in lines if line.count(" GB ") == 2}
    assert len(rows) == 10
    assert "256,000 × 3" in rows["N-Gem-27B"] and "54.5 GB" in rows["N-Gem-27B"]
    totals = [line.split() for line in lines if "10 models, " in line]
    flop = {int(words[2]): float(words[words.index("TFLOP") - 1].replace(",", "")) for words in totals}
    assert flop[54] == pytest.approx(54 * flop[1], rel=1e-4) and flop[2] == pytest.approx(2 * flop[1], rel=1e-4)


def test_what_does_not_fit_is_named(monkeypatch, capsys):
    assert run(monkeypatch, "plan", "--panel", "facct2025", "--device", "l4", "S-Gem-27B", "R-Lla-3B") == 0
    told = capsys.readouterr().out.split("GB are too few for")[1]
    assert "S-Gem-27B" in told and "R-Lla-3B" not in told


def test_a_checkpoint_of_ones_own_is_measured_here_and_a_hub_model_is_named(
    directory, cut_off, monkeypatch, tmp_path, capsys
):
    models = [{"name": "mine", "source": str(directory)}, {"name": "theirs", "source": "nobody/knows-this"}]
    prompts = [{"key": "best", "text": "What is the best thing?", "framing": "positive"}]
    path = tmp_path / "own.yml"
    path.write_text(json.dumps({"name": "own", "title": "Own", "models": models, "prompts": prompts}))
    assert run(monkeypatch, "plan", "--panel", path, "--prompt", "best", "--device", "cpu") == 0
    told = capsys.readouterr().out
    assert "400 × 2" in told and "theirs" in told.split("Left out")[1]
    assert run(monkeypatch, "plan", "theirs", "--panel", path, "--prompt", "best") == 2
    assert "theirs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--panel", "nowhere"], "unknown panel 'nowhere'"),
        (["--prompt", "greatestt"], "unknown prompt 'greatestt'"),
        (["--device", "abacus"], "by name: t4"),
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


def test_a_scan_begins_with_what_it_will_take(directory, monkeypatch, tmp_path, capsys):
    words = ["scan", directory, "--device", "cpu", "--limit", "40", "--prompt", "best", "--prompt", "worst"]
    assert run(monkeypatch, *words, "--out", tmp_path / "both") == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("2 prompts × 40 tokens × 2 ids: ") and "this machine's CPU" in first
    assert run(monkeypatch, *words, "--out", tmp_path / "both") == 0
    assert "ids" not in capsys.readouterr().out  # nothing is left to do
