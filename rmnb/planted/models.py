"""Cases about models: few of them, whatever the number of questions and words."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from rmnb import stats
from rmnb.data import lexicons
from rmnb.planted.rewards import PlantedEffects, planted_models, planted_scores, spell, word_features
from rmnb.planted.study import Case, Outcome
from rmnb.planted.words import valence_words

# The papers' ten models and 54 questions.
MODELS = {f"model {i}": "Gemma" if i < 4 else "Llama" for i in range(10)}
IS_GEMMA = np.array([base == "Gemma" for base in MODELS.values()])
N_QUESTIONS = 27  # of each framing
NO_DIFFERENCE = PlantedEffects(word_sd=1.0, noise_sd=0.3)
DIFFERENCE = PlantedEffects(word_sd=1.0, noise_sd=0.3, communion={"Gemma": 0.5, "Llama": -0.3})
COMMUNION_SD = 0.4  # how much models of one base differ
SLOPE, SLOPE_SD = 0.4, 0.15


@cache
def noun_features() -> pd.DataFrame:
    """The project's nouns of agency and communion, one token each."""
    return word_features(spell(lexicons.agency_communion()["word"], variants=1))


def _is_communion() -> np.ndarray:
    return (noun_features()["category"] == "communion").to_numpy()


def _nouns(rng: np.random.Generator, effects: PlantedEffects) -> np.ndarray:
    """Scores (models, framings, questions, words)."""
    features = noun_features()
    scores = np.empty((len(MODELS), 2, N_QUESTIONS, len(features)))
    drawn = planted_models(features, effects, MODELS, rng, communion_sd=COMMUNION_SD)
    for i, (_, base, own, word_effects) in enumerate(drawn):
        noiseless = replace(own, noise_sd=0.0)
        scores[i, 0] = planted_scores(features, noiseless, rng, "positive", base, word_effects)
        scores[i, 1] = planted_scores(features, noiseless, rng, "negative", base, word_effects)
    return scores + effects.noise_sd * rng.normal(size=scores.shape)


def _median_ranks(scores: np.ndarray) -> pd.DataFrame:
    """Median rank (1 = highest) of agency and communion in each model, framing and question.

    Columns median, model, base, category (1 is communion) and framing (1 is negative).
    """
    ranks = 1 + np.argsort(np.argsort(-scores, axis=-1), axis=-1)
    agency = np.median(ranks[..., ~_is_communion()], axis=-1)
    communion = np.median(ranks[..., _is_communion()], axis=-1)
    medians = np.stack([agency, communion], axis=-1)
    model, framing, _, category = (axis.ravel() for axis in np.indices(medians.shape))
    return _labelled(medians.ravel(), model, category, framing)


def _labelled(median: np.ndarray, model: np.ndarray, category: np.ndarray, framing: np.ndarray) -> pd.DataFrame:
    base = np.where(IS_GEMMA, "Gemma", "Llama")[model]
    return pd.DataFrame({"median": median, "model": model, "base": base, "category": category, "framing": framing})


def _interaction(ranks: pd.DataFrame) -> Outcome:
    fit = stats.mixed("median ~ base * category * framing", ranks, groups="model")
    return Outcome.of(0.0, fit["base[T.Llama]:category:framing"])


def papers_mixed_model(rng: np.random.Generator) -> Outcome:
    return _interaction(_median_ranks(_nouns(rng, NO_DIFFERENCE)))


def papers_permutation(rng: np.random.Generator) -> Outcome:
    """perm.t.test of the medians of one category and framing, each question of each model an observation."""
    ranks = _median_ranks(_nouns(rng, NO_DIFFERENCE)).query("category == 1 and framing == 0")
    test = stats.two_group_test(ranks["median"], ranks["base"] == "Gemma", n_permutations=999, seed=rng)
    return Outcome(0.0, test.statistic, p_value=test.p_value)


def exact_over_models(rng: np.random.Generator) -> Outcome:
    ranks = _median_ranks(_nouns(rng, NO_DIFFERENCE))
    sign = np.where(ranks["category"] == ranks["framing"], -1, 1)
    test = stats.two_group_test(np.bincount(ranks["model"], weights=sign * ranks["median"]), IS_GEMMA)
    return Outcome(0.0, test.statistic, p_value=test.p_value)


def difference_of_bases(rng: np.random.Generator) -> Outcome:
    """One number a model: communion minus agency, under positive minus under negative questions."""
    scores = _nouns(rng, DIFFERENCE)
    gap = scores[..., _is_communion()].mean(axis=-1) - scores[..., ~_is_communion()].mean(axis=-1)
    contrasts = (gap[:, 0] - gap[:, 1]).mean(axis=-1)
    truth = (1 - DIFFERENCE.negative_framing) * (DIFFERENCE.communion["Gemma"] - DIFFERENCE.communion["Llama"])
    return Outcome.of(truth, stats.difference_between_groups(contrasts, IS_GEMMA))


def independent_questions(rng: np.random.Generator) -> Outcome:
    """The papers' mixed model where its assumption is true: models differ by a constant, questions are independent."""
    model, _, category, framing = (axis.ravel() for axis in np.indices((10, N_QUESTIONS, 2, 2)))
    medians = 60 + 5 * rng.normal(size=10)[model] + 4 * rng.normal(size=len(model))
    return _interaction(_labelled(medians, model, category, framing))


def _slopes(rng: np.random.Generator) -> pd.DataFrame:
    """Scores of 200 words by ten models whose slopes differ: columns model, valence, score."""
    features = valence_words().drop_duplicates("word").head(200)
    scores = []
    for model in MODELS:
        slope = SLOPE + SLOPE_SD * rng.normal()
        own = PlantedEffects(valence_positive=slope, valence_negative=slope, word_sd=0.7, noise_sd=0.3)
        scores.append(features[["valence"]].assign(score=planted_scores(features, own, rng), model=model))
    return pd.concat(scores, ignore_index=True)


def mean_slope(rng: np.random.Generator) -> Outcome:
    slopes = [np.polyfit(table["valence"], table["score"], 1)[0] for _, table in _slopes(rng).groupby("model")]
    return Outcome.of(SLOPE, stats.mean_over_models(slopes))


def fixed_slope(rng: np.random.Generator) -> Outcome:
    return Outcome.of(SLOPE, stats.mixed("score ~ valence", _slopes(rng), "model")["valence"])


def sign_flip(rng: np.random.Generator) -> Outcome:
    test = stats.sign_flip_test(rng.normal(size=10))
    return Outcome(0.0, test.statistic, p_value=test.p_value)


def _matrix(rng: np.random.Generator, cause: np.ndarray | None = None, aloof_sd: float = 0.0) -> np.ndarray:
    """Similarities of models that stand at random places, shifted by their cause; the aloof agree with all less."""
    places = rng.normal(size=(len(MODELS), 3))
    if cause is not None:
        places[:, 0] += 1.5 * cause
    aloof = aloof_sd * rng.normal(size=len(MODELS))
    return -np.linalg.norm(places[:, None] - places[None, :], axis=2) - aloof[:, None] - aloof[None, :]


def mantel(rng: np.random.Generator) -> Outcome:
    test = stats.mantel(_matrix(rng, aloof_sd=0.5), _matrix(rng, aloof_sd=0.5), n_permutations=999, seed=rng)
    return Outcome(0.0, test.correlation, p_value=test.p_value)


def pairs_as_independent(rng: np.random.Generator) -> Outcome:
    upper = np.triu_indices(len(MODELS), 1)
    one, other = _matrix(rng, aloof_sd=0.5)[upper], _matrix(rng, aloof_sd=0.5)[upper]
    result = spearmanr(one, other, alternative="greater")
    return Outcome(0.0, float(result.statistic), p_value=float(result.pvalue))


def mantel_alone(rng: np.random.Generator) -> Outcome:
    """Two maps on which models stand by their base and by nothing else that the maps share."""
    cause = np.where(IS_GEMMA, 1.0, -1.0)
    test = stats.mantel(_matrix(rng, cause), _matrix(rng, cause), n_permutations=999, seed=rng)
    return Outcome(float("nan"), test.correlation, p_value=test.p_value)


def regression_on_base(rng: np.random.Generator) -> Outcome:
    """Two matrices to which sharing a base adds: does the regression take one for the other?"""
    base = (IS_GEMMA[:, None] == IS_GEMMA[None, :]).astype(float)
    response, other = _matrix(rng) + 1.5 * base, _matrix(rng) + 1.5 * base
    fit = stats.matrix_regression(response, {"other": other, "base": base}, "pearson", n_permutations=999, seed=rng)
    return Outcome(0.0, float(fit.coefficients[0]), p_value=float(fit.p_values[0]))


_SLOPE = "reward a point of valence"
_COMMON = "common practice"

CASES = (
    Case("Base by category by framing, exact over models", "two_group_test", "bases", "ranks, summed over 27 questions",
         "rejection", exact_over_models),
    Case("Difference of bases, one number a model", "difference_between_groups", "bases", "reward", "coverage",
         difference_of_bases),
    Case("Base by category by framing, prompts independent", "mixed", "bases", "ranks", "coverage",
         independent_questions),
    Case("Base by category by framing, random intercept", "median ~ base * category * framing", "bases", "ranks",
         "coverage", papers_mixed_model, holds=False, origin="ICLR26", slow=True),
    Case("Bases compared, prompts as observations", "perm.t.test", "bases", "ranks", "rejection", papers_permutation,
         holds=False, origin="ICLR26"),
    Case("Mean slope over models", "mean_over_models", "models", _SLOPE, "coverage", mean_slope),
    Case("Signs of ten models", "sign_flip_test", "models", "reward", "rejection", sign_flip),
    Case("Slope over models, one slope for all", "mixed without random slopes", "models", _SLOPE, "coverage",
         fixed_slope, holds=False, origin=_COMMON, slow=True),
    Case("Two matrices, Mantel", "mantel", "matrices", "correlation", "rejection", mantel),
    Case("One cause that adds, regression", "matrix_regression", "matrices", "standardised coefficient", "rejection",
         regression_on_base),
    Case("Two matrices, 45 pairs as observations", "spearmanr of the pairs", "matrices", "correlation", "rejection",
         pairs_as_independent, holds=False, origin=_COMMON),
    Case("One cause on a map, Mantel one at a time", "mantel", "matrices", "correlation", "rejection", mantel_alone,
         holds=False, origin="FAccT25"),
)  # fmt: skip
