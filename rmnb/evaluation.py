"""How good a reward model is on pairs that it has never seen."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from rmnb import preferences
from rmnb.errors import InputError
from rmnb.models import RewardModel
from rmnb.panel import Panel
from rmnb.recipes import Recipe, build_pairs, half, thing_pairs
from rmnb.stats import spearman

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
    correct = int((chosen > rejected).sum())
    interval = binomtest(correct, len(chosen)).proportion_ci(0.95, method="wilson")
    return Accuracy(correct / len(chosen), float(interval.low), float(interval.high), len(chosen))


def pair_accuracy(rm: RewardModel, pairs: pd.DataFrame) -> Accuracy:
    """Accuracy on preference pairs: columns prompt, chosen, rejected."""
    chosen, rejected = np.empty(len(pairs)), np.empty(len(pairs))
    for prompt in pairs["prompt"].unique():
        rows = np.flatnonzero(pairs["prompt"] == prompt)
        texts = [*pairs["chosen"].iloc[rows], *pairs["rejected"].iloc[rows]]
        chosen[rows], rejected[rows] = np.split(rm.score(prompt, texts), 2)
    return accuracy(chosen, rejected)


def evaluate(rm: RewardModel, recipe: Recipe, panel: Panel) -> dict:
    """Held-out measures of a demo model.

    Returns
    -------
    dict
        ``held_out``: accuracy on the recipe's held-out pairs, by source. ``unseen_items``: for each of the panel's
        prompts greatest, elo_greatest and worst, accuracy on pairs of EloEverything items of the held-out half at least
        120 points apart, and Spearman's correlation of the reward with human Elo over all items of that half (for worst
        the expected sign is negative, and the lower item is the right answer).
    """
    _, held_out = build_pairs(recipe)
    by_source = {"all": held_out} | {str(source): part for source, part in held_out.groupby("source")}
    return {
        "held_out": {source: vars(pair_accuracy(rm, part)) for source, part in by_source.items()},
        "unseen_items": {key: _unseen_items(rm, panel, key) for key in ("greatest", "elo_greatest", "worst")},
    }


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
