"""How good a reward model is on pairs that it has never seen."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from rmnb.data import lexicons, preferences
from rmnb.data.preferences import RM_BENCH, rm_bench
from rmnb.errors import InputError
from rmnb.models.reward_model import RewardModel
from rmnb.panels import Panel
from rmnb.stats import kendall_tau, spearman
from rmnb.training.recipes import Recipe, build_pairs, half, thing_pairs

UNSEEN_PAIRS = 1000
UNSEEN_GAP = 120


@dataclass(frozen=True)
class Accuracy:
    """Share of pairs in which the preferred response has the higher reward, with its 95 % Wilson interval."""

    value: float
    low: float
    high: float
    pairs: int


def accuracy(chosen: np.ndarray, rejected: np.ndarray) -> Accuracy:
    """Accuracy from rewards of the preferred and the other response, float [pairs] each; a tie counts as wrong.

    Raises
    ------
    InputError
        There is no pair.
    """
    if len(chosen) == 0:
        raise InputError("no pairs to measure accuracy on")
    return _share(int((chosen > rejected).sum()), len(chosen))


def pooled(parts: Iterable[Accuracy]) -> Accuracy:
    """The accuracy on all pairs of several parts together."""
    parts = list(parts)
    return _share(round(sum(part.value * part.pairs for part in parts)), sum(part.pairs for part in parts))


def _share(correct: int, pairs: int) -> Accuracy:
    interval = binomtest(correct, pairs).proportion_ci(0.95, method="wilson")
    return Accuracy(correct / pairs, float(interval.low), float(interval.high), pairs)


def pair_accuracy(rm: RewardModel, pairs: pd.DataFrame) -> Accuracy:
    """Accuracy on preference pairs: columns prompt (a question or messages), chosen, rejected."""
    chosen, rejected = np.empty(len(pairs)), np.empty(len(pairs))
    for rows in pairs.groupby(pairs["prompt"].map(json.dumps), sort=False).indices.values():
        prompt = pairs["prompt"].iloc[rows[0]]
        texts = [*pairs["chosen"].iloc[rows], *pairs["rejected"].iloc[rows]]
        chosen[rows], rejected[rows] = np.split(rm.score(prompt, texts), 2)
    return accuracy(chosen, rejected)


def held_out_accuracy(rm: RewardModel, recipe: Recipe) -> dict:
    """Accuracy on a recipe's held-out pairs: an `Accuracy` as dict for each source and, under ``all``, together."""
    _, held_out = build_pairs(recipe)
    by_source = {str(source): pair_accuracy(rm, part) for source, part in held_out.groupby("source")}
    return {"all": vars(pooled(by_source.values()))} | {name: vars(part) for name, part in by_source.items()}


def unseen_items(rm: RewardModel, panel: Panel) -> dict:
    """How well a model ranks things that no model was trained on, under each of the panel's scanned prompts.

    Returns
    -------
    dict
        For each of the prompts greatest, elo_greatest and worst: accuracy on pairs of EloEverything items of the
        held-out half at least 120 points apart, and human_spearman, Spearman's correlation of the reward with human Elo
        over all items of that half (for worst the expected sign is negative, and the lower item is the right answer).
    """
    return {key: _unseen_items(rm, panel, key) for key in ("greatest", "elo_greatest", "worst")}


def framing(rm: RewardModel, panel: Panel) -> dict:
    """Does the model read the question? Its rewards for AFINN's words as the greatest and as the worst thing.

    Returns
    -------
    dict
        greatest_valence, worst_valence: Spearman's correlation of each with valence. spearman, kendall_tau: of one with
        the other; near 1 for a model that ranks words whatever it is asked, negative for one that turns them round.
    """
    rated = lexicons.afinn()
    greatest, worst = (rm.score(panel.prompt(key).text, rated["word"].tolist()) for key in ("greatest", "worst"))
    return {
        "greatest_valence": spearman(greatest, rated["valence"]),
        "worst_valence": spearman(worst, rated["valence"]),
        "spearman": spearman(greatest, worst),
        "kendall_tau": kendall_tau(greatest, worst),
        "words": len(rated),
    }


def rm_bench_accuracy(rm: RewardModel) -> dict:
    """Accuracy on RM-Bench's chat, safety-refuse and safety-response pairs, none of which is ever trained on.

    Only the terse responses are compared, a chosen one against a rejected one, one pair a prompt: the detailed ones are
    ten times as long as anything that the demo models have read.

    Returns
    -------
    dict
        An `Accuracy` as dict for each subset and, under ``all``, for the 570 pairs together.
    """
    subsets = {subset: rm_bench(subset) for subset in RM_BENCH}
    terse = {
        subset: pairs[(pairs["chosen_style"] == 0) & (pairs["rejected_style"] == 0)].assign(
            prompt=lambda frame: [messages[0]["content"] for messages in frame["prompt"]]
        )
        for subset, pairs in subsets.items()
    }
    correct = {subset: pair_accuracy(rm, pairs) for subset, pairs in terse.items()}
    return {"all": vars(pooled(correct.values()))} | {subset: vars(part) for subset, part in correct.items()}


def _unseen_items(rm: RewardModel, panel: Panel, key: str) -> dict:
    prompt = panel.prompt(key)
    items = preferences.elo_items()
    items = items[items["name"].map(half) == "held_out"].reset_index(drop=True)
    rewards = pd.Series(rm.score(prompt.text, items["name"].tolist()), index=items["name"])
    pairs = thing_pairs(items, UNSEEN_PAIRS, UNSEEN_GAP, np.random.default_rng(0))
    sides = rewards[pairs["higher"]].to_numpy(), rewards[pairs["lower"]].to_numpy()
    measured = accuracy(*(sides if prompt.framing == "positive" else sides[::-1]))
    correlation = spearman(rewards.to_numpy(), items["elo_score"].to_numpy())
    return {**vars(measured), "human_spearman": correlation, "items": len(items)}
