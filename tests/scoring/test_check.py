"""`rmnb check` says what is wrong with a model before anybody spends a day on scanning it."""

from collections import defaultdict

import pytest
import torch
from checkpoints import TEMPLATE, edit_tensors, write_decoder, write_encoder, write_splitting

import rmnb
from rmnb.panels import ModelSpec
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
    warned = [aspect for aspect, group in findings.items() if group[0][0] != "ok"]
    assert warned == ["OpenRLHF", "NeMo-RL"]  # nothing says that TRL trained it
    assert "--read openrlhf" in findings["OpenRLHF"][0][1]
    findings = found(directory, read="trl")
    assert {verdict for group in findings.values() for verdict, _ in group} == {"ok"}
    assert "1 under protocol exact, 2 under published, doubled there" in findings["BOS"][0][1]
    assert findings["blanks"][0][1].endswith("is read as 'love', under protocol published as 'love'")
    assert findings["boundary"][0][1].endswith("| '<end>'")


DROPPED = "{{ bos_token }}{{ messages[0]['content'] }}<end>"
ASPECTS = [
    ("template", "failed", DROPPED),
    ("template", "failed", TEMPLATE.replace("| trim", "| replace(\"'\", '')")),
    ("template", "failed", TEMPLATE.replace("| trim", "| escape")),
    ("template", "failed", "{% for m in messages %}{{ m['content'] }}{% endfor %}"),
    ("template", "failed", TEMPLATE.replace("<end>{% endfor", "{{ m['content'] }}<end>{% endfor")),
    ("BOS", "failed", "{{ bos_token }}" + TEMPLATE),
    ("BOS", "warning", TEMPLATE.replace("{{ bos_token }}", "")),
    ("date", "ok", "{{ strftime_now('%d %b %Y') }}" + TEMPLATE),
]


@pytest.mark.parametrize(("aspect", "verdict", "template"), ASPECTS)
def test_what_a_template_does_to_words_bos_and_date_is_said(directory, aspect, verdict, template):
    findings = found(directory, template)
    assert findings[aspect][0][0] == verdict
    assert ("scores" in findings) == (aspect != "template")  # nothing is scored through such a template


def test_a_closing_id_of_the_configuration_that_is_not_the_tokenizers_is_warned_of(tmp_path):
    assert "eos_token_id" not in found(write_decoder(tmp_path / "right", shape={"eos_token_id": None}))
    [(verdict, text)] = found(write_decoder(tmp_path / "wrong", shape={"eos_token_id": [5, 7]}))["eos_token_id"]
    assert verdict == "warning" and text.startswith("[5, 7] by the configuration")


def test_a_bias_that_transformers_would_not_load_is_warned_of(tmp_path):
    directory = write_decoder(tmp_path)
    before = rmnb.load_reward_model(directory).score(QUESTION, ["love"])
    edit_tensors(directory, lambda tensors: tensors | {"score.bias": torch.tensor([2.0])})
    assert rmnb.load_reward_model(directory).score(QUESTION, ["love"]) == pytest.approx(before + 2, abs=1e-5)
    [(verdict, text)] = found(directory)["bias"]
    assert verdict == "warning" and "score.bias [2.0]" in text


def test_a_padding_id_that_closes_turns_is_warned_of_and_the_place_is_named(directory, tmp_path):
    """A classifier of transformers, and a trainer that uses it, then reads one id before the closing one."""
    padded = write_decoder(tmp_path, shape={"pad_token_id": 5})
    [(verdict, text)] = found(padded)["read"]
    assert verdict == "warning" and text.startswith("the answer's last token, 1 before the last: its own code takes")
    [(verdict, text)] = found(padded, read="last")["read"]
    assert verdict == "warning" and text.startswith("'<end>': the padding id")
    assert found(directory)["read"] == [("ok", "'<end>'")]
    assert found(padded, TEMPLATE + "{{ '\\n' }}")["read"] == [("ok", "'\\n'")]  # read behind it by either


def test_a_classifier_of_pairs_reads_where_it_reads(tmp_path):
    assert found(write_encoder(tmp_path))["read"] == [("ok", "where its own classifier reads")]


def test_how_answers_join_is_shown_where_a_blank_joins_them(tmp_path):
    findings = found(write_splitting(tmp_path, "metaspace", "blank", "<pad>"))
    assert "'▁ASSISTANT:' | love: '▁love', War: '▁' 'W' 'ar', 7: '▁' '7' | '<end>'" in findings["boundary"][0][1]


def test_reference_scores_are_compared(directory):
    score = float(rmnb.load_reward_model(directory).score(QUESTION, ["love"], "published")[0])
    known = {"prompt": QUESTION, "response": "love", "protocol": "published", "source": "card", "tolerance": 1e-4}
    reference = [known | {"score": score}, known | {"score": score + 1}]
    assert [verdict for verdict, _ in found(directory, card=reference)["card"]] == ["ok", "failed"]


def test_a_vocabulary_larger_than_the_embedding_fails(tmp_path):
    findings = found(write_decoder(tmp_path, rows=300))
    assert findings["vocabulary"][0][0] == "failed" and "300 rows" in findings["vocabulary"][0][1]


def test_a_demo_model_passes_with_the_template_it_was_trained_with(printed):
    """Its base pads with the token that closes a turn, and its BOS is the one that opens every turn."""
    shown = printed("check", "smollm2-values")
    assert "failed" not in shown and "warning" not in shown and "read          '<|im_end|>'" in shown
