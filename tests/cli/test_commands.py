"""What commands give: questions reach the model, scans are what the package scans, plans hold, gates say why."""

import json
import socket

import numpy as np
import pandas as pd
import pytest
import transformers
import typer
from checkpoints import EARLIER, own_ids, own_rewards, user, write_base, write_decoder, write_panel
from commands import run
from notebook_files import ROOT
from torch.utils.flop_counter import FlopCounterMode

import rmnb
from rmnb.cli.main import app
from rmnb.cli.options import key_values
from rmnb.errors import InputError
from rmnb.panels import find_spec
from rmnb.report import numbers, record
from rmnb.scoring import store

QUESTION = "What is best?"
ASKED, SYSTEM = user(QUESTION), {"role": "system", "content": "Be brief."}


def test_every_argument_and_option_says_what_it_is():
    group = typer.main.get_command(app)
    commands = {**group.commands, **group.commands["book"].commands}
    silent = [(name, each.name) for name, command in commands.items() for each in command.params if not each.help]
    assert len(commands) > 15 and not silent
    assert all("Parameters" not in command.help and "----" not in command.help for command in commands.values())
    leave_out = next(each for each in commands["run"].params if each.name == "leave_out")
    assert leave_out.opts == ["--leave-out"] and not leave_out.secondary_opts


@pytest.mark.parametrize("text", ["=3", "steps", "steps=[", ""])
def test_what_is_no_key_and_value_is_said_as_such(text):
    with pytest.raises(InputError, match=r"^--set .*: write KEY=VALUE$"):
        key_values("--set", ["length=3", text])


def test_questions_a_system_prompt_and_earlier_turns_reach_the_model(directory, rm, tmp_path, printed_json):
    file = tmp_path / "messages.json"
    file.write_text("\ufeff" + json.dumps([*EARLIER, ASKED]))
    cases = [
        (["--prompt", QUESTION, "--prompt", "What is worst?"], [QUESTION, "What is worst?"]),
        (["--prompt", QUESTION, "--system", ""], [[SYSTEM | {"content": ""}, ASKED]]),
        (["--messages", file, "--system", SYSTEM["content"]], [[SYSTEM, *EARLIER, ASKED]]),
    ]
    for words, prompts in cases:
        rows = printed_json("score", directory, "a", "b", *words)["rows"]
        rewards = [row["reward"] for row in rows]
        assert rewards == pytest.approx(np.concatenate([rm.score(each, ["a", "b"]) for each in prompts]), abs=1e-4)


def test_a_key_in_place_of_a_question_is_warned_of(rm, caplog):
    rm.score("greatest", ["love"])
    assert "scored as a text" in caplog.text


def test_a_number_format_has_the_names_that_torch_gives_it(tmp_path):
    write_decoder(tmp_path, dtype="bfloat16")
    for name, dtype in (("auto", "bfloat16"), ("torch.float16", "float16"), ("half", "float16")):
        assert f"linear, {dtype} on cpu" in repr(rmnb.load_reward_model(tmp_path, dtype=name, device="cpu"))


def test_a_tokenizer_a_template_and_a_label_by_name_are_taken_from_elsewhere(directory, tmp_path, printed_json):
    bare = write_decoder(tmp_path, shape={"num_labels": 2, "id2label": {0: "bad", 1: "good"}})
    for saved in [*bare.glob("tokenizer*"), bare / "chat_template.jinja"]:
        saved.unlink()
    own = transformers.AutoTokenizer.from_pretrained(directory)
    own.chat_template = own.chat_template.replace("<end>", "<end><end>")
    file = tmp_path / "new.jinja"
    file.write_text(own.chat_template)
    words = ["--tokenizer", directory, "--template", file, "--label", "good"]
    [row] = printed_json("score", bare, "love", "--prompt", QUESTION, *words)["rows"]
    [reward] = own_rewards(bare, own_ids(own, QUESTION, ["love"]), label=1)
    assert row["reward"] == pytest.approx(reward, abs=1e-4)


def test_one_process_scans_several_prompts_into_the_store_or_a_directory(directory, printed, tmp_path):
    panel, asked = write_panel(tmp_path, {"tiny": directory}), ["--prompt", "best", "--prompt", "worst"]
    printed("scan", "tiny", "--panel", panel, *asked)
    best, worst = (store.read_scores(panel, "tiny", key) for key in ("best", "worst"))
    assert len(best) == 400 and not best["score"].equals(worst["score"])
    rm = rmnb.load_reward_model(find_spec("tiny", panel))
    alone = rmnb.scan_vocabulary(rm, rmnb.load_panel(panel).prompt("worst"))
    np.testing.assert_array_equal(worst["score"], alone["score"])
    words, one = ["scan", directory, "--first", "40", "--out"], tmp_path / "one.parquet"
    printed(*words, one, "--system", SYSTEM["content"])
    assert store.read_scan(one)[1]["history"] == [SYSTEM]
    printed(*words, tmp_path / "both", *asked)
    assert sorted(file.name for file in (tmp_path / "both").iterdir()) == ["best.parquet", "worst.parquet"]
    assert not list(tmp_path.rglob("*.partial"))


def test_the_log_probabilities_of_a_language_model_are_a_scan(printed, tmp_path):
    model, out = write_base(tmp_path / "lm"), tmp_path / "x.parquet"
    printed("scan", model, "--logprobs", "--prompt", "best", "--out", out)
    assert np.exp(store.read_table(out)[0]["score"]).sum() == pytest.approx(1, abs=1e-5)


def test_plans_need_no_network_and_hold_what_was_measured(directory, rm, tmp_path, monkeypatch, printed_json):
    def refuse(*_):
        raise AssertionError("something was to be fetched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    rows = printed_json("plan", "--panel", "facct2025", "--device", "h100", "--dtype", "bfloat16")
    measured = pd.read_csv(ROOT / "data/gpu/papers.csv").set_index("architecture")
    for spec, row in zip(rmnb.load_panel("facct2025").models, rows, strict=True):
        known = measured.loc[f"{spec.family.split()[0]} {spec.parameters:g}B"]
        assert row["low"] < known["seconds"] < row["high"] < 4 * row["low"]
        assert row["GB"] < known["GPU memory, GB"] < 1.1 * row["GB"] and row["fits"]
    large = printed_json("plan", "S-Gem-27B", "--panel", "facct2025", "--device", "l4", "--dtype", "bfloat16")
    assert [large[0][key] for key in ("fits", "low", "high")] == [False, None, None]
    panel = write_panel(tmp_path, {"tiny": directory, "theirs": "nobody/knows-this"})
    [row] = printed_json("plan", "--panel", panel, "--prompt", "best", "--device", "cpu")
    with FlopCounterMode(display=False) as counter:
        rmnb.scan_vocabulary(rm, rmnb.load_panel(panel).prompt("best"))
    assert 1 <= row["TFLOP"] / (counter.get_total_flops() / 1e12) < 1.3
    assert (row["tokens"], row["ids"]) == (400, 2)


def test_a_gate_passes_with_0_and_stops_with_1_and_says_why(tmp_path, monkeypatch, capsys):
    table = numbers.glossary().query("name == 'human_spearman'").reset_index(drop=True)
    words = ["compare", tmp_path / "before", tmp_path / "after", "--out", tmp_path / "out", "--fail-if"]
    for directory, value in zip(words[1:3], (0.7, 0.4), strict=True):
        measured = table.assign(value=value, low=value - 0.05, high=value + 0.05, error=0.025, n=100)
        left = pd.DataFrame([np.linspace(value - 0.002, value + 0.002, 20)])
        directory.mkdir()
        read = {"reference": {"weights_sha256": "0"}, "reference_source": "tuned", "beta": value}
        record.write(record.Report(directory.name, False, measured, left, read), directory)
        assert f"- reference: tuned\n- beta: {value}\n" in (directory / "report.md").read_text()
    assert run(monkeypatch, *words, "human_spearman < 0.3") == 0
    (tmp_path / "limits.yml").write_text("limits: [change human_spearman < -0.1]")
    assert run(monkeypatch, *words, tmp_path / "limits.yml") == 1
    said = capsys.readouterr().out
    assert "human_spearman[elo_greatest]: -0.3, the limit is -0.1" in said and "not read alike (beta differ" in said
    assert "not read alike" in (tmp_path / "out" / "compare.html").read_text()
    assert run(monkeypatch, *words[:3], "--judge", "yes-no") == 2  # nothing is loaded that could take it
    content = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert content["limits"][0]["broken"] and content["read_differently"] == ["beta"]
