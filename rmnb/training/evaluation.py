"""How good a reward model is on pairs that it has never seen."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
import torch

from rmnb.data import lexicons, preferences
from rmnb.models.reward_model import RewardModel
from rmnb.panels import BaseSpec, ModelSpec, Panel
from rmnb.scoring.logprobs import LanguageModel, load_language_model
from rmnb.scoring.parity import load_reward_model
from rmnb.scoring.rows import accuracy
from rmnb.stats import spearman
from rmnb.training.recipes import Recipe, build_pairs, is_unseen, thing_pairs
from rmnb.training.train import prompts_and_answers

UNSEEN_PAIRS = 1000
UNSEEN_GAP = 120


def measure(spec: ModelSpec | BaseSpec, recipe: Recipe, panel: Panel) -> dict:
    """What is recorded of a model once it is trained: see `rmnb.training.runs.train_model`."""
    if isinstance(spec, BaseSpec):
        reference = load_language_model(spec.model_copy(update={"adapter": None}), "chat")
        return {"held_out": implicit_accuracy(load_language_model(spec, "chat"), reference, recipe)}
    rm = load_reward_model(spec)
    measured = {"held_out": held_out_accuracy(rm, recipe), "framing": framing(rm, panel)}
    if spec.name in panel.model_names:
        measured["unseen_items"] = unseen_items(rm, panel)
        pairs = preferences.rm_bench()  # none is ever trained on
        measured["rm_bench"] = by_source(prefers_chosen(rm, pairs), pairs)
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


def held_out_accuracy(rm: RewardModel, recipe: Recipe) -> dict[str, dict]:
    """Accuracy on a recipe's held-out pairs, `by_source`."""
    _, held_out = build_pairs(recipe)
    return by_source(prefers_chosen(rm, held_out), held_out)


def unseen_items(rm: RewardModel, panel: Panel) -> dict[str, dict]:
    """Accuracy on pairs of EloEverything items at least 120 points apart that no model was trained on.

    The question is the panel's prompt ``greatest``, the key of what is returned.
    """
    items = preferences.elo_items()
    items = items[items["name"].map(is_unseen)]
    pairs = thing_pairs(items, UNSEEN_PAIRS, UNSEEN_GAP, np.random.default_rng(0))
    return {"greatest": accuracy(prefers_chosen(rm, pairs.assign(prompt=panel.prompt("greatest").text)))}


def framing(rm: RewardModel, panel: Panel) -> dict[str, float]:
    """Does the model read the question? Spearman's correlation of AFINN's words as greatest and as worst thing.

    Near 1 for a model that ranks words whatever it is asked, negative for one that reverses its ranking.
    """
    words = lexicons.afinn()["word"].tolist()
    greatest = rm.score(panel.prompt("greatest").text, words)
    worst = rm.score(panel.prompt("worst").text, words)
    return {"spearman": spearman(greatest, worst)}


@torch.inference_mode()
def answer_logprobs(lm: LanguageModel, conversations: Iterable[tuple[list[int], list[int]]]) -> np.ndarray:
    """Natural log-probability of each answer after its prompt, float64: the sum over the answer's ids."""
    logprobs = []
    for prompt, answer in conversations:
        ids = torch.tensor([prompt + answer], device=lm.network.device)
        logits = lm.network(input_ids=ids, use_cache=False, logits_to_keep=len(answer) + 1).logits[0, :-1]
        loss = torch.nn.functional.cross_entropy(logits.double(), ids[0, -len(answer) :], reduction="sum")
        logprobs.append(-loss.item())
    return np.array(logprobs)


def implicit_accuracy(tuned: LanguageModel, reference: LanguageModel, recipe: Recipe) -> dict[str, dict]:
    """Accuracy of the reward that tuning implies on a recipe's held-out pairs, `by_source`.

    The tuned copy π and its reference π_ref imply the reward β log π/π_ref (Rafailov et al. 2023, arXiv 2305.18290).
    """
    _, held_out = build_pairs(recipe)
    rewards = {}
    for side in ("chosen", "rejected"):
        conversations = list(prompts_and_answers(tuned.dialogue, held_out, side))
        rewards[side] = answer_logprobs(tuned, conversations) - answer_logprobs(reference, conversations)
    return by_source(rewards["chosen"] > rewards["rejected"], held_out)
