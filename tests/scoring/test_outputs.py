"""Every readout in every command: what comes back are the outputs that it names, as whole sequences give them."""

import functools
import json

import numpy as np
import pandas as pd
import pytest
import torch
from checkpoints import asked_ids, own_ids, own_rewards, tokenizer, user, write_base, write_decoder, write_model
from commands import run
from head_checkpoints import CASES, head_tensors, hidden_states, write_head
from scipy.special import softmax
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig

import rmnb
from rmnb.errors import InputError
from rmnb.report import scores
from rmnb.report.pairs import compare
from rmnb.report.scores import FRAMING
from rmnb.scoring.check import check_model
from rmnb.scoring.forms import read_forms
from rmnb.scoring.rows import score_file, trace
from rmnb.searching.rewards import RewardObjective

QUESTION = "Is it good?"
TEXT = "love and peace"
JUDGE = {
    "template": "Question: {{ messages[0]['content'] }}\nAnswer: {{ messages[-1]['content'] }}\nGood?",
    "answers": {"a": 1, "b": -0.5},
}
RATING = {"judge": {**JUDGE, "expected": True}}


def logits_of(directory, ids) -> torch.Tensor:
    model = AutoModelForCausalLM.from_pretrained(directory, attn_implementation="eager").eval()
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].double()


def of_classifier(directory, ids) -> list[float]:
    return [own_rewards(directory, [ids], label)[0] for label in (0, 1)]


def of_objectives(directory, ids) -> list[float]:
    weight = head_tensors(CASES["armorm"])["regression_layer.weight"].double()
    return (weight @ hidden_states(directory, [ids])[0, -1]).tolist()


def of_gate(directory, ids) -> list[float]:
    case = CASES["armorm"]
    words = AutoTokenizer.from_pretrained(directory)
    last = len(ids) - 1 - ids[::-1].index(words.convert_tokens_to_ids("<|start_header_id|>"))
    states = hidden_states(directory, [ids])
    tensors = {name: tensor.double() for name, tensor in head_tensors(case).items()}
    return case.formula(tensors, states[:, -1], states[0, last - 1]).tolist()


def of_replies(directory, ids) -> list[float]:
    words = AutoTokenizer.from_pretrained(directory)
    return logits_of(directory, ids)[-1][[words.convert_tokens_to_ids(reply) for reply in JUDGE["answers"]]].tolist()


def of_judge(directory, ids) -> list[float]:
    return [np.dot([1, -0.5], of_replies(directory, ids))]


def of_rating(directory, ids) -> list[float]:
    return [np.dot([1, -0.5], softmax(of_replies(directory, ids)))]


def of_answer(directory, ids) -> list[float]:
    words = AutoTokenizer.from_pretrained(directory)
    opening = words.apply_chat_template([user(QUESTION)], add_generation_prompt=True)["input_ids"][-1]
    start = ids.index(opening) + 1
    logprobs = logits_of(directory, ids).log_softmax(-1)
    return [sum(float(logprobs[place - 1, ids[place]]) for place in range(start, len(ids)))]


def reference_of(directory):
    return directory.with_name(f"{directory.name}-reference")


READOUTS = {  # how it is loaded, its outputs, what they are of the ids of one conversation
    "each output": ({"label": "all"}, ["LABEL_0", "LABEL_1"], of_classifier),
    "weighted outputs": (
        {"label": {"LABEL_0": 2.0, "LABEL_1": -1.0}},
        ["reward"],
        lambda directory, ids: [np.dot([2, -1], of_classifier(directory, ids))],
    ),
    "gate": ({}, ["reward"], of_gate),
    "each objective": ({"label": "all"}, ["0", "1", "2", "3"], of_objectives),
    "one objective": ({"label": 2}, ["reward"], lambda directory, ids: of_objectives(directory, ids)[2:3]),
    "judge": ({"judge": JUDGE}, ["reward"], of_judge),
    "rating": (RATING, ["reward"], of_rating),
    "each reply": ({"judge": JUDGE, "label": "all"}, ["a", "b"], of_replies),
    "one logit": (
        {"head": "lm_head.weight", "label": 7},
        ["reward"],
        lambda directory, ids: [float(logits_of(directory, ids)[-1, 7])],
    ),
    "whole answer": ({"head": "log-probability"}, ["reward"], of_answer),
    "implicit": (
        {"beta": 0.5},
        ["reward"],
        lambda directory, ids: [0.5 * (of_answer(directory, ids)[0] - of_answer(reference_of(directory), ids)[0])],
    ),
}


OF_ONE_OUTPUT = [readout for readout, (_, outputs, _) in READOUTS.items() if len(outputs) == 1]
OF_LANGUAGE_MODELS = ["judge", "rating", "each reply", "one logit", "whole answer", "implicit"]
CELLS = [(readout, "llama") for readout in READOUTS]
CELLS += [(readout, other) for readout in OF_LANGUAGE_MODELS for other in ("gemma2", "gemma3")]


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """A function from a readout to its model and directory, each written and loaded once."""
    root = tmp_path_factory.mktemp("models")
    write_decoder(root / "classifier", shape={"num_labels": 2})
    write_head(root / "gated", "armorm")

    @functools.cache
    def written(architecture):
        directory = write_base(root / architecture, architecture)
        write_base(reference_of(directory), architecture, seed=1)
        return directory

    @functools.cache
    def loaded(readout, architecture="llama"):
        options = dict(READOUTS[readout][0])
        if readout in OF_LANGUAGE_MODELS:
            directory = written(architecture)
        else:
            directory = root / ("classifier" if "output" in readout else "gated")
        if readout == "implicit":
            options["reference"] = str(reference_of(directory))
        return rmnb.load_reward_model(directory, **options), directory

    return loaded


def expected(readout, directory, conversations) -> np.ndarray:
    return np.array([READOUTS[readout][2](directory, list(ids)) for ids in conversations])


def whole_sequences(readout, directory, texts) -> list[list[int]]:
    words = AutoTokenizer.from_pretrained(directory)
    if "judge" in READOUTS[readout][0]:
        return [asked_ids(words, f"Question: {QUESTION}\nAnswer: {text}\nGood?") for text in texts]
    return own_ids(words, QUESTION, texts)


@pytest.mark.parametrize(("readout", "architecture"), CELLS)
def test_scoring_scanning_and_tracing_give_each_output_as_whole_sequences_do(readout, architecture, load):
    rm, directory = load(readout, architecture)
    outputs = READOUTS[readout][1]
    assert rm.outputs == outputs and rm.parity.difference <= rm.parity.tolerance and rm.shares_prefix

    def close(found, right):
        np.testing.assert_allclose(np.asarray(found, float).reshape(len(right), -1), right, atol=2e-4)

    texts = ["love", "war and pain", "7"]
    close(rm.score(QUESTION, texts), expected(readout, directory, whole_sequences(readout, directory, texts)))
    prefix, closing = rm.dialogue.frame_ids(QUESTION)
    scan = rmnb.scan_vocabulary(rm, QUESTION, ids=range(40, 45))
    names = [name for name in scan if name.startswith("score")]
    assert names == (["score"] if len(outputs) == 1 else [f"score_{name}" for name in outputs])
    close(scan[names], expected(readout, directory, [[*prefix, token_id, *closing] for token_id in range(40, 45)]))
    table = trace(rm, QUESTION, TEXT)
    ids = table["token_id"].tolist()
    beginnings = [[*prefix, *ids[: end + 1], *closing] for end in range(len(ids))]
    close(table[rm.columns("reward")], expected(readout, directory, beginnings))
    assert [name for name in table if name.startswith("change")] == rm.columns("change")
    close(table[rm.columns("change")][1:], np.diff(expected(readout, directory, beginnings), axis=0))


@pytest.mark.parametrize("readout", READOUTS)
def test_a_search_takes_one_output_and_a_check_takes_all(readout, load):
    rm, directory = load(readout)
    if len(rm.outputs) > 1:
        with pytest.raises(InputError, match=r"a search needs one number .* choose a --label"):
            RewardObjective([rm], [QUESTION])
    else:
        objective = RewardObjective([rm], [QUESTION])
        prefix, closing = rm.dialogue.frame_ids(QUESTION)
        sequences = [(40, 41), (42,)]
        right = expected(readout, directory, [[*prefix, *ids, *closing] for ids in sequences])
        np.testing.assert_allclose(objective.measure(sequences), right[:, 0], atol=2e-4)
    shown = [result.text for result in check_model(rm) if result.aspect == "scores"]
    assert [text.split()[0] for text in shown] == rm.columns("rewards")


@pytest.mark.parametrize("readout", READOUTS)
def test_rows_are_compared_by_one_output(readout, load):
    rm, directory = load(readout)
    pairs = [("love", "war and pain"), ("7", "love")]
    content = read_forms([{"prompt": QUESTION, "chosen": chosen, "rejected": rejected} for chosen, rejected in pairs])
    rewards = score_file(rm, content)
    if len(rm.outputs) > 1:
        with pytest.raises(InputError, match="a comparison needs one"):
            compare(rewards, rewards, content)
        return
    sequences = [whole_sequences(readout, directory, pair) for pair in pairs]
    right = np.array([expected(readout, directory, pair)[:, 0] for pair in sequences])
    margins = right[:, 0] - right[:, 1]
    np.testing.assert_allclose(rewards[["reward_chosen", "reward_rejected"]], right, atol=2e-4)
    change = compare(rewards, rewards, content).set_index("name")
    assert change.loc["margin", "a"] == pytest.approx(margins.mean(), abs=2e-4)
    assert change.loc["accuracy", "b"] == (margins > 0).mean()


@pytest.mark.slow
@pytest.mark.parametrize("readout", OF_ONE_OUTPUT)
def test_a_report_is_of_rewards_of_whole_sequences(readout, load, tmp_path):
    rm, directory = load(readout)
    scores.score(rm, tmp_path, quick=True)
    table = scores.read(tmp_path).table
    for key in FRAMING:
        prefix, closing = rm.dialogue.frame_ids(rmnb.load_panel("demo").prompt(key).text)
        ids = table["token_id"][1::50].tolist()  # a padding id ends what own code reads
        right = expected(readout, directory, [[*prefix, token_id, *closing] for token_id in ids])
        np.testing.assert_allclose(table[key][1::50], right[:, 0], atol=2e-4)


def test_several_outputs_are_columns_of_every_command_and_a_report_refuses_them(load, tmp_path, monkeypatch, capsys):
    _, directory = load("each output")
    ask = ["--prompt", QUESTION, "--label", "all"]
    out = tmp_path / "scan.parquet"
    for _ in range(2):  # the second finds it finished
        assert run(monkeypatch, "scan", directory, *ask, "--first", "9", "--out", out) == 0
    assert "highest LABEL_1" in capsys.readouterr().out
    assert list(pd.read_parquet(out))[3:] == ["score_LABEL_0", "score_LABEL_1"]
    for command in (["trace", directory, TEXT], ["score", directory, "love", "war"]):
        assert run(monkeypatch, *command, *ask) == 0
        assert "LABEL_1" in capsys.readouterr().out
        assert run(monkeypatch, *command, *ask, "--json") == 0
        shown = json.loads(capsys.readouterr().out)
        assert len(shown["rows"] if command[0] == "score" else shown) >= 2
    assert run(monkeypatch, "check", directory, "--label", "all") in (0, 1)
    assert run(monkeypatch, "report", directory, "--label", "all", "--out", tmp_path / "report") == 2
    assert "a report needs one number" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["armorm", "qrm-llama", "urm"])
def test_a_head_with_weights_of_its_own_gives_its_objectives_and_takes_no_other_label(key, tmp_path):
    directory = write_head(tmp_path / key, key)
    with pytest.raises(InputError, match="no label 'nonsense': the head's are 0"):
        rmnb.load_reward_model(directory, label="nonsense")
    every = rmnb.load_reward_model(directory, label="all")
    tensors = head_tensors(CASES[key])
    weight = tensors["score.weight"][::2] if key == "urm" else tensors["regression_layer.weight"]
    if key == "qrm-llama":
        weight = weight.unflatten(0, (4, -1)).mean(1)
    [ids] = every.dialogue.conversations(QUESTION, [TEXT])
    expected = (weight.double() @ hidden_states(directory, [every.reading.truncated(ids)])[0, -1]).tolist()
    np.testing.assert_allclose(every.score(QUESTION, [TEXT])[0], expected, atol=1e-4)
    named = rmnb.load_reward_model(directory, label={every.outputs[1]: 0.5, every.outputs[0]: 2.0})
    assert named.score(QUESTION, [TEXT])[0] == pytest.approx(2 * expected[0] + 0.5 * expected[1], abs=1e-3)


def test_a_judge_is_read_at_its_replies_as_the_template_writes_a_turn_of_the_assistant(tmp_path):
    template = (
        "{{ bos_token }}{% for m in messages %}{{ 'USER: ' if m['role'] == 'user' else 'ASSISTANT: ' }}"
        "{{ m['content'] }}<end>{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"
    )
    words = tokenizer(template, text="Is it good? Yes No Yes No USER: ASSISTANT: Good? love " * 20)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    write_model(tmp_path, LlamaConfig(**shape, vocab_size=len(words)), words, kind=AutoModelForCausalLM)
    judge = {"template": "{{ messages[-1]['content'] }} Good?", "answers": {"Yes": 1, "No": -1}}
    rm = rmnb.load_reward_model(tmp_path, judge=judge)
    replied = [[user("love Good?"), {"role": "assistant", "content": reply}] for reply in judge["answers"]]
    yes, no = words.apply_chat_template(replied)["input_ids"]
    place = next(place for place, ids in enumerate(zip(yes, no, strict=True)) if len(set(ids)) > 1)
    logits = logits_of(tmp_path, yes[:place])[-1]
    assert words.decode([yes[place]]) == " Yes"
    right = float(logits[yes[place]] - logits[no[place]])
    assert rm.score(QUESTION, ["love"])[0] == pytest.approx(right, abs=1e-4)
