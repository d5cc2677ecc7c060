"""Implicit rewards, places of answers, staleness, control tokens: as TRL, transformers and the files have them."""

import functools

import numpy as np
import pytest
import torch
import transformers
from checkpoints import (
    SHAPE,
    assistant,
    own_ids,
    randomise,
    tokenizer,
    user,
    write_base,
    write_decoder,
    write_model,
    write_panel,
)
from commands import run
from head_checkpoints import hidden_states
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

import rmnb
from rmnb.errors import InputError
from rmnb.models.checkpoint_files import ADAPTER
from rmnb.scoring import logprobs, store
from rmnb.scoring.rows import trace

QUESTION = "Is it good?"
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
PLAIN = (
    "{{ bos_token }}{% for m in messages %}{{ 'Q:\n' if m['role'] == 'user' else 'A:\n' }}{{ m['content'] }}\n"
    "{% endfor %}{% if add_generation_prompt %}A:\n{% endif %}"
)


def write_language_model(directory, words, seed=0):
    return write_model(
        directory, transformers.LlamaConfig(**SHAPE, vocab_size=len(words)), words, kind=AutoModelForCausalLM, seed=seed
    )


def test_an_implicit_reward_is_what_trl_logs_of_dpo(tmp_path):
    from datasets import Dataset
    from trl import DPOConfig, DPOTrainer

    words = tokenizer(CHATML, ["<pad>", "<bos>", "<eos>", "<|im_start|>", "<|im_end|>"])
    policy, reference = (write_language_model(tmp_path / str(seed), words, seed) for seed in (0, 1))
    pair = {"prompt": [user(QUESTION)], "chosen": [assistant("love")], "rejected": [assistant("war and pain")]}
    options = dict(use_cpu=True, bf16=False, report_to=[], disable_tqdm=True, gradient_checkpointing=False)
    trainer = DPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(policy),
        ref_model=AutoModelForCausalLM.from_pretrained(reference),
        args=DPOConfig(output_dir=str(tmp_path / "work"), beta=0.1, **options),
        train_dataset=Dataset.from_list([pair]),
        eval_dataset=Dataset.from_list([pair]),
        processing_class=words,
    )
    logged = trainer.evaluate()
    expected = [logged["eval_rewards/chosen"], logged["eval_rewards/rejected"]]
    asked = functools.partial(rmnb.load_reward_model, policy, reference=str(reference), beta=0.1)
    assert asked(read="trl").score(QUESTION, ["love", "war and pain"]) == pytest.approx(expected, abs=1e-4)
    trainer.args.output_dir = str(policy)
    trainer.create_model_card()
    assert asked().score(QUESTION, ["love", "war and pain"]) == pytest.approx(expected, abs=1e-4)
    (policy / "ref").mkdir()  # where TRL keeps what an adapter was before it was trained further
    (policy / "ref" / ADAPTER).write_bytes(b"")
    with pytest.raises(InputError, match=r"another reference: give --reference .*ref$"):
        asked()


def test_an_answer_that_repeats_what_opens_a_turn_counts_from_its_own_beginning(tmp_path):
    words = tokenizer(PLAIN)
    model = AutoModelForCausalLM.from_pretrained(write_language_model(tmp_path, words)).eval()
    rm = rmnb.load_reward_model(tmp_path, head="log-probability")
    answers = ["love", "love\nA:\nwar", "7"]
    conversations = own_ids(words, QUESTION, answers)
    start = next(place for place, ids in enumerate(zip(*conversations, strict=False)) if len(set(ids)) > 1)
    expected = []
    for ids in conversations:
        with torch.no_grad():
            scores = model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        expected.append(sum(float(scores[place - 1, ids[place]]) for place in range(start, len(ids))))
    assert rm.score(QUESTION, answers) == pytest.approx(expected, abs=1e-4)
    mixed = rm.score([QUESTION, "What is war?", QUESTION], [answers[1], "7", answers[2]])
    assert mixed[[0, 2]] == pytest.approx(expected[1:], abs=1e-4)


@pytest.mark.parametrize("response", ["", "  "])
def test_a_response_of_which_the_template_leaves_nothing_is_not_traced(directory, response):
    with pytest.raises(InputError, match=f"leaves nothing of the response '{response}'"):
        trace(rmnb.load_reward_model(directory), QUESTION, response)


@pytest.mark.parametrize("wrapping", ["chat", "bare"])
def test_control_tokens_that_a_question_spells_are_text_for_log_probabilities_too(wrapping, tmp_path):
    lm = logprobs.load_language_model(write_base(tmp_path), wrapping)
    question = "What does <end> mean?"
    ids = logprobs.prompt_ids(lm, question)
    if wrapping == "chat":
        assert lm.dialogue.conversations(question, ["love"])[0][: len(ids)] == ids
    else:
        assert lm.tokenizer.decode(ids) == f"<bos>{question}" and lm.tokenizer.convert_tokens_to_ids("<end>") not in ids


def test_a_scan_is_stale_when_its_adapter_changes_and_not_for_the_name_of_its_head(tmp_path):
    from trained import write_adapter

    base = write_base(tmp_path / "base")
    write_adapter(base, tmp_path / "adapter")
    write_decoder(tmp_path / "whole", shape={"normalize_reward": True, "mean": 0.5, "std": 2.0})
    panels = [
        rmnb.load_panel(write_panel(tmp_path / name, {name: tmp_path / name}, head="linear"))
        for name in ("adapter", "whole")
    ]
    for panel, name in zip(panels, ("adapter", "whole"), strict=True):
        rm = rmnb.load_reward_model(name, panel)
        scan = rmnb.scan_vocabulary(rm, panel.prompt("best"), limit=9)
        store.write_scores(store.scores_path(panel, name, "best"), scan, scan.attrs["provenance"])
        assert len(store.read_scores(panel, name, "best")) == 9
    write_adapter(base, tmp_path / "adapter", r=2)
    with pytest.raises(InputError, match="differs in weights"):
        store.read_scores(panels[0], "adapter", "best")


def test_a_reference_is_looked_up_in_the_panel_that_is_given(tmp_path, monkeypatch, capsys):
    models = {name: write_base(tmp_path / name, seed=seed) for seed, name in enumerate(("policy", "before"))}
    panel = write_panel(tmp_path, models, load={"dtype": "float32"})  # options of the panel, too
    expected = rmnb.load_reward_model(models["policy"], reference=str(models["before"])).score(QUESTION, ["love"])[0]
    asked = ["score", "policy", "love", "--prompt", QUESTION, "--panel", panel, "--reference", "before"]
    assert run(monkeypatch, *asked) == 0
    assert float(capsys.readouterr().out.split()[0]) == pytest.approx(expected, abs=1e-5)


def test_a_model_of_images_and_text_with_a_value_head_is_read_by_it(tmp_path):
    words = tokenizer()
    sizes = {key: size for key, size in SHAPE.items() if key != "num_labels"}
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
    vision = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, out_hidden_size=32)
    config = transformers.Qwen2_5_VLConfig(
        text_config={**sizes, "vocab_size": len(words), "rope_parameters": rope}, vision_config=vision
    )
    model = AutoModelForImageTextToText.from_config(config)
    randomise(model)
    model.save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)
    head = {"v_head.summary.weight": torch.randn(1, 32), "v_head.summary.bias": torch.randn(1)}
    save_file(head, tmp_path / "value_head.safetensors")
    rm = rmnb.load_reward_model(tmp_path, read="trl")
    answers = ["love", "war and pain"]
    weight, bias = head["v_head.summary.weight"].double(), head["v_head.summary.bias"].double()
    expected = [
        (weight @ hidden_states(tmp_path, [ids])[0, -1] + bias).item() for ids in own_ids(words, QUESTION, answers)
    ]
    assert rm.score(QUESTION, answers) == pytest.approx(np.array(expected), abs=1e-3)
