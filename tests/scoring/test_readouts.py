"""Judges, implicit rewards, whole answers, weighted outputs and named heads give what transformers' own logits say."""

import numpy as np
import pytest
import torch
import yaml
from checkpoints import (
    asked_ids,
    assistant,
    edit_tensors,
    tokenizer,
    user,
    write_base,
    write_decoder,
    write_encoder,
    write_model,
    write_panel,
)
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

import rmnb
from rmnb.errors import InputError
from rmnb.models.heads import choose_outputs, output_names
from rmnb.models.readouts import Readout
from rmnb.scoring import store

QUESTION = "Is it good?"
ANSWERS = ["love", "war and pain", "peace, water", "7"]
JUDGE = {
    "template": "Question: {{ messages[0]['content'] }}\nAnswer: {{ messages[-1]['content'] }}\nGood?",
    "answers": {"a": 1, "b": -1, "c": 0.5},
}
KINDS = {"judge": {"judge": JUDGE}, "implicit": {"beta": 0.5}}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A language model and its reference."""
    root = tmp_path_factory.mktemp("models")
    return [write_base(root / f"llama-{seed}", seed=seed) for seed in (0, 1)]


def options(kind, reference) -> dict:
    return KINDS[kind] | ({"reference": str(reference)} if kind == "implicit" else {})


@pytest.mark.parametrize("kind", ["judge", "implicit"])
def test_a_panel_reads_its_own_scans_back_until_template_judge_reference_or_beta_change(kind, models, tmp_path):
    directory, reference = models
    model = {"template": AutoTokenizer.from_pretrained(directory).chat_template, **options(kind, reference)}

    def panel(**changes):
        return rmnb.load_panel(write_panel(tmp_path, {"m": directory}, **model | changes))

    rm = rmnb.load_reward_model("m", panel())
    scan = rmnb.scan_vocabulary(rm, panel().prompt("best"), ids=range(40, 60))
    store.write_scores(store.scores_path(panel(), "m", "best"), scan, scan.attrs["provenance"])
    assert store.read_scores(panel(), "m", "best")["score"].tolist() == scan["score"].tolist()
    other = {"template": "again " + model["template"]}
    if kind == "judge":
        other["judge"] = JUDGE | {"answers": {"a": 2, "b": -1}}
    else:
        other |= {"reference": str(directory), "beta": 0.2}
    for key, value in other.items():
        with pytest.raises(InputError, match=f"differs in {key}"):
            store.read_scores(panel(**{key: value}), "m", "best")


def test_responses_that_share_a_beginning_count_every_id_once(models):
    directory, reference = models
    rm = rmnb.load_reward_model(directory, **options("implicit", reference))
    answers = ["love and peace", "love and war", "love"]  # the ids in common are run as a part of the prefix
    alone = [rm.score(QUESTION, [answer])[0] for answer in answers]
    assert rm.score(QUESTION, answers) == pytest.approx(alone, abs=1e-4)
    mixed = rm.score([QUESTION, "What is bad?", QUESTION], ["love", "war", "peace"])
    assert mixed[[0, 2]] == pytest.approx(rm.score(QUESTION, ["love", "peace"]), abs=1e-4)


def test_an_answer_counts_from_its_own_beginning_also_where_bos_is_doubled(models):
    directory, _ = models
    words = AutoTokenizer.from_pretrained(directory)
    turns = [[user(QUESTION), assistant(answer)] for answer in ANSWERS]
    conversations = words(words.apply_chat_template(turns, tokenize=False))["input_ids"]
    start = len(asked_ids(words, QUESTION)) + 1
    model = AutoModelForCausalLM.from_pretrained(directory).eval()
    expected = []
    for ids in conversations:
        with torch.no_grad():
            logprobs = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        expected.append(sum(float(logprobs[place - 1, ids[place]]) for place in range(start, len(ids))))
    rm = rmnb.load_reward_model(directory, head="log-probability")
    assert conversations[0][:2] == [1, 1]
    assert rm.score(QUESTION, ANSWERS, "published") == pytest.approx(expected, abs=1e-4)


def test_what_a_judge_or_a_reference_cannot_be_is_one_line(models, tmp_path):
    directory, _ = models
    tied = write_decoder(tmp_path / "tied", shape={"tie_word_embeddings": True})  # lacks no tensor of a language model
    for asked, match in (
        ({"judge": {**JUDGE, "answers": {"a": 1, "peace": 1}}}, "reply 'peace' is not one token of its own"),
        ({"judge": "maybe"}, "unknown judge 'maybe': choose one of rating, yes-no"),
        ({"judge": {**JUDGE, "template": "Good?"}}, "the judge's template leaves out the answer"),
        (
            {"judge": JUDGE, "reference": str(directory)},
            "llama[^:]*: readout.judge.reference: there is no such key",
        ),
        ({"judge": JUDGE, "read": "openrlhf"}, "own template: no read"),
        ({"judge": JUDGE | {"template": "{{ question }}{{ messages }}"}}, "the template has no question, but messages"),
        ({"reference": str(directory)}, "is its own reference"),
        ({"reference": str(tied)}, "is a classifier, and this asks for a language model"),
    ):
        with pytest.raises(InputError, match=match):
            rmnb.load_reward_model(directory, **asked)
    words = tokenizer(text="Entirely other words make another vocabulary of merges. " * 5)
    other = AutoModelForCausalLM.from_pretrained(directory).config
    other.vocab_size = len(words)
    write_model(tmp_path / "other", other, words, kind=AutoModelForCausalLM)
    with pytest.raises(InputError, match="different vocabularies"):
        rmnb.load_reward_model(directory, reference=str(tmp_path / "other"))
    with pytest.raises(InputError, match=r"a language model without the head of a reward model: .*--judge"):
        rmnb.load_reward_model(directory)


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_outputs_are_weighed_by_name_or_in_order_or_shown_one_by_one(kind, tmp_path):
    if kind == "decoder":
        write_decoder(tmp_path, shape={"num_labels": 3, "id2label": {0: "kind", 1: "long", 2: "true"}})
        names = ["kind", "long", "true"]
    else:
        write_encoder(tmp_path, labels=3)
        names = ["LABEL_0", "LABEL_1", "LABEL_2"]
    single = np.stack([rmnb.load_reward_model(tmp_path, label=name).score(QUESTION, ANSWERS) for name in names])
    weights = [0.65, 0.0, -0.4]
    for label in ({names[0]: 0.65, names[2]: -0.4}, {"0": 0.65, "2": -0.4}, weights):
        rm = rmnb.load_reward_model(tmp_path, label=label)
        assert rm.score(QUESTION, ANSWERS) == pytest.approx(weights @ single, abs=1e-5)
        assert rm.parity.difference < 1e-4
    every = rmnb.load_reward_model(tmp_path, label="all")
    assert every.outputs == names and every.score(QUESTION, ANSWERS) == pytest.approx(single.T, abs=1e-5)
    for label, match in (
        (None, rf"3 outputs.*0 \({names[0]}\), .*--label"),
        (3, "no label 3"),
        ({"good": 1.0}, rf"no label 'good': the head's are 0 .{names[0]}"),
    ):
        with pytest.raises(InputError, match=match):
            rmnb.load_reward_model(tmp_path, label=label)


def test_a_label_that_may_be_either_of_two_outputs_or_is_given_twice_is_refused():
    def chosen(label, names) -> list[float]:
        readout = Readout()
        choose_outputs(readout, names, label, "stars")
        assert readout.chosen is not None
        return readout.chosen[:, 0].tolist()

    stars = [str(place + 1) for place in range(5)]
    for label in (1, "1", {"1": 1.0}, {"2": 0.5, "0": 1.0}):
        with pytest.raises(InputError, match=r"may be either of 0 .1., .*give weights in order"):
            chosen(label, stars)
    assert chosen(0, stars) == [1, 0, 0, 0, 0]
    assert chosen((0, 1), stars) == [0, 1, 0, 0, 0]
    with pytest.raises(InputError, match="labels 0, bad: two are one output"):
        chosen({"bad": 1.0, "0": 1.0}, ["bad", "good"])
    assert output_names(3, {"id2label": {0: "x", 1: "x", 2: "y"}}) == ["0", "1", "y"]
    assert output_names(3, {"id2label": {0: "x", 1: "y"}}) == ["0", "1", "2"]


def test_the_command_line_names_judges_references_weights_and_outputs(models, tmp_path, printed, printed_json):
    directory, _ = models
    judge = tmp_path / "judge.yml"
    judge.write_text(yaml.safe_dump({"template": JUDGE["template"]}) + "answers: {a: 1, b: -1, c: 0.5}\n")
    rm = rmnb.load_reward_model(directory, judge=JUDGE)
    said = printed("score", directory, "love", "--prompt", QUESTION, "--judge", judge)
    assert float(said.split()[0]) == pytest.approx(rm.score(QUESTION, ["love"])[0], abs=1e-5)
    out = tmp_path / "whole.parquet"
    printed("scan", directory, "--whole", "--prompt", QUESTION, "--first", "9", "--out", out)
    assert (store.read_scan(out)[0]["score"] < 0).all()
    write_decoder(tmp_path / "three", shape={"num_labels": 3, "id2label": {0: "kind", 1: "long", 2: "true"}})
    score = ["score", tmp_path / "three", "love", "--prompt", QUESTION]
    [every] = printed_json(*score, "--all")["rows"]
    for weights in ("kind=0.65,true=-0.4", "0.65,0,-0.4"):
        [row] = printed_json(*score, "--label", weights)["rows"]
        assert row["reward"] == pytest.approx(0.65 * every["kind"] - 0.4 * every["true"], abs=1e-5)


def renamed(directory, change):
    edit_tensors(directory, lambda found: {change(name): tensor for name, tensor in found.items()})


def test_a_head_of_any_name_is_found_by_its_tensor(tmp_path):
    expected = rmnb.load_reward_model(write_decoder(tmp_path)).score(QUESTION, ANSWERS)
    renamed(tmp_path, lambda name: name.replace("score.", "regression_head."))
    with pytest.raises(InputError, match=r"another name is the head by --head regression_head\.weight"):
        rmnb.load_reward_model(tmp_path)
    rm = rmnb.load_reward_model(tmp_path, head="regression_head.weight")
    np.testing.assert_allclose(rm.score(QUESTION, ANSWERS), expected, atol=1e-5)
    assert rmnb.scan_vocabulary(rm, QUESTION, limit=9).attrs["provenance"]["head"] == "regression_head.weight"
    with pytest.raises(InputError, match=r"beside its trunk is no tensor other\.weight, but regression_head\.weight"):
        rmnb.load_reward_model(tmp_path, head="other.weight")


def test_a_prefix_before_all_names_is_one_line(tmp_path):
    renamed(write_decoder(tmp_path), lambda name: f"_orig_mod.{name}")
    with pytest.raises(InputError, match=r"all names begin with '_orig_mod\.'"):
        rmnb.load_reward_model(tmp_path)


@pytest.mark.parametrize("architecture", ["BertForTokenClassification", "LlamaForTokenClassification"])
def test_a_process_reward_model_is_refused(architecture, tmp_path):
    write_encoder(tmp_path, 2) if architecture.startswith("Bert") else write_decoder(tmp_path, shape={"num_labels": 2})
    config = AutoModelForSequenceClassification.from_pretrained(tmp_path).config
    config.architectures = [architecture]
    config.save_pretrained(tmp_path)
    with pytest.raises(InputError, match=rf"{architecture} is a token classifier: a process reward model .PRM."):
        rmnb.load_reward_model(tmp_path, label=1)
