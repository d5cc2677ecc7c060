"""How good a reward model is on pairs that it has never seen."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch

from rmnb.data import lexicons, preferences
from rmnb.models.devices import own_attention
from rmnb.panels import BaseSpec, ModelSpec, Panel
from rmnb.scoring.loading import load_reward_model
from rmnb.scoring.logprobs import load_language_model
from rmnb.scoring.reward_model import RewardModel
from rmnb.scoring.rows import accuracy
from rmnb.training.recipes import Recipe, build_pairs, is_apart, is_unseen, thing_pairs
from rmnb.training.train import prompts_and_answers

UNSEEN_PAIRS = 1000
UNSEEN_GAP = 120


def measure(spec: ModelSpec | BaseSpec, recipe: Recipe, panel: Panel, measured: Mapping[str, dict]) -> dict[str, dict]:
    """What is recorded of a model once it is trained, by the name of the measurement: see `measurements`.

    Parameters
    ----------
    spec
        A trained model, or a tuned copy of a language model: of that only held_out is measured.
    measured
        What has been measured before: it is taken over, and what it lacks is added.
    """
    if isinstance(spec, BaseSpec):
        reference = load_language_model(spec.model_copy(update={"adapter": None}), "chat")
        tuned = load_language_model(spec, "chat")
        return dict(measured) or {"held_out": implicit_accuracy(tuned, reference, recipe)}
    missing = {name: function for name, function in measurements(spec, panel).items() if name not in measured}
    if not missing:
        return dict(measured)
    rm = load_reward_model(spec)
    return {**measured, **{name: function(rm, recipe, panel) for name, function in missing.items()}}


def measurements(spec: ModelSpec, panel: Panel) -> dict[str, Callable[[RewardModel, Recipe, Panel], dict]]:
    """What is measured of a reward model: more of a panel's models than of runs that are only watched."""
    functions = {"held_out": held_out_accuracy, "framing": framing}
    if spec.name in panel.model_names:
        functions |= {"apart": accuracy_apart, "unseen_items": unseen_items}
        # No model is ever trained on these.
        functions |= {"rm_bench": _on(preferences.rm_bench), "auto_j": _on(preferences.auto_j)}
        functions["crows_pairs"] = _on(preferences.crows_pairs)
    return functions


def _on(read_pairs: Callable[[], pd.DataFrame]) -> Callable[[RewardModel, Recipe, Panel], dict]:
    def measured(rm: RewardModel, recipe: Recipe, panel: Panel) -> dict:
        pairs = read_pairs()
        return by_source(prefers_chosen(rm, pairs), pairs)

    return measured


def by_source(correct: np.ndarray, pairs: pd.DataFrame) -> dict[str, dict]:
    """The `accuracy` on all pairs together, under ``all``, and on those of each source."""
    sources = {"all": slice(None), **pairs.groupby("source").indices}
    return {source: accuracy(correct[rows]) for source, rows in sources.items()}


def prefers_chosen(rm: RewardModel, pairs: pd.DataFrame) -> np.ndarray:
    """Whether the chosen response has the higher reward, bool [pairs]; a tie counts as no.

    Columns of the pairs: prompt (a question or messages), chosen, rejected.
    """
    rewards = rm.score([*pairs["prompt"], *pairs["prompt"]], [*pairs["chosen"], *pairs["rejected"]])
    chosen, rejected = np.split(rewards, 2)
    return chosen > rejected


def held_out_accuracy(rm: RewardModel, recipe: Recipe, panel: Panel | None = None) -> dict[str, dict]:
    """Accuracy on a recipe's held-out pairs, `by_source`."""
    _, held_out = build_pairs(recipe)
    return by_source(prefers_chosen(rm, held_out), held_out)


def accuracy_apart(rm: RewardModel, recipe: Recipe, panel: Panel) -> dict[str, dict]:
    """Accuracy on the distinct held-out pairs of which no text is trained on, `by_source`; empty if there are none.

    Where a recipe splits by pair, no mismatched pair is among them. Pairs of things are left out: `unseen_items` has
    pairs of which neither thing is trained on.
    """
    train, held_out = build_pairs(recipe)
    pairs = held_out[is_apart(held_out, train, recipe)].reset_index(drop=True)
    return by_source(prefers_chosen(rm, pairs), pairs) if len(pairs) else {}


def unseen_items(rm: RewardModel, recipe: Recipe, panel: Panel) -> dict[str, dict]:
    """Accuracy on pairs of EloEverything items at least 120 points apart that no model was trained on.

    The question is the panel's prompt ``greatest``, the key of what is returned.
    """
    items = preferences.elo_items()
    items = items[items["name"].map(is_unseen)]
    pairs = thing_pairs(items, UNSEEN_PAIRS, UNSEEN_GAP, np.random.default_rng(0))
    return {"greatest": accuracy(prefers_chosen(rm, pairs.assign(prompt=panel.prompt("greatest").text)))}


def framing(rm: RewardModel, recipe: Recipe, panel: Panel) -> dict[str, float]:
    """Does the model read the question? Spearman's correlation of AFINN's words as greatest and as worst thing.

    Near 1 for a model that ranks words whatever it is asked, negative for one that reverses its ranking.
    """
    words = lexicons.afinn()["word"].tolist()
    greatest = pd.Series(rm.score(panel.prompt("greatest").text, words))
    worst = pd.Series(rm.score(panel.prompt("worst").text, words))
    return {"spearman": greatest.corr(worst, method="spearman")}


@torch.inference_mode()
def answer_logprobs(lm: RewardModel, conversations: Iterable[tuple[list[int], list[int]]]) -> np.ndarray:
    """Natural log-probability of each answer after its prompt, float64: the sum over the answer's ids."""
    logprobs = []
    for prompt, answer in conversations:
        ids = torch.tensor([prompt + answer], device=lm.device)
        with own_attention(lm.network):
            states = lm.network(input_ids=ids, use_cache=False).last_hidden_state[0, -len(answer) - 1 : -1]
        head: Any = lm.readout
        logits = head.logits(states)
        loss = torch.nn.functional.cross_entropy(logits.double(), ids[0, -len(answer) :], reduction="sum")
        logprobs.append(-loss.item())
    return np.array(logprobs)


def implicit_accuracy(tuned: RewardModel, reference: RewardModel, recipe: Recipe) -> dict[str, dict]:
    """Accuracy of the reward that tuning implies on a recipe's held-out pairs, `by_source`.

    The tuned copy π and its reference π_ref imply the reward β log π/π_ref (Rafailov et al. 2023, arXiv 2305.18290).
    """
    _, held_out = build_pairs(recipe)
    rewards = {}
    for side in ("chosen", "rejected"):
        conversations = list(prompts_and_answers(tuned.dialogue, held_out, side))
        rewards[side] = answer_logprobs(tuned, conversations) - answer_logprobs(reference, conversations)
    return by_source(rewards["chosen"] > rewards["rejected"], held_out)
