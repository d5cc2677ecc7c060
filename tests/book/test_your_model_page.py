"""The page on one's own model: what it shows was run, what it tells readers to type is understood."""

import itertools
import json
import re
import shlex
import shutil

import pytest
import typer
import yaml
from checkpoints import edit_tensors, write_decoder
from commands import run
from notebook_files import ROOT

import rmnb
from rmnb.cli.main import app
from rmnb.limits import read_limits
from rmnb.report import numbers
from rmnb.scoring.forms import read_forms
from rmnb.scoring.pairs import NAMES

PAGE = ROOT / "book" / "your_model.md"
_ORDER = {"label", "better_response_id", "overall_preference", "score_0", "score_1", "labels", "ranks"}
EXAMPLES = ROOT / "examples"
OUTPUTS = sorted((EXAMPLES / "output").glob("*.txt"))
GATE = yaml.safe_load((EXAMPLES / "gate.yml").read_text(encoding="utf-8"))
SCRIPTS = [step.get("run", "") for job in GATE["jobs"].values() for step in job["steps"]]


def commands(text: str) -> list[list[str]]:
    """The rmnb commands of a shell script, as words, each up to its pipe."""
    lines = text.replace("\\\n", " ").splitlines()
    typed = [line.removeprefix("$ ") for line in lines if re.match(r"(\$ )?rmnb [a-z]", line)]
    words = [shlex.split(line, comments=True) for line in typed]
    return [list(itertools.takewhile(lambda word: word != "|", line)) for line in words]


PAGES = [*OUTPUTS, ROOT / "README.md", *sorted((ROOT / "book").glob("*.md"))]
TEXTS = [*(page.read_text(encoding="utf-8") for page in PAGES), *SCRIPTS]
COMMANDS = [words for text in TEXTS for words in commands(text)]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_is_one_that_the_command_line_reads(words):
    group = typer.main.get_command(app)
    command, rest = group.commands[words[1]], words[2:]
    if words[1] == "book":
        command, rest = command.commands[words[2]], words[3:]
    command.make_context(words[1], rest)


def test_every_row_that_is_shown_is_read_and_none_of_its_keys_is_passed_over():
    shown = re.findall(r"```json\n(.+?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(shown) >= 11
    for text in shown:
        content = read_forms([json.loads(text)])
        assert "love" in str(content.answers[0]) and {*content.columns} <= _ORDER, text
        assert max(map(len, text.splitlines())) <= 50, "wider than a phone"


def test_every_limit_is_one_that_can_be_read():
    wanted = [
        (words, EXAMPLES / after if after.endswith(".yml") else after)
        for words in COMMANDS
        for word, after in itertools.pairwise(words)
        if word == "--fail-if" and "niceness" not in after  # the page shows what is said to it
    ]
    assert len(wanted) >= 4
    for words, limit in wanted:
        is_of_rows = words[1] == "score" or "--rows" in words
        assert read_limits([limit], NAMES if is_of_rows else {*numbers.glossary()["name"]})


def test_the_gates_step_on_own_pairs_runs_and_stops_a_checkpoint_that_is_worse(tmp_path, monkeypatch):
    """The released model against itself, and against one whose head is turned round."""
    released = write_decoder(tmp_path / "released", rows=400)
    shutil.copytree(released, tmp_path / "turned")
    edit_tensors(tmp_path / "turned", lambda tensors: tensors | {"score.weight": -tensors["score.weight"]})
    rm = rmnb.load_reward_model(released)
    words = sorted(
        ["love", "war", "peace", "pain", "good", "bad", "water", "words"], key=lambda word: rm.score("a", [word])
    )
    rows = [{"prompt": "a", "chosen": best, "rejected": worst} for worst, best in itertools.combinations(words, 2)]
    rows = [row | {"prompt": f"{number}", "subset": "s"} for number, row in enumerate(rows)]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rmnb.report.pairs.DRAWS", 40)  # of intervals that the gate does not read
    [step] = [words for script in SCRIPTS for words in commands(script) if "--rows" in words]
    step = [{"$RELEASED": "released"}.get(word, word) for word in step[1:]]
    for checkpoint, code in (("released", 0), ("turned", 1)):
        shutil.rmtree("pairs", ignore_errors=True)
        assert run(monkeypatch, *[checkpoint if word == "$CHECKPOINT" else word for word in step]) == code


def test_a_branchs_name_becomes_no_part_of_the_gates_script_and_cuda_is_not_fetched():
    script = "".join(SCRIPTS)
    assert "rmnb compare" in script and "${{" not in script
    assert GATE["jobs"]["gate"]["env"]["PIP_EXTRA_INDEX_URL"].endswith("whl/cpu")


def test_what_is_shown_is_what_was_run():
    included = re.findall(r"\.\./examples/([\w./]+)", PAGE.read_text(encoding="utf-8"))
    assert all((EXAMPLES / name).exists() for name in included)
    assert {f"output/{file.name}" for file in OUTPUTS} <= set(included)
    recorded = json.loads((EXAMPLES / "output" / "provenance.json").read_text(encoding="utf-8"))
    filled = {file.stem for file in OUTPUTS if re.search(r"^(?!\$ ).", file.read_text(encoding="utf-8"), re.MULTILINE)}
    assert filled <= set(recorded) and {"check", "trace", "against"} <= filled
