"""`rmnb compare`: what a gate exits with, and what is no input for it."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import run

from rmnb.report import numbers, record


@pytest.fixture
def reports(tmp_path):
    """Reports without scores: from the first to the second the agreement with people falls from 0.7 to 0.4."""
    table = numbers.glossary().query("name in ('human_spearman', 'skewness')").reset_index(drop=True)
    paths = []
    for name, value in (("before", 0.7), ("after", 0.4), ("seed1", 0.7), ("seed2", 0.65)):
        measured = table.assign(value=value, low=value - 0.05, high=value + 0.05, n=100)
        left = pd.DataFrame(value + np.linspace(-0.002, 0.002, 20) * np.ones((len(table), 1)))
        report = record.Report(name, False, measured, left, {"model": name})
        (tmp_path / name).mkdir()
        paths.append(record.write(report, tmp_path / name).parent)
    return paths


def test_a_gate_passes_with_0_and_stops_with_1_and_says_why(reports, tmp_path, monkeypatch, capsys):
    before, after, *seeds = reports
    out = tmp_path / "out"
    kept, broken = "human_spearman < 0.3", "change human_spearman < -0.1"
    assert run(monkeypatch, "compare", before, after, "--out", out, "--fail-if", kept) == 0
    said = capsys.readouterr().out
    assert f"kept    {kept}" in said and "seed variation not measured" in said
    limits = tmp_path / "limits.yml"
    limits.write_text(f'limits:\n  - "{broken}"\n')
    given = ["--seeds", seeds[0], "--seeds", seeds[1], "--fail-if", "|change human_spearman| > 2 seeds"]
    assert run(monkeypatch, "compare", before, after, "--out", out, "--fail-if", limits, *given) == 1
    said = capsys.readouterr()
    assert f"broken  {broken}\n        human_spearman[elo_greatest]: -0.3, the limit is -0.1" in said.out
    assert "human_spearman[elo_greatest]: 0.3, the limit is 0.1" in said.out.replace("-0.3,", "0.3,")
    assert "2 limits are broken" in said.err and "larger than two seeds differ: 3 of 3" in said.out
    page, told = (out / "compare.html").read_text(), json.loads((out / "compare.json").read_text())
    assert "nothing of another training" in page and "before and after" in page and "two seeds differ by" in page
    assert [one["broken"] for one in told["limits"]] == [True, True]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--fail-if", "human_spaerman > 0.3"], "no number 'human_spaerman': did you mean human_spearman"),
        (["--fail-if", "human_spearman[best] > 0.3"], "no human_spearman of 'best'"),
        (["--fail-if", "absent.yml"], "absent.yml: cannot be read"),
    ],
)
def test_bad_limits_are_one_line_and_code_2_and_nothing_is_written(
    reports, tmp_path, monkeypatch, capsys, words, message
):
    assert run(monkeypatch, "compare", *reports[:2], "--out", tmp_path / "out", *words) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_what_is_no_model_and_no_report_is_refused_before_anything_is_scored(reports, tmp_path, monkeypatch, capsys):
    damaged = tmp_path / "damaged.json"
    damaged.write_text("{}")
    for other, message in ((damaged, "is no report"), ("no-such-model", "unknown model 'no-such-model'")):
        assert run(monkeypatch, "compare", reports[0], other, "--out", tmp_path / "out") == 2
        assert message in capsys.readouterr().err
