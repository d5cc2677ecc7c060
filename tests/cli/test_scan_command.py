"""`rmnb scan`: several prompts, parts, two processes at once, and options that do not go together."""

import json

import numpy as np
import pytest
import transformers
from checkpoints import SHAPE, tokenizer
from commands import run

import rmnb
from rmnb.panels import find_spec
from rmnb.plans import partial_directory, read_plan
from rmnb.scoring import store

PROMPT = "What, in one word, is the greatest thing ever?"
WORDS = ["love", "war", "peace and water", "a"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--load", "device_map={cpu"], "write KEY=VALUE"),
        (["--load", "colour=red"], "takes no colour"),
        (["--template", "absent.jinja"], "absent.jinja cannot be read"),
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


def test_of_two_processes_that_begin_one_scan_the_first_sets_the_batch(rm, tmp_path, monkeypatch):
    from rmnb.scoring import scanning

    out = tmp_path / "scan.parquet"

    def outrun(scorer, continuations):
        # While this process looks at its memory, another one begins the same scan with another batch size.
        monkeypatch.setattr(scanning, "_batch_size", lambda scorer, continuations: 16)
        scanning.scan_vocabulary(rm, PROMPT, output=out)
        return 32

    monkeypatch.setattr(scanning, "_batch_size", outrun)
    scan = scanning.scan_vocabulary(rm, PROMPT, output=out)
    assert scan.attrs["provenance"]["batch_size"] == 16 == read_plan(partial_directory(out))["batch_size"]


def test_a_directory_takes_a_file_a_prompt_and_a_system_prompt_is_read(directory, monkeypatch, tmp_path):
    words = ["scan", directory, "--device", "cpu", "--first", "40"]
    one = tmp_path / "one.parquet"
    assert run(monkeypatch, *words, "--system", "Be brief.", "--prompt", "Which one?", "--out", one) == 0
    assert store.read_scan(one)[1]["history"] == [{"role": "system", "content": "Be brief."}]
    assert run(monkeypatch, *words, "--prompt", "best", "--prompt", "worst", "--out", tmp_path / "both") == 0
    assert sorted(file.name for file in (tmp_path / "both").iterdir()) == ["best.parquet", "worst.parquet"]


def test_the_log_probabilities_of_a_language_model_are_a_scan(monkeypatch, tmp_path, capsys):
    words = tokenizer()
    config = transformers.LlamaConfig(**SHAPE | {"num_labels": 2}, vocab_size=len(words))
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "lm")
    words.save_pretrained(tmp_path / "lm")
    out = tmp_path / "x.parquet"
    assert run(monkeypatch, "scan", tmp_path / "lm", "--logprobs", "--prompt", "best", "--out", out) == 0
    assert np.exp(store.read_table(out)[0]["score"]).sum() == pytest.approx(1, abs=1e-5)
    assert len(capsys.readouterr().out.splitlines()) == 11


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["noise"], "benchmarks/noise.py"),
        (["run", "a", "b"], "rmnb book run"),
        (["scan", "m", "--limit", "3"], "--first"),
        (["scan", "m", "--quantise=8bit"], "--load quantise="),
    ],
)
def test_a_name_that_is_gone_says_what_it_is_now(words, message, monkeypatch, capsys):
    assert run(monkeypatch, *words) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
