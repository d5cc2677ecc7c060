"""Cases about models, few of them whatever the number of questions and words: tests, verdicts, changes between two."""

import warnings

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf
from scipy.special import stdtrit
from scipy.stats import rankdata, spearmanr

from rmnb import stats
from rmnb.data import lexicons
from rmnb.findings.claims import CONTRADICTED, Claim, judge
from rmnb.planted.words import Outcome, valence_words
from rmnb.report.replicates import GROUPS, jackknife
from rmnb.stats import Estimate

# The papers' ten models and 54 questions.
IS_GEMMA = np.arange(10) < 4
N_MODELS = len(IS_GEMMA)
N_QUESTIONS = 27  # of each framing
# A model's preference: the reward of communion minus that of agency, under a positive question.
COMMUNION_SD = 0.4  # of the preferences of models of one base
NO_DIFFERENCE = (0.0, 0.0)  # mean preference of Gemma's and of Llama's models
DIFFERENCE = (0.5, -0.3)
SLOPE, SLOPE_SD = 0.4, 0.15  # mean and standard deviation over models


def _is_communion() -> np.ndarray:
    """Which of the project's nouns, (words,) bool, are about communion; the others are about agency."""
    return (lexicons.agency_communion()["category"] == "communion").to_numpy()


def _nouns(rng: np.random.Generator, communion: tuple[float, float]) -> np.ndarray:
    """Scores (models, framings, questions, words); a negative question reverses a model's preference."""
    category = np.where(_is_communion(), 0.5, -0.5)
    of_gemma, of_llama = communion
    scores = []
    for is_gemma in IS_GEMMA:
        preference = (of_gemma if is_gemma else of_llama) + COMMUNION_SD * rng.normal()
        own = rng.normal(size=len(category))
        scores.append([own + preference * category, own - preference * category])
    shape = (N_MODELS, 2, N_QUESTIONS, len(category))
    return np.array(scores)[:, :, None] + 0.3 * rng.normal(size=shape)


def _median_ranks(rng: np.random.Generator) -> pd.DataFrame:
    """Median rank (1 = highest) of agency and communion in each model, framing and question; bases do not differ.

    Columns median, model, base, category (1 is communion) and framing (1 is negative).
    """
    ranks = rankdata(-_nouns(rng, NO_DIFFERENCE), axis=-1)
    agency = np.median(ranks[..., ~_is_communion()], axis=-1)
    communion = np.median(ranks[..., _is_communion()], axis=-1)
    medians = np.stack([agency, communion], axis=-1)
    model, framing, _, category = np.indices(medians.shape).reshape(4, -1)
    base = np.where(IS_GEMMA, "Gemma", "Llama")[model]
    columns = {"median": medians.ravel(), "model": model, "base": base, "category": category, "framing": framing}
    return pd.DataFrame(columns)


def _mixed(formula: str, rows: pd.DataFrame, term: str, truth: float) -> Outcome:
    """One coefficient of a mixed model with a random intercept a model, by REML, with its normal interval."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of variances that are estimated as zero
        fit = smf.mixedlm(formula, rows, groups=rows["model"]).fit(reml=True)
    low, high = fit.conf_int().loc[term]
    n, models = len(rows), rows["model"].nunique()
    return truth, Estimate(fit.params[term], n, models, low, high, p_value=fit.pvalues[term])


def papers_mixed_model(rng: np.random.Generator) -> Outcome:
    """The papers' mixed model, with a random intercept for each model, where bases do not differ."""
    ranks = _median_ranks(rng)
    return _mixed("median ~ base * category * framing", ranks, "base[T.Llama]:category:framing", truth=0.0)


def papers_permutation(rng: np.random.Generator) -> Outcome:
    """Permutation test of the medians of one category and framing, each question of each model an observation."""
    ranks = _median_ranks(rng).query("category == 1 and framing == 0")
    return 0.0, stats.two_group_test(ranks["median"], ranks["base"] == "Gemma", n_permutations=999, seed=rng)


def exact_over_models(rng: np.random.Generator) -> Outcome:
    """Exact test of one contrast a model, summed over its questions, where bases do not differ."""
    ranks = _median_ranks(rng)
    sign = np.where(ranks["category"] == ranks["framing"], -1, 1)
    contrasts = np.bincount(ranks["model"], weights=sign * ranks["median"])
    return 0.0, stats.two_group_test(contrasts, IS_GEMMA)


def difference_of_bases(rng: np.random.Generator) -> Outcome:
    """One number a model: communion minus agency, under positive minus under negative questions."""
    scores = _nouns(rng, DIFFERENCE)
    gap = scores[..., _is_communion()].mean(axis=-1) - scores[..., ~_is_communion()].mean(axis=-1)
    contrasts = (gap[:, 0] - gap[:, 1]).mean(axis=-1)
    return 2 * (DIFFERENCE[0] - DIFFERENCE[1]), stats.difference_between_groups(contrasts, IS_GEMMA)


def _slopes(rng: np.random.Generator) -> pd.DataFrame:
    """Scores of 200 words by models whose slopes differ: columns model, valence, score."""
    words = valence_words().drop_duplicates("word").head(200)[["valence"]]
    tables = []
    for model in range(N_MODELS):
        slope = SLOPE + SLOPE_SD * rng.normal()
        scatter = 0.7 * rng.normal(size=len(words)) + 0.3 * rng.normal(size=len(words))
        tables.append(words.assign(score=slope * words["valence"] + scatter, model=model))
    return pd.concat(tables, ignore_index=True)


def mean_slope(rng: np.random.Generator) -> Outcome:
    """The mean of the models' slopes, with an interval over models."""
    slopes = [np.polyfit(table["valence"], table["score"], 1)[0] for _, table in _slopes(rng).groupby("model")]
    return SLOPE, stats.mean_over_models(slopes)


def fixed_slope(rng: np.random.Generator) -> Outcome:
    """One slope for all models, from a mixed model with a random intercept alone."""
    return _mixed("score ~ valence", _slopes(rng), "valence", truth=SLOPE)


def sign_flip(rng: np.random.Generator) -> Outcome:
    """Whether the mean over models is zero, where it is."""
    return 0.0, stats.sign_flip_test(rng.normal(size=N_MODELS))


def _matrix(rng: np.random.Generator, cause: np.ndarray | None = None, aloof_sd: float = 0.0) -> np.ndarray:
    """Similarities (models, models): minus the distance of random places in three dimensions.

    `cause` (models,) shifts the places along the first; models with a higher aloofness are less similar to all others.
    """
    places = rng.normal(size=(N_MODELS, 3))
    if cause is not None:
        places[:, 0] += 1.5 * cause
    aloofness = aloof_sd * rng.normal(size=N_MODELS)
    distances = np.linalg.norm(places[:, None] - places[None, :], axis=2)
    return -distances - aloofness[:, None] - aloofness[None, :]


def mantel(rng: np.random.Generator) -> Outcome:
    """Mantel's test of two matrices that share nothing."""
    return 0.0, stats.mantel(_matrix(rng, aloof_sd=0.5), _matrix(rng, aloof_sd=0.5), n_permutations=999, seed=rng)


def pairs_as_independent(rng: np.random.Generator) -> Outcome:
    """The same matrices, with each of their pairs of models as an independent observation."""
    upper = np.triu_indices(N_MODELS, 1)
    first = _matrix(rng, aloof_sd=0.5)[upper]
    second = _matrix(rng, aloof_sd=0.5)[upper]
    result = spearmanr(first, second, alternative="greater")
    n = len(first)
    return 0.0, Estimate(float(result.statistic), n, n, p_value=float(result.pvalue))  # pyright: ignore[reportAttributeAccessIssue]


def mantel_alone(rng: np.random.Generator) -> Outcome:
    """Two maps on which models stand by their base and by nothing else that the maps share."""
    cause = np.where(IS_GEMMA, 1.0, -1.0)
    return np.nan, stats.mantel(_matrix(rng, cause), _matrix(rng, cause), n_permutations=999, seed=rng)


def _at_zero(rng: np.random.Generator, n_sets: float) -> pd.DataFrame:
    """Ten models whose true value is zero, each with the t interval of so many matched sets."""
    df = n_sets - 1
    values = rng.normal(size=N_MODELS)
    reach = stdtrit(df, 0.975)
    if np.isfinite(df):
        reach = reach * np.sqrt(rng.chisquare(df, size=N_MODELS) / df)
    models = [f"model {place}" for place in range(N_MODELS)]
    return pd.DataFrame({"model": models, "value": values, "low": values - reach, "high": values + reach, "df": df})


def _contradicted(values: pd.DataFrame, contradicted: bool) -> Outcome:
    """The mean of the models, and whether a claim on all of them is held for contradicted."""
    return 0.0, Estimate(values["value"].mean(), N_MODELS, N_MODELS, p_value=0.0 if contradicted else 1.0)


def one_model_holm(rng: np.random.Generator, n_sets: float = np.inf, as_normal: bool = False) -> Outcome:
    """Is it contradicted that all are above zero, or that all are below? By the verdicts' rule, with Holm's method.

    As normal: with the p-value that a normal error with this interval would have.
    """
    values = _at_zero(rng, n_sets)
    if as_normal:
        values["df"] = np.inf
    claims = [Claim("zero", "", "", "", "all", "", side=side) for side in ("above", "below")]
    return _contradicted(values, any(judge(claim, values, {}).verdict == CONTRADICTED for claim in claims))


def one_model_alone(rng: np.random.Generator) -> Outcome:
    """Any model contradicts by its own interval."""
    values = _at_zero(rng, np.inf)
    is_beyond = (values["high"] < 0) | (values["low"] > 0)
    return _contradicted(values, bool(is_beyond.any()))


def change(rng: np.random.Generator, n_sets: int) -> Outcome:
    """A change whose truth is zero over matched sets: the jackknife over the groups of words that hold them."""
    group = np.arange(n_sets) % GROUPS
    differences = rng.normal(size=n_sets)
    value = differences.mean()
    estimates = np.full(GROUPS, value)
    for place in set(group):
        estimates[place] = differences[group != place].mean()
    return 0.0, Estimate(value, n_sets, n_sets, *jackknife(value, estimates))
