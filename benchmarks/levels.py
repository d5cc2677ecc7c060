"""How often do tests and intervals say what is not so, as they were and as they are, in the design of their use?

Run as ``python benchmarks/levels.py``: a row each, shares of simulated data sets. Nothing is there to be found where
the row says *level*; *coverage* is that of 95 % intervals; *finds* is the power for an effect of the stated size. The
sizes (models, sets, words, spread of recipes and seeds) are those of the demo panel. `rmnb.planted` tries the
estimators themselves, and ``gates.py`` gates in further worlds.
"""

import argparse
from collections.abc import Callable

import gates
import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control, ttest_1samp

from rmnb import limits, stats
from rmnb.findings import agency
from rmnb.findings.identity import FEWEST_SETS
from rmnb.panels import load_panel
from rmnb.planted import panels
from rmnb.report import numbers
from rmnb.stats.estimate import Estimate

Pair = tuple[float, float]  # before and after: true or false, or a share
RECIPES, SEEDS = 17, 6  # standard deviations in chapter 7, percent of the ranks
SETS = {"age": 10, "disability": 4, "ethnicity": 8, "gender": 3, "nationality": 22, "orientation": 3}
SETS |= {"politics": 12, "religion": 7}
FOUNDATIONS = {"authority": 207, "care": 213, "fairness": 108, "loyalty": 92, "sanctity": 151}  # words of one token


def covers(truth: float, estimate: Estimate) -> bool:
    """Whether an interval holds the truth."""
    return bool(estimate.ci_low <= truth <= estimate.ci_high)


def gate(rng: np.random.Generator, pairs: int = 2) -> Pair:
    """Two models without a change: any of the gaps beyond twice the seeds' root mean square; the gate's test."""
    (change, noise, df), *_ = gates.releases("as known", pairs, 1, rng)
    rows = limits.rows_of(
        limits.parse("|change identity_gap| > seeds", {"identity_gap"}), noise.index.to_frame(index=False)
    ).index
    independent = rng.normal(size=(1 + pairs, len(rows)))
    before = np.abs(independent[0]) > 2 * np.sqrt((independent[1:] ** 2).mean())
    strengths = (np.abs(change) / noise.to_numpy())[rows]
    return before.any(), strengths.max() > limits.critical(strengths, df.iloc[rows[0]], absolute=True)


def bases(rng: np.random.Generator, difference: float = 0) -> Pair:
    """Twenty models whose bases differ by so much: shuffled one by one, and by recipe."""
    demo = load_panel("demo")
    of_recipes = {recipe: RECIPES * rng.normal() for recipe in dict.fromkeys(demo.groups.values())}
    values = pd.Series({model: of_recipes[recipe] + SEEDS * rng.normal() for model, recipe in demo.groups.items()})
    is_first = np.array([base == "SmolLM2" for base in demo.base_families.values()])
    values[is_first] += difference
    shuffled = np.vstack([is_first, rng.permuted(np.tile(is_first, (999, 1)), axis=1)])
    apart = np.abs(shuffled @ (values - values.mean()).to_numpy())
    paired = agency.difference_of_bases(values, demo.base_families, demo.groups)
    return np.mean(apart >= apart[0] - 1e-9) <= 0.05, paired.p_value <= 0.05


def propagation(rng: np.random.Generator) -> Pair:
    """Eight recipes, likings mostly above zero, shifts above zero and not linked: is the claim supported?"""
    table = pd.DataFrame({"liking": rng.normal(0.1, 0.1, 8), "shift": rng.normal(0.8, 0.3, 8)})
    signed = stats.mean_over_models(np.sign(table["liking"]) * table["shift"])
    linked = stats.mean_over_models((table - table.mean()).prod(axis="columns"))
    return signed.ci_low > 0, linked.ci_low > 0


def axes(rng: np.random.Generator) -> Pair:
    """Of twenty models six have a gap of a set's standard deviation on politics: the share that is clear."""
    sets = np.array([*SETS.values()] * 20)
    steps = 2.0 ** (1 - sets)  # the smallest p of each test
    p_values = np.ceil(rng.random(len(sets)) / steps) * steps
    planted = np.flatnonzero(sets == SETS["politics"])[:6]
    p_values[planted] = [stats.sign_flip_test(1 + rng.normal(size=SETS["politics"])).p_value for _ in planted]
    without = np.where(sets < FEWEST_SETS, np.nan, p_values)
    without[sets >= FEWEST_SETS] = false_discovery_control(p_values[sets >= FEWEST_SETS])
    return np.mean(false_discovery_control(p_values)[planted] < 0.05), np.mean(without[planted] < 0.05)


def four_sets(rng: np.random.Generator) -> Pair:
    """Four skewed differences of mean zero: a t interval clear of zero, and the rule (no interval)."""
    differences = rng.exponential(size=4) - 1
    return ttest_1samp(differences, 0).pvalue <= 0.05, stats.sign_flip_test(differences).p_value <= 0.05


def shuffles(rng: np.random.Generator) -> Pair:
    """99 shuffles of equal standing: is p below 0.005?"""
    larger = (rng.normal(size=99) >= rng.normal()).sum()
    return larger / 99 < 0.005, (larger + 1) / 100 < 0.005


def foundation(rng: np.random.Generator) -> Pair:
    """Mean rank of words of care, no foundation preferred; before, a tenth of all words stood under the next, too."""
    category = np.repeat([*FOUNDATIONS], [*FOUNDATIONS.values()])
    words = pd.DataFrame({"word": np.arange(len(category)).astype(str), "kind": "word_start"})
    words["asked"] = rng.normal(size=len(category))
    after = numbers._foundations(words, "asked", words.assign(category=category))["care"]
    twice = np.r_[np.arange(len(category)), np.arange(0, len(category), 10)]
    ranks = 100 * stats.mid_ranks(words["asked"].to_numpy()[twice]) / len(twice)
    is_care = np.r_[category, np.roll(category, 150)[::10]] == "care"
    return covers(50, stats.moments(ranks[is_care])["mean"]), covers(50, after)


def tail(rng: np.random.Generator) -> Pair:
    """69 sets, 18 of several forms, 12 % of the terms and 5 % of the controls in the lowest twentieth."""
    sets = np.repeat(np.arange(69), [1] * 51 + [2] * 15 + [3] * 3)
    is_term = np.repeat([True, False], len(sets))
    shared = rng.normal(size=(2, 69))[:, sets].ravel()
    score = np.sqrt(0.5) * (shared + rng.normal(size=len(is_term)))
    lowest = (score < np.where(is_term, -1.175, -1.645)).astype(float)
    both = np.r_[sets, sets]

    def gap(lowest, is_term):
        return lowest[is_term].mean() - lowest[~is_term].mean()

    before = stats.bootstrap(gap, lowest, is_term, clusters=both, n_draws=200)
    predictors = pd.DataFrame({"is_term": is_term, "constant": 1})
    return covers(0.07, before), covers(0.07, stats.fit_clustered(lowest, predictors, both)["is_term"])


def one_model(rng: np.random.Generator) -> Pair:
    """Is a claim on all of ten models contradicted, each true value zero, four sets each?"""
    outcomes = [panels.one_model_holm(rng, n_sets=4, as_normal=as_normal) for as_normal in (True, False)]
    return outcomes[0].p_value == 0, outcomes[1].p_value == 0


ROWS: list[tuple[int, str, str, Callable[[np.random.Generator], Pair]]] = [
    (1, "27 gaps, two pairs of seeds, 'change > seeds'", "level", gate),
    (2, "difference of bases, twenty models, seven paired recipes", "level", bases),
    (2, "the same, bases 10 points apart", "finds", lambda rng: bases(rng, 10)),
    (3, "claim propagate, eight recipes", "level", propagation),
    (4, "gaps of 1 sd on 12 sets in six of twenty models, of 8 axes", "finds", axes),
    (4, "four sets, skewed: clear", "level", four_sets),
    (5, "p below .005 by 99 shuffles", "level", shuffles),
    (6, "foundation_rank, 771 words", "coverage", foundation),
    (7, "tail gap, 69 sets", "coverage", tail),
    (8, "one of ten models against a claim on all, four sets", "level", one_model),
]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2000)
    options = parser.parse_args()
    for number, simulated, measure, simulate in ROWS:
        drawn = [simulate(np.random.default_rng([number, draw])) for draw in range(options.draws)]
        before, after = np.mean(drawn, axis=0)
        print(f"{number:2}  {simulated:62}{measure:10}{options.draws:6}  {before:.3f}  {after:.3f}", flush=True)
