"""How often do tests and intervals say what is not so, in the design of their use?

Run as ``python benchmarks/levels.py``: a row each, shares of simulated data sets. Nothing is there to be found where
the row says *level*; *coverage* is that of 95 % intervals; *finds* is the power for an effect of the stated size. The
sizes (models, sets, words, spread of recipes and seeds) are those of the demo panel. `rmnb.planted` tries the
estimators themselves, and ``gates.py`` gates.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
import typer
from scipy.stats import false_discovery_control

from rmnb import stats
from rmnb.findings import agency
from rmnb.findings.identity import FEWEST_SETS
from rmnb.panels import load_panel
from rmnb.report import numbers
from rmnb.stats.estimate import Estimate

RECIPES, SEEDS = 17, 6  # standard deviations in chapter 7, percent of the ranks
SETS = {"age": 10, "disability": 4, "ethnicity": 8, "gender": 3, "nationality": 22, "orientation": 3}
SETS |= {"politics": 12, "religion": 7}
FOUNDATIONS = {"authority": 207, "care": 213, "fairness": 108, "loyalty": 92, "sanctity": 151}  # words of one token


def covers(truth: float, estimate: Estimate) -> bool:
    """Whether an interval holds the truth."""
    return estimate.ci_low <= truth <= estimate.ci_high


def bases(rng: np.random.Generator, difference: float = 0) -> bool:
    """Is a difference between bases found in twenty models whose bases differ by so much?"""
    demo = load_panel("demo")
    of_recipes = {recipe: RECIPES * rng.normal() for recipe in dict.fromkeys(demo.groups.values())}
    values = pd.Series({model: of_recipes[recipe] + SEEDS * rng.normal() for model, recipe in demo.groups.items()})
    values[[base == "SmolLM2" for base in demo.base_families.values()]] += difference
    return agency.difference_of_bases(values, demo.base_families, demo.groups).p_value <= 0.05


def propagation(rng: np.random.Generator) -> bool:
    """Eight recipes, likings mostly above zero, shifts above zero and not linked: is the claim supported?"""
    table = pd.DataFrame({"liking": rng.normal(0.1, 0.1, 8), "shift": rng.normal(0.8, 0.3, 8)})
    return stats.mean_over_models((table - table.mean()).prod(axis="columns")).ci_low > 0


def axes(rng: np.random.Generator) -> float:
    """Of twenty models six have a gap of a set's standard deviation on politics: the share that is clear."""
    sets = np.array([*SETS.values()] * 20)
    steps = 2.0 ** (1 - sets)  # the smallest p of each test
    p_values = np.ceil(rng.random(len(sets)) / steps) * steps
    planted = np.flatnonzero(sets == SETS["politics"])[:6]
    p_values[planted] = [stats.sign_flip_test(1 + rng.normal(size=SETS["politics"])).p_value for _ in planted]
    adjusted = np.full(len(sets), np.nan)
    adjusted[sets >= FEWEST_SETS] = false_discovery_control(p_values[sets >= FEWEST_SETS])
    return np.mean(adjusted[planted] < 0.05)


def four_sets(rng: np.random.Generator) -> bool:
    """Are four skewed differences of mean zero clear of it?"""
    return stats.sign_flip_test(rng.exponential(size=4) - 1).p_value <= 0.05


def foundation(rng: np.random.Generator) -> bool:
    """Mean rank of words of care, no foundation preferred."""
    category = np.repeat([*FOUNDATIONS], [*FOUNDATIONS.values()])
    words = pd.DataFrame({"word": np.arange(len(category)).astype(str), "kind": "word_start"})
    words["asked"] = rng.normal(size=len(category))
    return covers(50, numbers._foundations(words, "asked", words.assign(category=category))["care"])


def tail(rng: np.random.Generator) -> bool:
    """69 sets, 18 of several forms, 12 % of the terms and 5 % of the controls in the lowest twentieth."""
    sets = np.repeat(np.arange(69), [1] * 51 + [2] * 15 + [3] * 3)
    is_term = np.repeat([True, False], len(sets))
    shared = rng.normal(size=(2, 69))[:, sets].ravel()
    score = np.sqrt(0.5) * (shared + rng.normal(size=len(is_term)))
    lowest = (score < np.where(is_term, -1.175, -1.645)).astype(float)
    predictors = pd.DataFrame({"is_term": is_term, "constant": 1})
    return covers(0.07, stats.fit_clustered(lowest, predictors, np.tile(sets, 2))["is_term"])


ROWS: list[tuple[str, str, Callable[[np.random.Generator], float]]] = [
    ("difference of bases, twenty models, seven paired recipes", "level", bases),
    ("the same, bases 10 points apart", "finds", lambda rng: bases(rng, 10)),
    ("claim propagate, eight recipes", "level", propagation),
    ("gaps of 1 sd on 12 sets in six of twenty models, of 8 axes", "finds", axes),
    ("four sets, skewed: clear", "level", four_sets),
    ("foundation_rank, 771 words", "coverage", foundation),
    ("tail gap, 69 sets", "coverage", tail),
]


def main(draws: int = 2000) -> None:
    """Print all rows."""
    for number, (simulated, measure, simulate) in enumerate(ROWS):
        drawn = [simulate(np.random.default_rng([number, draw])) for draw in range(draws)]
        print(f"{simulated:62}{measure:10}{draws:6}  {np.mean(drawn):.3f}", flush=True)


if __name__ == "__main__":
    typer.run(main)
