"""Cases about models: few of them, whatever the number of prompts and words."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Literal

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.data import lexicons
from rmnb.truth.planted import PlantedEffects, planted_models, planted_scores, spell, word_features
from rmnb.truth.simulation import Case, Outcome
from rmnb.truth.simulation_words import valence_words

# The papers' ten models and 54 prompts.
MODELS = {f"model {i}": "Gemma" if i < 4 else "Llama" for i in range(10)}
IS_GEMMA = np.array([base == "Gemma" for base in MODELS.values()])
N_PROMPTS = 27  # of each framing
NO_DIFFERENCE = PlantedEffects(word_sd=1.0, noise_sd=0.3)
DIFFERENCE = PlantedEffects(word_sd=1.0, noise_sd=0.3, communion={"Gemma": 0.5, "Llama": -0.3})
COMMUNION_SD = 0.4  # how much models of one base differ
SLOPE, SLOPE_SD = 0.4, 0.15


@cache
def noun_features() -> pd.DataFrame:
    """The project's nouns of agency and communion, one token each."""
    return word_features(spell(lexicons.agency_communion()["word"], variants=1))


def _nouns(rng: np.random.Generator, effects: PlantedEffects) -> np.ndarray:
    """Scores (models, framings, prompts, words)."""
    features = noun_features()
    scores = np.empty((len(MODELS), 2, N_PROMPTS, len(features)))
    drawn = planted_models(features, effects, MODELS, rng, communion_sd=COMMUNION_SD)
    for i, (_, base, own, word_effects) in enumerate(drawn):
        for k, framing in enumerate(("positive", "negative")):
            noiseless = replace(own, noise_sd=0.0)
            scores[i, k] = planted_scores(features, noiseless, rng, framing, base, word_effects)
    return scores + effects.noise_sd * rng.normal(size=scores.shape)


def _median_ranks(scores: np.ndarray) -> pd.DataFrame:
    """Median rank (1 = highest) of agency and communion in each model, framing and prompt.

    Columns median, model, base, category (1 is communion) and framing (1 is negative).
    """
    ranks = 1 + np.argsort(np.argsort(-scores, axis=-1), axis=-1)
    communion = (noun_features()["category"] == "communion").to_numpy()
    medians = np.stack([np.median(ranks[..., ~communion], axis=-1), np.median(ranks[..., communion], axis=-1)], axis=-1)
    model, framing, _, category = (axis.ravel() for axis in np.indices(medians.shape))
    return _labelled(medians.ravel(), model, category, framing)


def _labelled(median: np.ndarray, model: np.ndarray, category: np.ndarray, framing: np.ndarray) -> pd.DataFrame:
    base = np.where(IS_GEMMA, "Gemma", "Llama")[model]
    return pd.DataFrame({"median": median, "model": model, "base": base, "category": category, "framing": framing})


def _interaction(ranks: pd.DataFrame) -> Outcome:
    fit = stats.mixed("median ~ base * category * framing", ranks, groups="model")
    return Outcome.of(0.0, fit["base[T.Llama]:category:framing"])


def _contrast(values: np.ndarray) -> np.ndarray:
    """One number a model: communion less agency, under positive less under negative prompts."""
    communion = (noun_features()["category"] == "communion").to_numpy()
    difference = values[..., communion].mean(axis=-1) - values[..., ~communion].mean(axis=-1)
    return (difference[:, 0] - difference[:, 1]).mean(axis=-1)


def _papers_mixed_model(rng: np.random.Generator) -> Outcome:
    return _interaction(_median_ranks(_nouns(rng, NO_DIFFERENCE)))


def _papers_permutation(rng: np.random.Generator) -> Outcome:
    """perm.t.test of the medians of one category and framing, each prompt of each model an observation."""
    ranks = _median_ranks(_nouns(rng, NO_DIFFERENCE)).query("category == 1 and framing == 0")
    test = stats.two_group_test(ranks["median"], ranks["base"] == "Gemma", n_permutations=999, seed=rng)
    return Outcome(0.0, test.statistic, p_value=test.p_value)


def _exact_over_models(rng: np.random.Generator) -> Outcome:
    ranks = _median_ranks(_nouns(rng, NO_DIFFERENCE))
    sign = np.where(ranks["category"] == ranks["framing"], -1, 1)
    test = stats.two_group_test(np.bincount(ranks["model"], weights=sign * ranks["median"]), IS_GEMMA)
    return Outcome(0.0, test.statistic, p_value=test.p_value)


def _difference_of_bases(rng: np.random.Generator) -> Outcome:
    contrasts = _contrast(_nouns(rng, DIFFERENCE))
    truth = (1 - DIFFERENCE.negative_framing) * (DIFFERENCE.communion["Gemma"] - DIFFERENCE.communion["Llama"])
    return Outcome.of(truth, stats.difference_between_groups(contrasts, IS_GEMMA))


def _independent_prompts(rng: np.random.Generator) -> Outcome:
    """The papers' mixed model where what it assumes is true: models differ by a constant, prompts are independent."""
    model, _, category, framing = (axis.ravel() for axis in np.indices((10, N_PROMPTS, 2, 2)))
    medians = 60 + 5 * rng.normal(size=10)[model] + 4 * rng.normal(size=len(model))
    return _interaction(_labelled(medians, model, category, framing))


def _slopes(rng: np.random.Generator) -> pd.DataFrame:
    """Scores of 200 words by ten models whose slopes differ: columns model, valence, score."""
    features = valence_words().drop_duplicates("word").head(200)
    effects = PlantedEffects(word_sd=0.7, noise_sd=0.3)
    scores = []
    for model in MODELS:
        slope = SLOPE + SLOPE_SD * rng.normal()
        own = replace(effects, valence_positive=slope, valence_negative=slope)
        scores.append(features[["valence"]].assign(score=planted_scores(features, own, rng), model=model))
    return pd.concat(scores, ignore_index=True)


def _mean_slope(rng: np.random.Generator) -> Outcome:
    slopes = [np.polyfit(of["valence"], of["score"], 1)[0] for _, of in _slopes(rng).groupby("model", sort=False)]
    return Outcome.of(SLOPE, stats.mean_over_models(slopes))


def _mixed_slope(rng: np.random.Generator) -> Outcome:
    return Outcome.of(SLOPE, stats.mixed("score ~ valence", _slopes(rng), "model", random="~ valence")["valence"])


def _fixed_slope(rng: np.random.Generator) -> Outcome:
    return Outcome.of(SLOPE, stats.mixed("score ~ valence", _slopes(rng), "model")["valence"])


def _sign_flip(rng: np.random.Generator) -> Outcome:
    test = stats.sign_flip_test(rng.normal(size=10))
    return Outcome(0.0, test.statistic, p_value=test.p_value)


def _matrix(rng: np.random.Generator, cause: np.ndarray | None = None, aloof_sd: float = 0.0) -> np.ndarray:
    """Similarities of models that stand at random places, shifted by their cause; the aloof agree with all less."""
    places = rng.normal(size=(len(MODELS), 3))
    if cause is not None:
        places += 1.5 * cause[:, None] * np.array([1.0, 0, 0])
    aloof = aloof_sd * rng.normal(size=len(MODELS))
    return -np.linalg.norm(places[:, None] - places[None, :], axis=2) - aloof[:, None] - aloof[None, :]


def _mantel(rng: np.random.Generator) -> Outcome:
    test = stats.mantel(_matrix(rng, aloof_sd=0.5), _matrix(rng, aloof_sd=0.5), n_permutations=999, seed=rng)
    return Outcome(0.0, test.correlation, p_value=test.p_value)


def _pairs_as_independent(rng: np.random.Generator) -> Outcome:
    from scipy.stats import spearmanr

    upper = np.triu_indices(len(MODELS), 1)
    one, other = (_matrix(rng, aloof_sd=0.5)[upper] for _ in range(2))
    correlation, p_value = spearmanr(one, other, alternative="greater")
    return Outcome(0.0, float(np.asarray(correlation)), p_value=float(np.asarray(p_value)))


def _shared_cause(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two maps on which models stand by their base and by nothing else they share, and the matrix of bases."""
    cause = np.where(IS_GEMMA, 1.0, -1.0)
    return _matrix(rng, cause), _matrix(rng, cause), stats.same(IS_GEMMA)


def _added_cause(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two matrices to which sharing a base adds, and the matrix of bases."""
    base = stats.same(IS_GEMMA)
    return _matrix(rng) + 1.5 * base, _matrix(rng) + 1.5 * base, base


def _mantel_alone(rng: np.random.Generator) -> Outcome:
    a, b, _ = _shared_cause(rng)
    test = stats.mantel(a, b, n_permutations=999, seed=rng)
    return Outcome(float("nan"), test.correlation, p_value=test.p_value)


Draw = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray, np.ndarray]]


def _mantel_in_strata(rng: np.random.Generator) -> Outcome:
    a, b, _ = _shared_cause(rng)
    test = stats.mantel(a, b, n_permutations=999, seed=rng, strata=IS_GEMMA)
    return Outcome(float("nan"), test.correlation, p_value=test.p_value)


def _partial_mantel(draw: Draw, method: Literal["spearman", "pearson"]):
    def simulate(rng: np.random.Generator) -> Outcome:
        test = stats.partial_mantel(*draw(rng), method, n_permutations=999, seed=rng)
        return Outcome(0.0, test.correlation, p_value=test.p_value)

    return simulate


def _matrix_regression(draw: Draw, method: Literal["spearman", "pearson"]):
    def simulate(rng: np.random.Generator) -> Outcome:
        a, b, base = draw(rng)
        fit = stats.matrix_regression(a, {"other": b, "base": base}, method, n_permutations=999, seed=rng)
        return Outcome(0.0, float(fit.coefficients[0]), p_value=float(fit.p_values[0]))

    return simulate


CASES = (
    Case("Base by category by framing, exact over models", "two_group_test", "bases", "rejection", True, "",
         _exact_over_models),
    Case("Difference of bases, one number a model", "difference_between_groups", "bases", "coverage", True, "",
         _difference_of_bases),
    Case("Base by category by framing, prompts independent", "mixed", "bases", "coverage", True, "",
         _independent_prompts),
    Case("Base by category by framing, random intercept", "median ~ base * category * framing", "bases", "coverage",
         False, "ICLR26", _papers_mixed_model, slow=True),
    Case("Bases compared, prompts as observations", "perm.t.test", "bases", "rejection", False, "ICLR26",
         _papers_permutation),
    Case("Mean slope over models", "mean_over_models", "models", "coverage", True, "", _mean_slope),
    Case("Slope over models, random slopes", "mixed", "models", "coverage", True, "", _mixed_slope,
         slow=True),
    Case("Signs of ten models", "sign_flip_test", "models", "rejection", True, "", _sign_flip),
    Case("Slope over models, one slope for all", "mixed without random slopes", "models", "coverage", False,
         "common practice", _fixed_slope, slow=True),
    Case("Two matrices, Mantel", "mantel", "matrices", "rejection", True, "", _mantel),
    Case("One cause on a map, Mantel within bases", "mantel with strata", "matrices", "rejection", True, "",
         _mantel_in_strata),
    Case("One cause that adds, partial Mantel", "partial_mantel", "matrices", "rejection", True, "",
         _partial_mantel(_added_cause, "pearson")),
    Case("One cause that adds, regression", "matrix_regression", "matrices", "rejection", True, "",
         _matrix_regression(_added_cause, "pearson")),
    Case("One cause on a map, partial Mantel", "partial_mantel", "matrices", "rejection", False, "common practice",
         _partial_mantel(_shared_cause, "spearman")),
    Case("One cause on a map, regression", "matrix_regression", "matrices", "rejection", False, "common practice",
         _matrix_regression(_shared_cause, "spearman")),
    Case("Two matrices, 45 pairs as observations", "spearmanr of the pairs", "matrices", "rejection", False,
         "common practice", _pairs_as_independent),
    Case("One cause on a map, Mantel one at a time", "mantel", "matrices", "rejection", False,
         "FAccT25", _mantel_alone),
)  # fmt: skip
