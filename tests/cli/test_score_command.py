"""`rmnb score`: several prompts, a system prompt and earlier turns reach the model."""

import json
import sys
from dataclasses import fields

import commands
import pytest
import transformers
import typer
from checkpoints import SHAPE, write_decoder

import rmnb
from rmnb.cli import options
from rmnb.cli.main import app, main
from rmnb.errors import InputError
from rmnb.panels import PromptSpec, load_panel
from rmnb.panels.prompt_sets import Turn

QUESTION = "What is best?"
SYSTEM = {"role": "system", "content": "Be brief."}
EARLIER = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Yes."}]


@pytest.fixture
def run(directory, monkeypatch, capsys):
    def command(*words):
        monkeypatch.setattr(sys, "argv", ["rmnb", "score", str(directory), "a", "b", "--device", "cpu", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        numbers = [float(line.split()[0]) for line in said.out.splitlines() if line.endswith(("'a'", "'b'"))]
        return ended.value.code, numbers, said.err

    return command


def test_each_prompt_that_is_named_is_asked(run, rm):
    code, numbers, _ = run("--prompt", QUESTION, "--prompt", "What is worst?")
    assert code == 0
    assert numbers == pytest.approx(
        [*rm.score(QUESTION, ["a", "b"]), *rm.score("What is worst?", ["a", "b"])], abs=1e-4
    )


def test_a_system_prompt_and_earlier_turns_are_read(run, rm, tmp_path):
    asked = {"role": "user", "content": QUESTION}
    _, numbers, _ = run("--prompt", QUESTION, "--system", SYSTEM["content"])
    assert numbers == pytest.approx(rm.score([SYSTEM, asked], ["a", "b"]), abs=1e-4)
    file = tmp_path / "messages.json"
    file.write_text(json.dumps([*EARLIER, asked]))
    _, numbers, _ = run("--messages", str(file))
    assert numbers == pytest.approx(rm.score([*EARLIER, asked], ["a", "b"]), abs=1e-4)


@pytest.mark.parametrize("content", ["{", "[]", "[1]", '[{"role": "user"}]', '[{"role": "assistant", "content": "a"}]'])
def test_messages_that_are_none_are_one_line(run, tmp_path, content):
    file = tmp_path / "messages.json"
    file.write_text(content)
    code, _, said = run("--messages", str(file))
    assert code == 2 and said.startswith("rmnb: --messages") and said.count("\n") == 1


def test_a_system_prompt_stands_before_the_earlier_turns_of_a_prompt(monkeypatch):
    asked = PromptSpec(key="after", text=QUESTION, framing="positive", history=tuple(Turn(**one) for one in EARLIER))
    members = load_panel("demo").model_copy(update={"prompts": (asked,)})
    monkeypatch.setattr(options.Asking, "members", lambda self: members)
    [question] = options.Asking(["after"], system="Be brief.").questions()
    assert question.conversation == [SYSTEM, *EARLIER, {"role": "user", "content": QUESTION}]


def test_a_key_in_place_of_a_question_is_warned_of(rm, caplog):
    rm.score("greatest", ["love"])
    assert "scored as a text" in caplog.text


@pytest.mark.parametrize("content", [None, [{"type": "text", "text": "What?"}]])
def test_content_that_is_no_text_is_one_line(rm, content):
    with pytest.raises(InputError, match="content of a message"):
        rm.score([{"role": "user", "content": content}], ["love"])


def test_a_tokenizer_with_more_ids_than_the_model_is_one_line(tmp_path, monkeypatch, capsys):
    small = write_decoder(tmp_path / "small", rows=200)
    for words in (["score", small, "love"], ["scan", small, "--prompt", "best", "--out", tmp_path / "x.parquet"]):
        assert commands.run(monkeypatch, *words, "--device", "cpu") == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert "do not belong together" in error


@pytest.mark.parametrize(("name", "dtype"), [("auto", "bfloat16"), ("torch.float16", "float16"), ("bf16", "bfloat16")])
def test_a_number_format_has_the_names_that_torch_gives_it(tmp_path, name, dtype):
    written = write_decoder(tmp_path)
    config = json.loads((written / "config.json").read_text())
    (written / "config.json").write_text(json.dumps(config | {"dtype": "bfloat16"}))
    assert rmnb.load_reward_model(written, dtype=name, device="cpu").spec.dtype == dtype


def test_a_model_says_in_a_line_what_it_is_and_the_package_what_it_has(rm):
    assert "\n" not in repr(rm) and "linear, float32 on cpu" in repr(rm)
    assert {"load_reward_model", "load_scores", "scan_vocabulary"} <= set(dir(rmnb))


def test_a_tokenizer_a_template_and_a_label_by_name_are_taken_from_elsewhere(tmp_path, monkeypatch, capsys):
    whole = write_decoder(tmp_path / "whole")
    config = transformers.LlamaConfig(**SHAPE | {"num_labels": 2}, vocab_size=318, id2label={0: "bad", 1: "good"})
    two = transformers.AutoModelForSequenceClassification.from_config(config)
    two.save_pretrained(tmp_path / "bare")
    template = rmnb.load_reward_model(whole).dialogue.template.replace("<end>", "<end><end>")
    (tmp_path / "template.jinja").write_text(template)
    words = ["score", tmp_path / "bare", "love", "--prompt", QUESTION, "--device", "cpu", "--json"]
    words += ["--tokenizer", whole, "--template", tmp_path / "template.jinja"]
    assert commands.run(monkeypatch, *words, "--label", "good") == 0
    [row] = json.loads(capsys.readouterr().out)
    tokenizer = transformers.AutoTokenizer.from_pretrained(whole)
    turns = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": "love"}]
    text = tokenizer.apply_chat_template(turns, chat_template=template, tokenize=False)
    ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    assert row["reward"] == pytest.approx(two.eval()(input_ids=ids).logits[0, 1].item(), abs=1e-4)
    assert commands.run(monkeypatch, *words, "--label", "ugly") == 2
    assert "its labels are bad, good" in capsys.readouterr().err


SHARED = {field.name for bag in (options.Asking, options.Loading) for field in fields(bag)}


@pytest.mark.parametrize("name", ["check", "score", "scan", "search", "trace", "report", "compare", "plan"])
def test_no_command_has_more_than_eight_options_of_its_own(name):
    command = typer.main.get_command(app).commands[name]
    own = [one for one in command.params if one.param_type_name == "option" and one.name not in SHARED | {"help"}]
    assert len(own) <= 8
