"""Policies in real training by TRL: the shortcut of one prompt changes nothing, a run goes on, the sums are right."""

import numpy as np
import policy_training as training
import pytest
import torch
import trl
from checkpoints import write_base
from policy_training import PolicyOptions, train_policy
from scipy.special import log_softmax

from rmnb.errors import InputError
from rmnb.findings import policy
from rmnb.scoring.logprobs import load_language_model, next_token_logprobs

PROMPT = "What is good?"
TINY = dict(steps=4, samples=8, learning_rate=0.02, rank=2)


def trained(directory, options, work="work", turned=False, architecture="llama", **shape):
    """Train a tiny language model, written anew, on random rewards; the rewards, where it began and where it ended."""
    lm = load_language_model(write_base(directory / "lm", architecture, shape=shape))
    before = next_token_logprobs(lm, PROMPT).astype(float)
    rewards = np.random.default_rng(0).normal(size=len(before))
    if turned:
        rewards = rewards[::-1].copy()
    return rewards, before, *train_policy(lm, PROMPT, rewards, options, directory / work)


def test_a_step_with_one_row_of_logits_is_the_step_of_trl(tmp_path, monkeypatch):
    options = PolicyOptions("grpo", 0.5, layers=99, **TINY)
    *_, shared, _ = trained(tmp_path, options, "shared")

    class Own(trl.GRPOTrainer):
        def __init_subclass__(cls):
            del cls._get_per_token_logps_and_entropies

    monkeypatch.setattr(trl, "GRPOTrainer", Own)
    *_, whole, _ = trained(tmp_path, options, "whole")
    assert np.abs(whole - shared).max() < 1e-4


def test_a_run_that_was_cut_off_goes_on_to_the_same_policy(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "CHECKPOINT_STEPS", 2)
    options = PolicyOptions("grpo", 0.5, layers=1, **TINY)
    *_, uncut, way = trained(tmp_path, options, "uncut")
    draw, drawn = torch.multinomial, []

    def killed(*arguments, **named):
        drawn.append(draw(*arguments, **named))
        if len(drawn) == 4:
            raise KeyboardInterrupt
        return drawn[-1]

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(torch, "multinomial", killed)
        trained(tmp_path, options)
    *_, resumed, resumed_way = trained(tmp_path, options)
    assert np.abs(resumed - uncut).max() < 1e-6
    assert resumed_way == way
    with pytest.raises(InputError, match="holds other work: it differs in beta"):
        trained(tmp_path, PolicyOptions("grpo", 0.7, layers=1, **TINY))
    with pytest.raises(InputError, match="differs in rewards"):  # of the same sum
        trained(tmp_path, options, turned=True)


@pytest.mark.parametrize("architecture, layers", [("gemma2", 4), ("gemma3", 7)])
def test_layers_of_two_kinds_keep_theirs_when_those_below_are_cut_off(architecture, layers, tmp_path):
    """Full attention and a sliding window that is shorter than the question."""
    options = PolicyOptions("exact", 0.5, layers=3, **TINY)
    rewards, before, _, way = trained(tmp_path, options, architecture=architecture, num_hidden_layers=layers)
    assert way[0] == pytest.approx({"step": 0, "kl": 0, "reward": np.exp(log_softmax(before)) @ rewards}, abs=1e-4)


@pytest.mark.parametrize("method", ["exact", "cross-entropy"])
def test_what_is_recorded_are_sums_over_the_vocabulary_and_no_run_crosses_the_frontier(method, tmp_path):
    beta = 0.5
    options = PolicyOptions(method, beta, layers=1, **{**TINY, "steps": 20})
    rewards, before, after, way = trained(tmp_path, options)
    before = log_softmax(before)
    assert np.logaddexp.reduce(after) == pytest.approx(0, abs=1e-9)
    kl = policy.kl_divergence(after, before)
    reward = np.exp(after) @ rewards
    assert way[0] == pytest.approx({"step": 0, "kl": 0, "reward": np.exp(before) @ rewards}, abs=1e-5)
    assert way[-1] == pytest.approx({"step": 20, "kl": kl, "reward": reward}, abs=1e-5)
    assert reward <= policy.frontier(before, rewards, [kl])["reward"].item()
    optimum = policy.optimal_policy(before, rewards, beta)
    assert policy.kl_divergence(after, optimum) < 0.9 * policy.kl_divergence(before, optimum)
