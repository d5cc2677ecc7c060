"""`rmnb check` says what is wrong with a model before anybody spends a day on scanning it."""

from collections import defaultdict

import pytest
from checkpoints import TEMPLATE, write_decoder, write_panel, write_splitting
from commands import run

import rmnb
from rmnb.panels import ModelSpec, Reference
from rmnb.scoring.check import check_model

QUESTION = "What is good?"


def found(directory, template: str | None = None, **changes) -> dict[str, list[tuple[str, str]]]:
    """Verdicts and texts by aspect."""
    rm = rmnb.load_reward_model(ModelSpec(name="tiny", source=str(directory), template=template, **changes))
    findings = defaultdict(list)
    for finding in check_model(rm):
        findings[finding.aspect].append((finding.verdict, finding.text))
    return findings


def test_a_sound_model_passes_and_is_described(directory):
    findings = found(directory)
    assert {verdict for group in findings.values() for verdict, _ in group} == {"ok"}
    assert findings["template"][0][1].startswith("its own;")
    assert "1 under protocol exact, 2 under published, doubled there" in findings["BOS"][0][1]
    assert "under protocol published as 'love'" in findings["blanks"][0][1]
    assert findings["boundary"][0][1].endswith("| '<end>'")
    assert findings["head"][0][1].startswith("linear, in float32; float32 trunk")


DROPPED = "{{ bos_token }}{{ messages[0]['content'] }}<end>"
ALTERED = TEMPLATE.replace("| trim", "| replace(\"'\", '')")
ASPECTS = [
    ("template", "failed", "the one given: the chat template does not contain the assistant's words", DROPPED),
    ("template", "failed", "the one given: it alters the assistant's words: \"it's\" becomes 'its'", ALTERED),
    ("template", "failed", "alters the assistant's words", TEMPLATE.replace("| trim", "| escape")),
    ("template", "failed", "writes nothing after", "{% for m in messages %}{{ m['content'] }}{% endfor %}"),
    ("BOS", "failed", "2 under protocol exact", "{{ bos_token }}" + TEMPLATE),
    ("BOS", "warning", "0 under protocol exact, 1 under published", TEMPLATE.replace("{{ bos_token }}", "")),
    ("date", "ok", "frozen", "{{ strftime_now('%d %b %Y') }}" + TEMPLATE),
    ("date", "warning", "cannot be frozen", "{% set f = '%Y' %}{{ strftime_now(f) }}" + TEMPLATE),
]


@pytest.mark.parametrize(("aspect", "verdict", "text", "template"), ASPECTS)
def test_what_a_template_does_to_words_bos_and_date_is_said(directory, aspect, verdict, text, template):
    findings = found(directory, template)
    assert findings[aspect][0][0] == verdict and text in findings[aspect][0][1]
    assert ("scores" in findings) == (aspect != "template")  # nothing is scored through such a template


def test_a_padding_id_that_closes_turns_is_warned_of_and_the_place_is_named(directory, tmp_path):
    """A classifier of transformers, and a trainer that uses it, then reads one id before the closing one."""
    padded = write_decoder(tmp_path, shape={"pad_token_id": 5})
    [(verdict, text)] = found(padded)["read"]
    assert verdict == "warning" and text.startswith("the answer's last token, 1 before the last: its own code takes")
    [(verdict, text)] = found(padded, read="last")["read"]
    assert verdict == "warning" and text.startswith("'<end>': the padding id")
    assert found(directory)["read"] == [("ok", "'<end>'")]


def test_how_answers_join_is_shown_where_a_blank_joins_them(tmp_path):
    findings = found(write_splitting(tmp_path, "metaspace", "blank", "<pad>"))
    assert "'▁ASSISTANT:' | love: '▁love', War: '▁' 'W' 'ar', 7: '▁' '7' | '<end>'" in findings["boundary"][0][1]


def test_reference_scores_are_compared(directory):
    score = float(rmnb.load_reward_model(directory).score(QUESTION, ["love"], "published")[0])
    right = Reference(
        prompt=QUESTION, response="love", score=score, tolerance=1e-4, protocol="published", source="card"
    )
    wrong = right.model_copy(update={"score": score + 1})
    (ok, text), (failed, _) = found(directory, reference=(right, wrong))["reference"]
    assert (ok, failed) == ("ok", "failed") and "card" in text


def test_a_vocabulary_larger_than_the_embedding_fails(tmp_path):
    findings = found(write_decoder(tmp_path, rows=300))
    assert findings["vocabulary"][0][0] == "failed" and "300 rows" in findings["vocabulary"][0][1]


def test_the_command_ends_with_1_on_a_model_that_fails(directory, tmp_path, monkeypatch, capsys):
    panel = write_panel(tmp_path, {"mine": directory}, template="<user><end>")
    assert run(monkeypatch, "check", str(directory)) == 0
    assert run(monkeypatch, "check", "mine", "--panel", str(panel)) == 1
    shown = capsys.readouterr()
    assert "failed   template" in shown.out and "findings are bad" in shown.err


def test_a_demo_model_passes_with_the_template_it_was_trained_with(monkeypatch, capsys):
    """Its base pads with the token that closes a turn, and its BOS is the one that opens every turn."""
    assert run(monkeypatch, "check", "smollm2-values") == 0
    shown = capsys.readouterr().out
    assert "failed" not in shown and "warning" not in shown and "read          '<|im_end|>'" in shown
    assert "1 under protocol exact" in shown
