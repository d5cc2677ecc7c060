"""`rmnb score`: several prompts, a system prompt and earlier turns reach the model."""

import json
import sys

import pytest

from rmnb.cli.main import main

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
