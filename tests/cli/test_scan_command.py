"""`rmnb scan`: several prompts, parts, two processes at once, and options that do not go together."""

import functools
import json

import numpy as np
import pandas as pd
import pytest
from checkpoints import write_decoder
from commands import run

import rmnb
from rmnb.panels import find_spec
from rmnb.scoring import store

PROMPT = "What, in one word, is the greatest thing ever?"
WORDS = ["love", "war", "peace and water", "a"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--part", "3/2"], "write which part of how many"),
        (["--preset", "abacus"], "unknown preset 'abacus'"),
        (["--device-map", "{cpu"], "--device-map is no JSON"),
        (["--prompt", "greatest", "--prompt", "worst"], "several prompts do not fit into one file, give a directory"),
    ],
)
def test_wrong_options_of_a_scan_are_one_line_and_code_2(directory, tmp_path, monkeypatch, capsys, words, message):
    assert run(monkeypatch, "scan", directory, "--out", tmp_path / "x.parquet", *words) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


@pytest.fixture
def panel(directory, tmp_path):
    """The path of a panel of one tiny model and two prompts, with a store of its own."""
    path = tmp_path / "tiny.yml"
    prompts = [{"key": key, "text": f"What is the {key} thing?", "framing": "positive"} for key in ("best", "worst")]
    models = [{"name": "tiny", "source": str(directory)}]
    described = {"name": "tiny", "title": "Tiny", "scores": str(tmp_path / "scores")}
    path.write_text(json.dumps(described | {"models": models, "prompts": prompts}))
    return path


def test_one_process_scans_several_prompts(panel, monkeypatch, tmp_path):
    assert run(monkeypatch, "scan", "tiny", "--panel", panel, "--prompt", "best", "--prompt", "worst") == 0
    best, worst = (store.read_scores(panel, "tiny", key) for key in ("best", "worst"))
    assert len(best) == 400 and not best["score"].equals(worst["score"])
    rm = rmnb.load_reward_model(find_spec("tiny", panel))
    alone = rmnb.scan_vocabulary(rm, rmnb.load_panel(panel).prompt("worst"))
    np.testing.assert_array_equal(worst["score"], alone["score"])
    assert not list(tmp_path.rglob("*.partial"))


def test_parts_that_were_scanned_apart_are_put_together_bit_for_bit(tmp_path, monkeypatch, capsys):
    directory = write_decoder(tmp_path / "model", rows=4000)
    whole, parts = tmp_path / "whole.parquet", tmp_path / "parts.parquet"
    command = functools.partial(run, monkeypatch, "scan", directory, "--prompt", PROMPT, "--batch-size", 48)
    assert command("--out", whole) == 0
    for part in ("3/3", "1/3"):  # the second is never run: the last command finds that it is missing
        assert command("--out", parts, "--part", part) == 0
        assert not parts.exists()
    kept = {file.name: file.stat().st_mtime_ns for file in tmp_path.glob("parts.parquet.partial/*.f32")}
    assert len(kept) == 3  # of four: one in the first part, one in the second, two in the third
    written = []
    monkeypatch.setattr(store.Shards, "write", _noting(store.Shards.write, written))
    assert command("--out", parts) == 0
    assert written == [1024]
    assert store.read_scan(parts)[1]["content_sha256"] == store.read_scan(whole)[1]["content_sha256"]


def _noting(write, written):
    def noted(self, piece, scores):
        written.append(piece.start)
        return write(self, piece, scores)

    return noted


def test_of_two_processes_that_begin_one_scan_the_first_sets_the_batch(rm, tmp_path, monkeypatch):
    from rmnb.scoring import scanning

    out = tmp_path / "scan.parquet"

    def outrun(scorer, plan):
        # While this process looks at its memory, another one begins the same scan with another batch size.
        monkeypatch.setattr(scanning, "_batch_size", lambda scorer, plan: 16)
        scanning.scan_part(rm, PROMPT, out, 2, 2)
        return 32

    monkeypatch.setattr(scanning, "_batch_size", outrun)
    scan = scanning.scan_vocabulary(rm, PROMPT, output=out)
    assert scan.attrs["provenance"]["batch_size"] == 16 == store.Shards.planned(out)["batch_size"]


def test_a_noise_floor_of_ones_own_is_not_written_into_the_shipped_data(panel, monkeypatch, tmp_path, capsys):
    from rmnb.scoring import noise

    monkeypatch.setenv("RMNB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(noise, "measure_noise", lambda *_, **__: (None, {}))
    monkeypatch.setattr(noise, "noise_table", lambda scores, name: pd.DataFrame({"model": [name]}))
    written = []
    monkeypatch.setattr(noise, "write_noise", lambda *given: written.append(given[-1]))
    assert run(monkeypatch, "noise", "--panel", panel, "--prompt", "best") == 0
    assert run(monkeypatch, "noise", "--panel", panel, "--prompt", "best", "--out", tmp_path / "here") == 0
    assert written == [tmp_path / "cache" / "noise" / "tiny", tmp_path / "here"]


def test_a_directory_takes_a_file_a_prompt_and_a_csv_is_a_copy(directory, monkeypatch, tmp_path):
    words = ["scan", directory, "--device", "cpu", "--limit", "40", "--system", "Be brief."]
    assert run(monkeypatch, *words, "--prompt", "Which one?", "--out", tmp_path / "one.csv") == 0
    scan, provenance = store.read_scan(tmp_path / "one.parquet")
    assert provenance["history"] == [{"role": "system", "content": "Be brief."}]
    assert pd.read_csv(tmp_path / "one.csv")["score"].to_numpy() == pytest.approx(scan["score"].to_numpy(), rel=1e-6)
    words = [word for word in words if word not in ("--system", "Be brief.")]
    assert run(monkeypatch, *words, "--prompt", "best", "--prompt", "worst", "--out", tmp_path / "both") == 0
    assert sorted(file.name for file in (tmp_path / "both").iterdir()) == ["best.parquet", "worst.parquet"]
