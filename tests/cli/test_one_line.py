"""What a user gets wrong is one line and exit code 2, and nothing is written."""

import json

import pytest
from checkpoints import write_decoder
from commands import run

#: Command lines for a directory of a model, an output beside which nothing is written, and a file.
CASES = [
    ("scan {model} --out {out}.parquet --load device_map={cpu", "KEY=VALUE"),
    ("scan {model} --out {out}.parquet --load softcap", "KEY=VALUE"),
    ("scan {model} --out {out}.parquet --load colour=red", "colour"),
    ("scan {model} --logprobs --first 5", "--logprobs"),
    ("scan {model} --out {out}.parquet --template absent.jinja", "absent.jinja"),
    ("scan {model} --out {out}.parquet --prompt greatest --prompt worst", "several a directory"),
    ("scan {model} --prompt greatest", "give --out"),
    ("scan {small} --out {out}.parquet", "200 ids"),
    ("score {small} love", "200 ids"),
    ("score {model} love --out {out}.parquet", "file of rows"),
    ("score {model} absent.jsonl", "absent.jsonl"),
    ("score {model} {rows} --by nobody", "'nobody'"),
    ("score {model} {rows} --prompt greatest", "--prompt"),
    ("score {model} love --messages {rows}", "--messages"),
    ("score {model} love --messages {assistant}", "--messages"),
    ("compare {model} no-such-model --out {out}", "no-such-model"),
    ("compare {model} {model} --out {out} --fail-if human_spaerman>0.3", "no number 'human_spaerman'"),
    ("compare {model} {rows}.json --out {out}", "is no report"),
    ("plan --panel facct2025 --device t4", "bfloat16"),
    ("plan {rows}.d", "model_type"),
    ("plan --prompt greatestt", "'greatestt'"),
    ("plan --device abacus", "device abacus"),
    ("plan --dtype float7", "'float7'"),
]


@pytest.mark.parametrize(("line", "about"), CASES, ids=[line for line, _ in CASES])
def test_a_mistake_is_one_line_and_code_2_and_nothing_is_written(line, about, directory, tmp_path, monkeypatch, capsys):
    names = {"model": directory, "out": tmp_path / "out" / "x", "rows": tmp_path / "rows.jsonl"}
    names |= {"small": tmp_path / "small", "assistant": tmp_path / "assistant.json"}
    if "{small}" in line:
        write_decoder(tmp_path / "small", rows=200)
    names["rows"].write_text(json.dumps({"prompt": "a?", "chosen": "b", "rejected": "c"}))
    (tmp_path / "rows.jsonl.d").mkdir()
    names["assistant"].write_text(json.dumps([{"role": "assistant", "content": "a"}]))
    for name, path in names.items():
        line = line.replace(f"{{{name}}}", str(path))
    assert run(monkeypatch, *line.split()) == 2
    [error] = [said for said in capsys.readouterr().err.splitlines() if said.startswith("rmnb: ")]
    assert about in error and not names["out"].parent.exists()
