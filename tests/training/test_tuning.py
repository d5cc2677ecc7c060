"""A copy of a language model, tuned on chosen answers: what it learnt is in its log-probabilities."""

import json

import numpy as np
import pytest
import torch

from rmnb.errors import InputError
from rmnb.models.bases import base_directory
from rmnb.panels import load_panel
from rmnb.scoring.logprobs import load_language_model, next_token_logprobs
from rmnb.training import lora, tuning
from rmnb.training.recipes import build_pairs, load_recipe
from rmnb.training.runs import tune_copy

NAME = "smollm2-135m-instruct-sft"
PROMPT = "What, in one word, is the greatest thing ever?"


@pytest.fixture(scope="module")
def spec():
    return load_panel("demo").base(NAME)


@pytest.fixture(scope="module")
def reference():
    return load_language_model(load_panel("demo").base("smollm2-135m-instruct"))


def test_a_copy_learns_the_chosen_answers_and_loads_as_peft_loads_it(mirror, spec, reference, tmp_path):
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    values = load_recipe("values")
    recipe = values.model_copy(
        update={
            "hyperparameters": values.hyperparameters.model_copy(update={"batch_size": 4, "epochs": 3}),
            "things": values.things.model_copy(update={"pairs": 12}),
            "mismatched": None,
        }
    )
    output = tuning.tune(spec, recipe, tmp_path / "copy", tmp_path / "work")
    described = json.loads((output / "provenance.json").read_text())
    assert described["objective"] == "sft" and described["steps"] == 9

    copy = load_language_model(spec.model_copy(update={"adapter": str(output)}))
    rows = list(lora.conversations(copy.dialogue, build_pairs(recipe)[0]))
    prompts, chosen, _ = zip(*rows, strict=True)
    gained = tuning.answer_logprobs(copy, prompts, chosen) - tuning.answer_logprobs(reference, prompts, chosen)
    assert gained.mean() > 1 and (gained > 0).mean() > 0.8

    network = AutoModelForCausalLM.from_pretrained(base_directory(spec.source), dtype=torch.float32)
    theirs = PeftModel.from_pretrained(network, output).eval()
    ids = torch.tensor([prompts[0]])
    with torch.no_grad():
        expected = theirs(ids).logits[0, -1].log_softmax(-1).numpy()
    found = copy.network(ids).logits[0, -1].log_softmax(-1).detach().numpy()
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_the_log_probability_of_an_answer_is_the_sum_over_its_tokens(reference):
    prompt, answer = _prompt(reference), reference.dialogue.response_ids("peace and love")
    one_by_one = 0.0
    for place in range(len(answer)):
        logits = reference.network(torch.tensor([prompt + answer[:place]])).logits[0, -1]
        one_by_one += logits.double().log_softmax(-1)[answer[place]].item()
    assert tuning.answer_logprobs(reference, [prompt], [answer])[0] == pytest.approx(one_by_one, abs=1e-4)
    first = next_token_logprobs(reference, PROMPT)[answer[0]]
    assert tuning.answer_logprobs(reference, [prompt], [answer[:1]])[0] == pytest.approx(first, abs=1e-4)


def _prompt(lm):
    return lm.dialogue.frame(PROMPT)[0]


def test_what_cannot_be_tuned_is_refused(spec, tmp_path):
    elsewhere = spec.model_copy(update={"source": "owner/model"})
    with pytest.raises(InputError, match="owner/model: not in the local hub cache"):
        tuning.tune(elsewhere, load_recipe("values"), tmp_path, tmp_path / "work")
    with pytest.raises(InputError, match=f"no tuned copy 'gemma3-values' with a recipe: choose one of {NAME}"):
        tune_copy(load_panel("demo"), "gemma3-values")
