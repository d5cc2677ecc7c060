"""What a user gets wrong is one line and exit code 2, and nothing is written."""

import json

import pytest
from checkpoints import assistant, write_base, write_decoder, write_panel
from commands import run

import rmnb
from rmnb import plans
from rmnb.cli.main import main
from rmnb.report import record
from rmnb.scoring.engine import PrefixScorer
from rmnb.scoring.store import read_table

#: Command lines for a directory of a model, an output beside which nothing is written, and a file.
CASES = [
    ("scan {model} --out {out}.parquet --load colour=red", "colour"),
    ("scan {model} --logprobs --first 5", "--logprobs"),
    ("scan {model} --out {out}.parquet --prompt greatest --prompt worst", "several a directory"),
    ("scan {model} --prompt greatest", "give --out"),
    ("score {small} love", "200 ids"),
    ("score {model} love --out {out}.parquet", "file of rows"),
    ("score {model} absent.jsonl", "absent.jsonl"),
    ("score {model} {rows} --by nobody", "'nobody'"),
    ("score {model} {rows} --prompt greatest", "--prompt"),
    ("score {model} love --messages {assistant}", "--messages"),
    ("compare {model} no-such-model --out {out}", "no-such-model"),
    ("compare {model} {model} --out {out} --fail-if human_spaerman>0.3", "no number 'human_spaerman'"),
    ("compare {model} {rows}.json --out {out}", "is no report"),
    ("compare {report} {report} --quick", "is no report"),
    ("report {small} --out {out}", "fails its check: vocabulary"),
    ("plan --panel facct2025 --device t4", "bfloat16"),
    ("plan --prompt greatestt", "'greatestt'"),
    ("plan --device abacus", "GPUs of other machines: t4, v100"),
    ("score {model} {rows}.d", "no file of rows"),
]


@pytest.mark.parametrize(("line", "about"), CASES, ids=[line for line, _ in CASES])
def test_a_mistake_is_one_line_and_code_2_and_nothing_is_written(line, about, directory, tmp_path, monkeypatch, capsys):
    names = {"model": directory, "out": tmp_path / "out" / "x", "rows": tmp_path / "rows.jsonl"}
    names |= {"small": tmp_path / "small", "assistant": tmp_path / "assistant.json"}
    if "{small}" in line:
        write_decoder(tmp_path / "small", rows=200)
    names["rows"].write_text(json.dumps({"prompt": "a?", "chosen": "b", "rejected": "c"}))
    (tmp_path / "rows.jsonl.d").mkdir()
    names["report"] = tmp_path / "report.json"
    row = {"name": "n", "part": "p", "label": "l", "value": 1, "left_out": [1.0]}
    report = {"schema": record.SCHEMA, "model": "a/../../x", "quick": False, "numbers": [row], "provenance": {}}
    names["report"].write_text(json.dumps(report))
    names["assistant"].write_text(json.dumps([assistant("a")]))
    for name, path in names.items():
        line = line.replace(f"{{{name}}}", str(path))
    assert run(monkeypatch, *line.split()) == 2
    [error] = [said for said in capsys.readouterr().err.splitlines() if said.startswith("rmnb: ")]
    assert about in error and not names["out"].parent.exists()


def test_log_probabilities_never_go_where_rewards_are_kept(tmp_path, monkeypatch, capsys):
    """A directory here may have the name of a panel's model."""
    panel = write_panel(tmp_path, {"tiny": write_base(tmp_path / "tiny")})
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "scan", "tiny", "--panel", panel, "--prompt", "best", "--logprobs") == 2
    assert "log-probabilities are no rewards" in capsys.readouterr().err and not (tmp_path / "scores").exists()


INSTALLED_BY = {"gguf": "rmnb[demo]", "torchao": "torchao"}


@pytest.mark.parametrize(("package", "advice"), INSTALLED_BY.items())
def test_a_missing_package_is_named_with_the_extra_that_has_it(package, advice, monkeypatch, capsys):
    def fail():
        raise ModuleNotFoundError(name=package)

    with pytest.raises(SystemExit):
        main(fail)
    assert capsys.readouterr().err == f"rmnb: this needs {package}, which is not installed: pip install '{advice}'\n"


def test_restart_deletes_nothing_before_it_is_replaced(directory, tmp_path, monkeypatch, capsys):
    out = tmp_path / "x.parquet"
    assert run(monkeypatch, "scan", directory, "--first", "40", "--out", out) == 0
    before = out.read_bytes()
    for wrong in (["no-such-model"], [directory, "--load", "colour=red"]):
        assert run(monkeypatch, "scan", *wrong, "--restart", "--out", out) == 2 and out.read_bytes() == before
    with monkeypatch.context() as patched:
        patched.setattr(plans.Work, "write", interrupted)
        assert run(monkeypatch, "scan", directory, "--first", "50", "--restart", "--out", out) == 130
    assert out.read_bytes() == before and "goes on where it stopped" in capsys.readouterr().err
    assert run(monkeypatch, "scan", directory, "--first", "60", "--restart", "--out", out) == 0
    assert len(read_table(out)[0]) == 60


def test_an_interrupted_command_that_keeps_nothing_promises_nothing(directory, monkeypatch, capsys):
    monkeypatch.setattr(PrefixScorer, "__call__", interrupted)
    monkeypatch.setattr(plans, "in_progress", set())
    assert run(monkeypatch, "score", directory, "love") == 130
    assert "rmnb: interrupted\n" in capsys.readouterr().err


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_check_says_its_status_as_json_and_with_strict_no_warning_passes(directory, printed_json, monkeypatch):
    found = printed_json("check", directory)
    assert found["status"] == "ok" and {"aspect", "verdict", "text"} == found["checks"][0].keys()
    assert run(monkeypatch, "check", directory, "--strict") == 1  # no file says who trained it


def test_what_users_import_is_public(rm):
    config = rmnb.SearchConfig(length=1, steps=1, method="random", width=4)
    found = rmnb.search(rmnb.RewardObjective([rm], ["Why?"]), config)
    with pytest.raises(rmnb.InputError, match="must be a list"):
        rmnb.RewardObjective([rm], "love")
    assert len(found.sequences) == 4 and {"search", "SearchConfig", "InputError"} <= {*dir(rmnb)}
