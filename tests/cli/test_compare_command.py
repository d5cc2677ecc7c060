"""`rmnb compare`: what a gate exits with, and what is no input for it."""

import json

import pytest
from commands import run

from rmnb.findings.results import Results

NUMBERS = {"human_spearman": ("elo", "elo_greatest"), "slope_positive_standardised": ("asymmetry", "greatest")}


@pytest.fixture
def reports(tmp_path):
    """Two reports without scores: from the first to the second the agreement with people falls from 0.7 to 0.4."""
    paths = []
    for name, value in (("before", 0.7), ("after", 0.4)):
        rows = []
        for statistic, (finding, prompt) in NUMBERS.items():
            results = Results(finding, "report")
            about = {"model": name, "prompt": prompt, "ci_low": value - 0.05, "ci_high": value + 0.05, "n": 100}
            results.add("panel", statistic, value, **about)
            rows += json.loads(results.frame().to_json(orient="records"))
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps({"model": name, "noise": 0.01, "rows": rows, "provenance": {"model": name}}))
    return paths


@pytest.mark.slow
def test_a_gate_passes_with_0_and_stops_with_1_and_says_why(reports, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    kept, broken = "human_spearman < 0.3", "change human_spearman < -0.1"
    assert run(monkeypatch, "compare", *reports, "--out", out, "--fail-if", kept) == 0
    assert f"kept    {kept}" in capsys.readouterr().out
    limits = tmp_path / "limits.yml"
    limits.write_text(f'limits:\n  - "{broken}"\n')
    assert run(monkeypatch, "compare", *reports, "--out", out, "--limits", limits, "--fail-if", kept) == 1
    said = capsys.readouterr()
    assert f"broken  {broken}\n        human_spearman[elo_greatest] is -0.3 (-0.371 to -0.229)" in said.out
    assert "a limit is broken" in said.err and "not paired" in said.out
    page, told = (out / "compare.html").read_text(), json.loads((out / "compare.json").read_text())
    assert "What this comparison cannot say" in page and "before and after" in page
    assert not told["paired"] and [one["broken"] for one in told["outcomes"]] == [False, True]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--fail-if", "human_spaerman > 0.3"], "no statistic 'human_spaerman': did you mean human_spearman"),
        (["--fail-if", "human_spearman[best] > 0.3"], "no human_spearman of 'best'"),
        (["--limits", "absent.yml"], "absent.yml: cannot be read"),
    ],
)
def test_bad_limits_are_one_line_and_code_2_and_nothing_is_written(
    reports, tmp_path, monkeypatch, capsys, words, message
):
    assert run(monkeypatch, "compare", *reports, "--out", tmp_path / "out", *words) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_what_is_no_model_and_no_report_is_refused_before_anything_is_scored(reports, tmp_path, monkeypatch, capsys):
    damaged = tmp_path / "damaged.json"
    damaged.write_text("{}")
    for other, message in ((damaged, "is no report"), ("no-such-model", "unknown model 'no-such-model'")):
        assert run(monkeypatch, "compare", reports[0], other, "--out", tmp_path / "out") == 2
        assert message in capsys.readouterr().err
