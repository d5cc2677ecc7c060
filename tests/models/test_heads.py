"""Heads: every known format loads as it lies on disk, scans, and is the formula it says it is."""

import dataclasses
import functools
import itertools
import sys
from typing import get_args

import numpy as np
import pytest
import torch
from checkpoints import EARLIER, SHAPE, user
from head_checkpoints import (
    BEFORE_PADDING,
    CASES,
    GATED,
    PROMPT_END,
    head_tensors,
    head_tokenizer,
    hidden_states,
    write_head,
)

import rmnb
from rmnb.errors import InputError
from rmnb.models.dialogue import Dialogue
from rmnb.models.heads import find_head
from rmnb.models.readouts import opening_ids
from rmnb.panels import HeadName
from rmnb.scoring.engine import PrefixScorer, score_continuations

PROMPT = "What, in one word, is the greatest thing ever?"
LIMIT = 40


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A function from a case's key to its checkpoint, each written once."""
    root = tmp_path_factory.mktemp("heads")
    return functools.cache(lambda key: write_head(root / key, key))


@pytest.mark.parametrize("key", CASES)
def test_a_checkpoint_in_the_real_format_scans_and_equals_the_formula(key, written):
    directory, case = written(key), CASES[key]
    rm = rmnb.load_reward_model(directory)
    scan = rmnb.scan_vocabulary(rm, PROMPT, limit=LIMIT)
    prefix, closing = rm.dialogue.frame_ids(PROMPT)
    rows = [[*prefix, token, *closing] for token in range(LIMIT)]
    hidden = hidden_states(directory, rows)
    prompt = None
    if key in GATED:
        end = rm.tokenizer.convert_tokens_to_ids(PROMPT_END[case.trunk])
        prompt = hidden[0, max(place for place, token in enumerate(prefix) if token == end)]
    tensors = {name: tensor.double() for name, tensor in head_tensors(case).items()}
    padding = SHAPE["pad_token_id"]
    read = [row.index(padding) - 1 if case.name in BEFORE_PADDING and padding in row else -1 for row in rows]
    expected = case.formula(tensors, hidden[torch.arange(LIMIT), read], prompt)
    np.testing.assert_allclose(scan["score"], expected, rtol=1e-4, atol=1e-4)
    assert expected.std() > 0.01  # a formula that cannot tell tokens apart would prove nothing
    assert scan.attrs["provenance"]["head"] == rm.readout.name == case.name
    assert not any(name.startswith("transformers_modules") for name in sys.modules)


@pytest.mark.parametrize("key", CASES)
def test_each_renamed_missing_or_misshapen_tensor_of_a_head_is_named(key):
    case = CASES[key]
    whole, config = head_tensors(case), {"hidden_size": 16, "model_type": case.trunk, **case.config}

    def found(tensors):
        return find_head(tensors, config, "here")

    assert found(whole).name == case.name
    for name in sorted(whole):
        rest = {other: tensor for other, tensor in whole.items() if other != name}
        with pytest.raises(InputError, match=f"here: .*mis{name}"):
            found(rest | {f"mis{name}": whole[name]})
        if name.endswith("num_batches_tracked"):
            continue
        if rest and (name != "reward_transform_matrix" or key == "armorm"):  # QRM on Gemma 2 has none
            with pytest.raises(InputError, match=f"here: .*Missing .*{name}"):
                found(rest)
        with pytest.raises(InputError, match=f"here: .*size mismatch for {name}"):
            found(rest | {name: torch.zeros(*whole[name].shape, 2)})


@pytest.fixture(params=GATED)
def gated(request, written):
    """A model whose head reads the prompt, and the same one scoring whole sequences."""
    rm = rmnb.load_reward_model(written(request.param))
    return rm, dataclasses.replace(rm, why_not_shared="a test wants it")


def test_a_gate_reads_earlier_turns_and_published_ids_with_a_shared_prefix_as_without(gated):
    turns = [*EARLIER, user("Is war bad?")]
    words = ["love", "war and pain", " peace"]
    for prompt, protocol in itertools.product((PROMPT, turns), ("exact", "published")):
        shared, whole = (model.score(prompt, words, protocol=protocol) for model in gated)
        np.testing.assert_allclose(shared, whole, atol=1e-4)
    assert np.abs(shared - gated[0].score(PROMPT, words, protocol=protocol)).max() > 1e-3


def test_a_continuation_that_opens_a_turn_of_its_own_moves_the_gate(gated):
    rm, plain = gated
    whole, closing = rm.dialogue.frame_ids(PROMPT)
    pattern = list(opening_ids(rm.dialogue))
    again = [50, 51, *pattern, 52, *closing]
    for prefix in (whole, whole[:-1], whole[:3]):  # also where the continuation completes the pattern, or holds it all
        rest = whole[len(prefix) :]
        continuations = [[*rest, 52, *closing], [*rest, *again]]
        rewards = PrefixScorer(rm, prefix)(continuations)
        np.testing.assert_allclose(rewards, PrefixScorer(plain, prefix)(continuations), atol=1e-4)
        first = PrefixScorer(rm, whole)([[52, *closing]])
        np.testing.assert_allclose(rewards[0], first[0], atol=1e-4)
    shared = PrefixScorer(rm, whole)([again, [*again[:-2], 53, *closing], [52, *closing]], parent=again)
    np.testing.assert_allclose(shared[2], first[0], atol=1e-4)
    np.testing.assert_allclose(shared[0], rewards[1], atol=1e-4)
    with pytest.raises(InputError, match="own chat template"):
        score_continuations(rm, [1, 20, 21], [[22], [23]])


def test_a_panel_can_name_each_head():
    assert {*get_args(HeadName), "linear-normalised"} == {case.name for case in CASES.values()}  # as config.json says


def test_a_gate_whose_template_puts_nothing_before_the_response_is_refused():
    with pytest.raises(InputError, match="nothing between prompt and response"):
        opening_ids(
            Dialogue(head_tokenizer("llama"), "{% for m in messages %}{{ m['content'] }}{% endfor %}<|eot_id|>")
        )
