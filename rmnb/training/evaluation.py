"""How good a reward model is on pairs that it has never seen."""

from collections.abc import Callable, Collection, Iterator

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from rmnb.data import lexicons, preferences
from rmnb.panels import BaseSpec, ModelSpec, Panel
from rmnb.scoring.loading import load_reward_model
from rmnb.scoring.pairs import accuracy
from rmnb.scoring.reward_model import RewardModel
from rmnb.training.pairs import build_pairs, is_apart, is_unseen, thing_pairs
from rmnb.training.recipes import Recipe

Measurement = Callable[[RewardModel, Recipe, Panel], dict]
PROMPTS = ("greatest", "worst")  # of the panel, that a reward model is asked
UNSEEN_PAIRS = 1000
UNSEEN_GAP = 120


def measure(
    spec: ModelSpec | BaseSpec, recipe: Recipe, panel: Panel, measured: Collection[str]
) -> Iterator[tuple[str, dict]]:
    """What is recorded of a model once it is trained, one measurement after the other, by name: see `measurements`.

    Parameters
    ----------
    spec
        A trained model, or a tuned copy of a language model: its reward is that which tuning implies, the log-ratio to
        the language model that it was tuned from (Rafailov et al. 2023, arXiv 2305.18290).
    measured
        What has been measured before, and is not measured again.
    """
    missing = {name: function for name, function in measurements(spec, panel).items() if name not in measured}
    if not missing:
        return
    if isinstance(spec, BaseSpec):
        rm = load_reward_model(spec.as_model(), reference=spec.source)
    else:
        rm = load_reward_model(spec)
    for name, function in tqdm(missing.items(), desc=f"measuring {spec.name}"):
        yield name, function(rm, recipe, panel)


def measurements(spec: ModelSpec | BaseSpec, panel: Panel) -> dict[str, Measurement]:
    """What is measured: most of a panel's models, less of runs that are only watched, least of language models."""
    functions: dict[str, Measurement] = {"held_out": held_out_accuracy}
    if isinstance(spec, ModelSpec):
        functions["framing"] = framing
    if spec.name in panel.model_names:
        functions |= {"apart": accuracy_apart, "unseen_items": unseen_items}
        # No model is trained on these pairs; at most 8 prompts and 1 response of each stand in its training pairs.
        functions |= {"rm_bench": _on(preferences.rm_bench), "auto_j": _on(preferences.auto_j)}
        functions["crows_pairs"] = _on(preferences.crows_pairs)
    return functions


def _on(read_pairs: Callable[[], pd.DataFrame]) -> Measurement:
    return lambda rm, recipe, panel: by_source(rm, read_pairs())


def by_source(rm: RewardModel, pairs: pd.DataFrame) -> dict[str, dict]:
    """The `accuracy` on all pairs together, under ``all``, and on those of each source."""
    correct = prefers_chosen(rm, pairs)
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
    return by_source(rm, held_out)


def accuracy_apart(rm: RewardModel, recipe: Recipe, panel: Panel) -> dict[str, dict]:
    """Accuracy on the distinct held-out pairs of which no text is trained on, `by_source`; empty if there are none.

    Where a recipe splits by pair, no mismatched pair is among them. Pairs of things are left out: `unseen_items` has
    pairs of which neither thing is trained on. Pairs may share a prompt or a response with one another; the interval
    takes them as independent.
    """
    train, held_out = build_pairs(recipe)
    pairs = held_out[is_apart(held_out, train, recipe)].reset_index(drop=True)
    return by_source(rm, pairs) if len(pairs) else {}


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
    greatest, worst = (pd.Series(rm.score(panel.prompt(key).text, words)) for key in PROMPTS)
    return {"spearman": greatest.corr(worst, method="spearman")}
